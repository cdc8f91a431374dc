package ops_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func TestALimitedPreviewCountsAllAndChecksTheNewest(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { previewNear(t, open(t, filepath.Join(t.TempDir(), "jobs.db"))) })
	t.Run("PostgreSQL", func(t *testing.T) { previewNear(t, open(t, storefixture.Database(t))) })
}

func previewNear(t *testing.T, db store.Store) {
	const letters, look = 12, 5
	dead(t, db, letters)
	gone := false
	operator := ops.New(db, ops.Config{Sources: map[string]func(context.Context, holdfast.Job) error{"mail": func(context.Context, holdfast.Job) error {
		if gone {
			return errors.New("the file was deleted")
		}
		return nil
	}}})
	order := redrive.Spec{Filter: store.Filter{Queue: holdfast.DefaultQueue}, Actor: "ann", Reason: "repaired"}
	for _, c := range []struct {
		look     int
		gone     bool
		eligible int
		note     string // what the first begins with
	}{
		{look: 0, eligible: letters, note: "no worker is alive"},
		{look: look, eligible: letters, note: fmt.Sprintf("only the newest %d matching dead letters were checked", look)},
		{look: letters + 1, eligible: letters, note: "no worker is alive"},
		{look: look, gone: true, eligible: letters - look, note: fmt.Sprintf("only the newest %d matching dead letters", look)},
	} {
		gone, order.Filter.MaxScan = c.gone, c.look
		p, err := operator.PreviewRedrive(t.Context(), order)
		if err != nil {
			t.Fatal(err)
		}
		if p.Eligible != c.eligible || p.Looked != letters || c.gone && p.Ineligible[0] != (ops.Ineligible{Reason: "source gone", Jobs: look}) {
			t.Errorf("looking at %d: %d of %d are eligible, and others are not: %+v", c.look, p.Eligible, p.Looked, p.Ineligible)
		}
		if len(p.Notes) == 0 || !strings.HasPrefix(p.Notes[0], c.note) {
			t.Errorf("looking at %d: the notes are %q", c.look, p.Notes)
		}
	}
	gone, order.Filter.MaxScan = false, 1
	id, err := operator.StartRedrive(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	r, err := operator.Redrive(t.Context(), id)
	if err != nil || r.Eligible != letters || r.Spec.Filter.MaxScan != 0 {
		t.Errorf("the redrive is to take %d and to look at %d, error %v", r.Eligible, r.Spec.Filter.MaxScan, err)
	}
}

// dead makes so many dead letters of the default queue.
func dead(t *testing.T, db store.Store, n int) {
	t.Helper()
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		drafts[i] = holdfast.Draft{Kind: "mail"}
	}
	if _, err := db.Enqueue(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}
	leases, err := db.Claim(t.Context(), store.Claim{Worker: "w1", Queues: []string{holdfast.DefaultQueue}, Limit: n, Start: n, Lease: time.Minute})
	if err != nil || len(leases) != n {
		t.Fatalf("claimed %d jobs, error %v", len(leases), err)
	}
	settlements := make([]store.Settlement, n)
	for i, l := range leases {
		settlements[i] = store.Settlement{
			Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Failed, Charge: store.ChargeFailure, Limit: 9,
			Failure: &holdfast.Failure{Code: "TIMEOUT", Category: "timeout", Message: "it took too long", Fingerprint: "f1"},
		}
	}
	answers, err := db.Settle(t.Context(), settlements)
	for _, answer := range append(answers, err) {
		if answer != nil {
			t.Fatal(answer)
		}
	}
}
