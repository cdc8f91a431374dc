package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var groupLaws = []law{
	{"a new group is open and empty, and shows everything it was created with", func(s *scene) {
		parent := s.gather()
		g := holdfast.Group{
			Name: "spring campaign", Owner: "acme", Parent: parent, Quorum: 3, ExpireIn: time.Hour,
			Then: []holdfast.Then{{On: holdfast.GroupReady, Draft: holdfast.Draft{Kind: "report", Queue: "slow", Args: raw(`{"a":1}`)}}},
		}
		made, err := s.Store.CreateGroup(s.ctx, g)
		s.must(err)
		got := s.group(made.ID)
		want := holdfast.Group{
			ID: made.ID, Name: g.Name, Owner: "acme", Parent: parent, Quorum: 3, ExpireAt: got.AsOf.Add(time.Hour),
			State: holdfast.GroupOpen, Generation: 1, CreatedAt: got.AsOf, AsOf: got.AsOf,
		}
		same(s, "continuations", text(got.Then), text(made.Then))
		same(s, "kind of the continuation", got.Then[0].Draft.Kind, "report")
		got.Then, made.Then = nil, nil
		same(s, "group", got, want)
		same(s, "as it was answered", []any{made.State, made.Generation, made.CreatedAt, made.ExpireAt}, []any{holdfast.GroupOpen, 1, want.CreatedAt, want.ExpireAt})
	}},
	{"an existing id or a sealed parent is a conflict, an unknown parent is not found, invalid input is refused", func(s *scene) {
		open := s.gather()
		sealed, _ := s.sealedGroup(1)
		for _, c := range []struct {
			g    holdfast.Group
			want error
		}{
			{holdfast.Group{ID: open}, holdfast.ErrConflict}, {holdfast.Group{Parent: sealed}, holdfast.ErrConflict},
			{holdfast.Group{Parent: holdfast.NewID()}, holdfast.ErrNotFound}, {holdfast.Group{Quorum: -1}, holdfast.ErrInvalid},
			{holdfast.Group{Then: []holdfast.Then{{Draft: holdfast.Draft{Kind: "two words"}}}}, holdfast.ErrInvalid},
		} {
			_, err := s.Store.CreateGroup(s.ctx, c.g)
			s.expectError(err, c.want)
		}
		_, err := s.Store.Group(s.ctx, holdfast.NewID())
		s.expectError(err, holdfast.ErrNotFound)
		s.expectError(s.Store.SealGroup(s.ctx, holdfast.NewID()), holdfast.ErrNotFound)
		same(s, "groups", len(s.groups(store.GroupFilter{})), 2)
	}},
	{"the outcome of a group follows from its members", outcomes},
	{"a sealed group without members is ready", func(s *scene) {
		group, _ := s.sealedGroup(0)
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupReady, 1)
	}},
	{"an open group never settles, and its members run", func(s *scene) {
		group := s.gather()
		members := s.enqueueMany(3, in(group))
		same(s, "ran", len(s.run()), 3)
		g := s.expectGroup(group, holdfast.GroupOpen, 1)
		same(s, "members", g.Members, holdfast.Members{Total: 3, Complete: 3})
		same(s, "events", len(s.groupStory(group)), 0)
		same(s, "group of a member", s.job(members[1]).Group, group)
		more := s.enqueue(in(group))
		s.seal(group)
		s.seal(group)
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupProcessing, 1)
		same(s, "sealed", s.group(group).SealedAt, s.job(more).AsOf)
		s.run()
		s.expectGroup(group, holdfast.GroupReady, 1)
	}},
	{"a member is live until it has ended: through retries, releases and a lost worker", func(s *scene) {
		group, members := s.sealedGroup(1)
		s.settle(retries(s.claimOne(), 0))
		s.settle(releases(s.claimOne(), store.ChargeRelease, time.Minute))
		s.advanceGroups()
		same(s, "members", s.expectGroup(group, holdfast.GroupProcessing, 1).Members, holdfast.Members{Total: 1, Queued: 1})
		s.Advance(time.Minute)
		s.promote(10)
		s.claimOne()
		same(s, "members", s.group(group).Members, holdfast.Members{Total: 1, Processing: 1})
		s.Advance(longAgo)
		s.settle(releases(s.reclaim()[0], store.ChargeCrash, 0))
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupProcessing, 1)
		same(s, "the group in the lease", s.claimOne().Group, group)
		s.Advance(longAgo)
		s.settle(fails(s.reclaim()[0], "WORKER_LOST"))
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupFailed, 1)
		s.expectState(members[0], holdfast.Failed)
	}},
	{"a group is settled once per generation, however often groups are advanced", func(s *scene) {
		group, members := s.sealedGroup(3, thenEnqueue("", "report"))
		s.run(members[0])
		for range 5 {
			s.advanceGroups()
			s.must(func() error { _, err := s.Reopen().AdvanceGroups(s.ctx, 10); return err }())
		}
		s.expectGroup(group, holdfast.GroupPartial, 1)
		same(s, "story", s.groupStory(group), []groupEvent{{"holdfast", "partial", 1}})
		same(s, "continuations", len(s.jobs(store.Filter{Kind: "report"})), 1)
	}},
	{"the event of an outcome has the number of members", func(s *scene) {
		group, members := s.sealedGroup(5, func(g *holdfast.Group) { g.Owner = "acme" })
		s.run(members[0], members[3])
		e := s.events("group/" + group.String())[0]
		if !strings.Contains(e.Reason, "3 of 5") || !strings.Contains(e.Reason, "2 failed") {
			s.Fatalf("the reason says %q", e.Reason)
		}
		same(s, "at", e.At, s.group(group).SettledAt)
	}},
	{"discarding a failed member changes nothing for its group", func(s *scene) {
		group, members := s.sealedGroup(2)
		s.run(members[0])
		s.must(s.Store.Discard(s.ctx, by(members[0])))
		s.advanceGroups()
		same(s, "members", s.expectGroup(group, holdfast.GroupPartial, 1).Members, holdfast.Members{Total: 2, Complete: 1, Failed: 1})
	}},
	{"a member that is cancelled counts as cancelled", func(s *scene) {
		group, members := s.sealedGroup(2)
		s.cancel(members[0])
		s.run()
		same(s, "members", s.expectGroup(group, holdfast.GroupPartial, 1).Members, holdfast.Members{Total: 2, Complete: 1, Cancelled: 1})
	}},
	{"groups are listed by state, owner, name and parent, newest first, page by page", func(s *scene) {
		var all []holdfast.ID
		for i := range 5 {
			all = append([]holdfast.ID{s.gather(func(g *holdfast.Group) { g.Name, g.Owner = fmt.Sprint("g", i), []string{"acme", "zeta"}[i%2] })}, all...)
		}
		child := s.gather(inside(all[0]))
		s.seal(all[2])
		s.advanceGroups()
		same(s, "all", s.groups(store.GroupFilter{Limit: 2}), append([]holdfast.ID{child}, all...))
		same(s, "by state", s.groups(store.GroupFilter{State: holdfast.GroupReady}), all[2:3])
		same(s, "by owner", s.groups(store.GroupFilter{Owner: "zeta", Limit: 1}), []holdfast.ID{all[1], all[3]})
		same(s, "by name", s.groups(store.GroupFilter{Name: "g0"}), all[4:])
		same(s, "by parent", s.groups(store.GroupFilter{Parent: all[0]}), []holdfast.ID{child})
	}},
	{"the members of a group are listed", func(s *scene) {
		_, _ = s.sealedGroup(3)
		group, members := s.sealedGroup(4)
		listed := s.jobs(store.Filter{Group: group, Limit: 2})
		same(s, "members", len(listed), 4)
		for i, job := range listed {
			same(s, "member", []holdfast.ID{job.ID, job.Group}, []holdfast.ID{members[3-i], group})
		}
	}},
}

