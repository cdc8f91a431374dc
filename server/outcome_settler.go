package server

import (
	"context"

	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
)

// An OutcomeSettler decides the outcomes that remote workers report, and stores the decisions. An engine.Engine implements it.
type OutcomeSettler interface {
	SettleReports(ctx context.Context, reports []engine.RemoteReport) ([]error, error)
	// ReserveRetries returns the leases whose retries the budgets of their owners allow, and releases the others.
	ReserveRetries(ctx context.Context, leases []store.Lease) []store.Lease
}
