package postgres_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/postgres"
)

// cut ends all sessions of the database but the test's own.
func (w *world) cut() int {
	w.Helper()
	return w.count("SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()) gone")
}

func TestCutConnectionsAreReplacedWithoutErrors(t *testing.T) {
	w := newWorld(t)
	w.enqueue(w.store, holdfast.Draft{Kind: "mail"}, holdfast.Draft{Kind: "mail", UniqueKey: "u"})
	if w.cut() == 0 {
		t.Fatal("nothing was cut")
	}
	leases := w.claim(10)
	if len(leases) != 2 {
		t.Fatalf("claimed %d", len(leases))
	}
	w.cut()
	_, err := w.store.Renew(w.ctx, []store.Renewal{{Batch: leases[0].Batch, Running: []holdfast.ID{leases[0].ID}}}, time.Minute)
	w.ok(err)
	w.cut()
	answers, err := w.store.Settle(w.ctx, []store.Settlement{complete(leases[0]), complete(leases[1])})
	w.ok(errors.Join(append(answers, err)...))
	w.cut()
	w.enqueue(w.store, holdfast.Draft{Kind: "mail"})
	w.cut()
	w.enqueue(w.store, holdfast.Draft{Kind: "mail", IdempotencyKey: "i"})
	if findings, err := w.store.CheckIntegrity(w.ctx); err != nil || len(findings) > 0 {
		t.Fatal(findings, err)
	}
}

func TestSessionsCutDuringWritesLoseAndDuplicateNothing(t *testing.T) {
	w := newWorld(t)
	const callers, each = 4, 40
	var all sync.WaitGroup
	acknowledged := make(chan holdfast.ID, callers*each)
	for range callers {
		all.Go(func() {
			for n := range each {
				draft := holdfast.Draft{Kind: "mail"}
				if n%4 == 0 {
					draft.IdempotencyKey = holdfast.NewID().String()
				}
				receipts, err := w.store.Enqueue(w.ctx, []holdfast.Draft{draft})
				if err == nil && receipts[0].Existing {
					t.Errorf("a new draft got the receipt of an existing job")
				}
				if err == nil {
					acknowledged <- receipts[0].ID
				} else if !errors.Is(err, holdfast.ErrUnavailable) {
					t.Error(err)
				}
			}
		})
	}
	finished := make(chan struct{})
	go func() { all.Wait(); close(finished) }()
	for cutting := true; cutting; {
		select {
		case <-finished:
			cutting = false
		default:
			w.cut()
		}
	}
	close(acknowledged)
	n := 0
	for id := range acknowledged {
		n++
		if _, err := w.store.Job(w.ctx, id); err != nil {
			t.Fatalf("acknowledged job %v: %v", id, err)
		}
	}
	t.Logf("%d of %d calls were acknowledged", n, callers*each)
	if findings, err := w.store.CheckIntegrity(w.ctx); err != nil || len(findings) > 0 {
		t.Fatal(findings, err)
	}
}

