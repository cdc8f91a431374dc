package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

const (
	database        = "jobs.db"
	acknowledgement = "acknowledged"
)

// An ack is an acknowledgement of the store. The writer records it after the call has returned.
type ack struct {
	Job   holdfast.ID    `json:"job"`
	State holdfast.State `json:"state"` // new state
	Token int            `json:"token"` // of the settlement; 0: enqueued
}

// A writer calls the store from several goroutines, so that commits are shared.
type writer struct {
	store store.Store
	acks  *os.File
}

func write(ctx context.Context, dir string, rounds int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot create the folder of the store: %w", err)
	}
	s, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(dir, database)})
	if err != nil {
		return err
	}
	acks, err := os.OpenFile(filepath.Join(dir, acknowledgement), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot open the file of acknowledgements: %w", err)
	}
	w := &writer{store: s, acks: acks}
	callers, ctx := errgroup.WithContext(ctx)
	for range 3 {
		callers.Go(func() error { return w.repeat(rounds, func(i int) error { return w.enqueue(ctx, 1+i%4) }) })
	}
	callers.Go(func() error { return w.repeat(rounds, func(int) error { return w.work(ctx) }) })
	return callers.Wait() // and no Close: the power fails while the store is open
}

func (w *writer) repeat(rounds int, do func(int) error) error {
	for i := range rounds {
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) enqueue(ctx context.Context, n int) error {
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		drafts[i] = holdfast.Draft{Kind: "write", Args: json.RawMessage(`{"text":"some words, so that a page is filled sooner or later"}`)}
	}
	receipts, err := w.store.Enqueue(ctx, drafts)
	if err != nil {
		return err
	}
	for _, r := range receipts {
		if err := w.acknowledge(ack{Job: r.ID, State: holdfast.Queued}); err != nil {
			return err
		}
	}
	return nil
}

// work claims a few jobs and settles them in different ways.
func (w *writer) work(ctx context.Context) error {
	leases, err := w.store.Claim(ctx, store.Claim{Worker: "writer", Queues: []string{holdfast.DefaultQueue}, Limit: 5, Start: 5, Lease: time.Minute})
	if err != nil {
		return err
	}
	settlements := make([]store.Settlement, 0, len(leases))
	for i, l := range leases {
		s := store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Complete}
		switch i % 5 {
		case 1:
			s.To, s.Charge, s.Delay = holdfast.Queued, store.ChargeRelease, time.Hour
		case 2:
			s.To, s.Charge, s.Failure = holdfast.Failed, store.ChargeFailure, &holdfast.Failure{Code: "WRITTEN", Category: "test", Message: "written down"}
		}
		settlements = append(settlements, s)
	}
	answers, err := w.store.Settle(ctx, settlements)
	if err := errors.Join(append(answers, err)...); err != nil {
		return err
	}
	for _, s := range settlements {
		if err := w.acknowledge(ack{Job: s.Job, State: s.To, Token: s.Token}); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) acknowledge(a ack) error {
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("cannot encode an acknowledgement as JSON: %w", err)
	}
	if _, err := w.acks.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("cannot write an acknowledgement: %w", err)
	}
	return nil
}
