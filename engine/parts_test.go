package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// These tests are inside the package because each tests one part of the engine by itself.

func partCore(t *testing.T, db Store) *core {
	t.Helper()
	cfg := Config{Log: slog.New(slog.DiscardHandler), Lease: time.Minute}
	if err := cfg.prepare(); err != nil {
		t.Fatal(err)
	}
	c := newCore(db, cfg)
	c.storeCtx, c.cancelStore = context.WithCancel(context.Background())
	t.Cleanup(c.cancelStore)
	return c
}

func TestPaceHoldsAheadWhatSlotsProcessDuringTwoClaims(t *testing.T) {
	var p pace
	for range 20 {
		p.claimEnded(8 * time.Millisecond)
	}
	if n := p.ahead(10, 1000); n != 0 {
		t.Errorf("before a handler has returned %d leases are held ahead, want 0", n)
	}
	p.runEnded(time.Millisecond)
	p.claimEnded(8 * time.Millisecond)
	if n := p.ahead(10, 1000); n < 159 || n > 160 {
		t.Errorf("10 slots with handlers of 1 ms and claims of 8 ms hold %d leases ahead, want 160", n)
	}
	if n := p.ahead(10, 50); n != 50 {
		t.Errorf("with a limit of 50, %d leases are held ahead", n)
	}
	p.runEnded(time.Hour)
	p.claimEnded(8 * time.Millisecond)
	if n := p.ahead(10, 1000); n != 0 {
		t.Errorf("with slow handlers %d leases are held ahead, want 0", n)
	}
	p.forgetRuns()
	if n := p.ahead(10, 1000); n != 0 {
		t.Errorf("after forgetRuns %d leases are held ahead, want 0", n)
	}
}

func TestADutyRunnerSurvivesPanicsAndObeysRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDutyRunner(partCore(t, nil))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var runs atomic.Int64
		go d.run(ctx, dutySpec{name: "retention", interval: time.Minute, run: func(context.Context) error {
			if runs.Add(1) == 1 {
				panic("first run")
			}
			return nil
		}})
		expect := func(want int64, when string) {
			t.Helper()
			synctest.Wait()
			if n := runs.Load(); n != want {
				t.Fatalf("%s: %d runs, want %d", when, n, want)
			}
		}
		expect(0, "before the requests of operators were read")
		close(d.requestsRead)
		expect(1, "after they were read")
		time.Sleep(time.Second)
		expect(2, "after the panic")
		if e := d.control("retention").report(&d.clock).Error; e == "" {
			t.Error("the report does not contain the panic")
		}
		d.control("retention").paused.Store(true)
		time.Sleep(10 * time.Minute)
		expect(2, "while the duty is paused")
		signal(d.control("retention").runNow)
		expect(3, "after an operator requested a run of the paused duty")
	})
}

// presenceStore counts the announcements of workers. Its other methods must not be called.
type presenceStore struct {
	Store
	announced int
	err       error
}

func (s *presenceStore) ReportWorker(context.Context, store.WorkerInfo) error {
	s.announced++
	return s.err
}

func TestPresenceIsAnnouncedEveryQuarterOfALeaseAndKnownAfterTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &presenceStore{err: errors.New("the store is unavailable")}
		c := partCore(t, db)
		leases := newLeaseTable(&c.cfg)
		kinds := newRegistry(c, newDependencies(nil), leases, failure.Rules{})
		p := &presence{core: c, registry: kinds, policies: newPolicies(c, kinds), leases: leases}
		if err := p.renew(); err == nil || p.known.Load() {
			t.Errorf("a failed announcement: %v, known %v", err, p.known.Load())
		}
		db.err = nil
		time.Sleep(c.cfg.Lease / 4)
		if err := p.renew(); err != nil || !p.known.Load() || !takeSignal(c.signals.claim) {
			t.Errorf("the first announcement: %v, known %v; it must start a claim", err, p.known.Load())
		}
		if err := p.renew(); err != nil || db.announced != 2 {
			t.Errorf("an announcement too early: %v, %d announcements, want 2", err, db.announced)
		}
		time.Sleep(c.cfg.Lease / 4)
		if err := p.renew(); err != nil || db.announced != 3 || takeSignal(c.signals.claim) {
			t.Errorf("a later announcement: %v, %d announcements, want 3 and no signal to claim", err, db.announced)
		}
	})
}
