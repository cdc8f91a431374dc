package engine

import "context"

// wake waits for a wake-up from the store and signals the duty concerned: there may be jobs to claim, or a job to cancel. Wake-ups are hints: if all of
// them are lost, the duties "claim" and "renew" find the same things at their next interval.
func (e *Engine) wake(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, e.cfg.Poll+e.cfg.Lease)
	defer cancel()
	heard, err := e.store.Await(within, e.queues(), e.cfg.Poll)
	if err != nil {
		return err
	}
	if heard.Work {
		signal(e.signals.claim)
		signal(e.signals.feed)
	}
	if heard.Cancel {
		signal(e.signals.cancel)
	}
	return nil
}
