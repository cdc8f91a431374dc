package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/holdfastdev/holdfast/engine"
)

// partScheduler is a process that has nothing to do but duties.
const partScheduler = "scheduler"

// A slotScript is what a schedule of these runs makes.
type slotScript struct {
	Slot time.Time `json:"slot"`
}

func (slotScript) Kind() string { return "chaos.slot" }

// keepTime runs an engine on a queue where nothing comes, so that its duties are all it does.
func keepTime(ctx context.Context, p part, r *recorder) error {
	e, err := engine.New(r, engine.Config{
		Name: fmt.Sprintf("scheduler-%d", p.N), Queues: []string{"nothing"}, Slots: 1, Lease: p.Lease, Grace: 300 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	engine.Handle(e, func(context.Context, *engine.Job[slotScript]) error { return nil }, engine.Kind{})
	if err := e.Run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
