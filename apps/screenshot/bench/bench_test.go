//go:build unix

package bench

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/screenshot/browser"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/internal/testprograms"
)

var (
	peers  = flag.Bool("bench.peers", false, "run puppeteer-cluster and Gotenberg as well")
	rounds = flag.Int("bench.rounds", 1, "how often each contender runs, in turns")
	times  = flag.Int("bench.times", 1, "how often each page is shot in a round")
	most   = flag.Int("bench.pages", soak.Pick("pages of the benchmark of screenshots", 4, 20), "so many of the 20 pages")
)

const limit = 30 * time.Second // of one picture

func contenders(t *testing.T) []contender {
	t.Helper()
	chromium := browser.Find()
	if _, err := exec.LookPath(chromium); err != nil {
		if chromium, err = testprograms.Chromium.Ensure(); err != nil {
			t.Fatal(err)
		}
	}
	all := []contender{service(build(t, "..", filepath.Join(t.TempDir(), "screenshot")), chromium)}
	if !*peers {
		return all
	}
	return append(all, puppeteer(installPuppeteer(t), chromium), gotenberg(buildGotenberg(t), chromium))
}

func build(t *testing.T, folder, binary string) string {
	t.Helper()
	cmd := exec.Command("go", "build", "-C", folder, "-o", binary, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v\n%s", filepath.Base(binary), err, out)
	}
	return binary
}

// tool returns the path of a tool in the cache of the user, and whether it exists.
func tool(t *testing.T, name string) (path string, exists bool) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(cache, "holdfast-tools", name)
	_, err = os.Stat(path)
	return path, err == nil
}

