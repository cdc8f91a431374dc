package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/apps/fetchbox/ledger"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/processtest"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// A victim is a FetchBox in a process of its own that is killed again and again.
type victim struct {
	*testing.T
	env  []string
	data string

	mu   sync.Mutex
	p    *processtest.Process
	at   string
	key  string
	jobs map[holdfast.ID]string // what was acknowledged, with its manifest's idempotency key
}

func newVictim(t *testing.T) *victim {
	v := &victim{T: t, data: t.TempDir(), jobs: map[holdfast.ID]string{}}
	v.env = []string{
		"DATA_DIR=" + v.data, "ADDR=127.0.0.1:0", "NATS_ADDR=off", "ALLOW_PRIVATE=on", "RETRY_BASE_DELAY_MS=50", "DOWNLOAD_RETRY_LIMIT=3", "WORKER_LEASE_TTL_SEC=1", "WORKER_LOST_LIMIT=1000",
		"HOST_CONCURRENCY=100", "WORKER_CONCURRENCY=8",
	}
	v.start()
	return v
}

func (v *victim) start() {
	v.Helper()
	p := processtest.Launch(v.T, v.env, "The page is at ")
	p.Says("An API key for this machine is in ")
	text, err := os.ReadFile(filepath.Join(v.data, "key"))
	if err != nil {
		v.Fatal(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.p, v.at, v.key = p, p.Says("The page is at "), strings.TrimSpace(string(text))
}

// submit sends a manifest until it is acknowledged, however often the process is killed meanwhile.
func (v *victim) submit(name, body string) {
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		v.mu.Lock()
		at, key := v.at, v.key
		v.mu.Unlock()
		a, err := client{at, key}.try("POST", "/api/jobs", body, "Idempotency-Key", name)
		if err != nil || a.status >= 500 {
			continue
		}
		var done accepted
		a.is(v.T, http.StatusAccepted, &done)
		v.mu.Lock()
		v.jobs[done.Job] = name
		v.mu.Unlock()
		return
	}
	v.Errorf("%s was never acknowledged", name)
}

// kill -9 at random points: nothing acknowledged is lost, nothing is stored or published twice, and no file is left.
func TestNothingIsLostOrDoubledWhenTheProcessIsKilled(t *testing.T) {
	kills := soak.Pick("kills of FetchBox", 8, 200)
	o, v := newOrigin(t), newVictim(t)
	const each = 6 // resources of a job
	var submitted sync.WaitGroup
	jobs := 3 * kills
	submitted.Go(func() {
		for n := range jobs {
			var paths []string
			for _, kind := range []string{"ok", "slow", "flaky/1", "status/404", "status/500", "ok/second"} {
				paths = append(paths, fmt.Sprintf("/%s/%d", kind, n))
			}
			v.submit(fmt.Sprint("manifest ", n), manifestOf(o.URL, paths...))
			<-time.After(50 * time.Millisecond)
		}
	})
	for range kills {
		<-time.After(time.Duration(rand.Int64N(int64(1500 * time.Millisecond))))
		v.p.Kill()
		v.start()
	}
	submitted.Wait()
	v.awaitEnd(jobs, each)
	v.p.Kill()
	v.start() // what the last kill left is swept at the start
	v.until("the last duties are done", func() bool { return len(filesIn(t, filepath.Join(v.data, "spool"), ".lock")) == 0 })
	v.p.Kill()
	v.account(o, jobs, each)
}

func (v *victim) until(what string, yes func() bool) {
	v.Helper()
	for end := time.Now().Add(patience); !yes(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			v.Fatalf("timed out waiting until %s\n%s", what, v.p.Output())
		}
	}
}

