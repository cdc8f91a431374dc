package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/pdf/pdftest"
	"github.com/holdfastdev/holdfast/internal/soak"
)

var (
	loadUploads = flag.Int("load.uploads", 20, "so many uploads at once")
	loadJobs    = flag.Int("load.jobs", soak.Pick("PDFs that the converter gets under load", 40, 600), "so many PDFs in all")
)

// A load is many clients that upload at once, and the answers they got.
type load struct {
	at     string
	client *http.Client // one session: so that one list tells of all

	mu       sync.Mutex
	took     []time.Duration
	troubles []string
}

// What many uploads at once, and a long queue, cost is logged. Nothing is asserted of time: with -load.uploads 200 -load.jobs 5000 -v it is the
// measurement of issue 7 ('make load').
func TestUnderLoadNothingIsLostAndMemoryStaysFlat(t *testing.T) {
	gateway := freeAddress(t)
	data := t.TempDir()
	env := []string{"UPLOADS_PER_MINUTE=1000000", "DATA_DIR=" + data, "DATABASE_URL=" + os.Getenv("LOAD_DATABASE_URL"), "UPLOADS_DIR=", "RESULTS_DIR=", "GATEWAY_URL=http://" + gateway, "GATEWAY_ADDR=" + gateway, "ADDR=127.0.0.1:0"}
	web := launch(t, env, "The page is at ", "web")
	l := &load{at: web.says("The page is at "), client: newClient(t)}
	l.client.Transport = &http.Transport{MaxIdleConnsPerHost: *loadUploads}
	if code, body := statusOf(l.client, l.at+"/api/jobs"); code != http.StatusOK { // it makes the session
		t.Fatalf("%d %s", code, body)
	}
	idle := memory(t, web)
	begun := time.Now()
	l.upload(t, *loadUploads, *loadJobs)
	uploaded := time.Since(begun)
	if len(l.troubles) > 0 {
		t.Fatalf("%d uploads went wrong, the first: %s", len(l.troubles), l.troubles[0])
	}
	loaded := memory(t, web)

	launch(t, env, "The gateway is at ", "gateway")
	worker := launch(t, env, "Worker ", "worker")
	begun = time.Now()
	l.waitFor(t, *loadJobs)
	drained := time.Since(begun)
	slices.Sort(l.took)
	t.Logf("%d uploads at once, %d in all: %.0f a second, p50 %v, p99 %v, the slowest %v; the web process %d MB idle, %d MB at most while they came",
		*loadUploads, *loadJobs, float64(*loadJobs)/uploaded.Seconds(), l.percent(50), l.percent(99), l.percent(100), idle>>20, loaded>>20)
	t.Logf("%d queued conversions drained in %v: %.1f a second; the worker took %d MB at most, the web process %d MB", *loadJobs, drained.Round(time.Second), float64(*loadJobs)/drained.Seconds(), memory(t, worker)>>20, memory(t, web)>>20)
}

// upload has so many PDFs uploaded, each another, by so many at once.
func (l *load) upload(t *testing.T, atOnce, all int) {
	var next atomic.Int64
	var people sync.WaitGroup
	for range atOnce {
		people.Go(func() {
			for n := next.Add(1); n <= int64(all); n = next.Add(1) {
				l.one(t, int(n))
			}
		})
	}
	people.Wait()
}

func (l *load) one(t *testing.T, n int) {
	pdf := pdftest.Simple(t, fmt.Sprintf("Letter number %d", n), strings.Repeat("It says what letters say. ", 20))
	kind, body := formOf(fmt.Sprintf("letter-%d.pdf", n), pdf)
	begun := time.Now()
	response, err := l.client.Post(l.at+"/api/upload", kind, body)
	took := time.Since(begun)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.troubles = append(l.troubles, err.Error())
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		l.troubles = append(l.troubles, response.Status)
		return
	}
	l.took = append(l.took, took)
}

func (l *load) percent(p int) time.Duration {
	return l.took[min(len(l.took)-1, len(l.took)*p/100)].Round(time.Millisecond)
}

// count asks how many of the files are in a state, page by page.
func (l *load) count(t *testing.T, status string) (n int) {
	for cursor := ""; ; {
		var page struct {
			Jobs []view `json:"jobs"`
			Next string `json:"next_cursor"`
		}
		asks(t, l.client, l.at+"/api/jobs?limit=200&status="+status+"&cursor="+cursor, &page)
		n += len(page.Jobs)
		if cursor = page.Next; cursor == "" {
			return n
		}
	}
}

// waitFor looks now and then whether all are complete. It gives up when nothing has moved for minutes.
func (l *load) waitFor(t *testing.T, all int) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	seen, moved := 0, time.Now()
	for seen < all {
		<-tick.C
		n := l.count(t, "complete")
		if n > seen {
			seen, moved = n, time.Now()
		}
		if time.Since(moved) > 3*time.Minute {
			t.Fatalf("%d of %d are complete, and nothing moves", seen, all)
		}
	}
}

// memory is the most that a process had in memory so far, in bytes; 0 where the system does not report it.
func memory(t *testing.T, p *process) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	n, _ := strconv.Atoi(strings.Fields(rest)[0])
	return n << 10
}
