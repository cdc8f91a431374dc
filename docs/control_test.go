package docs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/failure/policy"
)

// The parts of control.md.

func Example_dependency() {
	// README start dependency
	worker, err := engine.New(jobs, engine.Config{Version: "2026.11.3"})
	must(err)
	engine.Handle(worker, convert, engine.KindOptions{Dependency: "gateway"})
	// README end
}

func Example_probe() {
	// README start probe
	worker, err := engine.New(jobs, engine.Config{Dependencies: map[string]engine.Dependency{
		"gateway": {
			Breaker: breaker.Config{Span: 2 * time.Minute, SlowCall: 5 * time.Second},
			Probe:   func(ctx context.Context) error { return ping(ctx, "http://gateway/healthz") },
		},
	}})
	// README end
	must(err)
	_ = worker
}

func ping(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func Example_holdDependency() {
	handler := func(context.Context, *engine.Job[Sync]) error {
		err := errExample
		// README start hold
		return failure.HoldDependency(err, 5*time.Minute)
		// README end
	}
	engine.Handle(worker, handler)
}

func Example_enqueueLimit() {
	args := Sync{Account: 7}
	// README start limits
	text, err := os.ReadFile("policy.yaml")
	must(err)
	policies, err := policy.Parse(text)
	must(err)
	limits := engine.NewLimits(jobs, policies)
	_, err = holdfast.Enqueue(ctx, limits.Limited(jobs), args) // or limits.Limited(jobs.In(tx))
	var refused *holdfast.Error
	if errors.As(err, &refused) && errors.Is(err, holdfast.ErrThrottled) {
		fmt.Println("too many jobs: try again in", refused.RetryAfter) // a server answers 429 with Retry-After
	}
	// README end
}
