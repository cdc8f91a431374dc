package server

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
)

// rationing refuses the leases of one owner.
type rationing struct {
	refused  string
	rationed []bool // of each report
}

func (r *rationing) SettleReports(_ context.Context, reports []engine.RemoteReport) ([]error, error) {
	for _, one := range reports {
		r.rationed = append(r.rationed, one.RetryReserved)
	}
	return make([]error, len(reports)), nil
}

func (r *rationing) ReserveRetries(_ context.Context, leases []store.Lease) (allowed []store.Lease) {
	for _, l := range leases {
		if l.Owner != r.refused {
			allowed = append(allowed, l)
		}
	}
	return allowed
}

func TestAWorkerOverHTTPGetsOnlyWhatBudgetsAllow(t *testing.T) {
	judge := &rationing{refused: "eve"}
	s := newGateScene(t, func(c *Config) { c.Settler = judge })
	receipts, err := s.store.Enqueue(t.Context(), []holdfast.Draft{{Kind: "mail", Owner: "bob"}, {Kind: "mail", Owner: "eve"}})
	if err != nil {
		t.Fatal(err)
	}
	claimed := s.ask("worker", "POST", "/v1/claims", `{"worker":"w","queues":["default"],"limit":5}`, "Content-Type", "application/json")
	if claimed.status != 200 || !strings.Contains(claimed.body, receipts[0].ID.String()) || strings.Contains(claimed.body, receipts[1].ID.String()) {
		t.Fatalf("%d %s", claimed.status, claimed.body)
	}
	said := s.ask("worker", "POST", "/v1/claims/outcomes", `{"outcomes":[{"job":"`+receipts[0].ID.String()+`","token":1,"outcome":"complete"}]}`, "Content-Type", "application/json")
	if said.status != 200 || len(judge.rationed) != 1 || !judge.rationed[0] {
		t.Errorf("%d %s, and the reports say %v", said.status, said.body, judge.rationed)
	}
}
