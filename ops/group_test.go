package ops_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// end claims the next job of a kind and ends it. failed is the code of its failure; empty: it is complete.
func end(t *testing.T, db store.Store, kind, failed string) {
	t.Helper()
	leases, err := db.Claim(t.Context(), store.Claim{Worker: "w", Queues: []string{holdfast.DefaultQueue}, Kinds: []string{kind}, Limit: 1, Start: 1, Lease: time.Minute})
	if err != nil || len(leases) != 1 {
		t.Fatalf("%d jobs of kind %s can be claimed: %v", len(leases), kind, err)
	}
	s := store.Settlement{Batch: leases[0].Batch, Job: leases[0].ID, Token: leases[0].Token, To: holdfast.Complete}
	if failed != "" {
		s.To, s.Charge, s.Limit, s.Failure = holdfast.Failed, store.ChargeFailure, 1, &holdfast.Failure{Code: failed, Category: "user", Message: "No."}
	}
	if answers, err := db.Settle(t.Context(), []store.Settlement{s}); err != nil || answers[0] != nil {
		t.Fatal(err, answers)
	}
	for {
		pages, err := db.Sequence(t.Context(), 100)
		done, failed := db.AdvanceGroups(t.Context(), 100)
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		if pages+done == 0 {
			return
		}
	}
}

func TestWhatWasCompensatedIsNotRetriedByAccident(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	operator := ops.New(db, ops.Config{})
	group, err := db.CreateGroup(t.Context(), holdfast.Group{Name: "order", Owner: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Enqueue(t.Context(), []holdfast.Draft{
		{Kind: "charge", Group: group.ID, Step: "charge", Owner: "acme"},
		{Kind: "ship", Group: group.ID, Step: "ship", Owner: "acme", When: []holdfast.Condition{{Step: "charge"}}},
		{Kind: "refund", Group: group.ID, Step: "refund", Owner: "acme", When: []holdfast.Condition{{Step: "ship", On: holdfast.OnFailed}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	by := store.Intervention{Group: group.ID, Actor: "ann"}
	end(t, db, "charge", "")
	end(t, db, "ship", "NO_STOCK")

	// The preview of a redrive says that the job is a member of a group.
	p, err := operator.PreviewRedrive(t.Context(), redrive.Spec{Filter: store.Filter{Code: "NO_STOCK"}, Actor: "ann", Reason: "stock"})
	if err != nil || !slices.ContainsFunc(p.Notes, func(note string) bool { return strings.HasPrefix(note, "1 of the jobs are members of groups") }) {
		t.Errorf("notes %q, error %v", p.Notes, err)
	}

	end(t, db, "refund", "")
	_, err = operator.RetryGroup(t.Context(), by)
	if !errors.Is(err, holdfast.ErrConflict) || !strings.Contains(err.Error(), `step "refund" ran because step "ship" did not complete`) {
		t.Errorf("a retry after the refund: %v", err)
	}
	if g, err := db.Group(t.Context(), group.ID); err != nil || g.Members.Live() != 0 {
		t.Errorf("after the refusal %d members are live: %v", g.Members.Live(), err)
	}
	foreign := by
	foreign.Owner = "globex"
	if _, err := operator.RetryGroup(t.Context(), foreign); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("a retry by another owner: %v", err)
	}
	by.Compensated = true
	if n, err := operator.RetryGroup(t.Context(), by); err != nil || n != 1 {
		t.Errorf("%d members were retried: %v", n, err)
	}
}
