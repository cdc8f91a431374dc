package engine

import "context"

// groups lets members start that waited for others, and settles groups whose members have ended.
func (e *Engine) groups(ctx context.Context) error {
	if !e.concluding.hold(ctx) {
		return nil
	}
	// What was done in a step may be what another one waits for: it has come to an end when nothing was done.
	busy, err := e.repeat(ctx, 1, func(ctx context.Context, _ int) (int, error) { return e.store.Conclude(ctx, maxConclude) })
	e.concluding.kept(busy)
	if busy {
		nudge(e.happened)
		nudge(e.wakes)
	}
	return err
}
