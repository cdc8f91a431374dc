package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/apps/fetchbox/intake"
	"github.com/holdfastdev/holdfast/apps/fetchbox/ledger"
	"github.com/holdfastdev/holdfast/apps/fetchbox/view"
	"github.com/holdfastdev/holdfast/apps/fetchbox/work"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/processtest"
	"github.com/holdfastdev/holdfast/apps/internal/s3test"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// streamVariable makes the program of these tests into a stream server on the address that it contains.
const streamVariable = "FETCHBOX_TEST_STREAM"

func init() {
	processtest.Main(func() {
		if address := os.Getenv(streamVariable); address != "" {
			serveStream(address)
		}
		main()
	})
}

// serveStream is a NATS server with JetStream in a process of its own.
func serveStream(address string) {
	server, err := deadletter.StartServer(os.Getenv("DATA_DIR"), address)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("The stream is at " + server.URL())
	select {} // until it is killed
}

// A place is where a process runs that is killed again and again: FetchBox, or only the stream.
type place struct {
	name   string
	env    []string
	data   string
	stream bool

	p  *processtest.Process
	at string // address of the page; empty while it is down, and of a stream
}

// Victims are processes that are killed. They work on the same store, bucket and stream.
type victims struct {
	*testing.T
	places                    []*place
	database, bucket, streams string // streams is the address of the stream server; empty: it is in the only place

	mu    sync.Mutex
	key   string
	jobs  map[holdfast.ID]string // what was acknowledged, with its manifest's idempotency key
	kills map[string]int
}

func killEnv(data string, more ...string) []string {
	return append([]string{
		"DATA_DIR=" + data, "ADDR=127.0.0.1:0", "NATS_ADDR=off", "ALLOW_PRIVATE=on", "RETRY_BASE_DELAY_MS=50", "DOWNLOAD_RETRY_LIMIT=3", "WORKER_LEASE_TTL_SEC=2", "WORKER_LOST_LIMIT=1000",
		"HOST_CONCURRENCY=100", "WORKER_CONCURRENCY=8",
	}, more...)
}

// oneProcess is FetchBox as it runs without settings: SQLite, a folder and the stream in the process that is killed.
func oneProcess(t *testing.T) *victims {
	data := t.TempDir()
	v := &victims{T: t, jobs: map[holdfast.ID]string{}, kills: map[string]int{}, database: filepath.Join(data, "jobs.db"), bucket: filepath.Join(data, "objects")}
	v.places = []*place{{name: "web, worker and stream", data: data, env: killEnv(data)}}
	v.startAll()
	return v
}

// severalProcesses is two processes of FetchBox on PostgreSQL and S3, and a stream server.
func severalProcesses(t *testing.T) *victims {
	v := &victims{T: t, jobs: map[holdfast.ID]string{}, kills: map[string]int{}, database: pgtest.Database(t), bucket: s3test.Start(t).Use(t) + "/objects"}
	address := freeAddress(t)
	v.streams = "nats://" + address
	data := t.TempDir()
	v.places = []*place{{name: "stream", stream: true, data: data, env: []string{"DATA_DIR=" + data, streamVariable + "=" + address}}}
	for _, name := range []string{"first web and worker", "second web and worker"} {
		data := t.TempDir()
		v.places = append(v.places, &place{name: name, data: data, env: killEnv(data, "DATABASE_URL="+v.database, "BUCKET="+v.bucket, "NATS_URL="+v.streams)})
	}
	v.startAll()
	return v
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func (v *victims) startAll() {
	v.Helper()
	for _, p := range v.places {
		v.start(p)
	}
}

func (v *victims) start(p *place) {
	v.Helper()
	if p.stream {
		p.p = processtest.Launch(v.T, p.env, "The stream is at ")
		return
	}
	p.p = processtest.Launch(v.T, p.env, "The page is at ")
	p.p.Says("An API key for this machine is in ")
	v.mu.Lock()
	defer v.mu.Unlock()
	p.at = p.p.Says("The page is at ")
	if v.key == "" { // the key of one process is valid in all
		text, err := os.ReadFile(filepath.Join(p.data, "key"))
		if err != nil {
			v.Fatal(err)
		}
		v.key = strings.TrimSpace(string(text))
	}
}

func (v *victims) kill(p *place) {
	v.mu.Lock()
	p.at = ""
	v.kills[p.name]++
	v.mu.Unlock()
	p.p.Kill()
}

// client returns a client of any process that is up; false: none is.
func (v *victims) client() (client, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range rand.Perm(len(v.places)) {
		if at := v.places[n].at; at != "" {
			return client{at, v.key}, true
		}
	}
	return client{}, false
}

// submit sends a manifest until it is acknowledged, however often the processes are killed meanwhile.
func (v *victims) submit(name, body string) {
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		c, up := v.client()
		if !up {
			continue
		}
		a, err := c.try("POST", "/api/jobs", body, "Idempotency-Key", name)
		if err != nil || a.status >= 500 {
			continue
		}
		var done intake.Accepted
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
	oneProcess(t).suffer(soak.Pick("kills of FetchBox in one process", 6, 100))
}

// The same for processes that share the work, and for the stream.
func TestNothingIsLostOrDoubledWhenOneOfSeveralProcessesIsKilled(t *testing.T) {
	severalProcesses(t).suffer(soak.Pick("kills of web, worker and stream", 8, 100))
}

// perJob is how many resources a job has: four that are stored, and two that become dead letters.
var perJob = []string{"ok", "slow", "flaky/1", "status/404", "status/500", "ok/second"}

func (v *victims) suffer(kills int) {
	o := newOrigin(v.T)
	var submitted sync.WaitGroup
	jobs := 3 * kills
	submitted.Go(func() {
		for n := range jobs {
			var paths []string
			for _, kind := range perJob {
				paths = append(paths, fmt.Sprintf("/%s/%d", kind, n))
			}
			v.submit(fmt.Sprint("manifest ", n), manifestOf(o.URL, paths...))
			<-time.After(50 * time.Millisecond)
		}
	})
	for n := range kills {
		<-time.After(time.Duration(rand.Int64N(int64(1500 * time.Millisecond))))
		p := v.places[n%len(v.places)]
		v.kill(p)
		v.start(p)
	}
	submitted.Wait()
	v.awaitEnd(jobs)
	for _, p := range v.places { // what the last kills left is swept at the start
		if !p.stream {
			v.kill(p)
			v.start(p)
		}
	}
	for _, p := range v.places {
		v.until("the spool is empty", func() bool { return len(filesIn(v.T, filepath.Join(p.data, "spool"), ".lock")) == 0 })
	}
	for _, p := range v.places {
		if !p.stream {
			v.kill(p)
		}
	}
	v.account(o, jobs)
}

func (v *victims) until(what string, yes func() bool) {
	v.Helper()
	for end := time.Now().Add(patience); !yes(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			for _, p := range v.places {
				v.Logf("%s:\n%s", p.name, p.p.Output())
			}
			v.Fatalf("timed out waiting until %s", what)
		}
	}
}

