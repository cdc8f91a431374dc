package console_test

import (
	"bytes"
	"errors"
	"flag"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
	"github.com/holdfastdev/holdfast/internal/fixture"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

var (
	pictures    = flag.String("pictures", "", "keep pictures of the console in this folder")
	allPictures = flag.Bool("pictures.all", false, "with -pictures: of every screen in both themes, instead of the few that the documentation shows")
)

// shown are the screenshots of the documentation.
var shown = []string{
	"overview-light", "overview-dark", "failures-light", "failures-phone", "failure-light", "jobs-light", "job-light", "job-dark",
	"redrive-preview-light", "breakers-light", "group-light", "policies-light",
}

// TestPictures takes screenshots of the screens, and saves them with -pictures.
func TestPictures(t *testing.T) {
	t.Parallel()
	dir, wanted := *pictures, shown
	if dir == "" {
		dir, wanted = t.TempDir(), []string{"overview-light", "failures-phone"}
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s, screens := day(t)
	if *allPictures {
		wanted = nil
		for _, name := range slices.Sorted(maps.Keys(screens)) {
			wanted = append(wanted, name+"-light", name+"-dark", name+"-phone")
		}
	}
	p := browser.New(t)
	size := 0
	for _, name := range wanted {
		cut := strings.LastIndex(name, "-")
		screen, look := name[:cut], name[cut+1:]
		width, theme := int64(1280), look
		if look == "phone" {
			width, theme = 390, "light"
		}
		p.Likes(theme, true)
		p.Size(width, 800)
		p.Go(s.site + screens[screen])
		ready(p)
		file := filepath.Join(dir, name+".png")
		p.ShotOf(file, width, 1600)
		n, err := thin(file)
		if err != nil || n < 10_000 {
			t.Fatalf("%s is not a valid picture: %d bytes, %v", name, n, err)
		}
		size += n
	}
	if !*allPictures && size > 2<<20 {
		t.Errorf("the pictures have %d bytes in all: keep fewer, or smaller ones", size)
	}
	for _, complaint := range p.Complaints() {
		t.Error(complaint)
	}
}

// thin reduces a picture to 256 colours and returns its size. Screens have few colours; only shades at the edges of letters are lost.
func thin(file string) (int, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	whole, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		return 0, err
	}
	seen := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(whole.At(x, y)).(color.RGBA) }
	area := whole.Bounds()
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			seen[at(x, y)]++
		}
	}
	made := image.NewPaletted(area, few(seen))
	nearest := map[color.RGBA]uint8{}
	for one := range seen {
		nearest[one] = uint8(made.Palette.Index(one))
	}
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			made.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, made); err != nil {
		return 0, err
	}
	return out.Len(), os.WriteFile(file, out.Bytes(), 0o644)
}

// few returns the 256 most important colours: it repeatedly takes the colour with the largest product of frequency and distance to the colours chosen so far.
func few(seen map[color.RGBA]int) (chosen color.Palette) {
	far := map[color.RGBA]float64{}
	for one := range seen {
		far[one] = 3 << 16
	}
	for len(chosen) < 256 && len(chosen) < len(seen) {
		var next color.RGBA
		worst := -1.0
		for one, n := range seen {
			if missed := far[one] * float64(n); missed > worst {
				worst, next = missed, one
			}
		}
		chosen = append(chosen, next)
		for one, was := range far {
			r, g, b := float64(one.R)-float64(next.R), float64(one.G)-float64(next.G), float64(one.B)-float64(next.B)
			far[one] = min(was, r*r+g*g+b*b)
		}
	}
	return chosen
}

