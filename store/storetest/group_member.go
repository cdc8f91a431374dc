package storetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// How members are added to a group, and when they are refused.
var memberLaws = []law{
	{"a sealed group takes no member on any insert path, and nothing of the call is written", func(s *scene) {
		sealed, _ := s.sealedGroup(1)
		settled, _ := s.sealedGroup(0)
		s.advanceGroups()
		for _, group := range []holdfast.ID{sealed, settled} {
			for name, enqueue := range s.memberPaths() {
				if err := enqueue(group); !errors.Is(err, holdfast.ErrConflict) {
					s.Errorf("%s: got %v, want a conflict", name, err)
				}
			}
		}
		s.expectJobs(1)
	}},
	{"a group that does not exist takes no member on any insert path", func(s *scene) {
		for name, enqueue := range s.memberPaths() {
			if err := enqueue(holdfast.NewID()); !errors.Is(err, holdfast.ErrNotFound) {
				s.Errorf("%s: got %v, want not found", name, err)
			}
		}
		s.expectJobs(0)
	}},
	{"an open group takes members on every insert path", func(s *scene) {
		group := s.gather()
		for name, enqueue := range s.memberPaths() {
			if err := enqueue(group); err != nil {
				s.Errorf("%s: %v", name, err)
			}
		}
		total := len(s.jobs(store.Filter{Group: group, Limit: 200}))
		same(s, "members", s.group(group).Members, holdfast.Members{Total: total, Queued: total - 1, Waiting: 1})
		same(s, "all are members", len(s.jobs(store.Filter{Limit: 200})), total)
	}},
	{"a draft that matches an existing job adds no member; under one idempotency key another group is another draft", func(s *scene) {
		twin := s.enqueue(unique("k"), func(d *holdfast.Draft) { d.IdempotencyKey = "once" })
		group := s.gather()
		receipt := s.enqueueAll(holdfast.Draft{Kind: "mail", UniqueKey: "k", Group: group})[0]
		same(s, "receipt", receipt, holdfast.Receipt{ID: twin, Existing: true})
		same(s, "members", s.group(group).Members.Total, 0)
		_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{{Kind: "mail", Queue: "default", UniqueKey: "k", IdempotencyKey: "once", Group: group}})
		s.expectConflict(err, twin)
	}},
	{"a call repeated under its idempotency key returns its member, even if the group was sealed or settled since", func(s *scene) {
		group := s.gather()
		once := holdfast.Draft{Kind: "mail", IdempotencyKey: "once", Group: group}
		member := s.enqueueAll(once)[0].ID
		s.seal(group)
		for range 2 {
			same(s, "receipt", s.enqueueAll(once)[0], holdfast.Receipt{ID: member, Existing: true})
			tx, end := s.Begin()
			receipts, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{once})
			s.must(err)
			s.must(end(true))
			same(s, "receipt in a transaction", receipts, []holdfast.Receipt{{ID: member, Existing: true}})
			s.run()
		}
		s.expectGroup(group, holdfast.GroupReady, 1)
	}},
	{"a group, its members and its seal in the caller's transaction exist if and when that commits", func(s *scene) {
		for _, commit := range []bool{false, true} {
			tx, end := s.Begin()
			in := s.In(tx)
			g, err := in.CreateGroup(s.ctx, holdfast.Group{Name: "theirs"})
			s.must(err)
			receipts, err := in.Enqueue(s.ctx, []holdfast.Draft{{Kind: "mail", Group: g.ID}, {Kind: "mail", Group: g.ID}})
			s.must(err)
			s.must(in.SealGroup(s.ctx, g.ID))
			_, err = s.Store.Group(s.ctx, g.ID)
			s.expectError(err, holdfast.ErrNotFound)
			s.must(end(commit))
			s.advanceGroups()
			if !commit {
				_, err = s.Store.Group(s.ctx, g.ID)
				s.expectError(err, holdfast.ErrNotFound)
				s.expectJobs(0)
				continue
			}
			same(s, "members", s.expectGroup(g.ID, holdfast.GroupProcessing, 1).Members, holdfast.Members{Total: 2, Queued: 2})
			s.run(receipts[0].ID)
			s.expectGroup(g.ID, holdfast.GroupPartial, 1)
		}
	}},
	{"members added in a transaction that is rolled back do not exist", func(s *scene) {
		group := s.gather()
		tx, end := s.Begin()
		_, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{{Kind: "mail", Group: group}})
		s.must(err)
		s.must(end(false))
		s.seal(group)
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupReady, 1)
	}},
	{"two thousand members in one call run, and settle once", func(s *scene) {
		group := s.gather(thenEnqueue(holdfast.GroupPartial, "report"))
		members := s.enqueueMany(2000, in(group))
		s.seal(group)
		s.advanceGroups()
		same(s, "members", s.expectGroup(group, holdfast.GroupProcessing, 1).Members, holdfast.Members{Total: 2000, Queued: 2000})
		same(s, "ran", len(s.run(members[:7]...)), 2000)
		same(s, "members", s.expectGroup(group, holdfast.GroupPartial, 1).Members, holdfast.Members{Total: 2000, Complete: 1993, Failed: 7})
		same(s, "story", s.groupStory(group), []groupEvent{{"holdfast", "partial", 1}})
		same(s, "retried", s.retryGroup(group), 7)
		same(s, "ran again", len(s.run()), 7)
		s.expectGroup(group, holdfast.GroupReady, 2)
		same(s, "continuations", len(s.jobs(store.Filter{Kind: "report"})), 1)
	}},
	{"two hundred members that end concurrently in several processes settle their group once", func(s *scene) {
		group, _ := s.sealedGroup(200, thenEnqueue("", "report"), quorum(100))
		s.endTogether(20, 10)
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupReady, 1)
		same(s, "story", s.groupStory(group), []groupEvent{{"holdfast", "ready", 1}})
		same(s, "continuations", len(s.jobs(store.Filter{Kind: "report"})), 1)
	}},
	{"when a seal races the last members, they are members or are refused and leave nothing", func(s *scene) {
		stores := s.handles()
		for range 10 {
			group, taken := s.gather(), &lockedCounts{}
			together(8, func(i int) {
				if i == 0 {
					if err := stores[0].SealGroup(s.ctx, group); err != nil {
						s.Errorf("seal: %v", err)
					}
					return
				}
				_, err := stores[i%3].Enqueue(s.ctx, []holdfast.Draft{{Kind: "mail", Group: group}})
				if err == nil {
					taken.add("taken")
				} else if !errors.Is(err, holdfast.ErrConflict) {
					s.Errorf("enqueue: %v", err)
				}
			})
			same(s, "members", s.group(group).Members.Total, taken.n["taken"])
			s.run()
			same(s, "members in the end", s.expectGroup(group, holdfast.GroupReady, 1).Members.Complete, taken.n["taken"])
		}
	}},
}

