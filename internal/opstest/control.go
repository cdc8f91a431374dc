package opstest

import (
	"strings"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// claimNothing checks that the default queue gives nothing now.
func (s *scene) claimNothing() {
	s.Helper()
	leases, err := s.store.Claim(s.ctx, store.Claim{Worker: "w1", Queues: []string{holdfast.DefaultQueue}, Limit: 1, Start: 1, Lease: time.Minute})
	s.must(err)
	if len(leases) != 0 {
		s.Fatalf("claimed %s, which is held", leases[0].ID)
	}
}

// eventually repeats a check until it is true.
func (s *scene) eventually(what string, so func() bool) {
	s.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-s.ctx.Done():
			s.Fatalf("%s never came", what)
		case <-tick.C:
		}
	}
}

func holdsOfEveryScope(s *scene) {
	for scope, hold := range map[string]store.Hold{
		"queue": {Queue: holdfast.DefaultQueue}, "kind": {Kind: "mail"}, "owner": {Owner: "acme"}, "dependency": {Dependency: "gateway"}, "tag": {Tag: "vip"},
	} {
		hold.Actor, hold.Reason = "ann", "too much"
		s.must(s.operator.Pause(s.ctx, hold))
		id := s.enqueue(func(d *holdfast.Draft) { d.Owner, d.Dependency, d.Tags = "acme", "gateway", []string{"vip"} })
		s.claimNothing()
		s.expectReasons(id, scope+" paused", "no worker")
		holds, err := s.operator.Holds(s.ctx)
		s.must(err)
		if len(holds) != 1 || holds[0].Actor != "ann" || holds[0].Reason != "too much" || holds[0].Since.IsZero() || holds[0].Behind != 1 {
			s.Errorf("the hold on the %s is listed as %+v", scope, holds)
		}
		s.must(s.operator.Resume(s.ctx, hold))
		_, err = s.store.Promote(s.ctx, 10)
		s.must(err)
		s.settle(s.claim(id), complete)
	}
}

func patternOfOwners(s *scene) {
	s.must(s.operator.Pause(s.ctx, store.Hold{Owner: "ac*", Actor: "ann"}))
	held := s.enqueue(func(d *holdfast.Draft) { d.Owner = "acme" })
	free := s.enqueue(func(d *holdfast.Draft) { d.Owner = "bob" })
	s.expectReasons(held, "owner paused", "no worker")
	s.settle(s.claim(free), complete)
	s.claimNothing()
}

func limitsAreExplained(s *scene) {
	s.must(s.operator.Pause(s.ctx, store.Hold{Queue: holdfast.DefaultQueue, AtMost: 1, Actor: "ann"}))
	first, second := s.enqueue(), s.enqueue()
	s.expectReasons(first, "no worker")
	lease := s.claim(first)
	s.expectReasons(second, "limit", "no worker")
	s.settle(lease, complete)
	s.expectReasons(second, "no worker")
	s.must(s.operator.Resume(s.ctx, store.Hold{Queue: holdfast.DefaultQueue, Actor: "ann"}))

	rate := &store.Rate{PerSecond: 0.0001, Burst: 1, Level: 1}
	s.must(s.operator.Pause(s.ctx, store.Hold{Kind: "mail", Rate: rate, Actor: "ann", Source: store.SourceLimit}))
	third := s.enqueue()
	s.settle(s.claim(second), complete)
	s.expectReasons(third, "rate", "no worker")
	s.claimNothing()
	s.must(s.operator.Resume(s.ctx, store.Hold{Kind: "mail", Actor: "ann"}))
	s.claimNothing() // that was another's hold on the same kind
	s.must(s.operator.Resume(s.ctx, store.Hold{Kind: "mail", Source: store.SourceLimit, Actor: "ann"}))
	s.settle(s.claim(third), complete)
}

