package server

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
)

// A Judge decides what becomes of attempts that were made elsewhere, and writes it down. An engine is one.
type Judge interface {
	Judge(ctx context.Context, reports []engine.Report) ([]error, error)
	// Ration keeps the retries among leases that their owners' budgets allow, and hands the others back.
	Ration(ctx context.Context, leases []holdfast.Lease) []holdfast.Lease
}
