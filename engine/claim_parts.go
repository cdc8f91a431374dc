package engine

import (
	"context"
	"slices"
)

// A claimPart is the queues and kinds of one claim, when some of them have slots of their own.
type claimPart struct{ queues, kinds []string }

// claimParts is claim for an engine whose queues or kinds have slots of their own. A claim has one limit, so none may name a queue or kind that has capacity for
// fewer jobs than the limit. A round is therefore several claims: one for everything with capacity for as many jobs as there are free slots, and one for each queue
// and kind with less capacity. When one slot becomes free, that is one claim for all that is not full. What is full is left out, and without a free slot there is no
// claim.
//
// Rounds follow each other while one of their claims gets as many jobs as it asked for. The parts with less capacity are claimed before the rest, which could take
// all free slots, and each round begins with another part, so that none of them is always the last.
func (c *claimer) claimParts(ctx context.Context) error {
	for ctx.Err() == nil {
		parts := c.leases.planParts(c.registry.names, c.cfg.Prefetch)
		if len(parts) == 0 {
			return nil
		}
		filled, more := false, false
		for _, part := range parts {
			size := c.leases.sizePart(part, c.cfg.Prefetch)
			if size.limit == 0 {
				continue
			}
			taken, err := c.claimOnce(size)
			if err != nil {
				return err
			}
			filled, more = filled || taken == size.limit, more || 2*taken >= size.limit
		}
		if !filled {
			c.leases.setWantMore(more)
			return nil
		}
	}
	return nil
}

// planParts divides the queues and kinds into the claims of one round. Every pair of a queue and a kind that both have capacity is in exactly one part: in the last
// one if both have capacity for as many jobs as may be claimed now, and otherwise in the part of that with less capacity.
func (t *leaseTable) planParts(kinds []string, prefetch int) (parts []claimPart) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &t.intake
	size := t.sizeClaim(prefetch)
	if size.limit == 0 {
		return nil
	}
	t.countShares(true)
	for s := range n.allShares {
		s.full = s.free() == 0
	}
	inQueue := func(queue string) int { return capacity(n.inQueue, queue, size.limit) }
	ofKind := func(kind string) int { return capacity(n.ofKind, kind, size.limit) }
	add := func(queues, kinds []string) {
		if (n.all || len(queues) > 0) && len(kinds) > 0 {
			parts = append(parts, claimPart{queues, kinds})
		}
	}
	for _, queue := range n.queues {
		if free := inQueue(queue); free > 0 && free < size.limit {
			add([]string{queue}, having(kinds, free, ofKind))
		}
	}
	for _, kind := range kinds {
		if free := ofKind(kind); free > 0 && free < size.limit {
			add(having(n.queues, free+1, inQueue), []string{kind})
		}
	}
	add(having(n.queues, size.limit, inQueue), having(kinds, size.limit, ofKind))
	if len(parts) > 0 {
		first := n.round % len(parts)
		n.round++
		parts = slices.Concat(parts[first:], parts[:first])
	}
	return parts
}

// having returns the names that have a capacity of at least that many jobs.
func having(names []string, least int, capacity func(name string) int) (some []string) {
	for _, name := range names {
		if capacity(name) >= least {
			some = append(some, name)
		}
	}
	return some
}

// sizePart sizes the claim of a part, for the slots that are free now: earlier claims of the round may have taken some. It leaves out what has become full.
func (t *leaseTable) sizePart(part claimPart, prefetch int) claimSize {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &t.intake
	size := t.sizeClaim(prefetch)
	t.countShares(true)
	least := func(of map[string]*share, names []string) (some []string) {
		for _, name := range names {
			if free := capacity(of, name, size.limit); free > 0 {
				some = append(some, name)
				size.limit = min(size.limit, free)
			}
		}
		return some
	}
	size.queues, size.kinds = least(n.inQueue, part.queues), least(n.ofKind, part.kinds)
	if len(size.kinds) == 0 || !n.all && len(size.queues) == 0 {
		size.limit = 0
	}
	size.free = min(size.free, size.limit)
	return size
}
