package docs_test

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
)

// The part of keeping.md.
func Example_retention() {
	// README start
	worker, err := engine.New(jobs, engine.Config{Retention: []store.RetentionRule{
		{Name: "invoices", Kind: "invoice", For: store.Forever},
		{Name: "complete", State: holdfast.Complete, For: 7 * 24 * time.Hour},
		{Name: "failed", State: holdfast.Failed, For: 90 * 24 * time.Hour},
	}})
	// README end
	must(err)
	_ = worker
}
