package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/holdfastdev/holdfast/engine"
)

// roleScheduler is the role of a process that only performs duties.
const roleScheduler = "scheduler"

// A slotScript is a job that the schedule of a run enqueues.
type slotScript struct {
	Slot time.Time `json:"slot"`
}

func (slotScript) Kind() string { return "chaos.slot" }

// runScheduler runs an engine on an empty queue, so that it only performs duties.
func runScheduler(ctx context.Context, p childSpec, r *recorder) error {
	e, err := engine.New(r, engine.Config{
		Name: fmt.Sprintf("scheduler-%d", p.N), Queues: []string{"nothing"}, Slots: 1, Lease: p.Lease, Grace: 300 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	engine.Handle(e, func(context.Context, *engine.Job[slotScript]) error { return nil }, engine.KindOptions{})
	if err := e.Run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
