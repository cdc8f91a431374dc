//go:build unix

package rolling

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
)

// slots is how many jobs each server runs at once.
const slots = 8

// A deploy is one store, the servers on it, and the jobs that flow through them.
type deploy struct {
	*testing.T
	dir, address string
	live         liveServers
	gateway      *httptest.Server
	stop         chan struct{} // closed when no more jobs are to be enqueued
	work         sync.WaitGroup

	mu     sync.Mutex
	jobs   []sent
	groups []holdfast.ID
	runs   map[holdfast.ID]int // of http jobs, by the gateway, and of far jobs, by their worker
}

// sent is a job that a server has acknowledged.
type sent struct {
	id    holdfast.ID
	what  string
	state holdfast.State // in which it has to end
	least int            // runs that it needs
}

func newDeploy(t *testing.T, address string) *deploy {
	d := &deploy{T: t, dir: t.TempDir(), address: address, stop: make(chan struct{}), runs: map[holdfast.ID]int{}}
	d.gateway = httptest.NewServer(http.HandlerFunc(d.receive))
	t.Cleanup(d.gateway.Close)
	ok(d, os.WriteFile(d.script(), []byte(strings.ReplaceAll(note, "NOTES", "'"+d.notes()+"'")), 0o700)) // once: servers run it while others start
	return d
}

// receive is what http jobs call. It counts the calls of each job. The path says how it answers: /flaky fails the first call of a job, /never refuses all.
func (d *deploy) receive(w http.ResponseWriter, r *http.Request) {
	id, err := holdfast.ParseID(r.Header.Get("Idempotency-Key"))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	d.runs[id]++
	first := d.runs[id] == 1
	d.mu.Unlock()
	switch {
	case r.URL.Path == "/flaky" && first:
		w.WriteHeader(http.StatusInternalServerError)
	case r.URL.Path == "/never":
		w.WriteHeader(http.StatusNotFound)
	}
}

// programs writes the list of programs of a release's servers. The program notes the release and the job. Its first run fails if the job asks for it with
// flaky, and takes long with slow. The number of the attempt does not tell the first run: a server that is killed may have claimed the job and not run it.
func (d *deploy) programs(r release) string {
	d.Helper()
	list, err := json.Marshal(map[string]any{"programs": map[string]any{"note": map[string]any{"path": d.script(), "args": []string{r.name}}}})
	ok(d, err)
	path := filepath.Join(d.dir, r.name+".json")
	ok(d, os.WriteFile(path, list, 0o600))
	return path
}

const note = `#!/bin/sh
run=first
grep -q -s "$HOLDFAST_JOB_ID" NOTES && run=again
echo "$1 $HOLDFAST_JOB_ID" >> NOTES
case $2-$run in flaky-first) exit 1 ;; slow-first) sleep 3 ;; esac
`

func (d *deploy) script() string { return filepath.Join(d.dir, "note.sh") }

func (d *deploy) notes() string { return filepath.Join(d.dir, "notes") }

// programRuns returns how often programs ran, by job and by release.
func (d *deploy) programRuns() (byJob map[holdfast.ID]int, byRelease map[string]int) {
	byJob, byRelease = map[holdfast.ID]int{}, map[string]int{}
	text, _ := os.ReadFile(d.notes()) // missing before the first run
	for line := range strings.Lines(string(text)) {
		name, job, _ := strings.Cut(strings.TrimSpace(line), " ")
		if id, err := holdfast.ParseID(job); err == nil {
			byJob[id]++
			byRelease[name]++
		}
	}
	return byJob, byRelease
}

// start begins the flow: a schedule, two programs that enqueue, and two workers over HTTP.
func (d *deploy) start() {
	d.insist(0, "PUT /schedules/beat", map[string]any{"every": "1s", "missed": "all", "draft": d.call("/", "beats")}, nil)
	for n := range 2 {
		d.work.Go(func() { d.enqueueAll(n) })
	}
}

