package chaos

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// The machine of the database dies: the primary is stopped as by a crash, its standby is promoted, and no process is restarted.
func TestWhenThePrimaryDiesItsStandbyHasEveryAcknowledgedJobAndWorkersGoOn(t *testing.T) {
	primary, standby := pair(t)
	if _, err := primary.Create("jobs"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, err := anystore.Open(ctx, pgtest.Both(primary, standby, "jobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	var ran atomic.Int64
	worker, err := engine.New(s, engine.Config{Lease: 3 * time.Second, Sweep: time.Second, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	engine.HandleRaw(worker, "page", func(context.Context, *engine.Raw) error { ran.Add(1); return nil })
	stopped := make(chan error, 1)
	go func() { stopped <- worker.Run(ctx) }()

	acknowledged := &ledger{}
	producing, enough := context.WithCancel(ctx)
	var producers sync.WaitGroup
	for range 4 {
		producers.Go(func() { acknowledged.produce(producing, s) })
	}
	await(t, ctx, "two hundred jobs to run", func() bool { return ran.Load() >= 200 })
	if err := primary.Stop(true); err != nil {
		t.Fatal(err)
	}
	before := acknowledged.count()
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	await(t, ctx, "jobs to be acknowledged again", func() bool { return acknowledged.count() >= before+200 })
	enough()
	producers.Wait()
	t.Logf("%d jobs acknowledged, %d of them before the primary died", acknowledged.count(), before)

	await(t, ctx, "every acknowledged job to be complete", func() bool { return acknowledged.missing(ctx, s) == 0 })
	if err := worker.Stop(ctx); err != nil {
		t.Error(err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	findings, err := s.CheckIntegrity(ctx)
	if err != nil || len(findings) > 0 {
		t.Errorf("the integrity check of the promoted standby: %v %v", findings, err)
	}
}

// pair starts a server with a synchronous standby.
func pair(t *testing.T) (primary, standby *pgtest.Server) {
	primary, err := pgtest.Start("", pgtest.Options{Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = primary.Close() })
	if standby, err = primary.Standby(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Close() })
	return primary, standby
}

// A ledger records the jobs that were acknowledged to producers.
type ledger struct {
	mu   sync.Mutex
	jobs map[holdfast.ID]bool // false: not seen complete yet
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.jobs)
}

// produce enqueues one job after another, as a client would: it sends a job that was not acknowledged again with the same id.
func (l *ledger) produce(ctx context.Context, s holdfast.Enqueuer) {
	for ctx.Err() == nil {
		draft := holdfast.Draft{ID: holdfast.NewID(), Kind: "page"}
		for ctx.Err() == nil {
			_, err := s.Enqueue(ctx, []holdfast.Draft{draft})
			if err == nil || errors.Is(err, holdfast.ErrConflict) { // the first call succeeded, and only its answer was lost
				l.mu.Lock()
				if l.jobs == nil {
					l.jobs = map[holdfast.ID]bool{}
				}
				l.jobs[draft.ID] = false
				l.mu.Unlock()
				break
			}
			wait(ctx, 50*time.Millisecond)
		}
		wait(ctx, time.Millisecond)
	}
}

// missing counts the acknowledged jobs that are not complete.
func (l *ledger) missing(ctx context.Context, s store.Inspector) (left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, complete := range l.jobs {
		if complete {
			continue
		}
		if job, err := s.Job(ctx, id); err == nil && job.State == holdfast.Complete {
			l.jobs[id] = true
			continue
		}
		if left++; left > 50 {
			return left
		}
	}
	return left
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func await(t *testing.T, ctx context.Context, what string, so func() bool) {
	t.Helper()
	for !so() {
		if wait(ctx, 20*time.Millisecond); ctx.Err() != nil {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}
