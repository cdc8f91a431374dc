package engine

import "context"

// maxPromote bounds one round, so that a great many jobs due at once do not hold the store up.
const maxPromote = 1000

// promote makes jobs claimable whose time has come.
func (e *Engine) promote(ctx context.Context) error {
	for ctx.Err() == nil {
		moved, err := e.promoteOnce()
		if err != nil {
			return err
		}
		if moved > 0 {
			nudge(e.wakes)
		}
		if moved < maxPromote {
			return nil
		}
	}
	return nil
}

func (e *Engine) promoteOnce() (int, error) {
	ctx, done := e.call(e.cfg.Lease)
	defer done()
	return e.store.Promote(ctx, maxPromote)
}
