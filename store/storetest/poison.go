package storetest

import (
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// corruptions are what a person, a disk or an older program can do to a row. A database may refuse some of them.
var corruptions = []struct{ name, column, value string }{
	{"arguments that are no JSON", "job.args", `{"a":`},
	{"no arguments", "job.args", Null},
	{"empty arguments", "job.args", ""},
	{"arguments beyond all bounds", "job.args", `"` + strings.Repeat("x", 10<<20) + `"`},
	{"no kind", "job.kind", ""},
	{"no kind at all", "job.kind", Null},
	{"a priority that is a word", "job.priority", "high"},
	{"a creation time that is a word", "job.created_at", "yesterday"},
	{"tags that are no list", "job.tags", `{"a":`},
	{"an attempt limit that is a word", "job.max_attempts", "many"},
	{"a token that is a word", "ready.token", "seven"},
	{"a generation of none", "ready.generation", "0"},
}

// corrupt damages a row on purpose, and reports whether the database allowed it.
func (s *scene) corrupt(column string, id holdfast.ID, value string) bool {
	s.broken = true
	return s.Corrupt(column, id, value) == nil
}

// claimedIntact separates leases into intact and corrupt ones.
func claimedIntact(leases []store.Lease) (good []store.Lease, bad []store.Lease) {
	for _, l := range leases {
		if l.Corrupt == "" {
			good = append(good, l)
		} else {
			bad = append(bad, l)
		}
	}
	return good, bad
}

var poisonLaws = []law{
	{"a row that cannot be read fails alone, and the others are claimed (river PR#1324, #1380)", func(s *scene) {
		tried := 0
		for _, c := range corruptions {
			s.Wipe()
			s.enqueue()
			id := s.enqueue()
			s.enqueue()
			if !s.corrupt(c.column, id, c.value) {
				continue
			}
			tried++
			good, bad := claimedIntact(s.claim(10))
			if len(good) < 2 {
				s.Fatalf("%s: only %d of the two intact jobs were claimed", c.name, len(good))
			}
			for _, l := range bad {
				same(s, c.name+": the corrupt one", l.ID, id)
				s.settle(fails(l, "UNREADABLE_JOB"))
			}
			for _, l := range good {
				s.settle(completes(l))
			}
			same(s, c.name+": left to claim", len(s.claim(10)), 0)
			_, _, err := s.Store.Jobs(s.ctx, store.Filter{})
			s.must(err)
			_, err = s.Store.CheckIntegrity(s.ctx)
			s.must(err)
		}
		if tried < 2 {
			s.Fatalf("only %d corruptions could be tried: the law proves nothing", tried)
		}
	}},
	{"arguments above the limit are returned as corrupt, without their content", func(s *scene) {
		id := s.enqueue()
		if !s.corrupt("job.args", id, `"`+strings.Repeat("x", 10<<20)+`"`) {
			s.Fatal("the database refused a long text: choose another corruption")
		}
		lease := s.claimOne()
		same(s, "lease", []any{lease.ID, lease.Corrupt != "", len(lease.Args) <= check.MaxArgs, lease.Token}, []any{id, true, true, 1})
		s.settle(fails(lease, "UNREADABLE_JOB"))
		s.expectState(id, holdfast.Failed)
	}},
	{"a job without a kind is returned as corrupt and can be failed", func(s *scene) {
		id := s.enqueue()
		if !s.corrupt("job.kind", id, "") {
			s.Fatal("the database refused an empty kind: choose another corruption")
		}
		lease := s.claimOne()
		same(s, "lease", []any{lease.ID, lease.Corrupt != ""}, []any{id, true})
		s.settle(fails(lease, "UNREADABLE_JOB"))
		s.expectState(id, holdfast.Failed)
	}},
	{"one damaged row does not stop the reclaim of the others (asynq#1140)", func(s *scene) {
		s.enqueueAll(draft(), draft(), draft())
		leases := s.claim(3)
		for _, c := range corruptions {
			s.corrupt(c.column, leases[1].ID, c.value)
		}
		s.Advance(longAgo)
		taken := s.reclaim()
		good, bad := claimedIntact(taken)
		same(s, "sound", len(good), 2)
		for _, l := range good {
			s.settle(releases(l, store.ChargeCrash, 0))
		}
		for _, l := range bad {
			s.settle(fails(l, "UNREADABLE_JOB"))
		}
		same(s, "claimed again", len(s.claim(10)), 2)
	}},
	{"one damaged row does not stop promotion or expiry (oban#1416, pg-boss PR#536)", func(s *scene) {
		var waiting []holdfast.ID
		for range 3 {
			waiting = append(waiting, s.enqueue(at(time.Second), expiresIn(time.Hour)))
		}
		s.corrupt("job.args", waiting[1], `"`+strings.Repeat("x", 10<<20)+`"`)
		s.corrupt("job.kind", waiting[1], "")
		s.Advance(time.Second)
		same(s, "promoted", s.promote(10), 3)
		s.Advance(time.Hour)
		good, bad := claimedIntact(s.expire())
		same(s, "expired", []int{len(good), len(bad)}, []int{2, 1})
	}},
	{"a ready row without its job blocks no other, and the integrity check names it (faktory#417)", func(s *scene) {
		gone := s.enqueue()
		lost := s.startFirst()
		if !s.corrupt("job", gone, "") || !s.corrupt("job", lost.ID, "") {
			s.Fatal("the row could not be removed")
		}
		sound := s.enqueue()
		same(s, "claimed", ids(s.claim(10)), []holdfast.ID{sound})
		s.Advance(longAgo)
		var taken []holdfast.ID
		for _, l := range s.reclaim() {
			taken = append(taken, l.ID)
		}
		if len(taken) == 0 || taken[len(taken)-1] != sound && taken[0] != sound {
			s.Fatalf("the intact job was not reclaimed: %v", taken)
		}
		s.expectFinding(gone)
	}},
	{"a store with damaged rows can be opened (faktory#417)", func(s *scene) {
		for _, c := range corruptions {
			s.corrupt(c.column, s.enqueue(), c.value)
		}
		sound := s.startFirst()
		job, err := s.Reopen().Job(s.ctx, sound.ID)
		s.must(err)
		same(s, "state", job.State, holdfast.Processing)
	}},
	{"a job whose facts are missing when it is settled does not affect the others in the call (river PR#1383)", func(s *scene) {
		s.enqueueAll(draft(), draft(), draft())
		leases := s.claim(3)
		if !s.corrupt("job", leases[1].ID, "") {
			s.Fatal("the row could not be removed")
		}
		answers := s.trySettle(completes(leases[0]), completes(leases[1]), completes(leases[2]))
		s.must(answers[0])
		s.must(answers[2])
		s.expectState(leases[2].ID, holdfast.Complete)
	}},
	{"the integrity check names a row that was damaged", func(s *scene) {
		id := s.enqueue()
		s.expectHealthy()
		if !s.corrupt("ready", id, "") {
			s.Fatal("the row could not be removed")
		}
		s.expectFinding(id)
	}},
	{"the integrity check finds a missing unique key, and a token that decreased", func(s *scene) {
		holder := s.enqueue(unique("k"), at(time.Hour))
		if !s.corrupt("unique", holder, "") {
			s.Fatal("the row could not be removed")
		}
		s.expectFinding(holder)
		lease := s.start()
		s.settle(releases(lease, store.ChargeRelease, 0))
		if !s.corrupt("ready.token", lease.ID, "0") {
			s.Fatal("the token could not be lowered")
		}
		s.expectFinding(lease.ID)
	}},
	{"the integrity check finds work that the duties have left for too long", func(s *scene) {
		s.broken = true
		lease := s.start()
		waiting := s.enqueue(at(time.Second))
		s.Advance(longAgo)
		findings, err := s.Store.CheckIntegrity(s.ctx)
		s.must(err)
		if len(findings) < 2 {
			s.Fatalf("an expired lease and a job long due, and the integrity check found %+v", findings)
		}
		s.settle(completes(lease))
		s.promote(10)
		s.expectState(waiting, holdfast.Queued)
		s.expectHealthy()
	}},
}

// startFirst enqueues a job that is claimed before all others, and claims it.
func (s *scene) startFirst() store.Lease {
	s.Helper()
	id := s.enqueue(func(d *holdfast.Draft) { d.Priority = -9 })
	lease := s.reopened().claimOne()
	same(s, "claimed", lease.ID, id)
	return lease
}

func (s *scene) expectFinding(id holdfast.ID) {
	s.Helper()
	findings, err := s.Store.CheckIntegrity(s.ctx)
	s.must(err)
	for _, f := range findings {
		if strings.Contains(f.Job+f.Detail, id.String()) {
			return
		}
	}
	s.Fatalf("the integrity check does not name %v: %+v", id, findings)
}