// awaitEnd waits until every process says that every resource has ended and has its dead letter.
func (v *victims) awaitEnd(jobs int) {
	v.Helper()
	for _, p := range v.places {
		if !p.stream {
			v.until("all resources have ended", func() bool { return v.ended(client{p.at, v.key}, jobs) })
			v.until("all dead letters are published", func() bool { return v.published(client{p.at, v.key}) })
		}
	}
}

func (v *victims) ended(c client, jobs int) bool {
	seen, cursor := 0, ""
	for {
		var page struct {
			Jobs []view.Job
			Next *holdfast.ID `json:"next_cursor"`
		}
		a, err := c.try("GET", "/api/jobs?limit=200&cursor="+cursor, "")
		if err != nil || a.status != http.StatusOK {
			return false
		}
		a.is(v.T, http.StatusOK, &page)
		for _, j := range page.Jobs {
			if j.ResourcesQueued+j.ResourcesRunning > 0 || j.Resources != len(perJob) || j.ResourcesFailed > 0 && j.DeadLetter == 0 {
				return false
			}
		}
		seen += len(page.Jobs)
		if page.Next == nil {
			return seen == jobs
		}
		cursor = page.Next.String()
	}
}

// published reports whether a process knows the dead letter of every failed resource.
func (v *victims) published(c client) bool {
	for job := range v.jobs {
		var page struct{ Resources []view.Resource }
		a, err := c.try("GET", "/api/jobs/"+job.String()+"/resources?state=failed", "")
		if err != nil || a.status != http.StatusOK {
			return false
		}
		a.is(v.T, http.StatusOK, &page)
		for _, r := range page.Resources {
			if r.DeadLetter == 0 {
				return false
			}
		}
	}
	return true
}