func TestABlockedCallEndsWithItsDeadlineAndKeepsNoLocks(t *testing.T) {
	w := newWorld(t)
	w.enqueue(w.store, holdfast.Draft{Kind: "mail"})
	lease := w.claim(1)[0]
	tx, err := w.conn.Begin(w.ctx)
	w.ok(err)
	_, err = tx.Exec(w.ctx, "SELECT FROM holdfast_batch FOR UPDATE")
	w.ok(err)
	ctx, cancel := context.WithTimeout(w.ctx, 100*time.Millisecond)
	defer cancel()
	_, err = w.store.Settle(ctx, []store.Settlement{complete(lease)})
	if !errors.Is(err, holdfast.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	w.until("the abandoned statement ends", func() bool {
		var n int
		w.ok(tx.QueryRow(w.ctx, "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&n))
		return n == 0
	})
	w.ok(tx.Rollback(w.ctx))
	answers, err := w.store.Settle(w.ctx, []store.Settlement{complete(lease)})
	w.ok(errors.Join(append(answers, err)...))
}

func TestRenewalsDoNotWaitBehindOtherWork(t *testing.T) {
	w := newWorld(t)
	db := w.open(postgres.Config{URL: w.url, MaxConns: 1})
	w.enqueue(w.store, holdfast.Draft{Kind: "mail"}, holdfast.Draft{Kind: "mail"})
	blocked, free := w.claim(1)[0], w.claim(1)[0]
	tx, err := w.conn.Begin(w.ctx)
	w.ok(err)
	_, err = tx.Exec(w.ctx, "SELECT FROM holdfast_batch WHERE id = $1 FOR UPDATE", blocked.Batch.String())
	w.ok(err)
	settled := make(chan error, 1)
	go func() {
		_, err := db.Settle(w.ctx, []store.Settlement{complete(blocked)})
		settled <- err
	}()
	w.until("the settlement waits", func() bool {
		var n int
		w.ok(tx.QueryRow(w.ctx, "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&n))
		return n > 0
	})
	renewed, err := db.Renew(w.ctx, []store.Renewal{{Batch: free.Batch, Running: []holdfast.ID{free.ID}}}, time.Hour)
	if err != nil || len(renewed.Lost) > 0 {
		t.Fatal(renewed, err)
	}
	w.ok(tx.Rollback(w.ctx))
	w.ok(<-settled)
}

func TestOneBadCallDoesNotFailTheCallsItIsCoalescedWith(t *testing.T) {
	w := newWorld(t)
	taken := w.enqueue(w.store, holdfast.Draft{Kind: "mail"})[0].ID
	var all sync.WaitGroup
	for n := range 60 {
		all.Go(func() {
			draft := holdfast.Draft{Kind: "mail"}
			if n%3 == 0 {
				draft.ID = taken
			}
			_, err := w.store.Enqueue(w.ctx, []holdfast.Draft{draft})
			var refusal *holdfast.Error
			switch {
			case n%3 != 0 && err != nil:
				t.Errorf("a valid call was refused: %v", err)
			case n%3 == 0 && (!errors.Is(err, holdfast.ErrConflict) || !errors.As(err, &refusal) || refusal.Job != taken):
				t.Errorf("an invalid call got %v", err)
			}
		})
	}
	all.Wait()
	if n := w.count("SELECT count(*) FROM holdfast_ready"); n != 41 {
		t.Fatalf("%d jobs", n)
	}
}

func TestOtherProcessesAreWokenAlsoAfterTheirConnectionWasCut(t *testing.T) {
	w := newWorld(t)
	other := w.open(postgres.Config{URL: w.url})
	await := func() chan store.Wake {
		woken := make(chan store.Wake, 1)
		go func() {
			wake, err := other.Await(w.ctx, []string{"default"}, time.Minute)
			if err != nil {
				t.Error(err)
			}
			woken <- wake
		}()
		return woken
	}
	woken := await()
	w.enqueue(w.store, holdfast.Draft{Kind: "mail"})
	if wake := <-woken; !wake.Work {
		t.Fatalf("woken with %+v", wake)
	}
	lease := w.claim(1)[0]
	if wake, err := other.Await(w.ctx, []string{"elsewhere"}, time.Millisecond); err != nil || wake.Work {
		t.Fatal(wake, err)
	}
	w.cut()
	woken = await()
	_, err := w.store.Cancel(w.ctx, store.Intervention{Job: lease.ID, Actor: "ann"})
	w.ok(err)
	for wake := <-woken; !wake.Cancel; wake = <-woken {
		woken = await() // woken without a reason
	}
	woken = await()
	w.enqueue(w.store, holdfast.Draft{Kind: "mail", Delay: time.Microsecond})
	w.until("its time has come", func() bool { n, err := w.store.Promote(w.ctx, 10); w.ok(err); return n > 0 })
	for wake := <-woken; !wake.Work; wake = <-woken {
		woken = await() // woken without a reason
	}
}

func TestNumbersOutOfRangeAffectOnlyTheirOwnCall(t *testing.T) {
	w := newWorld(t)
	w.enqueue(w.store, holdfast.Draft{Kind: "mail"}, holdfast.Draft{Kind: "mail"})
	leases, err := w.store.Claim(w.ctx, store.Claim{Worker: "w", Queues: []string{"default", "no\x00queue"}, Limit: math.MaxInt, Start: math.MaxInt, Lease: time.Minute})
	w.ok(err)
	if len(leases) != 2 {
		t.Fatalf("claimed %d", len(leases))
	}
	forged, capped := complete(leases[0]), complete(leases[1])
	forged.Token = math.MaxInt
	capped.To, capped.Charge, capped.Limit = holdfast.Queued, store.ChargeRelease, math.MaxInt
	answers, err := w.store.Settle(w.ctx, []store.Settlement{forged, complete(leases[0]), capped})
	w.ok(err)
	if !errors.Is(answers[0], holdfast.ErrLeaseLost) || answers[1] != nil || !errors.Is(answers[2], holdfast.ErrInvalid) {
		t.Fatal(answers)
	}
	_, err = w.store.Promote(w.ctx, math.MaxInt)
	w.ok(err)
}

func TestAJobWithAFinishedRowDoesNotKeepOthersFromFinishing(t *testing.T) {
	w := newWorld(t)
	w.enqueue(w.store, holdfast.Draft{Kind: "mail"}, holdfast.Draft{Kind: "mail"}, holdfast.Draft{Kind: "mail"})
	leases := w.claim(3)
	w.exec(`INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, finished_at, state)
	        VALUES ($1, 9, 0, 0, 0, 1, now(), 'cancelled')`, leases[1].ID.String())
	answers, err := w.store.Settle(w.ctx, []store.Settlement{complete(leases[0]), complete(leases[1]), complete(leases[2])})
	w.ok(err)
	if err := errors.Join(answers...); err != nil {
		t.Fatal(err)
	}
	if n := w.count("SELECT count(*) FROM holdfast_finished WHERE state = 'complete'"); n != 2 {
		t.Errorf("%d jobs are complete, want the two without a finished row", n)
	}
	if n := w.count("SELECT count(*) FROM holdfast_batch"); n != 0 {
		t.Errorf("%d leases are left", n)
	}
}

func TestAProcessThatEnqueuesAndLeavesStillWakesOthers(t *testing.T) {
	w := newWorld(t)
	heard := make(chan struct{})
	w.exec("LISTEN holdfast")
	go func() {
		defer close(heard)
		if _, err := w.conn.WaitForNotification(w.ctx); err != nil {
			t.Error(err)
		}
	}()
	w.enqueue(w.store, holdfast.Draft{Kind: "mail"})
	w.ok(w.store.Close())
	<-heard
}

func TestAClosedStoreRefusesWork(t *testing.T) {
	w := newWorld(t)
	w.ok(w.store.Close())
	w.ok(w.store.Close())
	_, enqueue := w.store.Enqueue(w.ctx, []holdfast.Draft{{Kind: "mail"}})
	_, claim := w.store.Claim(w.ctx, store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 1, Lease: time.Second})
	_, await := w.store.Await(w.ctx, nil, time.Minute)
	for _, err := range []error{enqueue, claim, await} {
		if !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	}
}
