package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var editTimeLaws = []law{
	{"a delay of zero makes a job claimable at once, also before its due time or its retry, and keeps its counters", func(s *scene) {
		lease := s.start()
		s.settle(retries(lease, time.Hour))
		scheduled := s.enqueue(at(time.Hour))
		s.Advance(time.Minute)
		job := s.edit(scheduled, dueIn(0))
		same(s, "scheduled", []any{job.DueAt, job.RunAt.IsZero()}, []any{job.AsOf, true})
		s.edit(lease.ID, dueIn(0))
		s.expectCounts(lease.ID, [5]int{1, 1, 0, 0, 1})
		again := s.claim(9)
		same(s, "claimed", ids(again), []holdfast.ID{lease.ID, scheduled})
		s.expectHealthy() // an attempt before the retry's due time, at a person's request
		s.Advance(time.Second)
		for _, l := range again {
			e := retries(l, time.Hour)
			e.Took = time.Second
			s.settle(e)
		}
		s.expectHealthy()
		s.edit(lease.ID, dueIn(0))
		last := completes(s.claimOne())
		s.Advance(time.Second)
		last.Took = time.Second
		s.settle(last)
	}},
	{"a delay makes a claimable job wait, by the store's clock", func(s *scene) {
		id := s.enqueue()
		job := s.edit(id, dueIn(time.Minute))
		same(s, "due", []any{job.DueAt, job.RunAt}, []any{job.AsOf.Add(time.Minute), job.AsOf.Add(time.Minute)})
		s.expectClaims(0)
		s.Advance(time.Minute - time.Microsecond)
		same(s, "promoted before its time", s.promote(9), 0)
		s.Advance(time.Microsecond)
		same(s, "promoted", s.promote(9), 1)
		same(s, "claimed", ids(s.claim(9)), []holdfast.ID{id})
	}},
	{"without a delay a job keeps its due time, whether it has passed or not", func(s *scene) {
		lease := s.start()
		scheduled, fresh := s.enqueue(at(time.Hour)), s.enqueue()
		s.settle(retries(lease, time.Minute))
		for _, id := range []holdfast.ID{lease.ID, scheduled, fresh} {
			before := s.job(id)
			job := s.edit(id, toPriority(1))
			same(s, "times", []any{job.DueAt, job.RunAt}, []any{before.DueAt, before.RunAt})
		}
		same(s, "ran", s.run(), []holdfast.ID{fresh})
		s.Advance(time.Hour)
		s.promote(9)
		same(s, "claimed", ids(s.claim(9)), []holdfast.ID{lease.ID, scheduled})
	}},
	{"a member that waits for others keeps waiting, and its own due time changes", func(s *scene) {
		group := s.gather()
		first := s.enqueue(in(group))
		soon, late := s.enqueue(in(group), after(first), at(time.Hour)), s.enqueue(in(group), after(first))
		s.seal(group)
		job := s.edit(soon, dueIn(0))
		same(s, "its upstream", []any{job.Waiting, job.After}, []any{true, []holdfast.ID{first}})
		same(s, "waiting", s.edit(late, dueIn(time.Hour), toPriority(-1)).Waiting, true)
		same(s, "ran", s.run(), []holdfast.ID{first})
		same(s, "ran then", s.run(), []holdfast.ID{soon})
		s.Advance(time.Hour)
		s.promote(9)
		same(s, "ran an hour later", s.run(), []holdfast.ID{late})
		s.expectGroup(group, holdfast.GroupReady, 1)
	}},
	{"an edit does not change keys and expiry", func(s *scene) {
		d := draft()
		d.UniqueKey, d.IdempotencyKey, d.ExpireIn = "k", "once", time.Minute
		id := s.enqueueAll(d)[0].ID
		s.edit(id, withPatch(`{"n":1}`), toQueue("slow"), dueIn(time.Hour))
		same(s, "the same draft again", s.enqueueAll(d)[0], holdfast.Receipt{ID: id, Existing: true})
		same(s, "another with its key", s.enqueue(unique("k")), id)
		s.Advance(time.Minute)
		expired := s.expire()
		same(s, "expired", ids(expired), []holdfast.ID{id})
		s.settle(fails(expired[0], "EXPIRED"))
	}},
	{"a worker gets the values of every edit that succeeded, also with concurrent claims", func(s *scene) {
		const many = 60
		stores, jobs := s.handles(), s.enqueueMany(many)
		edited, got := &lockedCounts{}, make([][]store.Lease, 4)
		together(6, func(i int) {
			if i < 4 { // claimers
				for range many / 4 {
					leases, err := stores[i%3].Claim(s.ctx, store.Claim{Worker: fmt.Sprint("w", i), Queues: []string{"default"}, Limit: 2, Start: 2, Lease: time.Hour})
					if err != nil {
						s.Errorf("claim: %v", err)
					}
					got[i] = append(got[i], leases...)
				}
				return
			}
			for n := range many { // editors: one from the first job on, one from the last
				id := jobs[n]
				if i == 5 {
					id = jobs[many-1-n]
				}
				_, err := stores[i%3].Edit(s.ctx, store.Edit{Intervention: by(id), Patch: raw(fmt.Sprintf(`{"by%d":true}`, i))})
				switch {
				case err == nil:
					edited.add(fmt.Sprintf("%v by%d", id, i))
				case !errors.Is(err, holdfast.ErrConflict):
					s.Errorf("edit: %v", err)
				}
			}
		})
		s.expectDelivered(append(append(got[0], got[1]...), append(append(got[2], got[3]...), s.claim(many)...)...), edited, many)
	}},
}

// expectDelivered expects that every job was claimed once, with all edits that were acknowledged and no others.
func (s *scene) expectDelivered(leases []store.Lease, edited *lockedCounts, many int) {
	s.Helper()
	met := &lockedCounts{}
	for _, l := range leases {
		met.add(l.ID.String())
		args, _ := decode(l.Args).(map[string]any)
		for _, by := range []string{"by4", "by5"} {
			_, has := args[by]
			same(s, fmt.Sprintf("an edit of %v %s arrived", l.ID, by), has, edited.n[fmt.Sprintf("%v %s", l.ID, by)] == 1)
		}
		same(s, "job", string(s.job(l.ID).Args), string(l.Args))
	}
	same(s, "jobs, and how often each", []int{len(met.n), met.most()}, []int{many, 1})
}
