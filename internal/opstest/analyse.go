package opstest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func errorGroups(s *scene) {
	var ids []holdfast.ID
	for n := range 2 {
		id := s.enqueue(func(d *holdfast.Draft) { d.Owner = "acme" })
		s.settle(s.claim(id), func(x *store.Settlement) {
			fail(x)
			x.Failure.Context = map[string]string{"http_status": "500", "proxy": fmt.Sprint("p", n)}
		})
		ids = append(ids, id)
	}
	groups, _, err := s.operator.ErrorGroups(s.ctx, store.ErrorFilter{})
	s.must(err)
	if len(groups) != 1 || groups[0].Fingerprint != "f1" || groups[0].Failures != 2 || groups[0].Status != store.StatusOpen {
		s.Fatalf("the error groups are %+v", groups)
	}
	s.expect(s.operator.Triage(s.ctx, store.Triage{Fingerprint: "f1", Status: store.StatusAcknowledged}), holdfast.ErrInvalid)
	s.must(s.operator.Triage(s.ctx, store.Triage{Fingerprint: "f1", Status: store.StatusAcknowledged, Actor: "ann"}))
	s.must(s.operator.Triage(s.ctx, store.Triage{Fingerprint: "f1", Actor: "ann", Reason: "only behind some proxies"}))
	trouble, err := s.operator.ErrorGroup(s.ctx, "f1")
	s.must(err)
	if trouble.Group.Status != store.StatusAcknowledged || trouble.Dead != 2 || len(trouble.Jobs) != 2 || trouble.Jobs[0].ID != ids[1] || len(trouble.Story) != 2 || trouble.Code.Remedy == "" {
		s.Errorf("the error group is shown as %+v", trouble)
	}
	if len(trouble.Varies) != 1 || trouble.Varies[0].Name != "proxy" || trouble.Varies[0].Distinct != 2 || trouble.Same["http_status"] != "500" || trouble.Same["owner"] != "acme" {
		s.Errorf("%+v varies, and the same is %v", trouble.Varies, trouble.Same)
	}
	_, err = s.operator.ErrorGroup(s.ctx, "f2")
	s.expect(err, holdfast.ErrNotFound)
}

func figures(s *scene) {
	failed := s.enqueue()
	s.settle(s.claim(failed), fail)
	again := s.enqueue()
	s.settle(s.claim(again), postpone)
	running := s.claim(s.enqueue())
	for _, c := range []struct {
		filter store.Filter
		want   holdfast.ID
	}{
		{store.Filter{DeadLetters: true}, failed}, {store.Filter{Retrying: true, MaxScan: 1000}, again}, {store.Filter{Worker: running.Worker}, running.ID},
	} {
		jobs, _, err := s.operator.Jobs(s.ctx, c.filter)
		s.must(err)
		n, err := s.operator.Count(s.ctx, c.filter)
		s.must(err)
		if n != 1 || len(jobs) != 1 || jobs[0].ID != c.want {
			s.Errorf("%d jobs were counted for %+v, and found are %+v", n, c.filter, jobs)
		}
	}
	_, err := s.operator.Count(s.ctx, store.Filter{MaxScan: -1})
	s.expect(err, holdfast.ErrInvalid)
	depths, err := s.operator.Depths(s.ctx)
	s.must(err)
	if len(depths) != 1 || depths[0].Dead != 1 || depths[0].Retrying != 1 || depths[0].Processing != 1 || depths[0].NextDue.IsZero() || len(depths[0].AtLeast) > 0 {
		s.Errorf("the depths are %+v", depths)
	}
	trends, err := s.operator.Trends(s.ctx, time.Hour, time.Hour)
	s.must(err)
	if n := len(trends); n == 0 || trends[n-1].Failed+trends[0].Failed == 0 {
		s.Errorf("the trends are %+v", trends)
	}
	errors, err := s.operator.ErrorTrends(s.ctx, []string{"f0", "f1"}, time.Hour, 0)
	s.must(err)
	if len(errors) != 2 || len(errors[0].Failures) != 0 || len(errors[1].Failures) != 13 || errors[1].Dead != 1 {
		s.Errorf("the error groups come and go like this: %+v", errors)
	}
	none, err := s.operator.ErrorTrends(s.ctx, nil, time.Hour, 0)
	s.must(err)
	if len(none) != 0 {
		s.Errorf("the trends of no error group are %+v", none)
	}
}

