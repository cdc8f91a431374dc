package browser_test

import (
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/screenshot/browser"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
	"github.com/holdfastdev/holdfast/internal/soak"
)

// A marathon is many shots of different pages, some of which fail, by browsers that are replaced in between.
type marathon struct {
	*scene
	kinds []shot.Options
	taken atomic.Int64
}

// run takes so many shots, two at the same time.
func (m *marathon) run(shots int) {
	m.Helper()
	end := m.taken.Load() + int64(shots)
	next := m.taken.Load()
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= end {
					return
				}
				o := m.kinds[int(i)%len(m.kinds)]
				if _, err := m.try(o); (err != nil) != strings.HasSuffix(o.URL, "/none") {
					m.Errorf("shot %d of %s: %v", i, o.URL, err)
				}
				m.taken.Add(1)
			}
		})
	}
	all.Wait()
}

// looks is how often the memory is read in a window.
const looks = 20

// measure returns the mean memory of the browsers over a window of shots. The window is as long as both browsers live, because a browser grows from its start to its end.
func (m *marathon) measure(window int) (mean int64) {
	m.Helper()
	var all []int64
	for range looks {
		m.run(max(1, window/looks))
		memory := m.rest()
		all, mean = append(all, memory), mean+memory/looks
	}
	m.Logf("up to shot %d the browsers use %d MiB in the mean, from %d to %d", m.taken.Load(), mean>>20, slices.Min(all)>>20, slices.Max(all)>>20)
	return mean
}

// rest waits until no process begins or ends, and none is a zombie. It returns the memory of the browsers then.
func (m *marathon) rest() (memory int64) {
	m.Helper()
	end := time.Now().Add(time.Minute)
	for before := ""; ; <-time.After(100 * time.Millisecond) {
		memory, zombies, members := family()
		if members == before && zombies == 0 {
			return memory
		}
		if before = members; time.Now().After(end) {
			m.Errorf("there are %d zombies after %d shots: %s", zombies, m.taken.Load(), members)
			return memory
		}
	}
}

// The memory of browsers after many shots is at most 1.1 times that after a tenth of them, and no process is left as a zombie. In `make test` there are too few shots to judge
// the memory.
func TestBrowsersNeitherGrowNorLeaveZombies(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only Linux says how much memory a process uses: the shots are taken, and nothing is measured")
	}
	shots, each := soak.Pick("shots after which the browsers have not grown", 40, 2000), soak.Pick("shots of a browser in the soak of browsers", 10, 100)
	s := open(t, func(cfg *browser.Config) { cfg.Size, cfg.Recycle.Shots = 2, each })
	at := serve(t, map[string]http.HandlerFunc{
		"/text":    text("<title>Text</title>" + strings.Repeat("<p>Some text of a page", 500)),
		"/picture": text(`<title>Picture</title><p>x<canvas width=1000 height=800></canvas><script>document.querySelector("canvas").getContext("2d").fillRect(0, 0, 900, 700)</script>`),
		"/objects": text(`<title>Objects</title><p>x<script>const all = []; for (let n = 0; n < 300000; n++) all.push({ n })</script>`),
		"/frames":  text(`<title>Frames</title><p>x` + strings.Repeat("<iframe src=/text></iframe>", 5)),
	})
	m := &marathon{scene: s, kinds: []shot.Options{
		{URL: at + "/text", FullPage: true}, {URL: at + "/picture", Format: shot.JPEG}, {URL: at + "/objects"}, {URL: at + "/frames", Format: shot.WebP}, {URL: at + "/text", Format: shot.PDF}, {URL: at + "/none"},
	}}
	m.run(shots / 10)
	before := m.measure(2 * each)
	m.run(shots - 2*each - int(m.taken.Load()))
	after := m.measure(2 * each)
	st := s.pool.Status()
	t.Logf("%d shots, %d failed as they should, %d browsers started, %d sick; memory %.3f times that after a tenth", st.Shots, st.Failed, st.Started, st.Sick, float64(after)/float64(max(before, 1)))
	if soak.Deep() && float64(after) > 1.1*float64(before) {
		t.Errorf("the browsers have grown from %d MiB to %d", before>>20, after>>20)
	}
	if st.Sick > 0 || st.Running > 2 || st.Recycled < 2 || int64(st.Shots) != m.taken.Load() {
		t.Errorf("%+v", st)
	}
	s.pool.Close()
	if _, zombies, members := family(); zombies > 0 || members != "" {
		t.Errorf("after the end of the pool there are processes: %s", members)
	}
}

// family returns the resident memory of the processes that this process started, how many of them are zombies, and their ids. Memory that processes share counts once.
func family() (memory int64, zombies int, members string) {
	var shared int64
	for _, pid := range descendants(os.Getpid()) {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			continue
		}
		members += strconv.Itoa(pid) + " "
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
	return memory + shared, zombies, members
}
