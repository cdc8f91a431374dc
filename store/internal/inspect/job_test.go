package inspect

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
)

// One job is looked up in few batches and a list in all of them: both find the same, also in damaged batches.
func TestOneJobIsReadAsInAList(t *testing.T) {
	s, i := openHealthy(t)
	s.plant(script(`
DELETE FROM holdfast_ready; DELETE FROM holdfast_later;
INSERT INTO holdfast_batch (id, worker, lost, claimed_at, expires_at, jobs, members) VALUES
 (x'0aaa000000007000800000000000000b', 'w2', 'w0', NOON - 400000, NOON + 9000000, unhex(hex(J8) || hex(J1) || hex(J2)), '[[1,0,0,0,1,1],[2,1,0,0,1,0],[5,2,1,1,2,1]]'),
 (x'0aaa000000007000800000000000000c', 'w3', NULL, NOON - 300000, NOON + 8000000, J7, '[[1,'),
 (x'0aaa000000007000800000000000000d', 'w4', NULL, NOON - 300000, NOON + 8000000, unhex(hex(J9) || hex(J7)), '[[1,0,0,0,1,1]]')`))
	for n := range 300 {
		s.plant(fmt.Sprintf("INSERT INTO holdfast_batch (id, worker, lost, claimed_at, expires_at, jobs, members) VALUES (x'%032x', 'w', NULL, NOON, NOON, x'%032x', '[[1,0,0,0,1,1]]')", n, n))
	}
	jobs, _, err := i.Jobs(t.Context(), all9)
	if err != nil || len(jobs) != 9 {
		t.Fatalf("%d jobs, error %v", len(jobs), err)
	}
	for _, want := range jobs {
		got, err := i.Job(t.Context(), want.ID)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("error %v, difference %s", err, diff)
		}
	}
	if second := jobs[7]; second.State != holdfast.Processing || second.Token != 5 || second.Worker != "w2" || second.Generation != 2 {
		t.Errorf("the third of a lease is %+v", second)
	}
}
