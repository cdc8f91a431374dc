package postgres

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Reclaim takes over expired batches, whole ones, until it has as many jobs as the limit. Concurrent calls skip the batches that another call has
// locked.
func (s *Store) Reclaim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	var answer []store.Lease
	var back readyPlaces
	err := s.withRetries(ctx, "reclaim", true, func(ctx context.Context) error {
		answer, back = []store.Lease{}, readyPlaces{}
		return s.transact(ctx, s.work, func(p *pipeline) error {
			var first any // one time for the whole call, or a slow call could reclaim its own batches
			for len(answer) < c.Limit {
				r := &reclaimStep{s: s, p: p, claim: c, before: first}
				n, err := r.run(ctx, &answer, &back)
				if err != nil || n == 0 {
					return err
				}
				if first == nil {
					first = timestamp(r.now)
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if len(back.places) > 0 {
		s.planner.noteUnknownJobs()
	}
	s.announce(&back)
	return answer, nil
}

// A reclaimStep takes over up to 16 expired batches.
type reclaimStep struct {
	s     *Store
	p     *pipeline
	claim store.Claim

	before   any // batches that expired by then; nil: by now
	now      time.Time
	cancels  map[holdfast.ID]bool
	facts    map[holdfast.ID]*facts
	dropped  []holdfast.ID
	attempts attemptRows
	ready    moveRows
}

// run takes over the next batches and returns how many it locked.
func (r *reclaimStep) run(ctx context.Context, answer *[]store.Lease, back *readyPlaces) (int, error) {
	var expired []*batchRow
	r.s.queueLockBatches(r.p, &expired, r.s.sql["batch_expired"], r.before)
	r.p.queueRow(r.s.sql["now"], nil, &r.now)
	if err := r.p.flush(ctx); err != nil || len(expired) == 0 {
		return 0, err
	}
	if err := r.readMembers(ctx, expired); err != nil {
		return 0, err
	}
	for _, old := range expired {
		if len(*answer) < r.claim.Limit {
			*answer = append(*answer, r.takeOver(old)...)
		}
	}
	now := timestamp(r.now)
	r.p.Queue(r.s.sql["batch_drop"], ids(r.dropped))
	r.attempts.queue(r.p, r.s.sql["attempt_add gently"], r.now)
	if len(r.ready.job) > 0 {
		r.ready.queue(r.p, r.s.sql["ready_add gently"], now, back)
	}
	return len(expired), r.p.flush(ctx)
}

// readMembers reads the cancel requests and facts of all members.
func (r *reclaimStep) readMembers(ctx context.Context, expired []*batchRow) (err error) {
	r.cancels = map[holdfast.ID]bool{}
	batches := make([]holdfast.ID, len(expired))
	for i, l := range expired {
		batches[i] = l.id
	}
	var id [16]byte
	r.p.queueRows(r.s.sql["find_cancels_in_batches"], []any{ids(batches)}, []any{&id}, func() error { r.cancels[id] = true; return nil })
	r.facts, err = r.s.readFacts(ctx, r.p, expired)
	return err
}

// takeOver returns members that never started to their queues, at no cost, and moves the others to a new batch of the caller, which settles them as
// crashes. A member with a cancel request moves to the new batch as well, so that it is cancelled and not run again. So does a member without facts;
// it is not returned to the caller and stays for the integrity check. Every member gets a higher token, which fences out the old worker.
func (r *reclaimStep) takeOver(old *batchRow) []store.Lease {
	r.dropped = append(r.dropped, old.id)
	fresh := &batchRow{id: holdfast.NewID(), worker: r.claim.Worker, lost: old.attemptWorker(), claimed: old.claimed,
		expires: r.now.Add(r.claim.Lease.Truncate(time.Microsecond))}
	for i := range old.members {
		m := &old.members[i]
		m.token++
		if m.started || r.cancels[m.job] || r.facts[m.job] == nil {
			fresh.members = append(fresh.members, *m)
			continue
		}
		m.releases++
		r.attempts.add(m, attempt{worker: old.attemptWorker(), started: r.now, due: r.now, to: holdfast.Queued,
			charge: store.ChargeRelease, why: "its worker went silent before it started"})
		r.ready.add(m)
	}
	if len(fresh.members) == 0 {
		return nil
	}
	header := []any{fresh.id.String(), fresh.worker, fresh.lost, timestamp(fresh.claimed), timestamp(fresh.expires)}
	r.p.Queue(r.s.sql["batch_make"], append(header, memberArgs(fresh.members)...)...)
	var leases []store.Lease
	for i := range fresh.members {
		if f := r.facts[fresh.members[i].job]; f != nil {
			leases = append(leases, f.lease(fresh, &fresh.members[i], r.now))
		}
	}
	return leases
}
