package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// An attemptMaker makes attempts of leases, and writes what their handlers note while they run.
type attemptMaker struct {
	*core
	registry *registry
	deps     *dependencies
	leases   *leaseTable
}

// newAttempts makes one attempt of each lease. asked is when the store was asked for them.
func (m *attemptMaker) newAttempts(leases []store.Lease, asked time.Time) []*attempt {
	made := make([]attempt, len(leases))
	all := make([]*attempt, len(leases))
	for i := range leases {
		k := m.registry.kinds[leases[i].Kind]
		made[i] = attempt{maker: m, lease: &leases[i], kind: k, asked: asked}
		if leases[i].Dependency != "" {
			made[i].dep = m.deps.find(leases[i].Dependency)
		} else if k != nil {
			made[i].dep = k.dep
		}
		all[i] = &made[i]
	}
	return all
}

// note writes a note of a handler. If the answer is ErrLeaseLost, the handler's context ends at once.
func (m *attemptMaker) note(ctx context.Context, a *attempt, n store.Note) error {
	n.Batch, n.Job, n.Token = a.lease.Batch, a.lease.ID, a.lease.Token
	answers, err := m.store.Note(ctx, []store.Note{n})
	if err == nil && len(answers) == 1 {
		err = answers[0]
	}
	if errors.Is(err, holdfast.ErrLeaseLost) {
		m.leases.stop(a.own(), holdfast.ErrLeaseLost)
	}
	return err
}