// memberPaths are all ways to add members.
func (s *scene) memberPaths() map[string]func(group holdfast.ID) error {
	many := func(n int, change ...func(*holdfast.Draft)) func(group holdfast.ID) []holdfast.Draft {
		return func(group holdfast.ID) []holdfast.Draft {
			drafts := make([]holdfast.Draft, n)
			for i := range drafts {
				drafts[i] = draft()
				for _, c := range append(slices.Clone(change), in(group)) {
					c(&drafts[i])
				}
			}
			return drafts
		}
	}
	ways := map[string]func(group holdfast.ID) error{}
	for name, drafts := range map[string]func(holdfast.ID) []holdfast.Draft{
		"alone": many(1), "a few": many(5), "in bulk": many(120), "with a unique key": many(1, unique(holdfast.NewID().String())),
		"with an idempotency key": many(1, func(d *holdfast.Draft) { d.IdempotencyKey = holdfast.NewID().String() }),
		"later":                   many(2, at(1)),
	} {
		ways[name] = func(group holdfast.ID) error { _, err := s.Store.Enqueue(s.ctx, drafts(group)); return err }
		ways[name+", in a transaction"] = func(group holdfast.ID) error {
			tx, end := s.Begin()
			_, err := s.In(tx).Enqueue(s.ctx, drafts(group))
			if ended := end(err == nil); err == nil {
				err = ended
			}
			return err
		}
		ways[name+", in a change"] = func(group holdfast.ID) error { return s.Store.Apply(s.ctx, store.Change{Enqueue: drafts(group)}) }
	}
	ways["after others of the call"] = func(group holdfast.ID) error {
		drafts := many(2)(group)
		drafts[0].ID = holdfast.NewID()
		drafts[1].After = []holdfast.ID{drafts[0].ID}
		_, err := s.Store.Enqueue(s.ctx, drafts)
		return err
	}
	return ways
}

// endTogether lets several workers claim jobs, settle them concurrently over several handles, and advance groups concurrently.
func (s *scene) endTogether(workers, each int) {
	s.Helper()
	stores := s.handles()
	leases := make([][]store.Lease, workers)
	for i := range leases {
		leases[i] = s.claimAs(store.Claim{Worker: fmt.Sprint("w", i), Limit: each, Start: each})
	}
	together(workers, func(i int) {
		db := stores[i%3]
		for _, l := range leases[i] {
			e := completes(l)
			if l.ID[15]%4 == 0 {
				e = fails(l, "BROKEN")
			}
			if answers, err := db.Settle(s.ctx, []store.Settlement{e}); err != nil || answers[0] != nil {
				s.Errorf("settle: %v %v", err, answers)
			}
		}
		for range 3 {
			if _, err := db.Sequence(s.ctx, 100); err != nil {
				s.Errorf("sequence: %v", err)
			}
			if _, err := db.AdvanceGroups(s.ctx, 100); err != nil {
				s.Errorf("advance groups: %v", err)
			}
		}
	})
}
