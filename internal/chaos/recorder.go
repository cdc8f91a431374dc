package chaos

import (
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A recorder stands between an engine and its store and writes down what one asked and the other answered.
type recorder struct {
	holdfast.Store
	journal *journal
}

func (r *recorder) Claim(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	return r.handed(func() ([]holdfast.Lease, error) { return r.Store.Claim(ctx, c) })
}

func (r *recorder) Reclaim(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	return r.handed(func() ([]holdfast.Lease, error) { return r.Store.Reclaim(ctx, c) })
}

func (r *recorder) Expire(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	return r.handed(func() ([]holdfast.Lease, error) { return r.Store.Expire(ctx, c) })
}

func (r *recorder) handed(ask func() ([]holdfast.Lease, error)) ([]holdfast.Lease, error) {
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

// Settle writes every settlement down before it is sent: a worker killed in between has then said what it wanted.
func (r *recorder) Settle(ctx context.Context, settlements []holdfast.Settlement) ([]error, error) {
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
			lines[i].Answer = word(answers[i])
		}
	}
	r.journal.write(lines...)
	return answers, err
}

func word(answer error) string {
	switch {
	case answer == nil:
		return applied
	case errors.Is(answer, holdfast.ErrLeaseLost):
		return fenced
	}
	return rejected
}
