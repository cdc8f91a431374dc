package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/leaktest"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
	"github.com/holdfastdev/holdfast/store/storetest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// note is a handler of notes.
type note = func(context.Context, *engine.Job[Note]) error

// A harness runs engines on a real SQLite file, in a bubble with virtual time (testing/synctest).
type harness struct {
	*testing.T
	path    string
	store   store.Store
	faulty  *storetest.Faulty // the same store, as engines see it
	workers []*worker
	broken  bool // the test corrupts the store, so its integrity is not checked
}

// inBubble runs a test. At its end all engines are stopped, the integrity check of the store must pass, and no goroutine may be left.
func inBubble(t *testing.T, test func(s *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "jobs.db")
		db, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		s := &harness{T: t, path: path, store: db, faulty: storetest.NewFaulty(db)}
		defer func() {
			for _, w := range s.workers {
				w.stop()
			}
			s.checkIntegrity()
			if err := db.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
		}()
		test(s)
	})
}

func (s *harness) checkIntegrity() {
	s.Helper()
	if s.broken {
		return
	}
	findings, err := s.store.CheckIntegrity(context.Background())
	if err != nil {
		s.Errorf("integrity check: %v", err)
	}
	for _, f := range findings {
		s.Errorf("integrity check: %s: %s: %s", f.Rule, f.Job, f.Detail)
	}
}

// A worker is a running engine.
type worker struct {
	*engine.Engine
	s      *harness
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
	once   sync.Once
}

// startWorker starts an engine on the store.
func (s *harness) startWorker(cfg engine.Config, prepare ...func(*engine.Engine)) *worker {
	s.Helper()
	return s.startWorkerOn(s.store, cfg, prepare...)
}

func (s *harness) startWorkerOn(db engine.Store, cfg engine.Config, prepare ...func(*engine.Engine)) *worker {
	s.Helper()
	if cfg.Log == nil {
		cfg.Log = quiet
	}
	e, err := engine.New(db, cfg)
	if err != nil {
		s.Fatal(err)
	}
	for _, p := range prepare {
		p(e)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &worker{Engine: e, s: s, cancel: cancel, ended: make(chan struct{})}
	s.workers = append(s.workers, w)
	go func() {
		defer close(w.ended)
		w.err = e.Run(ctx)
	}()
	return w
}

// stop stops the engine gracefully and waits for it.
func (w *worker) stop() {
	w.s.Helper()
	w.once.Do(func() {
		w.cancel()
		<-w.ended
		if w.err != nil {
			w.s.Errorf("Run: %v", w.err)
		}
	})
}

// crash makes all further store calls of the engine fail: for others it looks like a process that died.
func (w *worker) crash(cut *storetest.Faulty) {
	cut.Plan(storetest.Fault{Always: true}, storetest.Fault{Verb: "Await", Always: true})
	w.once.Do(func() {
		w.cancel()
		go func() { _ = w.Stop(ended()) }()
	})
}

// ended is a context that has ended already.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// handling registers a handler for notes.
func handleNotes(work note, how ...engine.KindOptions) func(*engine.Engine) {
	return func(e *engine.Engine) { engine.Handle(e, work, how...) }
}

func (s *harness) enqueue(options ...func(*holdfast.Draft)) holdfast.ID {
	s.Helper()
	receipt, err := holdfast.Enqueue(context.Background(), s.store, Note{"hello"}, options...)
	if err != nil {
		s.Fatal(err)
	}
	return receipt.ID
}

func (s *harness) enqueueMany(n int) []holdfast.ID {
	s.Helper()
	ids := make([]holdfast.ID, n)
	for i := range ids {
		ids[i] = s.enqueue()
	}
	return ids
}

func (s *harness) job(id holdfast.ID) holdfast.Job {
	s.Helper()
	job, err := s.store.Job(context.Background(), id)
	if err != nil {
		s.Fatal(err)
	}
	return job
}

// trend returns the counts of all attempts of a queue.
func (s *harness) trend(queue string) store.Trend {
	s.Helper()
	trends, err := s.store.Trends(context.Background(), 24*time.Hour, 0)
	if err != nil {
		s.Fatal(err)
	}
	all := store.Trend{Queue: queue}
	for _, t := range trends {
		if t.Queue == queue {
			all.Complete, all.Failed, all.Retried, all.Cancelled = all.Complete+t.Complete, all.Failed+t.Failed, all.Retried+t.Retried, all.Cancelled+t.Cancelled
		}
	}
	return all
}

func (s *harness) attempts(id holdfast.ID) []store.Attempt {
	s.Helper()
	history, err := s.store.History(context.Background(), id)
	if err != nil {
		s.Fatal(err)
	}
	return history.Attempts
}

// waitForState waits, in virtual time, until a job is in a state, and returns the job.
func (s *harness) waitForState(id holdfast.ID, state holdfast.State) holdfast.Job {
	s.Helper()
	var job holdfast.Job
	s.waitUntil("job "+string(state), func() bool {
		job = s.job(id)
		return job.State == state
	})
	return job
}

// waitUntil waits for a condition, and then until all goroutines are idle: the engine may not have received the answer to a call whose effect is already visible in
// the store.
func (s *harness) waitUntil(what string, true func() bool) {
	s.Helper()
	defer synctest.Wait()
	for start := time.Now(); !true(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > 15*time.Minute {
			s.Fatalf("timed out waiting for: %s", what)
		}
	}
}

// expect compares a value with the wanted one.
func expect[T comparable](s *harness, what string, got, want T) {
	s.Helper()
	if got != want {
		s.Errorf("%s: %v, want %v", what, got, want)
	}
}

// code returns the code of the last failure of a job.
func code(j holdfast.Job) string {
	if j.LastFailure == nil {
		return ""
	}
	return j.LastFailure.Code
}

// starts collects when handlers were started.
type starts struct {
	mu sync.Mutex
	at []time.Time
}

func (s *starts) mark() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = append(s.at, time.Now())
	return len(s.at)
}

func (s *starts) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

var errFailed = errors.New("some trouble")
