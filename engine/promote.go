package engine

import "context"

// maxPromote limits one store call, so that a great many jobs that are due at once do not block the store for other calls.
const maxPromote = 1000

// A promoter queues jobs that are due.
type promoter struct{ *core }

// run makes jobs claimable that are due: scheduled ones, and retries whose delay has passed.
func (p *promoter) run(ctx context.Context) error {
	for ctx.Err() == nil {
		moved, err := p.once()
		if err != nil {
			return err
		}
		if moved > 0 {
			signal(p.signals.claim)
		}
		if moved < maxPromote {
			return nil
		}
	}
	return nil
}

func (p *promoter) once() (int, error) {
	ctx, done := p.storeContext(p.cfg.Lease)
	defer done()
	return p.store.Promote(ctx, maxPromote)
}