func text(v any) string {
	body, err := json.Marshal(v)
	return fmt.Sprint(string(body), err)
}

// groups returns the ids of all groups that match, over all pages.
func (s *scene) groups(f store.GroupFilter) (all []holdfast.ID) {
	s.Helper()
	for range 100 {
		page, cursor, err := s.Store.Groups(s.ctx, f)
		s.must(err)
		for _, g := range page {
			all = append(all, g.ID)
		}
		if cursor == "" {
			return all
		}
		f.Cursor = cursor
	}
	s.Fatal("the list of groups has no end")
	return nil
}

// outcomes checks every outcome against the states of the members, with and without a quorum.
func outcomes(s *scene) {
	for _, c := range []struct {
		complete, failed, cancelled, quorum int
		want                                holdfast.GroupState
	}{
		{3, 0, 0, 0, holdfast.GroupReady}, {2, 1, 0, 0, holdfast.GroupPartial}, {2, 0, 1, 0, holdfast.GroupPartial}, {0, 3, 0, 0, holdfast.GroupFailed},
		{0, 0, 2, 0, holdfast.GroupFailed}, {0, 1, 1, 0, holdfast.GroupFailed}, {2, 1, 0, 2, holdfast.GroupReady}, {1, 2, 0, 2, holdfast.GroupPartial},
		{0, 3, 0, 1, holdfast.GroupFailed}, {2, 0, 0, 3, holdfast.GroupReady}, {3, 1, 1, 3, holdfast.GroupReady},
	} {
		name := fmt.Sprintf("%d complete, %d failed, %d cancelled, quorum %d", c.complete, c.failed, c.cancelled, c.quorum)
		group, members := s.sealedGroup(c.complete+c.failed+c.cancelled, quorum(c.quorum))
		for _, id := range members[c.complete+c.failed:] {
			s.cancel(id)
		}
		s.run(members[c.complete : c.complete+c.failed]...)
		g := s.group(group)
		same(s, name, g.State, c.want)
		same(s, "members of "+name, g.Members, holdfast.Members{Total: len(members), Complete: c.complete, Failed: c.failed, Cancelled: c.cancelled})
		same(s, "story of "+name, s.groupStory(group), []groupEvent{{"holdfast", string(c.want), 1}})
	}
}