// day returns a scene with the history of one day: complete jobs, a few failures, and an outage at the end.
func day(t *testing.T) (*scene, map[string]string) {
	t.Helper()
	var back, step atomic.Int64 // how far the store's clock is behind, and how much each read advances it
	clock := func() time.Time {
		behind := back.Load()
		if by := step.Load(); behind > 0 && by > 0 {
			behind = max(0, back.Add(-by))
		}
		return time.Now().Add(-time.Duration(behind))
	}
	past := &scene{Scene: &fixture.Scene{Store: openStore(t, clock)}, t: t}
	slow := failure.On(&failure.HTTPError{Status: 504, Err: errors.New("gateway timed out")}, "gateway")
	for ago, n := 24*60-5, 0; ago > 20; n++ {
		back.Store(int64(time.Duration(ago) * time.Minute))
		many := 4 + n*7%11
		past.enqueue(many, "mail")
		past.ends(&back, past.claim(many, "mail"), failure.Outcome{Took: time.Duration(80+n) * time.Millisecond})
		if n%9 == 0 {
			past.enqueue(1, "convert")
			past.ends(&back, past.claim(1, "convert"), failure.Outcome{Err: slow, Took: 4 * time.Second})
		}
		if ago -= 25; ago < 90 {
			ago += 23 // the last hour has more detail
		}
	}
	tried := past.tries(&back, 20*time.Minute)
	back.Store(int64(16 * time.Minute))
	step.Store(int64(16 * time.Second))
	s := begin(t, past.Store, apikey.Operator, nil)
	back.Store(0)
	for _, one := range []store.WorkerInfo{
		{Worker: "worker-a/1", Queues: []string{"convert", "default"}, Kinds: []string{"convert", "mail"}, Depends: map[string]string{"convert": "gateway"}, Version: "1.4.0", Slots: 4, For: time.Hour},
		{Worker: "worker-b/1", Queues: []string{"fetch"}, Kinds: []string{"fetch"}, Version: "1.3.2", Slots: 2, For: time.Hour},
	} {
		if err := s.Store.ReportWorker(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	id, err := s.Operator.StartRedrive(t.Context(), redrive.Spec{Filter: store.Filter{Kind: "fetch"}, Canary: 1, PerSecond: 2, Actor: "grace", Reason: "the page is back"})
	if err == nil {
		err = s.Operator.PauseRedrive(t.Context(), id, ops.Actor{Name: "grace", Reason: "looking at the canary first"})
	}
	if err != nil {
		t.Fatal(err)
	}
	screens := s.screens()
	screens["job"] = "/jobs/" + tried.String()
	screens["failure"] = "/failures/" + s.job(s.Failed[0]).LastFailure.Fingerprint
	screens["redrive"] = "/redrives/" + id.String()
	screens["redrive-preview"] = "/redrives/new?kind=convert&step=preview"
	screens["policies"] = "/policies?kind=convert"
	screens["jobs"] = "/jobs?q=is%3Adead"
	return s, screens
}

// ends advances the clock by the duration of attempts, and settles them.
func (s *scene) ends(back *atomic.Int64, leases []store.Lease, o failure.Outcome) {
	s.t.Helper()
	back.Add(-int64(o.Took))
	s.settle(leases, o)
}

// tries adds a job with several attempts and growing delays between them.
func (s *scene) tries(back *atomic.Int64, ago time.Duration) holdfast.ID {
	s.t.Helper()
	back.Store(int64(ago))
	down := failure.On(&failure.HTTPError{Status: 503, Err: errors.New("gateway answered 503 for document 4711")}, "gateway")
	receipts, err := s.Store.Enqueue(s.t.Context(), []holdfast.Draft{{Kind: "convert", Queue: "convert", Dependency: "gateway", Owner: "ada", MaxAttempts: 4, Args: []byte(`{"document":"invoice-4711.pdf","account":9007199254740993}`)}})
	if err != nil {
		s.t.Fatal(err)
	}
	for range 4 {
		back.Add(-int64(2 * time.Second))
		if _, err := s.Store.Promote(s.t.Context(), 10); err != nil {
			s.t.Fatal(err)
		}
		s.ends(back, s.claim(1, "convert"), failure.Outcome{Err: down, Took: 7 * time.Second, Roll: 0.5})
		back.Add(-int64(50 * time.Second))
	}
	return receipts[0].ID
}