// enqueueAll enqueues jobs until the flow stops. Requests go to the servers in turn.
func (d *deploy) enqueueAll(n int) {
	makers := []func(int){d.enqueueCalls, d.enqueuePrograms, d.enqueueGroup, d.enqueueFar}
	for i := n; ; i++ {
		makers[i%len(makers)](i)
		select {
		case <-d.stop:
			return
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// call returns a draft of kind http.
func (d *deploy) call(path, queue string) map[string]any {
	return map[string]any{"kind": "http", "queue": queue, "args": map[string]any{"url": d.gateway.URL + path}}
}

// enqueue enqueues one job at two servers: the second returns the job of the first.
func (d *deploy) enqueue(n int, draft map[string]any, s sent) holdfast.ID {
	s.id = holdfast.NewID()
	draft["id"], draft["idempotency_key"] = s.id, s.id
	d.insist(n, "POST /jobs", draft, nil)
	d.insist(n+1, "POST /jobs", draft, nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.jobs = append(d.jobs, s)
	return s.id
}

func (d *deploy) enqueueCalls(n int) {
	d.enqueue(n, d.call("/", "calls"), sent{what: "call", state: holdfast.Complete, least: 1})
	d.enqueue(n, d.call("/flaky", "calls"), sent{what: "call that fails once", state: holdfast.Complete, least: 2})
	d.enqueue(n, d.call("/never", "calls"), sent{what: "call that is refused", state: holdfast.Failed, least: 1})
	later := d.call("/", "calls")
	later["delay"] = "500ms"
	d.enqueue(n, later, sent{what: "call that is scheduled", state: holdfast.Complete, least: 1})
}

func (d *deploy) enqueuePrograms(n int) {
	for what, args := range map[string][]string{"program": {}, "program that fails once": {"flaky"}} {
		draft := map[string]any{"kind": "exec", "queue": "programs", "args": map[string]any{"program": "note", "args": args}}
		d.enqueue(n, draft, sent{what: what, state: holdfast.Complete, least: 1 + len(args)})
	}
}

// occupy enqueues slow programs until a server of the release runs one.
func (d *deploy) occupy(name string) {
	d.Helper()
	for n := 0; ; n++ {
		draft := map[string]any{"kind": "exec", "queue": "programs", "args": map[string]any{"program": "note", "args": []string{"slow"}}}
		id := d.enqueue(n, draft, sent{what: "program that is slow", state: holdfast.Complete, least: 1})
		by := ""
		waitUntil(d.T, "the slow program", func() bool {
			text, _ := os.ReadFile(d.notes())
			before, _, found := strings.Cut(string(text), " "+id.String())
			by = before[strings.LastIndexByte(before, '\n')+1:]
			return found
		})
		if by == name {
			d.mu.Lock()
			d.jobs[slices.IndexFunc(d.jobs, func(s sent) bool { return s.id == id })].least = 2
			d.mu.Unlock()
			return
		}
	}
}

func (d *deploy) enqueueFar(n int) {
	d.enqueue(n, map[string]any{"kind": "far", "queue": "far", "args": map[string]any{"n": n}}, sent{what: "job of a worker over HTTP", state: holdfast.Complete, least: 1})
}

// enqueueGroup enqueues a group whose second member waits for the first. The third fails, so the group ends partial.
func (d *deploy) enqueueGroup(n int) {
	group := holdfast.NewID()
	d.insist(n, "POST /groups", map[string]any{"id": group, "name": fmt.Sprintf("group %d", n)}, nil)
	member := func(path string) map[string]any {
		draft := d.call(path, "calls")
		draft["group"] = group
		return draft
	}
	first := d.enqueue(n, member("/"), sent{what: "first member", state: holdfast.Complete, least: 1})
	second := member("/flaky")
	second["after"] = []holdfast.ID{first}
	d.enqueue(n, second, sent{what: "member that waits", state: holdfast.Complete, least: 2})
	d.enqueue(n, member("/never"), sent{what: "member that fails", state: holdfast.Failed, least: 1})
	d.insist(n, "POST /groups/"+group.String()+"/seal", nil, nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.groups = append(d.groups, group)
}

// A lease is what a worker over HTTP needs of a claimed job.
type lease struct {
	ID    holdfast.ID
	Batch holdfast.ID
	Token int
}

// workFar is a worker over HTTP. It claims from one server and reports to the next, until the channel is closed.
func (d *deploy) workFar(ended chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-ended:
			return
		case <-time.After(20 * time.Millisecond):
		}
		var claimed struct{ Leases []lease }
		claim := map[string]any{"worker": fmt.Sprintf("far-%d", n), "queues": []string{"far"}, "limit": 4, "lease": "2s"}
		if _, err := d.live.pick(n).ask("POST", "/claims", claim, &claimed); err != nil {
			continue // the leases of an answer that was lost expire
		}
		for _, l := range claimed.Leases {
			d.mu.Lock()
			d.runs[l.ID]++
			d.mu.Unlock()
			outcome := map[string]any{"batch": l.Batch, "job": l.ID, "token": l.Token, "outcome": "complete", "result": n}
			d.insist(n+1, "POST /claims/outcomes", map[string]any{"outcomes": []any{outcome}}, nil)
		}
	}
}
