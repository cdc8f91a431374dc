package engine

import "context"

// groups queues the members of groups that waited for other members, and settles groups whose members have ended.
func (e *Engine) groups(ctx context.Context) error {
	if !e.groupInterval.wait(ctx) {
		return nil
	}
	// One step may enable the next, so the step is repeated until it finds nothing to do.
	busy, err := e.repeat(ctx, 1, func(ctx context.Context, _ int) (int, error) { return e.store.AdvanceGroups(ctx, maxConclude) })
	e.groupInterval.runEnded(busy)
	if busy {
		signal(e.signals.feed)
		signal(e.signals.claim)
	}
	return err
}
