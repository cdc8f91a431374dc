package engine

import "context"

// wake waits for the store to say that something happened, and passes it on: work to claim, or a job to cancel. Wake-ups
// are hints. If every one of them is lost, the beats of claim and renew find the same things a little later.
func (e *Engine) wake(ctx context.Context) error {
	within, enough := context.WithTimeout(ctx, e.cfg.Poll+e.cfg.Lease)
	defer enough()
	heard, err := e.store.Await(within, e.queues(), e.cfg.Poll)
	if err != nil {
		return err
	}
	if heard.Work {
		nudge(e.wakes)
		nudge(e.happened)
	}
	if heard.Cancel {
		nudge(e.cancels)
	}
	return nil
}