func retriesAloneAreHeld(s *scene) {
	s.must(s.operator.Pause(s.ctx, store.Hold{Queue: holdfast.DefaultQueue, Retries: true, Actor: "ann"}))
	due := s.enqueue()
	s.expectReasons(due, "no worker")
	s.settle(s.claim(due), func(x *store.Settlement) { postpone(x); x.Delay = 0 })
	later := s.enqueue(func(d *holdfast.Draft) { d.Priority = -1 })
	s.settle(s.claim(later), postpone)
	s.expectReasons(due, "queue paused", "no worker")
	s.expectReasons(later, "queue paused", "retry", "no worker")
	s.claimNothing()
	explanation, err := s.operator.Explain(s.ctx, later)
	s.must(err)
	if r := explanation.Reasons[1]; !strings.Contains(r.Text, "retries of queue default") || !strings.Contains(r.Remedy, "holdfast retry "+later.String()) {
		s.Errorf("a held retry is explained by %+v", r)
	}
	_, err = s.operator.Retry(s.ctx, by(later))
	s.must(err)
	s.settle(s.claim(later), complete)
	s.must(s.operator.Resume(s.ctx, store.Hold{Queue: holdfast.DefaultQueue, Actor: "ann"}))
	s.settle(s.claim(due), complete)
}

func breakersByHand(s *scene) {
	id := s.enqueue(func(d *holdfast.Draft) { d.Dependency = "gateway" })
	s.expect(s.operator.OpenBreaker(s.ctx, "gatewya", byPerson("ann", "")), holdfast.ErrNotFound)
	s.expect(s.operator.ForceBreaker(s.ctx, "gate*", true, byPerson("ann", "")), holdfast.ErrInvalid)
	s.must(s.operator.ForceBreaker(s.ctx, "not-called-yet", true, byPerson("ann", "it opens on Monday")))
	if b, err := s.operator.Breaker(s.ctx, "not-called-yet"); err != nil || b.State != breaker.ForcedOpen || b.Lets == nil {
		s.Errorf("a breaker that was forced open before its first call: %+v, %v", b, err)
	}
	s.must(s.operator.AutoBreaker(s.ctx, "not-called-yet", byPerson("ann", "")))
	s.expect(s.operator.OpenBreaker(s.ctx, "gateway", byPerson("", "")), holdfast.ErrInvalid)

	s.must(s.operator.OpenBreaker(s.ctx, "gateway", byPerson("ann", "it burns")))
	b := s.expectBreaker(breaker.Open, 1)
	if b.NextProbe.IsZero() || b.Lets == nil || !b.Lets.Closed() || len(b.History) != 1 || b.History[0].Actor != "ann" {
		s.Errorf("an open breaker is shown as %+v", b)
	}
	s.expectReasons(id, "breaker", "no worker")
	s.claimNothing()
	explanation, err := s.operator.Explain(s.ctx, id)
	s.must(err)
	if text := explanation.Reasons[0].Text; !strings.Contains(text, "gateway is open, next probe") || !strings.Contains(text, "it burns") {
		s.Errorf("an open breaker is explained by %q", text)
	}
	s.expect(s.operator.Resume(s.ctx, store.Hold{Dependency: "gateway", Source: store.SourceBreaker, Actor: "ann"}), holdfast.ErrConflict)

	s.must(s.operator.CloseBreaker(s.ctx, "gateway", byPerson("ann", "it is out")))
	if b := s.expectBreaker(breaker.Recovering, 1); b.Lets == nil || b.Lets.Rate == nil {
		s.Errorf("a recovering breaker lets through %+v", b.Lets)
	}
	s.must(s.operator.ForceBreaker(s.ctx, "gateway", true, byPerson("ann", "maintenance")))
	s.must(s.operator.ForceBreaker(s.ctx, "gateway", true, byPerson("ann", "said twice")))
	s.expectBreaker(breaker.ForcedOpen, 1)
	s.must(s.operator.AutoBreaker(s.ctx, "gateway", byPerson("ann", "over")))
	if b := s.expectBreaker(breaker.HalfOpen, 1); b.Lets == nil || b.Lets.AtMost != 2 {
		s.Errorf("a half-open breaker lets through %+v", b.Lets)
	}
	s.must(s.operator.ForceBreaker(s.ctx, "gateway", false, byPerson("ann", "all is well")))
	if b := s.expectBreaker(breaker.ForcedClosed, 0); b.Lets != nil {
		s.Errorf("a closed breaker keeps the hold %+v", b.Lets)
	}
	s.settle(s.claim(id), complete)
	s.expectEvents("breaker/gateway", "forced-closed", "half-open", "forced-open", "recovering", "open")
}

