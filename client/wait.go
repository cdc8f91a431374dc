package client

import (
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
)

// waitJob asks for a job until it has ended. Each answer comes when it has, or after wait. The server may stop in between, so a request that fails is repeated as
// long as Config.Patience says, counted from the first failure.
func waitJob(ctx context.Context, c *Client, ask func(wait time.Duration) (holdfast.Job, error)) (last holdfast.Job, err error) {
	wait := api.MostWait
	var failing time.Time
	for try := 0; ; {
		asked := time.Now()
		job, err := ask(wait)
		pause := time.Duration(0)
		switch {
		case err == nil && job.State.Terminal():
			return job, nil
		case err == nil:
			last, failing, try = job, time.Time{}, 0
			if time.Since(asked) < api.MostWait/2 { // the server is stopping, or does not wait
				pause = time.Second
			}
		case ctx.Err() != nil:
			return last, ctx.Err()
		case errors.Is(err, holdfast.ErrInvalid) && wait > 0: // a server that does not know the parameter
			wait = 0
		case errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrThrottled):
			if failing.IsZero() {
				failing = time.Now()
			}
			if pause = pauseFor(err, try); time.Since(failing)+pause > c.cfg.Patience {
				return last, err
			}
			try++
		default:
			return last, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return last, ctx.Err()
		}
	}
}
