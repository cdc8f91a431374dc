// Holdfast as a contender, with every promise switched on: the settings are the defaults but for the number of slots.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/bench/measure"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
)

type noop struct {
	Text string `json:"text"`
}

func (noop) Kind() string { return "noop" }

type contender struct{ store holdfast.Store }

func main() {
	measure.Main(func(ctx context.Context, address string) (measure.Contender, error) {
		s, err := store.Open(ctx, address)
		return &contender{s}, err
	})
}

func (c *contender) Add(ctx context.Context, jobs int) error { return c.add(ctx, jobs, 0) }

func (c *contender) Schedule(ctx context.Context, jobs int) error {
	return c.add(ctx, jobs, 24*time.Hour)
}

func (c *contender) add(ctx context.Context, jobs int, delay time.Duration) error {
	return measure.Chunks(jobs, func(n int) error {
		drafts := make([]holdfast.Draft, n)
		for i := range drafts {
			d, err := holdfast.NewDraft(noop{measure.Text})
			if err != nil {
				return err
			}
			d.Delay = delay
			drafts[i] = d
		}
		_, err := c.store.Enqueue(ctx, drafts)
		return err
	})
}

func (c *contender) AddOne(ctx context.Context) error {
	_, err := holdfast.Enqueue(ctx, c.store, noop{measure.Text})
	return err
}

func (c *contender) Drain(ctx context.Context, jobs int) error {
	e, err := engine.New(c.store, engine.Config{Slots: measure.Slots, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var ended atomic.Int64
	err = engine.Handle(e, func(context.Context, *engine.Job[noop]) error {
		if ended.Add(1) == int64(jobs) {
			stop()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := e.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if n := ended.Load(); n != int64(jobs) {
		return fmt.Errorf("%d handlers ran for %d jobs", n, jobs)
	}
	return nil
}

func (c *contender) Complete(ctx context.Context) (n int, err error) {
	counts, err := c.store.Counts(ctx)
	for _, count := range counts {
		if count.State == holdfast.Complete {
			n += count.Jobs
		}
	}
	return n, err
}

func (c *contender) Close() error { return c.store.Close() }
