package opstest

import (
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// advanceGroups runs AdvanceGroups until it changes nothing, as the duty of workers does.
func (s *scene) advanceGroups() {
	s.Helper()
	s.eventually("an end of what follows", func() bool {
		pages, err := s.store.Sequence(s.ctx, 100)
		s.must(err)
		done, err := s.store.AdvanceGroups(s.ctx, 100)
		s.must(err)
		return pages == 0 && done == 0
	})
}

func (s *scene) gather(g holdfast.Group) holdfast.ID {
	s.Helper()
	g, err := s.store.CreateGroup(s.ctx, g)
	s.must(err)
	return g.ID
}

func (s *scene) member(group holdfast.ID, after ...holdfast.ID) holdfast.ID {
	s.Helper()
	return s.enqueue(func(d *holdfast.Draft) { d.Group, d.After = group, after })
}

func (s *scene) expectGroup(id holdfast.ID, want holdfast.GroupState) holdfast.Group {
	s.Helper()
	g, err := s.operator.Group(s.ctx, id)
	s.must(err)
	if g.Group.State != want {
		s.Fatalf("the group is %s, wanted %s: %+v", g.Group.State, want, g.Group)
	}
	return g.Group
}

// onGroup is an intervention of ann on a group.
func onGroup(id holdfast.ID) store.Intervention {
	return store.Intervention{Group: id, Actor: "ann", Reason: "because", Request: "request 7"}
}

func groupsByHand(s *scene) {
	id := s.gather(holdfast.Group{Name: "spring", Owner: "acme"})
	inside := s.gather(holdfast.Group{Name: "inside", Parent: id})
	good, bad := s.member(id), s.member(id)
	s.settle(s.claim(good), complete)
	s.settle(s.claim(bad), fail)
	s.must(s.store.SealGroup(s.ctx, inside))
	s.expect(s.operator.SealGroup(s.ctx, store.Intervention{Group: id}), holdfast.ErrInvalid)
	foreign := onGroup(id)
	foreign.Owner = "other"
	s.expect(s.operator.SealGroup(s.ctx, foreign), holdfast.ErrNotFound)
	s.expectGroup(id, holdfast.GroupOpen)
	s.must(s.operator.SealGroup(s.ctx, onGroup(id)))
	s.must(s.operator.SealGroup(s.ctx, onGroup(id)))
	s.advanceGroups()
	if g := s.expectGroup(id, holdfast.GroupPartial); g.Members.Complete != 2 || g.Members.Failed != 1 || g.Members.Total != 3 {
		s.Errorf("the members are %+v", g.Members)
	}
	g, err := s.operator.Group(s.ctx, id)
	s.must(err)
	if len(g.Failed) != 1 || g.Failed[0].ID != bad || len(g.Live) != 0 || len(g.Inside) != 1 || g.Inside[0].ID != inside {
		s.Errorf("the group is shown with %d failed, %d live and %d groups inside", len(g.Failed), len(g.Live), len(g.Inside))
	}

	_, err = s.operator.RetryGroup(s.ctx, foreign)
	s.expect(err, holdfast.ErrNotFound)
	n, err := s.operator.RetryGroup(s.ctx, onGroup(id))
	s.must(err)
	if n != 1 {
		s.Errorf("%d members were sent round again, wanted 1", n)
	}
	if g := s.expectGroup(id, holdfast.GroupProcessing); g.Generation != 2 {
		s.Errorf("the group is in generation %d", g.Generation)
	}
	s.settle(s.claim(bad), complete)
	s.advanceGroups()
	s.expectGroup(id, holdfast.GroupReady)
	_, err = s.operator.RetryGroup(s.ctx, onGroup(id))
	s.expect(err, holdfast.ErrConflict)
	g, err = s.operator.Group(s.ctx, id)
	s.must(err)
	var names []string
	for _, e := range g.Story {
		names = append(names, e.Name)
	}
	for _, want := range []string{"sealed", "partial", "manual retry", "reopened", "ready"} {
		if !slices.Contains(names, want) {
			s.Errorf("the story of the group is %q, without %q", names, want)
		}
	}
	list, _, err := s.operator.Groups(s.ctx, store.GroupFilter{State: holdfast.GroupReady, Owner: "acme"})
	s.must(err)
	if len(list) != 1 || list[0].ID != id {
		s.Errorf("the groups are %+v", list)
	}
}

func cancelledGroups(s *scene) {
	id := s.gather(holdfast.Group{})
	taken, queued := s.member(id), s.member(id)
	lease := s.claim(taken)
	s.must(s.operator.CancelGroup(s.ctx, onGroup(id)))
	s.advanceGroups()
	s.expectState(queued, holdfast.Cancelled)
	s.expectReasons(taken, "processing", "cancelling")
	s.settle(lease, complete)
	s.advanceGroups()
	s.expectState(taken, holdfast.Cancelled)
	s.expectGroup(id, holdfast.GroupCancelled)
	s.expect(s.operator.CancelGroup(s.ctx, onGroup(id)), holdfast.ErrConflict)
	_, err := s.operator.Group(s.ctx, holdfast.NewID())
	s.expect(err, holdfast.ErrNotFound)
}

func membersThatWait(s *scene) {
	id := s.gather(holdfast.Group{})
	first, second := s.member(id), s.member(id)
	last := s.member(id, first, second)
	s.must(s.store.SealGroup(s.ctx, id))
	s.expectReasons(last, "members", "no worker")
	s.settle(s.claim(first), complete)
	s.advanceGroups()
	e, err := s.operator.Explain(s.ctx, last)
	s.must(err)
	if text := e.Reasons[0].Text; !strings.Contains(text, second.String()) || strings.Contains(text, first.String()) || !strings.Contains(text, "1 of 2") {
		s.Errorf("a member that waits is explained by %q", text)
	}
	s.must(s.operator.PauseDuty(s.ctx, "group", 0, byPerson("ann", "to look")))
	s.expectReasons(last, "members", "duty paused", "no worker")
	s.must(s.operator.ResumeDuty(s.ctx, "group", byPerson("ann", "")))

	s.settle(s.claim(second), fail)
	s.advanceGroups()
	s.expectState(last, holdfast.Cancelled)
	s.expectReasons(last, "upstream")
	if e, err = s.operator.Explain(s.ctx, last); err != nil || !strings.Contains(e.Reasons[0].Text, second.String()) || !strings.Contains(e.Reasons[0].Remedy, "holdfast groups retry "+id.String()) {
		s.Errorf("a member that was cancelled because of another is explained by %+v, %v", e.Reasons, err)
	}
	lines, err := s.operator.Story(s.ctx, last)
	s.must(err)
	if line := lines[len(lines)-1]; line.Name != "cancelled" || line.Actor != "holdfast" {
		s.Errorf("its story ends with %+v", line)
	}
	n, err := s.operator.RetryGroup(s.ctx, onGroup(id))
	s.must(err)
	if n != 2 {
		s.Errorf("%d members were sent round again, wanted 2", n)
	}
	s.expectReasons(last, "members", "no worker")
	s.settle(s.claim(second), complete)
	s.advanceGroups()
	s.settle(s.claim(last), complete)
	s.advanceGroups()
	s.expectGroup(id, holdfast.GroupReady)
}
