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
