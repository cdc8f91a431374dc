package chaos

import (
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A recorder is a store that records the engine's claims and settlements, and the answers of the store, in a journal.
type recorder struct {
	store.Store
	journal *journal
}

func (r *recorder) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	return r.recordClaims(func() ([]store.Lease, error) { return r.Store.Claim(ctx, c) })
}

func (r *recorder) Reclaim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	return r.recordClaims(func() ([]store.Lease, error) { return r.Store.Reclaim(ctx, c) })
}

func (r *recorder) Expire(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	return r.recordClaims(func() ([]store.Lease, error) { return r.Store.Expire(ctx, c) })
}

// recordClaims records the leases that a call returns.
func (r *recorder) recordClaims(ask func() ([]store.Lease, error)) ([]store.Lease, error) {
	from := time.Now().UnixNano()
	leases, err := ask()
	till := time.Now().UnixNano()
	lines := make([]line, 0, len(leases))
	for _, l := range leases {
		lines = append(lines, line{Saw: sawClaim, From: from, Till: till, Job: l.ID, Token: l.Token, Generation: l.Generation, AsOf: l.AsOf, Dependency: l.Dependency})
	}
	r.journal.write(lines...)
	return leases, err
}

// Settle records every settlement before it sends it, so that the journal has it even if the worker is killed during the call.
func (r *recorder) Settle(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	from := time.Now().UnixNano()
	lines := make([]line, 0, len(settlements))
	for _, s := range settlements {
		lines = append(lines, line{Saw: sawIntent, From: from, Job: s.Job, Token: s.Token, To: s.To, Delay: s.Delay})
	}
	r.journal.write(lines...)
	answers, err := r.Store.Settle(ctx, settlements)
	till := time.Now().UnixNano()
	for i := range lines {
		lines[i].Saw, lines[i].Till, lines[i].Answer = sawAnswer, till, unknown
		if err == nil {
			lines[i].Answer = answerWord(answers[i])
		}
	}
	r.journal.write(lines...)
	return answers, err
}

// answerWord is the journal's word for the answer to a settlement.
func answerWord(answer error) string {
	switch {
	case answer == nil:
		return applied
	case errors.Is(answer, holdfast.ErrLeaseLost):
		return fenced
	}
	return rejected
}