func (s *scene) expectBreaker(state breaker.State, behind int) ops.Breaker {
	s.Helper()
	b, err := s.operator.Breaker(s.ctx, "gateway")
	s.must(err)
	if b.State != state || b.Behind != behind {
		s.Fatalf("the breaker is %s with %d jobs behind it, wanted %s with %d", b.State, b.Behind, state, behind)
	}
	return b
}

// expectEvents compares the names of a subject's events, the newest first.
func (s *scene) expectEvents(subject string, want ...string) {
	s.Helper()
	events, err := s.store.Events(s.ctx, subject, 50)
	s.must(err)
	var names []string
	for _, e := range events {
		names = append(names, e.Name)
		if e.Actor == "" || e.At.IsZero() {
			s.Errorf("an event of %s has no actor or no time: %+v", subject, e)
		}
	}
	if strings.Join(names, ", ") != strings.Join(want, ", ") {
		s.Fatalf("the events of %s are %q, wanted %q", subject, names, want)
	}
}

func breakersAreForcedOnce(s *scene) {
	s.enqueue(func(d *holdfast.Draft) { d.Dependency = "gateway" })
	var all sync.WaitGroup
	errs := make([]error, 4)
	for n := range errs {
		all.Go(func() { errs[n] = s.operator.ForceBreaker(s.ctx, "gateway", true, byPerson("ann", "maintenance")) })
	}
	all.Wait()
	for _, err := range errs {
		s.must(err)
	}
	s.expectEvents("breaker/gateway", "forced-open")
}

func sharesOfOwners(s *scene) {
	s.expect(s.operator.SetShare(s.ctx, ops.Share{Owner: "acme", Weight: 0}, byPerson("ann", "")), holdfast.ErrInvalid)
	s.expect(s.operator.SetShare(s.ctx, ops.Share{Owner: "acme", Weight: 2}, byPerson("", "")), holdfast.ErrInvalid)
	s.must(s.operator.SetShare(s.ctx, ops.Share{Owner: "acme", Weight: 3}, byPerson("ann", "pays")))
	s.must(s.operator.SetShare(s.ctx, ops.Share{Owner: "acme", Weight: 3}, byPerson("bob", "nothing changes")))
	s.must(s.operator.SetShare(s.ctx, ops.Share{Owner: "other", Weight: 1}, byPerson("bob", "nothing changes")))
	s.expectEvents("share/other")
	shares, err := s.operator.Shares(s.ctx)
	s.must(err)
	if len(shares) != 1 || shares[0].Owner != "acme" || shares[0].Weight != 3 || shares[0].Since.IsZero() {
		s.Errorf("the shares are %+v", shares)
	}
	s.must(s.operator.SetShare(s.ctx, ops.Share{Owner: "acme", Weight: 1}, byPerson("ann", "pays no more")))
	if shares, err = s.operator.Shares(s.ctx); err != nil || len(shares) != 0 {
		s.Errorf("the shares are %+v, %v", shares, err)
	}
	s.expectEvents("share/acme", "weight 1", "weight 3")
}

func brokenPromises(s *scene) {
	id := s.enqueue()
	s.settle(s.claim(id), func(x *store.Settlement) { postpone(x); x.StartWithin = time.Millisecond })
	s.eventually("the missed deadline", func() bool {
		ids, err := s.store.MissedDeadlines(s.ctx, 10)
		s.must(err)
		return len(ids) == 1 && ids[0] == id
	})
	lines := s.expectStory(id, "queued", "retry", "deadline missed")
	if !strings.Contains(lines[2].Text, "retry_within was exceeded: its next attempt did not start by") {
		s.Errorf("the missed deadline is shown as %q", lines[2].Text)
	}
}
