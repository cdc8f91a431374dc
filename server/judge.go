package server

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
)

// A Judge decides the outcomes that remote workers report, and stores the decisions. An engine.Engine implements it.
type Judge interface {
	Judge(ctx context.Context, reports []engine.Report) ([]error, error)
	// Ration returns the leases whose retries the budgets of their owners allow, and releases the others.
	Ration(ctx context.Context, leases []holdfast.Lease) []holdfast.Lease
}
