package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// patience is far longer than any wake-up takes, and far shorter than a stuck test.
const patience = 30 * time.Second

// wakeBy waits on one handle and calls act repeatedly until Await returns: a wake-up may come before the waiter listens.
func (s *scene) wakeBy(on store.Store, act func()) store.Wake {
	s.Helper()
	woken := make(chan store.Wake, 1)
	go func() {
		wake, err := on.Await(s.ctx, []string{"default"}, patience)
		if err != nil {
			s.Errorf("await: %v", err)
		}
		woken <- wake
	}()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		act()
		select {
		case wake := <-woken:
			return wake
		case <-again.C:
		}
	}
}

// expectWork expects a wake-up for work. One for a cancel request may come first, because any wake-up may come without a reason.
func (s *scene) expectWork(when string, act func()) {
	s.Helper()
	wake := s.wakeBy(s.Store, act)
	for wake.Cancel && !wake.Work {
		wake = s.wakeBy(s.Store, act)
	}
	if !wake.Work {
		s.Fatalf("%s woke no worker: %+v", when, wake)
	}
}

// waitFor waits for the end of a job on one handle while act ends it.
func (s *scene) waitFor(on store.Store, id holdfast.ID, act func()) holdfast.Job {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	var job holdfast.Job
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		job, err = holdfast.WaitJob(ctx, on, id)
	}()
	act()
	<-done
	s.must(err)
	return job
}

var awaitLaws = []law{
	{"new work wakes a waiting worker", func(s *scene) {
		s.expectWork("an enqueue", func() { s.enqueue() })
	}},
	{"a promotion wakes a waiting worker", func(s *scene) {
		s.expectWork("a promotion", func() { s.enqueue(at(time.Second)); s.Advance(time.Second); s.promote(10) })
	}},
	{"a released job wakes a waiting worker", func(s *scene) {
		lease := s.start()
		s.expectWork("a released job", func() { s.settle(releases(lease, store.ChargeRelease, 0)); lease = s.claimOne() })
	}},
	{"a manual retry wakes a waiting worker", func(s *scene) {
		lease := s.fail()
		s.expectWork("a manual retry", func() { s.retry(lease.ID); s.settle(fails(s.claimOne(), "BROKEN")) })
	}},
	{"the end of a hold wakes a waiting worker", func(s *scene) {
		hold := store.Hold{Queue: "default", Actor: "ada"}
		s.expectWork("a resume", func() { s.must(s.Store.Pause(s.ctx, hold)); s.must(s.Store.Resume(s.ctx, hold)) })
	}},
	{"a cancel request wakes waiting workers, and is distinguished from work", func(s *scene) {
		wake := s.wakeBy(s.Store, func() { s.cancel(s.start().ID) })
		for !wake.Cancel { // a wake-up for work may come first
			wake = s.wakeBy(s.Store, func() { s.cancel(s.start().ID) })
		}
	}},
	{"work enqueued through another handle wakes as well", func(s *scene) {
		other := s.Reopen()
		s.expectWork("an enqueue elsewhere", func() {
			_, err := other.Enqueue(s.ctx, []holdfast.Draft{draft()})
			s.must(err)
		})
	}},
	{"work enqueued by a caller's transaction is found by the time patience ends", func(s *scene) {
		tx, end := s.Begin()
		_, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{draft()})
		s.must(err)
		s.must(end(true))
		_, err = s.Store.Await(s.ctx, []string{"default"}, time.Millisecond)
		s.must(err)
		s.claimOne()
	}},
	{"the end of patience is no error", func(s *scene) {
		_, err := s.Store.Await(s.ctx, []string{"default"}, time.Millisecond)
		s.must(err)
	}},
	{"Await ends with its context", func(s *scene) {
		ctx, cancel := context.WithCancel(s.ctx)
		answer := make(chan error, 1)
		go func() {
			for { // wake-ups without a reason are allowed
				if _, err := s.Store.Await(ctx, []string{"default"}, time.Hour); err != nil {
					answer <- err
					return
				}
			}
		}()
		cancel()
		select {
		case err := <-answer:
			if !errors.Is(err, context.Canceled) {
				s.Fatalf("got %v, want the context's own error", err)
			}
		case <-time.After(patience):
			s.Fatal("Await continued after its context had ended")
		}
	}},
	{"a caller that waits for a job learns of its end, however it ends", func(s *scene) {
		for state, end := range map[holdfast.State]func(l store.Lease){
			holdfast.Complete:  func(l store.Lease) { s.settle(completes(l)) },
			holdfast.Failed:    func(l store.Lease) { s.settle(fails(l, "BROKEN")) },
			holdfast.Cancelled: func(l store.Lease) { s.cancel(l.ID); s.settle(releases(l, store.ChargeRelease, 0)) },
		} {
			lease := s.start()
			got := s.waitFor(s.Store, lease.ID, func() { end(lease) })
			same(s, "state", got.State, state)
		}
		id := s.enqueue()
		same(s, "state of a queued job that is cancelled", s.waitFor(s.Store, id, func() { s.cancel(id) }).State, holdfast.Cancelled)
		lease := s.start()
		same(s, "state through another handle", s.waitFor(s.Reopen(), lease.ID, func() { s.settle(completes(lease)) }).State, holdfast.Complete)
	}},
	{"a wait for a job that has ended returns at once, and one for an unknown job is refused", func(s *scene) {
		lease := s.start()
		s.settle(completes(lease))
		job, err := holdfast.WaitJob(s.ctx, s.Store, lease.ID)
		s.must(err)
		same(s, "state", job.State, holdfast.Complete)
		_, err = holdfast.WaitJob(s.ctx, s.Store, holdfast.NewID())
		s.expectError(err, holdfast.ErrNotFound)
	}},
	{"a wait for a job ends with its context, and returns the job as it is", func(s *scene) {
		id := s.enqueue()
		ctx, cancel := context.WithCancel(s.ctx)
		time.AfterFunc(50*time.Millisecond, cancel)
		job, err := holdfast.WaitJob(ctx, s.Store, id)
		if !errors.Is(err, context.Canceled) {
			s.Fatalf("got %v, want the context's own error", err)
		}
		if job.ID != id && !job.ID.IsZero() {
			s.Fatalf("got job %s, want %s", job.ID, id)
		}
	}},
	{"many workers can wait, and each is woken", func(s *scene) {
		woken := make(chan bool, 10)
		for range 10 {
			go func() {
				wake, err := s.Store.Await(s.ctx, []string{"default"}, patience)
				woken <- err == nil && wake != store.Wake{}
			}()
		}
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for left := 10; left > 0; {
			select {
			case early := <-woken:
				same(s, "woken", early, true)
				left--
			case <-again.C:
				s.enqueue()
			}
		}
	}},
}