func analytics(s *scene) {
	slow := func(end func(*store.Settlement)) func(*store.Settlement) {
		return func(x *store.Settlement) { end(x); x.Took = time.Second }
	}
	s.settle(s.claim(s.enqueue()), complete)
	id := s.enqueue()
	s.settle(s.claim(id), slow(func(x *store.Settlement) { postpone(x); x.Delay = 0 }))
	s.settle(s.claim(id), complete)
	s.settle(s.claim(s.enqueue()), slow(fail))
	_, err := s.operator.Analytics(s.ctx, 0)
	s.expect(err, holdfast.ErrInvalid)
	got, err := s.operator.Analytics(s.ctx, time.Hour)
	s.must(err)
	if len(got.Kinds) != 1 {
		s.Fatalf("the figures are %+v", got.Kinds)
	}
	mail := got.Kinds[0]
	want := ops.KindStats{Kind: "mail", Jobs: 3, FirstTry: 1, Later: 1, GaveUp: 1, Attempts: 4, Retries: 1, Amplification: 4.0 / 3, Took: mail.Took, Wasted: mail.Wasted}
	if mail != want || mail.Wasted <= 0 || mail.Took <= mail.Wasted {
		s.Errorf("the figures are %+v, wanted %+v", mail, want)
	}
	s.must(s.store.Apply(s.ctx, store.Change{Records: []store.Record{{Namespace: "policy", Name: "current", Body: json.RawMessage(`{"text": "kinds: {mail: {cost: 2.5}}"}`)}}}))
	priced, err := s.operator.Analytics(s.ctx, time.Hour)
	s.must(err)
	if mail = priced.Kinds[0]; mail.Cost != 10 || mail.RetryCost != 2.5 {
		s.Errorf("four attempts at 2.5 each cost %v, the retry %v", mail.Cost, mail.RetryCost)
	}
	if len(got.Retries) != 1 || got.Retries[0].Failed != 2 || got.Retries[0].Success != 1 || got.Retries[0].Code != "TIMEOUT" {
		s.Errorf("retries are shown as %+v", got.Retries)
	}
}

func analyticsOfABreaker(s *scene) {
	id := s.enqueue(func(d *holdfast.Draft) { d.Dependency = "gateway" })
	s.must(s.operator.OpenBreaker(s.ctx, "gateway", byPerson("ann", "it burns")))
	got, err := s.operator.Analytics(s.ctx, time.Hour)
	s.must(err)
	if len(got.Recoveries) != 1 || got.Recoveries[0].Waiting != 1 || !got.Recoveries[0].Back.IsZero() || got.Recoveries[0].Why != "it burns" {
		s.Errorf("a dependency that is down is shown as %+v", got.Recoveries)
	}
	s.must(s.operator.CloseBreaker(s.ctx, "gateway", byPerson("ann", "")))
	got, err = s.operator.Analytics(s.ctx, time.Hour)
	s.must(err)
	if len(got.Recoveries) != 1 || got.Recoveries[0].Back.IsZero() || got.Recoveries[0].Away <= 0 {
		s.Errorf("a recovering dependency is shown as %+v", got.Recoveries)
	}
	s.must(s.operator.ForceBreaker(s.ctx, "gateway", false, byPerson("ann", "")))
	s.settle(s.claim(id), func(x *store.Settlement) { x.Took = time.Microsecond })
	got, err = s.operator.Analytics(s.ctx, time.Hour)
	s.must(err)
	if r := got.Recoveries; len(r) != 1 || r[0].Closed.IsZero() || r[0].Waiting != 0 || !r[0].Drained.After(r[0].Back) || r[0].Drain != r[0].Drained.Sub(r[0].Back) {
		s.Errorf("a recovered dependency is shown as %+v", r)
	}
}
