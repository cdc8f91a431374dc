package engine

import "context"

// maxPromote limits one store call, so that a great many jobs that are due at once do not block the store for other calls.
const maxPromote = 1000

// promote makes jobs claimable that are due: scheduled ones, and retries whose delay has passed.
func (e *Engine) promote(ctx context.Context) error {
	for ctx.Err() == nil {
		moved, err := e.promoteOnce()
		if err != nil {
			return err
		}
		if moved > 0 {
			signal(e.signals.claim)
		}
		if moved < maxPromote {
			return nil
		}
	}
	return nil
}

func (e *Engine) promoteOnce() (int, error) {
	ctx, done := e.storeContext(e.cfg.Lease)
	defer done()
	return e.store.Promote(ctx, maxPromote)
}