func buildGotenberg(t *testing.T) string {
	t.Helper()
	binary, exists := tool(t, "gotenberg-v8.34.0")
	if exists {
		return binary
	}
	folder := t.TempDir()
	program, err := os.ReadFile("peer_gotenberg.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"main.go": program, "go.mod": []byte("module peer\n\ngo 1.26.0\n\nrequire github.com/gotenberg/gotenberg/v8 v8.34.0\n")} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tidy := exec.Command("go", "mod", "tidy")
	tidy.Dir = folder
	if out, err := tidy.CombinedOutput(); err != nil {
		t.Fatalf("cannot get the modules of Gotenberg: %v\n%s", err, out)
	}
	return build(t, folder, binary)
}

func installPuppeteer(t *testing.T) string {
	t.Helper()
	folder, exists := tool(t, "puppeteer-cluster-0.25.0")
	if exists {
		return folder
	}
	npm, err := testprograms.Npm.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	// Without its peer dependency puppeteer, which would install a browser of its own.
	cmd := exec.Command(npm, "install", "--prefix", folder, "--legacy-peer-deps", "--no-audit", "--no-fund", "puppeteer-cluster@0.25.0", "puppeteer-core@25.16.0")
	if out, err := cmd.CombinedOutput(); err != nil {
		_ = os.RemoveAll(folder)
		t.Fatalf("cannot install puppeteer-cluster: %v\n%s", err, out)
	}
	return folder
}

// A result is what a contender did in a round.
type result struct {
	perSecond float64
	p50, p95  time.Duration
	failed    int
	pictures  map[string][]byte
}

// run takes pictures of all pages, so many at the same time.
func (r *running) run(addresses []string, atOnce int) (result, error) {
	var mu sync.Mutex
	var took []time.Duration
	var firstErr error
	done := result{pictures: map[string][]byte{}}
	var next atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range atOnce {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(addresses); i = int(next.Add(1)) - 1 {
				ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
				start := time.Now()
				picture, err := r.shoot(ctx, request{url: addresses[i]})
				cancel()
				mu.Lock()
				took = append(took, time.Since(start))
				done.pictures[addresses[i]] = picture
				if err != nil {
					done.failed++
					firstErr = fmt.Errorf("%s: %w", addresses[i], err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	done.perSecond = float64(len(addresses)) / time.Since(began).Seconds()
	done.p50, done.p95 = took[len(took)/2], took[len(took)*95/100]
	return done, firstErr
}

func TestAllContendersTakeTheSamePictures(t *testing.T) {
	all := contenders(t)
	addresses := servePages(t)
	slices.Sort(addresses)
	addresses = addresses[:min(*most, len(addresses))]
	for _, atOnce := range []int{2, 4}[:soak.Pick("concurrencies of the benchmark of screenshots", 1, 2)+btoi(*peers)*btoi(!soak.Deep())] {
		results := map[string][]result{}
		for round := range *rounds {
			for i := range all {
				c := all[(i+round)%len(all)] // none is always the first
				running := c.start(t, atOnce, limit)
				if _, err := running.run(addresses[:min(2*atOnce, len(addresses))], atOnce); err != nil { // the browsers start
					t.Errorf("%s: %v", c.name, err)
				}
				r, err := running.run(slices.Repeat(addresses, *times), atOnce)
				running.stop()
				if err != nil {
					t.Errorf("%s: %d failed, last %v", c.name, r.failed, err)
				}
				t.Logf("%d at once, round %d: %-18s %5.2f pictures/s, median %4d ms, p95 %4d ms", atOnce, round+1, c.name, r.perSecond, r.p50.Milliseconds(), r.p95.Milliseconds())
				results[c.name] = append(results[c.name], r)
			}
		}
		report(t, atOnce, all, results)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// report prints the medians of the rounds, and compares the pictures.
func report(t *testing.T, atOnce int, all []contender, results map[string][]result) {
	t.Helper()
	ours := results[all[0].name]
	rate := func(r result) float64 { return r.perSecond }
	tail := func(r result) float64 { return r.p95.Seconds() }
	for _, c := range all {
		theirs := results[c.name]
		t.Logf("%d at once, median of %d rounds: %-18s %5.2f pictures/s, p95 %4.0f ms; the service has %.2f times the pictures/s and %.2f times the p95", atOnce, len(theirs), c.name,
			median(theirs, rate), 1000*median(theirs, tail), median(ours, rate)/median(theirs, rate), median(ours, tail)/median(theirs, tail))
		var worst float64
		var which string
		for address, picture := range theirs[0].pictures {
			share, err := different(ours[0].pictures[address], picture)
			if err != nil {
				t.Errorf("%s of %s: %v", address, c.name, err)
			}
			if share > 0.001 {
				t.Logf("%s of %s: %.3f %% of the pixels are different", address[strings.LastIndex(address, "/"):], c.name, 100*share)
			}
			if share > worst {
				worst, which = share, address
			}
		}
		t.Logf("%d at once: at most %.4f %% of the pixels are different from those of %s %s", atOnce, 100*worst, c.name, which)
	}
}

func median(list []result, of func(result) float64) float64 {
	var values []float64
	for _, r := range list {
		values = append(values, of(r))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// tolerance is by how much a channel of two equal pixels may differ, of 255.
const tolerance = 8

// different returns the share of pixels that differ.
func different(a, b []byte) (float64, error) {
	x, err := png.Decode(bytes.NewReader(a))
	if err != nil {
		return 1, err
	}
	y, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return 1, err
	}
	if x.Bounds() != y.Bounds() {
		return 1, fmt.Errorf("one has %v, the other %v", x.Bounds().Size(), y.Bounds().Size())
	}
	wrong := 0
	size := x.Bounds().Size()
	for j := range size.Y {
		for i := range size.X {
			if !near(x, y, i, j) {
				wrong++
			}
		}
	}
	return float64(wrong) / float64(size.X*size.Y), nil
}

func near(a, b image.Image, x, y int) bool {
	r1, g1, b1, _ := a.At(x, y).RGBA()
	r2, g2, b2, _ := b.At(x, y).RGBA()
	for _, d := range []int{int(r1>>8) - int(r2>>8), int(g1>>8) - int(g2>>8), int(b1>>8) - int(b2>>8)} {
		if d > tolerance || d < -tolerance {
			return false
		}
	}
	return true
}
