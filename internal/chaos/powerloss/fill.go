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
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// fill runs a store into the end of a small disk, frees some of it, and goes on: nothing acknowledged may be missing and
// no restart may be needed.
func fill(ctx context.Context, dir string) error {
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		return fmt.Errorf("no ballast on the small disk: %w", err)
	}
	// The disk is to fill up to the last byte: the store must not stop before.
	s, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(dir, database), MinFree: -1})
	if err != nil {
		return err
	}
	defer s.Close()
	acked, refusal := enqueueUntilRefused(ctx, s)
	if !errors.Is(refusal, holdfast.ErrUnavailable) || strings.Contains(refusal.Error(), "\n") {
		return fmt.Errorf("a full disk was answered with %v, which is not one clear line of the kind unavailable", refusal)
	}
	refused := 0
	for range 50 { // it stays full: nothing is acknowledged, nothing breaks
		if _, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "fill", Args: words()}}); err != nil {
			refused++
		}
	}
	if err := os.Remove(ballast); err != nil {
		return fmt.Errorf("the ballast cannot be removed: %w", err)
	}
	more, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "fill"}})
	if err != nil {
		return fmt.Errorf("the disk has room again and the store does not notice: %w", err)
	}
	leases, err := s.Claim(ctx, holdfast.Claim{Worker: "fill", Queues: []string{holdfast.DefaultQueue}, Limit: 10, Start: 10, Lease: time.Minute})
	if err != nil || len(leases) == 0 {
		return fmt.Errorf("the disk has room again and nothing can be claimed: %w", err)
	}
	missing := 0
	for _, id := range append(acked, more[0].ID) {
		if _, err := s.Job(ctx, id); err != nil {
			missing++
		}
	}
	findings, err := s.Audit(ctx)
	fmt.Printf("full disk: %d acknowledged, then %d of 50 refused while it was full, recovered without a restart: %d lost, %d findings\n", len(acked)+1, refused, missing, len(findings))
	if err != nil || missing+len(findings) > 0 {
		return fmt.Errorf("the store is not whole after a full disk: %w %v", err, findings)
	}
	return nil
}

func enqueueUntilRefused(ctx context.Context, s holdfast.Store) ([]holdfast.ID, error) {
	var acked []holdfast.ID
	for range 100_000 {
		receipts, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "fill", Args: words()}})
		if err != nil {
			return acked, err
		}
		acked = append(acked, receipts[0].ID)
	}
	return acked, errors.New("no refusal: the disk is not small")
}

// words are arguments that fill a page or two.
func words() []byte { return []byte(`"` + strings.Repeat("words ", 800) + `"`) }
