package opstest

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// sequence numbers the events so far.
func (s *scene) sequence() {
	s.Helper()
	s.eventually("an end of what happened", func() bool {
		pages, err := s.store.Sequence(s.ctx, 100)
		s.must(err)
		return pages == 0
	})
}

func feedIsFollowed(s *scene) {
	s.must(s.store.Apply(s.ctx, store.Change{Listen: []store.Listener{{Name: "law", Events: []string{"*"}}}}))
	first := s.enqueue()
	s.settle(s.claim(first), func(x *store.Settlement) { complete(x); x.Took = time.Minute }) // the store limits it to the age of the lease
	s.sequence()
	page, err := s.operator.Feed(s.ctx, 0, 2)
	s.must(err)
	if len(page.Events) != 2 || page.Events[0].Name != store.EventQueued || page.Events[0].Job != first || page.Next != 2 || page.Head < 3 {
		s.Fatalf("the feed begins with %+v", page)
	}
	latest, err := s.operator.LatestEvents(s.ctx, 1)
	s.must(err)
	if len(latest.Events) != 1 || latest.Events[0].Name != store.EventComplete || latest.Missed != 0 {
		s.Errorf("the latest is %+v", latest)
	}
	var names []string
	var followed []store.Event
	from, next := page.Next, page.Next
	for page, err := range s.operator.Tail(s.ctx, page.Next) {
		s.must(err)
		for _, e := range page.Events {
			if e.Seq != next+1 {
				s.Errorf("event %d came after %d", e.Seq, next)
			}
			next = e.Seq
			names, followed = append(names, e.Name), append(followed, e)
		}
		if len(names) >= 2 {
			break
		}
		s.enqueue() // while somebody waits for more
		s.sequence()
	}
	if strings.Join(names, ", ") != "complete, queued" {
		s.Errorf("the reader of the feed got %q", names)
	}
	page, err = s.operator.Feed(s.ctx, from, len(followed))
	s.must(err)
	if !reflect.DeepEqual(followed, page.Events) || followed[0].Took == 0 {
		s.Errorf("Tail yields %+v\nFeed returns %+v", followed, page.Events)
	}
	for _, err := range s.operator.Tail(s.ctx, next+1000) {
		s.expect(err, holdfast.ErrInvalid)
	}
}

func auditTrail(s *scene) {
	bad := s.failed()
	i := by(bad)
	i.Request = "request-9"
	_, err := s.operator.Retry(s.ctx, i)
	s.must(err)
	s.must(s.operator.PauseDuty(s.ctx, "promote", 0, byPerson("bob", "to look")))
	s.must(s.operator.ResumeDuty(s.ctx, "promote", byPerson("ann", "seen")))
	s.must(s.store.Apply(s.ctx, store.Change{Events: []store.Event{{Subject: "duty/promote", Name: "resumed", Actor: "holdfast"}, {Subject: "duty/promote", Name: "resumed", Actor: "holdfast (key far)"}}}))
	s.expect(s.operator.PauseDuty(s.ctx, "promote", 0, byPerson("Holdfast", "not to be seen")), holdfast.ErrInvalid)
	s.sequence()
	deeds := func(f ops.AuditFilter) (list []string) {
		trail, err := s.operator.AuditLog(s.ctx, f)
		s.must(err)
		for _, e := range trail.Events {
			list = append(list, strings.Join([]string{e.Actor, e.Name, e.Reason, e.Request}, "/"))
		}
		return list
	}
	retried, paused, resumed := "ann/manual retry/because/request-9", "bob/paused/to look/request-7", "ann/resumed/seen/request-7"
	for _, c := range []struct {
		filter ops.AuditFilter
		want   []string
	}{
		{ops.AuditFilter{}, []string{retried, paused, resumed}},
		{ops.AuditFilter{Actor: "ann"}, []string{retried, resumed}},
		{ops.AuditFilter{Actor: "ANN"}, []string{retried, resumed}},
		{ops.AuditFilter{Limit: 1}, []string{retried}},
		{ops.AuditFilter{Job: bad}, []string{retried}},
		{ops.AuditFilter{Subject: "duty/promote"}, []string{paused, resumed}},
		{ops.AuditFilter{Subject: "duty/promote", Limit: 1}, []string{resumed}},
	} {
		if got := deeds(c.filter); !slices.Equal(got, c.want) {
			s.Errorf("%+v returns %q, wanted %q", c.filter, got, c.want)
		}
	}
	trail, err := s.operator.AuditLog(s.ctx, ops.AuditFilter{Limit: 1})
	s.must(err)
	if trail, err = s.operator.AuditLog(s.ctx, ops.AuditFilter{After: trail.Next}); err != nil || len(trail.Events) != 2 || trail.Next != trail.Head {
		s.Errorf("the rest of the trail is %+v, %v", trail, err)
	}
	_, err = s.operator.AuditLog(s.ctx, ops.AuditFilter{Job: bad, Subject: "retention"})
	s.expect(err, holdfast.ErrInvalid)
}
