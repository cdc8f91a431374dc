package docs_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
)

// The parts of failures.md.

func Example_classify() {
	// README start classify
	gatewayRule := failure.Chain(
		failure.ByTimeout("GW_TIMEOUT"),
		failure.ByHTTPStatusTable(map[int]string{4: "GW_4XX", 5: "GW_5XX"}), // 4 and 5 stand for the rest of their hundred
		failure.ByText(`(?i)no space left`, "DISK_FULL"),
	)
	engine.Handle(worker, convert, engine.KindOptions{Classify: gatewayRule, Dependency: "gateway"})
	// README end
}

func Example_taxonomy() {
	// README start taxonomy
	taxonomy, err := failure.NewTaxonomy(failure.Code{
		Name: "CARD_DECLINED", Category: "input", Blame: failure.BlameUser, Retryable: false,
		Message: "The bank declined the card.", Remedy: "Ask for another card.",
	})
	config := engine.Config{Taxonomy: taxonomy}
	// README end
	fmt.Println(len(config.Taxonomy.Own()), err)
	// Output: 1 <nil>
}

func Example_failed() {
	// README start failed
	config := engine.Config{
		OnJobFailed: func(ctx context.Context, job holdfast.Job, f holdfast.Failure) {
			slog.WarnContext(ctx, "job failed", "job", job.ID, "code", f.Code)
		},
	}
	// README end
	_ = config
}

func Example_policy() {
	// README start policy
	retries := failure.Policy{
		MaxAttempts: 5,                                                     // give up after a count,
		GiveUpAfter: time.Hour,                                             // or after a time, whichever comes first
		Backoff:     failure.Exponential{Base: 5 * time.Second, Factor: 5}, // 5, 25, 125 s
		Codes: map[string]failure.Override{
			"IO_ERROR":     {MaxAttempts: 2}, // retried once
			"RATE_LIMITED": {Backoff: failure.Table{time.Minute, 5 * time.Minute, 15 * time.Minute}},
		},
	}
	engine.Handle(worker, convert, engine.KindOptions{Policy: retries})
	// README end
}
