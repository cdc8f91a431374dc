//go:build unix

package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"image"
	"image/png"
	"math"
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
	peers  = flag.Bool("bench.peers", false, "run puppeteer-cluster and Gotenberg as well, and judge the targets")
	rounds = flag.Int("bench.rounds", 1, "how often each contender runs, in turns")
	times  = flag.Int("bench.times", 1, "how often each page is shot in a round")
	most   = flag.Int("bench.pages", soak.Pick("pages of the benchmark of screenshots", 4, 20), "how many of the 20 pages")
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
	program, err := os.ReadFile("peer_gotenberg.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	binary, exists := tool(t, fmt.Sprintf("gotenberg-v8.34.0-%x", sha256.Sum256(program))[:26])
	if exists {
		return binary
	}
	folder := t.TempDir()
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
	folder, exists := tool(t, "puppeteer-cluster-0.25.0-24.43.1")
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
	cmd := exec.Command(npm, "install", "--prefix", folder, "--legacy-peer-deps", "--no-audit", "--no-fund", "puppeteer-cluster@0.25.0", "puppeteer-core@24.43.1")
	if out, err := cmd.CombinedOutput(); err != nil {
		_ = os.RemoveAll(folder)
		t.Fatalf("cannot install puppeteer-cluster: %v\n%s", err, out)
	}
	return folder
}

// A result is what a contender did in a round.
type result struct {
	perSecond float64
	took      []time.Duration // of each picture, the shortest first
	cpu       time.Duration   // of the contender and its browsers, for one picture
	failed    int
	pictures  map[string][]byte // the last one of each address
}

// quantile returns the time within which a share of the pictures were taken.
func (r result) quantile(share float64) time.Duration {
	return r.took[min(int(share*float64(len(r.took))), len(r.took)-1)]
}

// run takes pictures of all pages, so many at the same time.
func (r *running) run(addresses []string, atOnce int) (result, error) {
	var mu sync.Mutex
	var failed error
	done := result{pictures: map[string][]byte{}}
	var next atomic.Int64
	var all sync.WaitGroup
	began, before := time.Now(), processorTime(r.pid)
	for range atOnce {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(addresses); i = int(next.Add(1)) - 1 {
				ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
				start := time.Now()
				picture, err := r.shoot(ctx, request{url: addresses[i]})
				cancel()
				mu.Lock()
				done.took = append(done.took, time.Since(start))
				done.pictures[addresses[i]] = picture
				if err != nil {
					done.failed++
					failed = fmt.Errorf("%s: %w", addresses[i], err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(done.took)
	done.cpu = (processorTime(r.pid) - before) / time.Duration(len(addresses))
	done.perSecond = float64(len(addresses)) / time.Since(began).Seconds()
	return done, failed
}

// The targets.
const (
	leastRate  = 1.0   // times the pictures per second of the fastest peer
	mostTail   = 1.1   // times the 95th percentile of the fastest peer
	mostPixels = 0.001 // of the pixels of a picture may differ from those of a peer
)

// With -bench.peers the test fails if a target is missed.
func TestAllContendersTakeTheSamePictures(t *testing.T) {
	all := contenders(t)
	addresses := servePages(t)
	addresses = addresses[:min(*most, len(addresses))]
	concurrencies := []int{2}
	if *peers || soak.Deep() {
		concurrencies = []int{2, 4}
	}
	for _, atOnce := range concurrencies {
		results := map[string][]result{}
		for round := range *rounds {
			for i := range all {
				c := all[(i+round)%len(all)] // none is always the first
				r := play(t, c, addresses, atOnce)
				t.Logf("%d at once, round %d: %-18s %5.2f pictures/s, median %4d ms, p95 %4d ms, processor time of a picture %4d ms", atOnce, round+1, c.name, r.perSecond,
					r.quantile(0.5).Milliseconds(), r.quantile(0.95).Milliseconds(), r.cpu.Milliseconds())
				results[c.name] = append(results[c.name], r)
			}
		}
		compareSpeed(t, atOnce, all, results)
		for _, c := range all[1:] {
			comparePictures(t, c.name, results[all[0].name], results[c.name])
		}
	}
}

// play lets a contender take pictures of all pages, after a few that are not measured, during which its browsers start.
func play(t *testing.T, c contender, addresses []string, atOnce int) result {
	t.Helper()
	running := c.start(t, atOnce, limit)
	defer running.stop()
	if r, err := running.run(addresses[:min(2*atOnce, len(addresses))], atOnce); err != nil {
		t.Errorf("%s, before the measurement: %d pictures failed, the last one %v", c.name, r.failed, err)
	}
	r, err := running.run(slices.Repeat(addresses, *times), atOnce)
	if err != nil {
		t.Errorf("%s: %d pictures failed, the last one %v", c.name, r.failed, err)
	}
	return r
}

// compareSpeed prints the medians of the rounds, and compares those of the service with the best ones of the peers.
func compareSpeed(t *testing.T, atOnce int, all []contender, results map[string][]result) {
	t.Helper()
	rate := func(r result) float64 { return r.perSecond }
	tail := func(r result) float64 { return r.quantile(0.95).Seconds() }
	work := func(r result) float64 { return r.cpu.Seconds() }
	best, shortest := 0.0, math.Inf(1)
	for i, c := range all {
		perSecond, p95 := median(results[c.name], rate), median(results[c.name], tail)
		t.Logf("%d at once, median of %d rounds: %-18s %5.2f pictures/s, p95 %4.0f ms, processor time of a picture %4.0f ms", atOnce, len(results[c.name]), c.name, perSecond, 1000*p95,
			1000*median(results[c.name], work))
		if i > 0 {
			best, shortest = max(best, perSecond), min(shortest, p95)
		}
	}
	if len(all) == 1 {
		return
	}
	ours := results[all[0].name]
	judge(t, fmt.Sprintf("pictures per second of the fastest peer with %d at once", atOnce), median(ours, rate)/best, ">=", leastRate)
	judge(t, fmt.Sprintf("95th percentile of the fastest peer with %d at once", atOnce), median(ours, tail)/shortest, "<=", mostTail)
}

// judge compares a measured factor with its target.
func judge(t *testing.T, what string, factor float64, relation string, target float64) {
	t.Helper()
	met := factor >= target
	if relation == "<=" {
		met = factor <= target
	}
	if met {
		t.Logf("target met:    %.2f times the %s (target %s %.2f)", factor, what, relation, target)
		return
	}
	t.Errorf("target missed: %.2f times the %s (target %s %.2f)", factor, what, relation, target)
}

// comparePictures compares the last pictures of the service with those of a peer.
func comparePictures(t *testing.T, name string, ours, theirs []result) {
	t.Helper()
	worst := 0.0
	for address, picture := range theirs[len(theirs)-1].pictures {
		share, err := different(ours[len(ours)-1].pictures[address], picture)
		if err != nil {
			t.Errorf("%s: the pictures of the service and of %s: %v", address, name, err)
			continue
		}
		worst = max(worst, share)
		if share > mostPixels {
			t.Errorf("target missed: %s: %.3f %% of the pixels differ from those of %s (target <= %.1f %%)", address[strings.LastIndex(address, "/"):], 100*share, name, 100*mostPixels)
		}
	}
	t.Logf("at most %.4f %% of the pixels of a picture differ from those of %s", 100*worst, name)
}

func median(list []result, of func(result) float64) float64 {
	var values []float64
	for _, r := range list {
		values = append(values, of(r))
	}
	slices.Sort(values)
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
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
