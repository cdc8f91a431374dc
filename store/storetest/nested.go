package storetest

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Nested groups.
var nestedLaws = []law{
	{"a child group is a member of its parent: processing until it settles, complete when it is ready", func(s *scene) {
		parent := s.gather()
		child, _ := s.sealedGroup(2, inside(parent))
		s.enqueue(in(parent))
		s.seal(parent)
		s.advanceGroups()
		same(s, "members", s.expectGroup(parent, holdfast.GroupProcessing, 1).Members, holdfast.Members{Total: 2, Queued: 1, Processing: 1})
		s.run()
		s.expectGroup(child, holdfast.GroupReady, 1)
		same(s, "members", s.expectGroup(parent, holdfast.GroupReady, 1).Members, holdfast.Members{Total: 2, Complete: 2})
	}},
	{"any other outcome of a child group counts as failed in its parent", func(s *scene) {
		for _, want := range []holdfast.GroupState{holdfast.GroupPartial, holdfast.GroupFailed, holdfast.GroupCancelled} {
			parent := s.gather()
			child, members := s.sealedGroup(2, inside(parent))
			s.enqueue(in(parent))
			s.seal(parent)
			switch want {
			case holdfast.GroupPartial:
				s.run(members[0])
			case holdfast.GroupFailed:
				s.run(members...)
			default:
				s.cancelGroup(child)
				s.advanceGroups()
				s.run()
			}
			s.expectGroup(child, want, 1)
			same(s, "members around "+string(want), s.expectGroup(parent, holdfast.GroupPartial, 1).Members, holdfast.Members{Total: 2, Complete: 1, Failed: 1})
		}
	}},
	{"an open child group keeps its parent from settling", func(s *scene) {
		parent := s.gather()
		child := s.gather(inside(parent))
		s.seal(parent)
		s.advanceGroups()
		s.expectGroup(parent, holdfast.GroupProcessing, 1)
		s.seal(child)
		s.advanceGroups()
		s.expectGroup(child, holdfast.GroupReady, 1)
		s.expectGroup(parent, holdfast.GroupReady, 1)
	}},
	{"a retried member of a nested group reopens every group around it, and its success settles them again", func(s *scene) {
		top := s.gather(thenEnqueue("", "report"))
		middle := s.gather(inside(top))
		bottom, members := s.sealedGroup(2, inside(middle))
		s.seal(middle)
		s.seal(top)
		s.run(members[0])
		s.expectGroup(bottom, holdfast.GroupPartial, 1)
		s.expectGroup(middle, holdfast.GroupFailed, 1)
		s.expectGroup(top, holdfast.GroupFailed, 1)
		s.retry(members[0])
		for _, g := range []holdfast.ID{bottom, middle, top} {
			s.expectGroup(g, holdfast.GroupProcessing, 2)
		}
		s.run()
		for _, g := range []holdfast.ID{bottom, middle, top} {
			s.expectGroup(g, holdfast.GroupReady, 2)
		}
		same(s, "story of the top", s.groupStory(top), []groupEvent{{"holdfast", "failed", 1}, {"ada", "reopened", 2}, {"holdfast", "ready", 2}})
		same(s, "continuations", len(s.jobs(store.Filter{Kind: "report"})), 2)
	}},
	{"a manual retry of a group also retries failed members of its child groups", func(s *scene) {
		top := s.gather()
		middle := s.gather(inside(top))
		bottom, members := s.sealedGroup(2, inside(middle))
		follower := s.gather(inside(top))
		first := s.enqueue(in(follower))
		second := s.enqueue(in(follower), after(first))
		own := s.enqueue(in(top))
		for _, g := range []holdfast.ID{middle, follower, top} {
			s.seal(g)
		}
		s.run(members[1], first, own)
		s.expectState(second, holdfast.Cancelled)
		s.expectGroup(top, holdfast.GroupFailed, 1)
		same(s, "retried", s.retryGroup(top), 4)
		s.expectWaiting(second)
		for _, g := range []holdfast.ID{bottom, middle, follower, top} {
			s.expectGroup(g, holdfast.GroupProcessing, 2)
		}
		same(s, "ran", len(s.run()), 3)
		same(s, "ran then", s.run(), []holdfast.ID{second})
		s.expectGroup(top, holdfast.GroupReady, 2)
	}},
	{"cancelling a group cancels its child groups", func(s *scene) {
		top := s.gather()
		middle := s.gather(inside(top))
		bottom := s.gather(inside(middle))
		s.enqueueMany(3, in(bottom))
		s.enqueue(in(top))
		lease := s.claimOne()
		s.cancelGroup(top)
		s.advanceGroups()
		s.expectGroup(top, holdfast.GroupProcessing, 1)
		s.settle(completes(lease))
		s.advanceGroups()
		for _, g := range []holdfast.ID{bottom, middle, top} {
			s.expectGroup(g, holdfast.GroupCancelled, 1)
		}
	}},
	{"a child group is cancelled even if a member of it ends at the same time", func(s *scene) {
		for _, late := range []func(child holdfast.ID){func(holdfast.ID) {}, s.seal} {
			top := s.gather()
			child := s.gather(inside(top))
			members := s.enqueueMany(3, in(child))
			s.cancel(members[0]) // this alone makes AdvanceGroups check the child group
			late(child)
			s.cancelGroup(top)
			s.advanceGroups()
			s.expectGroup(child, holdfast.GroupCancelled, 1)
			s.expectGroup(top, holdfast.GroupCancelled, 1)
		}
	}},
	{"a child group that settles while its parent is open is counted when the parent is sealed", func(s *scene) {
		parent := s.gather()
		_, members := s.sealedGroup(1, inside(parent))
		s.run(members[0])
		same(s, "members", s.expectGroup(parent, holdfast.GroupOpen, 1).Members, holdfast.Members{Total: 1, Failed: 1})
		s.seal(parent)
		s.advanceGroups()
		s.expectGroup(parent, holdfast.GroupFailed, 1)
	}},
	{"ten child groups that settle concurrently settle their parent once", func(s *scene) {
		parent := s.gather(thenEnqueue("", "report"))
		for range 10 {
			s.sealedGroup(20, inside(parent), quorum(1))
		}
		s.seal(parent)
		s.endTogether(20, 10)
		s.advanceGroups()
		same(s, "members", s.expectGroup(parent, holdfast.GroupReady, 1).Members, holdfast.Members{Total: 10, Complete: 10})
		same(s, "continuations", len(s.jobs(store.Filter{Kind: "report"})), 1)
	}},
}
