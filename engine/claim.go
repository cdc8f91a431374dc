package engine

import (
	"context"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
)

// maxUnsettled bounds the outcomes that wait to be written: a store that settles slowly is not asked for more work.
const maxUnsettled = 4000

// claim takes jobs until there is no room for more or nothing more to take. An answer that was nearly full is no proof that
// nothing is left, so the next free slot asks again.
func (e *Engine) claim(ctx context.Context) error {
	if len(e.kinds) == 0 {
		return nil
	}
	if !e.declared.Load() || !e.governed.Load() {
		return nil // what kinds call, and what the policy limits, is known to the store before the first claim
	}
	for ctx.Err() == nil {
		free, limit := e.room()
		if limit == 0 {
			return nil
		}
		taken, err := e.claimOnce(free, limit)
		if err != nil || taken < limit {
			e.book.want(2*taken >= limit)
			return err
		}
	}
	return nil
}

// claimOnce asks with a deadline of its own and is never cut short by a stop: a claim whose answer is not heard would leave
// its jobs with nobody until the lease ends.
func (e *Engine) claimOnce(free, limit int) (int, error) {
	ctx, done := e.call(e.cfg.Lease)
	defer done()
	asked := time.Now()
	leases, err := e.store.Claim(ctx, holdfast.Claim{
		Worker: e.worker, Queues: e.queues(), Kinds: e.handled, Limit: limit, Start: free, Lease: e.cfg.Lease,
		OwnerSlots: e.cfg.OwnerSlots, Busy: e.book.busyOwners(e.cfg.OwnerSlots),
	})
	if err != nil {
		return 0, err
	}
	e.book.learn(time.Since(asked))
	if len(leases) == 0 {
		return 0, nil
	}
	e.clock.set(leases[0].AsOf)
	start, release := e.book.admit(e.attempts(leases, asked), e.trust(asked))
	for _, a := range start {
		e.start(a)
	}
	e.handBack(release)
	return len(leases), nil
}

// queues are those to claim from; none: all.
func (e *Engine) queues() []string {
	if slices.Equal(e.cfg.Queues, []string{AllQueues}) {
		return nil
	}
	return e.cfg.Queues
}

// busyOwners counts the jobs of each owner that run or wait for a slot, when there is a bound to them.
func (b *book) busyOwners(bound int) map[string]int {
	if bound == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	busy := make(map[string]int)
	for a := range b.held {
		if a.phase != over {
			busy[a.lease.Owner]++
		}
	}
	return busy
}

// room answers how many slots are free and how many jobs to ask for. Ahead of the free slots it asks for twice as many as
// the slots can work off until an answer comes, and asks again when half of those are left.
func (e *Engine) room() (free, limit int) {
	b := e.book
	b.mu.Lock()
	defer b.mu.Unlock()
	ahead := 0
	if b.spell > 0 {
		ahead = int(min(float64(e.cfg.Prefetch), 2*float64(b.slots)*float64(b.answer)/float64(b.spell)))
	}
	free = max(0, b.slots-b.working)
	if b.ahead > 0 {
		free = 0
	}
	limit = max(0, free+ahead-b.ahead)
	b.low = ahead / 2
	if free == 0 && b.ahead > b.low {
		limit = 0
	}
	limit = min(limit, max(0, maxUnsettled+b.slots-b.ended))
	b.hungry = limit == 0
	return min(free, limit), limit
}

// want says whether a slot that becomes free should make the engine claim.
func (b *book) want(more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hungry = more
}

// learn keeps what handlers took since the last claim, and what this claim took, half of it old and half of it new.
func (b *book) learn(answer time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = (b.answer + answer) / 2
	if b.returned > 0 {
		lately := max(b.spent/time.Duration(b.returned), 1)
		b.spell = (orElse(b.spell, lately) + lately) / 2
	}
	b.returned, b.spent = 0, 0
}

// attempts makes the leases of one answer into attempts.
func (e *Engine) attempts(leases []holdfast.Lease, asked time.Time) []*attempt {
	made := make([]attempt, len(leases))
	all := make([]*attempt, len(leases))
	for i := range leases {
		k := e.kinds[leases[i].Kind]
		made[i] = attempt{engine: e, lease: &leases[i], kind: k, asked: asked}
		if leases[i].Dependency != "" {
			made[i].dep = e.deps.find(leases[i].Dependency)
		} else if k != nil {
			made[i].dep = k.dep
		}
		all[i] = &made[i]
	}
	return all
}

// trust is until when leases asked for at that moment are surely still ours.
func (e *Engine) trust(asked time.Time) time.Time { return asked.Add(e.cfg.Lease - e.cfg.margin()) }