// account checks at the end that every acknowledged resource was stored once, or has one dead letter, and that nothing else is there.
func (v *victims) account(o *origin, jobs int) {
	t := v.T
	v.Helper()
	if len(v.jobs) != jobs {
		t.Errorf("%d jobs were acknowledged, want %d", len(v.jobs), jobs)
	}
	db, err := anystore.Open(t.Context(), v.database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if report, err := ops.New(db, ops.Config{}).CheckIntegrity(t.Context()); err != nil || !report.Healthy {
		t.Errorf("the store is not well: %+v, %v", report, err)
	}
	stored, dead := v.tasks(db, o)
	total := jobs * len(perJob)
	if len(stored) != jobs*4 || len(dead) != jobs*2 {
		t.Errorf("%d stored, %d dead of %d resources; want %d and %d", len(stored), len(dead), total, jobs*4, jobs*2)
	}
	left := v.accountObjects(stored)
	letters := v.accountLetters(dead)
	v.accountLedgers(db, dead, letters)
	t.Logf("kills %v: %d resources, %d stored, %d dead with %d dead letters; %d unfinished uploads were swept", v.kills, total, len(stored), len(dead), len(letters), left)
}

// tasks returns the resources that were stored, with what each object must contain, and those that failed for good.
func (v *victims) tasks(db store.Store, o *origin) (stored map[string]string, dead map[string]holdfast.Job) {
	v.Helper()
	stored, dead = map[string]string{}, map[string]holdfast.Job{}
	total := 0
	for cursor := ""; ; {
		tasks, next, err := db.Jobs(v.Context(), store.Filter{Kind: work.Task{}.Kind(), Limit: 200, Cursor: cursor})
		if err != nil {
			v.Fatal(err)
		}
		for _, job := range tasks {
			total++
			if v.jobs[job.Group] == "" {
				v.Errorf("job %s was accepted and its client does not know it", job.Group)
			}
			switch job.State {
			case holdfast.Complete:
				r, err := (&view.Reader{}).ResourceOf(job)
				if err != nil {
					v.Fatal(err)
				}
				stored[r.Result.Key] = contentOf(strings.TrimPrefix(r.URL, o.URL))
			case holdfast.Failed:
				dead[job.ID.String()] = job
			default:
				v.Errorf("%s is %s", job.ID, job.State)
			}
		}
		if cursor = next; cursor == "" {
			if total != len(v.jobs)*len(perJob) {
				v.Errorf("%d resources, want %d", total, len(v.jobs)*len(perJob))
			}
			return stored, dead
		}
	}
}

// accountObjects compares the bucket with what must be in it. It returns how many unfinished uploads the killed processes had left. It sweeps more than once: an S3 server
// may still handle the last request of a killed process, and begin an upload after the first sweep.
func (v *victims) accountObjects(stored map[string]string) (swept int) {
	t := v.T
	v.Helper()
	bucket, err := blob.Open(t.Context(), v.bucket)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	v.until("nothing unfinished is left", func() bool {
		n, err := bucket.Sweep(t.Context(), -time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		swept += n
		files = nil
		for info, err := range bucket.Older(t.Context(), -time.Hour, "") {
			if err != nil {
				t.Fatal(err)
			}
			if info.Part {
				return false
			}
			files = append(files, info.Key)
		}
		return n == 0
	})
	if len(files) != len(stored) {
		t.Errorf("%d files in the bucket, %d objects", len(files), len(stored))
	}
	for key, want := range stored {
		if objectIn(t, bucket, key) != want {
			t.Errorf("the object %s is not what the origin has", key)
		}
	}
	return swept
}

// accountLetters returns the sequence number of the only dead letter of each dead resource.
func (v *victims) accountLetters(dead map[string]holdfast.Job) map[string]uint64 {
	t := v.T
	v.Helper()
	stream := v.connect()
	letters := map[string]uint64{}
	for letter, err := range stream.From(context.Background(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if letters[letter.GetTaskId()] > 0 {
			t.Errorf("%s has two dead letters", letter.GetTaskId())
		}
		if dead[letter.GetTaskId()].ID.IsZero() {
			t.Errorf("%s has a dead letter and is not dead", letter.GetTaskId())
		}
		letters[letter.GetTaskId()] = letter.Sequence
	}
	if len(letters) != len(dead) {
		t.Errorf("%d dead letters of %d dead resources", len(letters), len(dead))
	}
	return letters
}

// connect connects to the stream: that of the stream server, or of the only process, which has ended.
func (v *victims) connect() *deadletter.Stream {
	t := v.T
	v.Helper()
	if v.streams != "" {
		stream, err := deadletter.Connect(v.streams, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stream.Close)
		return stream
	}
	server, err := deadletter.StartServer(filepath.Join(v.places[0].data, "nats"), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	stream, err := deadletter.Connect("", 0, server.Option())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stream.Close)
	return stream
}

// accountLedgers checks that the ledger of each process points at the dead letters, and equals one that is built again.
func (v *victims) accountLedgers(db store.Store, dead map[string]holdfast.Job, letters map[string]uint64) {
	t := v.T
	v.Helper()
	files := []string{filepath.Join(t.TempDir(), "anew.db")}
	for _, p := range v.places {
		if !p.stream {
			files = append(files, filepath.Join(p.data, "ledger.db"))
		}
	}
	var first []ledger.JobSnapshot
	for _, file := range files {
		book, err := openBook(file)
		if err != nil {
			t.Fatal(err)
		}
		defer book.Close()
		_, _, stepErr := book.Step(t.Context(), db)
		all, err := book.Jobs("", holdfast.ID{}, 10_000)
		if err = errors.Join(stepErr, err); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = all
		}
		if diff := cmp.Diff(first, all); diff != "" {
			t.Errorf("%s differs from a ledger that was built again:\n%s", file, diff)
		}
		for id, job := range dead {
			if seq, err := book.DeadLetter(job.Group, job.ID); err != nil || seq == 0 || seq != letters[id] {
				t.Errorf("%s says %d for %s, its dead letter is %d (%v)", file, seq, id, letters[id], err)
			}
		}
	}
}
