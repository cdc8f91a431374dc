package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// fill enqueues until a small disk is full, frees some space, and continues: no acknowledged job may be missing, and no restart may be needed.
func fill(ctx context.Context, dir string) error {
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		return fmt.Errorf("cannot write the ballast file: %w", err)
	}
	// MinFree -1: the store must not refuse before the disk is completely full.
	s, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(dir, database), MinFree: -1})
	if err != nil {
		return err
	}
	defer s.Close()
	acked, refusal := enqueueUntilRefused(ctx, s)
	if !errors.Is(refusal, holdfast.ErrUnavailable) || strings.Contains(refusal.Error(), "\n") {
		return fmt.Errorf("on a full disk the error %v is not one line of the kind unavailable", refusal)
	}
	refused := 0
	for range 50 { // the disk stays full: nothing is acknowledged, nothing breaks
		if _, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "fill", Args: words()}}); err != nil {
			refused++
		}
	}
	if err := os.Remove(ballast); err != nil {
		return fmt.Errorf("cannot remove the ballast file: %w", err)
	}
	more, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "fill"}})
	if err != nil {
		return fmt.Errorf("the disk has space again, and the store still refuses: %w", err)
	}
	leases, err := s.Claim(ctx, store.Claim{Worker: "fill", Queues: []string{holdfast.DefaultQueue}, Limit: 10, Start: 10, Lease: time.Minute})
	if err != nil || len(leases) == 0 {
		return fmt.Errorf("the disk has space again, and nothing can be claimed: %w", err)
	}
	missing := 0
	for _, id := range append(acked, more[0].ID) {
		if _, err := s.Job(ctx, id); err != nil {
			missing++
		}
	}
	findings, err := s.CheckIntegrity(ctx)
	fmt.Printf("full disk: %d acknowledged, then %d of 50 refused while it was full, recovered without a restart: %d lost, %d findings\n", len(acked)+1, refused, missing, len(findings))
	if err != nil || missing+len(findings) > 0 {
		return fmt.Errorf("the store is damaged after a full disk: %w %v", err, findings)
	}
	return nil
}

func enqueueUntilRefused(ctx context.Context, s store.Store) ([]holdfast.ID, error) {
	var acked []holdfast.ID
	for range 100_000 {
		receipts, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "fill", Args: words()}})
		if err != nil {
			return acked, err
		}
		acked = append(acked, receipts[0].ID)
	}
	return acked, errors.New("the disk never became full")
}

// words returns arguments that fill one or two pages.
func words() []byte { return []byte(`"` + strings.Repeat("words ", 800) + `"`) }
