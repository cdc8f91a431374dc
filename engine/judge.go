package engine

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// A Report is what somebody says about an attempt that was made elsewhere: a worker in another language. The lease is as it was claimed.
type Report struct {
	Lease   holdfast.Lease
	Outcome failure.Outcome
}

// Judge decides what becomes of attempts that were made elsewhere, exactly as if they had been made here, and writes it down. It answers for each
// whether that was written; an error of its own means that nothing was.
func (e *Engine) Judge(ctx context.Context, reports []Report) ([]error, error) {
	return nil, &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "not built yet"}
}

// An End is an attempt that has ended, as it was written down.
type End struct {
	Lease   *holdfast.Lease
	To      holdfast.State // Queued: it goes round again
	Charge  holdfast.Charge
	Failure *holdfast.Failure
	Attempt int           // its number in this generation
	Took    time.Duration // 0 when it never started
	Delay   time.Duration // with Queued: until the next one
}
