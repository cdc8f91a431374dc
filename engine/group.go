package engine

import "context"

// A groupAdvancer moves groups on when their members end.
type groupAdvancer struct {
	*core
	interval adaptiveInterval
}

// run queues the members of groups that waited for other members, and settles groups whose members have ended.
func (g *groupAdvancer) run(ctx context.Context) error {
	if !g.interval.wait(ctx) {
		return nil
	}
	// One step may enable the next, so the step is repeated until it finds nothing to do.
	busy, err := g.repeat(ctx, 1, func(ctx context.Context, _ int) (int, error) { return g.store.AdvanceGroups(ctx, maxAdvance) })
	g.interval.runEnded(busy)
	if busy {
		signal(g.signals.feed)
		signal(g.signals.claim)
	}
	return err
}
