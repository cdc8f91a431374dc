package browser_test

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfastdev/holdfast/apps/screenshot/browser"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
	"github.com/holdfastdev/holdfast/internal/soak"
)

// The memory of browsers after many shots is at most 1.1 times that after a tenth of them, and no process is left as a zombie. The pages are different, some of them fail,
// and browsers are replaced in between.
func TestBrowsersNeitherGrowNorLeaveZombies(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only Linux says how much memory a process uses: the shots are taken, and nothing is measured")
	}
	shots := soak.Pick("shots after which the browsers have not grown", 40, 2000)
	s := open(t, func(cfg *browser.Config) { cfg.Size, cfg.Recycle.Shots = 2, shots/8 })
	at := serve(t, map[string]http.HandlerFunc{
		"/text":    text("<title>Text</title>" + strings.Repeat("<p>Some text of a page", 500)),
		"/picture": text(`<title>Picture</title><p>x<canvas width=1000 height=800></canvas><script>document.querySelector("canvas").getContext("2d").fillRect(0, 0, 900, 700)</script>`),
		"/objects": text(`<title>Objects</title><p>x<script>const all = []; for (let n = 0; n < 300000; n++) all.push({ n })</script>`),
		"/frames":  text(`<title>Frames</title><p>x` + strings.Repeat("<iframe src=/text></iframe>", 5)),
	})
	kinds := []shot.Options{
		{URL: at + "/text", FullPage: true}, {URL: at + "/picture", Format: shot.JPEG}, {URL: at + "/objects"}, {URL: at + "/frames", Format: shot.WebP},
		{URL: at + "/text", Format: shot.PDF}, {URL: at + "/none"},
	}
	var next, wrong atomic.Int64
	batch := func(n int) {
		var all sync.WaitGroup
		end := next.Load() + int64(n)
		for range 2 {
			all.Go(func() {
				for i := next.Add(1); i <= end; i = next.Add(1) {
					o := kinds[int(i)%len(kinds)]
					if _, err := s.try(o); (err != nil) != strings.HasSuffix(o.URL, "/none") {
						wrong.Add(1)
						t.Errorf("shot %d of %s: %v", i, o.URL, err)
					}
				}
			})
		}
		all.Wait()
		next.Store(end)
	}
	// The size of a browser depends on how many shots it took since its start, so the mean of several looks is compared.
	const looks = 5
	measure := func() (mean int64) {
		var all []int64
		for range looks {
			batch(max(2, shots/100))
			memory, zombies := family()
			if zombies > 0 {
				t.Errorf("%d zombies after %d shots", zombies, next.Load())
			}
			all = append(all, memory)
			mean += memory / looks
		}
		t.Logf("after %d shots the browsers use %d MiB (%v)", next.Load(), mean>>20, mib(all))
		return mean
	}
	batch(shots / 10)
	before := measure()
	batch(shots - 2*int(next.Load()))
	for range 4 {
		batch(max(2, shots/40))
	}
	after := measure()
	st := s.pool.Status()
	t.Logf("%d shots, %d wrong, %d browsers started, %d sick; memory %.3f times that after a tenth", st.Shots, wrong.Load(), st.Started, st.Sick, float64(after)/float64(max(before, 1)))
	if float64(after) > 1.1*float64(before) && soak.Deep() {
		t.Errorf("the browsers have grown from %d MiB to %d", before>>20, after>>20)
	}
	if st.Sick > 0 || st.Running > 2 || st.Recycled < 2 {
		t.Errorf("%+v", st)
	}
	s.pool.Close()
	if memory, zombies := family(); memory > 0 || zombies > 0 {
		t.Errorf("after the end of the pool there are %d MiB of processes and %d zombies", memory>>20, zombies)
	}
}

func mib(bytes []int64) (list []string) {
	for _, n := range slices.Sorted(slices.Values(bytes)) {
		list = append(list, fmt.Sprint(n>>20))
	}
	return list
}

// family returns the resident memory of the processes that this process started, and how many of them are zombies. Memory that processes share counts once.
func family() (memory int64, zombies int) {
	var shared int64
	for _, pid := range descendants(os.Getpid()) {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			continue
		}
		own := map[string]int64{}
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(line, ":")
			fields := strings.Fields(value)
			if name == "State" && fields[0] == "Z" {
				zombies++
			}
			if len(fields) == 2 && fields[1] == "kB" {
				kib, _ := strconv.ParseInt(fields[0], 10, 64)
				own[name] = kib << 10
			}
		}
		memory += own["RssAnon"]
		shared = max(shared, own["RssFile"]+own["RssShmem"])
	}
	return memory + shared, zombies
}
