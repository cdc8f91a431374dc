package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// set parses a valid policy.
func set(s *harness, text string) *policy.Set {
	s.Helper()
	parsed, err := policy.Parse([]byte(text))
	if err != nil {
		s.Fatal(err)
	}
	return parsed
}

// applyPolicy writes a policy to the store, as an operator does.
func (s *harness) applyPolicy(text string, version int) {
	s.Helper()
	body, _ := json.Marshal(map[string]string{"text": text})
	record := store.Record{Namespace: "policy", Name: "current", Version: version, Body: body}
	if err := s.store.Apply(context.Background(), store.Change{Records: []store.Record{record}}); err != nil {
		s.Fatal(err)
	}
}

// failing returns a handler that always fails and records its starts.
func failing(runs *starts) note {
	return func(context.Context, *engine.Job[Note]) error {
		runs.mark()
		return errFailed
	}
}

func TestAHandlerCanHoldItsWholeDependencyForAWhile(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		s.startWorker(engine.Config{Slots: 1}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			if runs.mark() == 1 {
				return failure.HoldDependency(failure.WithCode(errFailed, "RATE_LIMITED"), 5*time.Minute)
			}
			return nil
		}, engine.KindOptions{Dependency: "gateway", Policy: failure.Policy{Backoff: failure.Fixed(time.Second)}}))
		s.enqueue()
		s.waitUntil("the first call", func() bool { return runs.count() == 1 })
		time.Sleep(time.Second)
		s.enqueueAll(20)
		hold := s.hold(store.SourceHandler)
		if hold == nil || hold.Dependency != "gateway" || !strings.Contains(hold.Reason, "RATE_LIMITED") {
			t.Fatalf("hold %+v", hold)
		}
		time.Sleep(4 * time.Minute)
		expect(s, "calls while it is held", runs.count(), 1)
		s.waitUntil("all to complete", func() bool { return s.countJobs(holdfast.Complete) == 21 })
		if again := runs.at[1].Sub(runs.at[0]); again < 5*time.Minute-time.Second || again > 5*time.Minute+5*time.Second {
			t.Errorf("called again after %v, want five minutes", again)
		}
	})
}

func TestNoRetriesAreMadeWithinAWindow(t *testing.T) {
	inBubble(t, func(s *harness) { // the bubble's time begins at midnight UTC
		var runs starts
		text := `queues: {default: {no_retries: [{from: "00:00", to: "01:00", zone: UTC}]}}`
		s.startWorker(engine.Config{Policies: set(s, text)}, handleNotes(failing(&runs), engine.KindOptions{Policy: failure.Policy{MaxAttempts: 2, Backoff: failure.Fixed(time.Minute)}}))
		time.Sleep(5 * time.Second)
		began := time.Now()
		id := s.enqueue()
		s.waitUntil("the first attempt", func() bool { return runs.count() == 1 })
		time.Sleep(50 * time.Minute)
		expect(s, "attempts within the window", runs.count(), 1)
		time.Sleep(15 * time.Minute)
		expect(s, "attempts after it", runs.count(), 2)
		expect(s, "state", s.job(id).State, holdfast.Failed)
		if gap := runs.at[1].Sub(began); gap < 59*time.Minute || gap > 61*time.Minute {
			t.Errorf("the retry came after %v", gap)
		}
	})
}

func TestAnOwnerWhoHasUsedUpItsRetriesWaitsForTheNextDay(t *testing.T) {
	inBubble(t, func(s *harness) { // the bubble's time begins at midnight UTC, an hour before a new day begins on the Azores
		var runs, others starts
		text := `owners: {acme: {budget: {retries_per_day: 10, zone: Atlantic/Azores}}}`
		s.startWorker(engine.Config{Policies: set(s, text), Slots: 2}, handleNotes(func(_ context.Context, job *engine.Job[Note]) error {
			if job.Lease.Owner == "acme" {
				runs.mark()
			} else {
				others.mark()
			}
			return errFailed
		}, engine.KindOptions{Policy: failure.Policy{MaxAttempts: 20, Backoff: failure.Fixed(10 * time.Second)}}))
		s.enqueueAll(5, func(d *holdfast.Draft) { d.Owner = "acme" })
		s.enqueueAll(1, func(d *holdfast.Draft) { d.Owner = "other" })
		time.Sleep(30 * time.Minute)
		expect(s, "attempts of an owner with 5 jobs and 10 retries a day", runs.count(), 15)
		expect(s, "attempts of an owner without a budget", others.count(), 20)
		s.enqueueAll(1, func(d *holdfast.Draft) { d.Owner = "acme" })
		before := runs.count()
		time.Sleep(10 * time.Second)
		expect(s, "a first attempt is let through", runs.count(), before+1)
		hold := s.hold(store.SourceBudget)
		if hold == nil || hold.Owner != "acme" || !hold.Retries {
			t.Fatalf("hold %+v", hold)
		}
		time.Sleep(time.Hour)
		expect(s, "attempts on the second day", runs.count(), before+1+10)
	})
}

