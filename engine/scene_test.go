package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store/sqlite"
	"github.com/holdfastdev/holdfast/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// note is a handler of notes.
type note = func(context.Context, *engine.Job[Note]) error

// A scene is a real SQLite file in a bubble of its own time.
type scene struct {
	*testing.T
	path    string
	store   holdfast.Store
	faulty  *storetest.Faulty // the same store, as engines see it
	workers []*worker
	broken  bool // the story damages the store: the audit is not asked
}

// tell plays a story to its end: then every engine is stopped, the store must be healthy, and no goroutine may be left.
func tell(t *testing.T, story func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "jobs.db")
		store, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		s := &scene{T: t, path: path, store: store, faulty: storetest.NewFaulty(store)}
		defer func() {
			for _, w := range s.workers {
				w.stop()
			}
			s.healthy()
			if err := store.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
		}()
		story(s)
	})
}

func (s *scene) healthy() {
	s.Helper()
	if s.broken {
		return
	}
	findings, err := s.store.Audit(context.Background())
	if err != nil {
		s.Errorf("audit: %v", err)
	}
	for _, f := range findings {
		s.Errorf("audit: %s: %s: %s", f.Rule, f.Job, f.Detail)
	}
}

// A worker is an engine at work.
type worker struct {
	*engine.Engine
	s      *scene
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
	once   sync.Once
}

// works starts an engine on the scene's store.
func (s *scene) works(cfg engine.Config, prepare ...func(*engine.Engine)) *worker {
	s.Helper()
	return s.worksOn(s.store, cfg, prepare...)
}

func (s *scene) worksOn(store engine.Store, cfg engine.Config, prepare ...func(*engine.Engine)) *worker {
	s.Helper()
	if cfg.Log == nil {
		cfg.Log = quiet
	}
	e, err := engine.New(store, cfg)
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

// stop asks for a graceful stop and waits for it.
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

// crash leaves the engine without its store for good: to everybody else it is a process that died.
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
func handling(work note, how ...engine.Kind) func(*engine.Engine) {
	return func(e *engine.Engine) { _ = engine.Handle(e, work, how...) }
}

func (s *scene) enqueue(options ...func(*holdfast.Draft)) holdfast.ID {
	s.Helper()
	receipt, err := holdfast.Enqueue(context.Background(), s.store, Note{"hello"}, options...)
	if err != nil {
		s.Fatal(err)
	}
	return receipt.ID
}

func (s *scene) enqueueMany(n int) []holdfast.ID {
	s.Helper()
	ids := make([]holdfast.ID, n)
	for i := range ids {
		ids[i] = s.enqueue()
	}
	return ids
}

func (s *scene) job(id holdfast.ID) holdfast.Job {
	s.Helper()
	job, err := s.store.Job(context.Background(), id)
	if err != nil {
		s.Fatal(err)
	}
	return job
}

// trend is what became of a queue's attempts in all.
func (s *scene) trend(queue string) holdfast.Trend {
	s.Helper()
	trends, err := s.store.Trends(context.Background(), 24*time.Hour, 0)
	if err != nil {
		s.Fatal(err)
	}
	all := holdfast.Trend{Queue: queue}
	for _, t := range trends {
		if t.Queue == queue {
			all.Complete, all.Failed, all.Retried, all.Cancelled = all.Complete+t.Complete, all.Failed+t.Failed, all.Retried+t.Retried, all.Cancelled+t.Cancelled
		}
	}
	return all
}

func (s *scene) attempts(id holdfast.ID) []holdfast.Attempt {
	s.Helper()
	history, err := s.store.History(context.Background(), id)
	if err != nil {
		s.Fatal(err)
	}
	return history.Attempts
}

// becomes waits, by the bubble's clock, until a job is in a state, and answers with it.
func (s *scene) becomes(id holdfast.ID, state holdfast.State) holdfast.Job {
	s.Helper()
	var job holdfast.Job
	s.until("job "+string(state), func() bool {
		job = s.job(id)
		return job.State == state
	})
	return job
}

// until waits for something to be true, and then for everybody to come to rest: what the store shows, the engine that asked
// for it may not have heard yet.
func (s *scene) until(what string, true func() bool) {
	s.Helper()
	defer synctest.Wait()
	for start := time.Now(); !true(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > 15*time.Minute {
			s.Fatalf("waited in vain for: %s", what)
		}
	}
}

// expect compares what is with what should be.
func expect[T comparable](s *scene, what string, got, want T) {
	s.Helper()
	if got != want {
		s.Errorf("%s: %v, want %v", what, got, want)
	}
}

// code is the code of the last failure on record.
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

var errTrouble = errors.New("some trouble")
