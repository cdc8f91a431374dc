package storetest

import (
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Helpers for laws about groups and the feed.

// gather creates a group, changed by the options.
func (s *scene) gather(change ...func(*holdfast.Group)) holdfast.ID {
	s.Helper()
	var g holdfast.Group
	for _, c := range change {
		c(&g)
	}
	made, err := s.Store.CreateGroup(s.ctx, g)
	s.must(err)
	return made.ID
}

func (s *scene) seal(group holdfast.ID) {
	s.Helper()
	s.must(s.Store.SealGroup(s.ctx, group))
}

// sealedGroup creates a group with n simple members, and seals it.
func (s *scene) sealedGroup(n int, change ...func(*holdfast.Group)) (holdfast.ID, []holdfast.ID) {
	s.Helper()
	group := s.gather(change...)
	var members []holdfast.ID
	if n > 0 {
		members = s.enqueueMany(n, in(group))
	}
	s.seal(group)
	return group, members
}

// in makes a draft a member of a group.
func in(group holdfast.ID) func(*holdfast.Draft) {
	return func(d *holdfast.Draft) { d.Group = group }
}

// after makes a draft wait for other members.
func after(upstream ...holdfast.ID) func(*holdfast.Draft) {
	return func(d *holdfast.Draft) { d.After = upstream }
}

func afterAll(d *holdfast.Draft) { d.AfterAll = true }

func inside(parent holdfast.ID) func(*holdfast.Group) {
	return func(g *holdfast.Group) { g.Parent = parent }
}

func quorum(n int) func(*holdfast.Group) { return func(g *holdfast.Group) { g.Quorum = n } }

// thenEnqueue adds a simple continuation for an outcome.
func thenEnqueue(on holdfast.GroupState, kind string) func(*holdfast.Group) {
	return func(g *holdfast.Group) {
		g.Then = append(g.Then, holdfast.Then{On: on, Draft: holdfast.Draft{Kind: kind, Queue: "next"}})
	}
}

// run claims all jobs of the default queue, fails the given ones and completes the others, and advances groups.
func (s *scene) run(failed ...holdfast.ID) (ran []holdfast.ID) {
	s.Helper()
	leases := s.claim(5000)
	settlements := make([]store.Settlement, 0, len(leases))
	for _, l := range leases {
		e := completes(l)
		if slices.Contains(failed, l.ID) {
			e = fails(l, "BROKEN")
		}
		settlements = append(settlements, e)
	}
	if len(settlements) > 0 {
		s.settle(settlements...)
	}
	s.advanceGroups()
	return ids(leases)
}

// advanceGroups numbers events and advances groups until nothing is left to do.
func (s *scene) advanceGroups() {
	s.Helper()
	advanceOn(s, s.Store)
}

func advanceOn(s *scene, db store.Store) {
	s.Helper()
	for range 1000 {
		s.must(sequenceOn(s, db))
		n, err := db.AdvanceGroups(s.ctx, 1000)
		s.must(err)
		if n == 0 {
			return
		}
	}
	s.Fatal("AdvanceGroups does not end: it reported changes a thousand times")
}

func sequenceOn(s *scene, db store.Store) error {
	for range 1000 {
		n, err := db.Sequence(s.ctx, 1000)
		if err != nil || n < 1000 {
			return err
		}
	}
	s.Fatal("Sequence does not end")
	return nil
}

func (s *scene) group(id holdfast.ID) holdfast.Group {
	s.Helper()
	g, err := s.Store.Group(s.ctx, id)
	s.must(err)
	return g
}

// expectGroup compares state and generation, and checks the time of settlement.
func (s *scene) expectGroup(id holdfast.ID, state holdfast.GroupState, generation int) holdfast.Group {
	s.Helper()
	g := s.group(id)
	if g.State != state || g.Generation != generation {
		s.Fatalf("group %v is %s in generation %d, want %s in %d; its members: %+v", id, g.State, g.Generation, state, generation, g.Members)
	}
	if g.State.Settled() == g.SettledAt.IsZero() {
		s.Fatalf("group %v is %s and was settled at %v", id, g.State, g.SettledAt)
	}
	return g
}

// groupStory returns the events of a group, oldest first: actor, name and generation.
func (s *scene) groupStory(group holdfast.ID) (lines []groupEvent) {
	s.Helper()
	for _, e := range s.events("group/" + group.String()) {
		lines = append(lines, groupEvent{e.Actor, e.Name, e.Generation})
	}
	slices.Reverse(lines)
	return lines
}

type groupEvent struct {
	Actor, Name string
	Generation  int
}

func byGroup(id holdfast.ID) store.Intervention {
	return store.Intervention{Group: id, Actor: "ada", Reason: "because", Request: "req-1"}
}

func (s *scene) retryGroup(id holdfast.ID) int {
	s.Helper()
	n, err := s.Store.RetryGroup(s.ctx, byGroup(id))
	s.must(err)
	return n
}

func (s *scene) cancelGroup(id holdfast.ID) {
	s.Helper()
	s.must(s.Store.CancelGroup(s.ctx, byGroup(id)))
}

// expectWaiting expects that jobs wait for other members of their group.
func (s *scene) expectWaiting(jobs ...holdfast.ID) {
	s.Helper()
	for _, id := range jobs {
		if job := s.expectState(id, holdfast.Queued); !job.Waiting {
			s.Fatalf("job %v does not wait any more", id)
		}
	}
}

// listen makes the store write these events of jobs from now on.
func (s *scene) listen(events ...string) {
	s.Helper()
	s.keep(store.Change{Listen: []store.Listener{{Name: "reader", Events: events}}})
}

// feed numbers events and reads all of them after a number, a few at a time.
func (s *scene) feed(after int64) []store.Event {
	s.Helper()
	s.must(sequenceOn(s, s.Store))
	return read(s, s.Store, after, 7)
}

// read reads all events after a number, limit at a time, and expects that none is missing.
func read(s *scene, db store.Store, after int64, limit int) (events []store.Event) {
	s.Helper()
	for {
		f, err := db.Feed(s.ctx, after, limit)
		s.must(err)
		if f.Missed > 0 {
			s.Fatalf("%d events were missed", f.Missed)
		}
		if len(f.Events) > limit {
			s.Fatalf("requested %d events, got %d", limit, len(f.Events))
		}
		for _, e := range f.Events {
			if after++; e.Seq != after {
				s.Fatalf("event %d is at the position of %d", e.Seq, after)
			}
		}
		events = append(events, f.Events...)
		if len(f.Events) == 0 {
			if f.Next != f.Head || f.Head != after {
				s.Fatalf("the feed ends at %d, its head is %d, and its next is %d", after, f.Head, f.Next)
			}
			return events
		}
		if f.Next != after {
			s.Fatalf("the last event is %d, and the feed's next is %d", after, f.Next)
		}
	}
}

// namesOf returns the names of a job's events.
func namesOf(events []store.Event, job holdfast.ID) (names []string) {
	for _, e := range events {
		if e.Job == job {
			names = append(names, e.Name)
		}
	}
	return names
}