func TestAnOwnersBudgetIsNeverExceededHoweverManyWorkersThereAre(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		text := `owners: {"*": {budget: {retries_per_day: 3}}}`
		for range 4 {
			s.startWorker(engine.Config{Policies: set(s, text), Slots: 5}, handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error {
				runs.mark()
				time.Sleep(time.Second) // many run at once
				return errFailed
			}, engine.KindOptions{Policy: failure.Policy{MaxAttempts: 20, Backoff: failure.Fixed(0)}}))
		}
		s.enqueueAll(20, func(d *holdfast.Draft) { d.Owner = "acme" })
		time.Sleep(10 * time.Minute)
		expect(s, "attempts of 20 jobs with 3 retries a day", runs.count(), 23)
		hold := s.hold(store.SourceBudget)
		if hold == nil || hold.Owner != "acme" || !strings.Contains(hold.Reason, "3 of 3 retries today") {
			t.Fatalf("hold %+v", hold)
		}
	})
}

func TestARetryThatDoesNotStartIsGivenBackToItsOwnersBudget(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		snoozes := 3
		s.startWorker(engine.Config{Policies: set(s, `owners: {acme: {budget: {retries_per_day: 1}}}`)}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			runs.mark()
			if runs.count() > 1 && snoozes > 0 {
				snoozes--
				return failure.Snooze(time.Minute)
			}
			return errFailed
		}, engine.KindOptions{Policy: failure.Policy{MaxAttempts: 20, Backoff: failure.Fixed(time.Second)}}))
		s.enqueue(func(d *holdfast.Draft) { d.Owner = "acme" })
		time.Sleep(time.Hour)
		expect(s, "attempts: the first, three that were released for free, and one retry", runs.count(), 5)
	})
}

func TestAPolicyAppliedToTheStoreIsInForceWithinSecondsAndABadOneIsNot(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		s.startWorker(engine.Config{Slots: 8}, handleNotes(failing(&runs), engine.KindOptions{Policy: failure.Policy{MaxAttempts: 2, Backoff: failure.Fixed(time.Second)}}))
		expect(s, "failures before", s.waitForState(s.enqueue(), holdfast.Failed).Failures, 2)
		s.applyPolicy("kinds: {note: {max_attempts: 4, limit: {at_most: 3}}}\nowners: {acme: {share: 3}}", 0)
		time.Sleep(3 * time.Second)
		expect(s, "failures after", s.waitForState(s.enqueue(), holdfast.Failed).Failures, 4)
		if hold := s.hold(store.SourceLimit); hold == nil || hold.AtMost != 3 || hold.Kind != "note" {
			t.Errorf("hold %+v", hold)
		}
		shares, _ := s.store.Records(context.Background(), "share")
		if len(shares) != 1 || shares[0].Name != "acme" {
			t.Errorf("shares %+v", shares)
		}
		s.applyPolicy("kinds: {note: {max_atempts: 9}}", 1)
		time.Sleep(3 * time.Second)
		expect(s, "failures under a bad policy", s.waitForState(s.enqueue(), holdfast.Failed).Failures, 4)
		s.applyPolicy("kinds: {note: {max_attempts: 3}}", 2)
		time.Sleep(3 * time.Second)
		expect(s, "failures in the end", s.waitForState(s.enqueue(), holdfast.Failed).Failures, 3)
		if hold := s.hold(store.SourceLimit); hold != nil {
			t.Errorf("a limit that the policy does not name any more: %+v", hold)
		}
	})
}

func TestALimitIsUsedToTheFullAndNeverExceeded(t *testing.T) {
	inBubble(t, func(s *harness) {
		var mu sync.Mutex
		now, most := 0, 0
		s.enqueueAll(200)
		began := time.Now()
		s.startWorker(engine.Config{Slots: 20, Policies: set(s, "queues: {default: {limit: {at_most: 4}}}")}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(200 * time.Millisecond)
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		}))
		s.waitUntil("all to complete", func() bool { return s.countJobs(holdfast.Complete) == 200 })
		if most > 4 {
			t.Errorf("%d at once", most)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %v: the limit was not used", took)
		}
	})
}