// awaitEnd waits until every resource has ended and has its dead letter.
func (v *victim) awaitEnd(jobs, each int) {
	v.Helper()
	v.until("all resources have ended", func() bool {
		seen, cursor := 0, ""
		for {
			var page struct {
				Jobs []jobView
				Next *holdfast.ID `json:"next_cursor"`
			}
			a, err := client{v.at, v.key}.try("GET", "/api/jobs?limit=200&cursor="+cursor, "")
			if err != nil || a.status != http.StatusOK {
				return false
			}
			a.is(v.T, http.StatusOK, &page)
			for _, j := range page.Jobs {
				if j.ResourcesQueued+j.ResourcesRunning > 0 || j.Resources != each || j.ResourcesFailed > 0 && j.DeadLetter == 0 {
					return false
				}
			}
			seen += len(page.Jobs)
			if page.Next == nil {
				return seen == jobs
			}
			cursor = page.Next.String()
		}
	})
}

// account checks at the end that every acknowledged resource was stored once, or has one dead letter, and that nothing else is there.
func (v *victim) account(o *origin, jobs, each int) {
	t := v.T
	v.Helper()
	if len(v.jobs) != jobs {
		t.Errorf("%d jobs were acknowledged, want %d", len(v.jobs), jobs)
	}
	set := settingsFor(t, "DATA_DIR", v.data)
	db, err := anystore.Open(t.Context(), set.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if report, err := ops.New(db, ops.Config{}).CheckIntegrity(t.Context()); err != nil || !report.Healthy {
		t.Errorf("the store is not well: %+v, %v", report, err)
	}
	stored, dead := map[string]string{}, map[string]holdfast.Job{}
	total := 0
	for cursor := ""; ; {
		tasks, next, err := db.Jobs(t.Context(), store.Filter{Kind: Task{}.Kind(), Limit: 200, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		a := &app{ledger: nil}
		for _, job := range tasks {
			total++
			if v.jobs[job.Group] == "" {
				t.Errorf("job %s was accepted and its client does not know it", job.Group)
			}
			switch job.State {
			case holdfast.Complete:
				r, err := a.resourceView(job)
				if err != nil {
					t.Fatal(err)
				}
				stored[r.Result.Key] = contentOf(strings.TrimPrefix(r.URL, o.URL))
			case holdfast.Failed:
				dead[job.ID.String()] = job
			default:
				t.Errorf("%s is %s", job.ID, job.State)
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if total != jobs*each || len(stored) != jobs*4 || len(dead) != jobs*2 {
		t.Errorf("%d resources, %d stored, %d dead; want %d, %d, %d", total, len(stored), len(dead), jobs*each, jobs*4, jobs*2)
	}
	files := filesIn(t, set.Bucket)
	if len(files) != len(stored) {
		t.Errorf("%d files in the bucket, %d objects", len(files), len(stored))
	}
	bucket, err := blob.Open(t.Context(), set.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range stored {
		if objectIn(t, bucket, key) != want {
			t.Errorf("the object %s is not what the origin has", key)
		}
	}
	v.accountLetters(dead)
}

func (v *victim) accountLetters(dead map[string]holdfast.Job) {
	t := v.T
	v.Helper()
	server, err := deadletter.StartServer(filepath.Join(v.data, "nats"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	stream, err := deadletter.Connect("", 0, server.Option())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	letters := map[string]uint64{}
	for letter, err := range stream.From(context.Background(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if letters[letter.GetTaskId()] > 0 {
			t.Errorf("%s has two dead letters", letter.GetTaskId())
		}
		letters[letter.GetTaskId()] = letter.Sequence
	}
	if len(letters) != len(dead) {
		t.Errorf("%d dead letters of %d dead resources", len(letters), len(dead))
	}
	book, err := ledger.Open(filepath.Join(v.data, "ledger.db"), ledger.Config{Kind: Task{}.Kind()})
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	for id, job := range dead {
		if seq, err := book.DeadLetter(job.Group, job.ID); err != nil || seq == 0 || seq != letters[id] {
			t.Errorf("the ledger says %d for %s, its dead letter is %d (%v)", seq, id, letters[id], err)
		}
	}
}
