package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// roleProber is the role of a worker whose jobs call a simulated gateway. Files in the folder of the run say whether the gateway is down or hangs.
const roleProber = "prober"

// A callScript is a job that calls the gateway of the run.
type callScript struct{}

func (callScript) Kind() string { return "chaos.call" }

// gatewayName is the dependency of these jobs.
const gatewayName = "chaos-gateway"

// Files that set the state of the gateway.
const (
	gatewayDown = "gateway.down" // calls fail
	gatewayTrap = "gateway.trap" // calls never return
)

// gatewayBreaker opens and probes quickly.
var gatewayBreaker = breaker.Config{Window: 4, MinCalls: 2, OpenFor: time.Second, OpenMax: 2 * time.Second, Probes: 1, Successes: 1, Ramp: time.Second}

// runProber runs an engine whose jobs call the gateway.
func runProber(ctx context.Context, p childSpec, r *recorder) error {
	e, err := engine.New(r, engine.Config{
		Name: fmt.Sprintf("prober-%d", p.N), Slots: 4, Lease: p.Lease, Grace: 300 * time.Millisecond, Poll: 200 * time.Millisecond,
		Dependencies: map[string]engine.Dependency{gatewayName: {Breaker: gatewayBreaker, NoBudget: true}},
		Log:          slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	there := func(name string) bool { _, err := os.Stat(filepath.Join(p.Dir, name)); return err == nil }
	engine.Handle(e, func(ctx context.Context, job *engine.Job[callScript]) error {
		r.journal.write(line{Saw: sawStart, From: time.Now().UnixNano(), Job: job.ID, Token: job.Token})
		switch {
		case there(gatewayTrap):
			<-ctx.Done()
			return context.Cause(ctx)
		case there(gatewayDown):
			return failure.WithCode(errors.New("the gateway is down"), "DEPENDENCY_DOWN")
		}
		return nil
	}, engine.KindOptions{Dependency: gatewayName, Policy: failure.Policy{MaxAttempts: 50, MaxCrashes: unlimitedCrashes, Backoff: failure.Fixed(50 * time.Millisecond)}})
	return e.Run(ctx)
}

// callJobs returns drafts of jobs that call the gateway.
func callJobs(n int) []holdfast.Draft {
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		drafts[i], _ = holdfast.NewDraft(callScript{})
	}
	return drafts
}