func TestAMissedStartDeadlineIsReportedOnce(t *testing.T) {
	inBubble(t, func(s *harness) {
		var mu sync.Mutex
		told := map[holdfast.ID]int{}
		missed := func(_ context.Context, id holdfast.ID) {
			mu.Lock()
			defer mu.Unlock()
			told[id]++
		}
		var runs starts
		for range 2 {
			s.startWorker(engine.Config{OnDeadlineMissed: missed}, handleNotes(failing(&runs), engine.KindOptions{Policy: failure.Policy{MaxAttempts: 2, Backoff: failure.Fixed(10 * time.Minute), RetryWithin: time.Minute}}))
		}
		id := s.enqueue()
		kept := s.enqueue(func(d *holdfast.Draft) { d.RetryWithin = time.Hour })
		s.waitUntil("the first attempts", func() bool { return runs.count() == 2 })
		if err := s.store.Pause(context.Background(), store.Hold{Queue: "default", For: 5 * time.Minute, Actor: "ada"}); err != nil {
			t.Fatal(err)
		}
		s.waitForState(id, holdfast.Failed)
		s.waitForState(kept, holdfast.Failed)
		mu.Lock()
		defer mu.Unlock()
		expect(s, "calls for the missed deadline", told[id], 1)
		expect(s, "calls for the kept one", told[kept], 0)
	})
}

func TestRetriesThatNeverHelpAreGivenUpEarly(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		learned := engine.KindOptions{Policy: failure.Policy{MaxAttempts: 4, Learned: true, Backoff: failure.Fixed(time.Second)}}
		w := s.startWorker(engine.Config{Slots: 50}, handleNotes(failing(&runs), learned))
		s.enqueueAll(400)
		s.waitUntil("experience", func() bool { return s.countJobs(holdfast.Failed) == 400 })
		expect(s, "attempts without experience", runs.count(), 1600)
		time.Sleep(6 * time.Minute)
		id := s.enqueue()
		job := s.waitForState(id, holdfast.Failed)
		expect(s, "failures with experience", job.Failures, 1)
		if why := s.attempts(id)[0].Why; !strings.Contains(why, "400") {
			t.Errorf("why: %s", why)
		}
		w.stop()
	})
}

// The answer to a change of a breaker is lost, before or after the store has applied it. No call is counted twice or lost, and no state change is announced twice.
func TestABreakersChangeWhoseAnswerIsLostCountsOnce(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := range 6 {
			inBubble(t, func(s *harness) {
				g := &gateway{}
				var told moves
				cut := storetest.NewFaulty(s.store, storetest.Fault{Verb: "Apply", N: n + 1, After: after})
				g.down.Store(true)
				s.enqueueAll(12)
				s.startWorkerOn(cut, engine.Config{Slots: 1, OnBreakerChange: told.moved}, g.calling(failure.Policy{MaxAttempts: 2, Backoff: failure.Fixed(time.Hour)}))
				s.waitForBreaker("gateway", breaker.Open)
				time.Sleep(10 * time.Second)
				c := s.readBreaker("gateway")
				expect(s, "moves", len(c.History), 1)
				expect(s, "state changes announced", told.to(breaker.Open), 1)
				if !strings.Contains(c.History[0].Why, "10 of the last 10") {
					t.Errorf("fault %d, after %v: %s", n+1, after, c.History[0].Why)
				}
			})
		}
	}
}

func TestAnOwnerCannotEnqueueFasterThanItsPolicySaysInAllProcessesTogether(t *testing.T) {
	inBubble(t, func(s *harness) {
		policies := set(s, "owners: {acme: {enqueue: {per_second: 10, burst: 20}}}")
		draft := func(owner string) []holdfast.Draft {
			d, _ := holdfast.NewDraft(Note{"x"})
			d.Owner = owner
			return []holdfast.Draft{d}
		}
		accepted := make([]int, 3)
		var all sync.WaitGroup
		for i := range accepted {
			to := engine.NewLimits(s.store, policies).Limited(s.store)
			all.Go(func() {
				for range 1000 {
					_, err := to.Enqueue(context.Background(), draft("acme"))
					var refusal *holdfast.Error
					switch {
					case err == nil:
						accepted[i]++
					case !errors.Is(err, holdfast.ErrThrottled) || !errors.As(err, &refusal) || refusal.RetryAfter <= 0:
						t.Errorf("refused with %v", err)
					}
					time.Sleep(10 * time.Millisecond)
				}
				if _, err := to.Enqueue(context.Background(), draft("other")); err != nil {
					t.Errorf("an owner without a limit: %v", err)
				}
			})
		}
		all.Wait()
		sum := accepted[0] + accepted[1] + accepted[2]
		if sum > 20+10*10+1 || sum < 100 {
			t.Errorf("%d accepted in ten seconds, with ten a second and a burst of twenty", sum)
		}
	})
}
