package engine_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

func (s *harness) gather(g holdfast.Group) holdfast.ID {
	s.Helper()
	g, err := s.store.CreateGroup(context.Background(), g)
	if err != nil {
		s.Fatal(err)
	}
	return g.ID
}

func (s *harness) seal(group holdfast.ID) {
	s.Helper()
	if err := s.store.SealGroup(context.Background(), group); err != nil {
		s.Fatal(err)
	}
}

func (s *harness) waitForGroup(group holdfast.ID, state holdfast.GroupState) (g holdfast.Group) {
	s.Helper()
	s.waitUntil("group "+string(state), func() bool {
		var err error
		if g, err = s.store.Group(context.Background(), group); err != nil {
			s.Fatal(err)
		}
		return g.State == state
	})
	return g
}

// member makes a draft a member of a group that starts after other members.
func member(group holdfast.ID, after ...holdfast.ID) func(*holdfast.Draft) {
	return func(d *holdfast.Draft) { d.Group, d.After = group, after }
}

// eventNames returns the names of a subject's events, oldest first.
func (s *harness) eventNames(subject string) (names []string) {
	s.Helper()
	events, err := s.store.Events(context.Background(), subject, 100)
	if err != nil {
		s.Fatal(err)
	}
	for i := range events {
		names = append(names, events[len(events)-1-i].Name)
	}
	return names
}

// summing handles notes, and jobs of kind "sum" that continue groups.
func summing(work note, sums *atomic.Int64, args *atomic.Pointer[string]) func(*engine.Engine) {
	return func(e *engine.Engine) {
		engine.Handle(e, work)
		engine.HandleRaw(e, "sum", func(_ context.Context, job *engine.Raw) error {
			text := string(job.Args)
			args.Store(&text)
			sums.Add(1)
			return nil
		})
	}
}

func TestAGroupSettlesWithinAnIntervalOfItsLastMemberAndIsContinuedOnce(t *testing.T) {
	inBubble(t, func(s *harness) {
		var sums atomic.Int64
		var args atomic.Pointer[string]
		var lastEnd atomic.Int64
		group := s.gather(holdfast.Group{Name: "campaign", Then: []holdfast.Then{{Draft: holdfast.Draft{Kind: "sum"}}}})
		for range 4 {
			s.startWorker(engine.Config{Slots: 5}, summing(func(_ context.Context, job *engine.Job[Note]) error {
				if job.Group != group {
					t.Errorf("a member's handler sees group %s", job.Group)
				}
				time.Sleep(3 * time.Second)
				lastEnd.Store(time.Now().UnixNano())
				return nil
			}, &sums, &args))
		}
		for range 50 {
			s.enqueue(member(group))
		}
		s.seal(group)
		g := s.waitForGroup(group, holdfast.GroupReady)
		if took := g.SettledAt.Sub(time.Unix(0, lastEnd.Load())); took > time.Second {
			t.Errorf("it settled %v after its last member had ended", took)
		}
		expect(s, "complete members", g.Members.Complete, 50)
		s.waitUntil("the continuation", func() bool { return sums.Load() > 0 })
		time.Sleep(5 * time.Second)
		expect(s, "continuations", sums.Load(), 1)
		var told struct {
			Group holdfast.ID
			State string
		}
		if err := json.Unmarshal([]byte(*args.Load()), &told); err != nil || told.Group != group || told.State != "ready" {
			t.Errorf("the continuation got %s, %v", *args.Load(), err)
		}
		expect(s, "lines in its story", len(s.eventNames("group/"+group.String())), 1)
	})
}

func TestAManualRetryOfAMemberReopensItsGroupAndASuccessEndsItReady(t *testing.T) {
	inBubble(t, func(s *harness) {
		var sums atomic.Int64
		var args atomic.Pointer[string]
		var repaired atomic.Bool
		s.startWorker(engine.Config{}, summing(func(_ context.Context, job *engine.Job[Note]) error {
			if job.Args.Text == "bad" && !repaired.Load() {
				return failure.NeverRetry(errFailed)
			}
			return nil
		}, &sums, &args))
		group := s.gather(holdfast.Group{Then: []holdfast.Then{{Draft: holdfast.Draft{Kind: "sum"}}}})
		for range 5 {
			s.enqueue(member(group))
		}
		bad := s.enqueue(member(group), func(d *holdfast.Draft) { d.Args = json.RawMessage(`{"text":"bad"}`) })
		s.seal(group)
		s.waitForGroup(group, holdfast.GroupPartial)
		s.waitForState(bad, holdfast.Failed)
		repaired.Store(true)
		if _, err := s.store.Retry(context.Background(), store.Intervention{Job: bad, Actor: "ada"}); err != nil {
			t.Fatal(err)
		}
		g := s.waitForGroup(group, holdfast.GroupReady)
		expect(s, "generation", g.Generation, 2)
		s.waitUntil("both continuations", func() bool { return sums.Load() == 2 })
	})
}

func TestMembersStartAfterTheMembersTheyWaitForAndAreCancelledIfOneFails(t *testing.T) {
	inBubble(t, func(s *harness) {
		var order starts
		began := make(map[holdfast.ID]int)
		broken := true
		s.startWorker(engine.Config{Slots: 1}, handleNotes(func(_ context.Context, job *engine.Job[Note]) error {
			began[job.ID] = order.mark()
			if job.Args.Text == "bad" && broken {
				return failure.NeverRetry(errFailed)
			}
			return nil
		}))
		group := s.gather(holdfast.Group{})
		first := s.enqueue(member(group))
		left, right := s.enqueue(member(group, first)), s.enqueue(member(group, first))
		join := s.enqueue(member(group, left, right))
		bad := s.enqueue(member(group, first), func(d *holdfast.Draft) { d.Args = json.RawMessage(`{"text":"bad"}`) })
		doomed := s.enqueue(member(group, bad))
		tidy := s.enqueue(member(group, bad, doomed), func(d *holdfast.Draft) { d.AfterAll = true })
		s.seal(group)
		s.waitForGroup(group, holdfast.GroupPartial)
		if !(began[first] < began[left] && began[first] < began[right] && began[left] < began[join] && began[right] < began[join]) {
			t.Errorf("they began in the order %v", began)
		}
		expect(s, "state of who waited for the failed one", s.job(doomed).State, holdfast.Cancelled)
		expect(s, "because of", s.job(doomed).Upstream, bad)
		expect(s, "state of who waits for ends only", s.job(tidy).State, holdfast.Complete)
		broken = false
		if n, err := s.store.RetryGroup(context.Background(), store.Intervention{Group: group, Actor: "ada"}); err != nil || n != 2 {
			t.Errorf("%d retried, %v", n, err)
		}
		s.waitForGroup(group, holdfast.GroupReady)
		expect(s, "state of who was cancelled", s.job(doomed).State, holdfast.Complete)
	})
}

func TestAGroupThatExpiresCancelsItsRemainingMembers(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.startWorker(engine.Config{Slots: 2}, handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error { <-ctx.Done(); return ctx.Err() }))
		group := s.gather(holdfast.Group{ExpireIn: 10 * time.Second})
		for range 6 {
			s.enqueue(member(group))
		}
		g := s.waitForGroup(group, holdfast.GroupExpired)
		expect(s, "cancelled members", g.Members.Cancelled, 6)
	})
}
