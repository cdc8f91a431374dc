package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

func TestJobsInTheCallersTransactionExistIfItCommits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	backend := reopen(t, path)
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	for _, commit := range []bool{false, true} {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("INSERT INTO orders DEFAULT VALUES"); err != nil {
			t.Fatal(err)
		}
		full := holdfast.Draft{Kind: "ship", Queue: "orders", Owner: "ada", Tags: []string{"a", "b"}, Priority: -3, Delay: time.Hour, ExpireIn: 2 * time.Hour,
			MaxAttempts: 4, UniqueKey: "u", UniqueDone: true, IdempotencyKey: "i", Args: json.RawMessage(`{"order": 1}`)}
		receipts, err := backend.In(tx).Enqueue(t.Context(), []holdfast.Draft{full, {Kind: "bill"}, full})
		if err != nil || receipts[0].Existing || !receipts[2].Existing || receipts[0].ID != receipts[2].ID {
			t.Fatal(receipts, err)
		}
		// A refusal undoes its own drafts only, and the transaction can still be used.
		full.Args = nil
		if _, err := backend.In(tx).Enqueue(t.Context(), []holdfast.Draft{{Kind: "bill"}, full}); !errors.Is(err, holdfast.ErrConflict) {
			t.Fatal(err)
		}
		want := 0
		if end := tx.Rollback; commit {
			if want, err = 2, tx.Commit(); err != nil {
				t.Fatal(err)
			}
		} else if err := end(); err != nil {
			t.Fatal(err)
		}
		if n := count(t, backend, holdfast.Queued); n != want {
			t.Errorf("commit %v: %d jobs of %d", commit, n, want)
		}
		if commit {
			job, err := backend.Job(t.Context(), receipts[0].ID)
			if err != nil || job.Owner != "ada" || len(job.Tags) != 2 || job.Priority != -3 || job.MaxAttempts != 4 || string(job.Args) != `{"order": 1}` {
				t.Errorf("%+v %v", job, err)
			}
		}
	}
	healthy(t, backend)
}

func TestATransactionOfAnotherTypeIsRefusedByItsName(t *testing.T) {
	backend := open(t)
	for _, tx := range []any{nil, (*sql.Tx)(nil), 7, &sql.Conn{}} {
		_, err := backend.In(tx).Enqueue(t.Context(), drafts(1))
		expectLine(t, err, holdfast.ErrInvalid, fmt.Sprintf("%T", tx))
	}
}

func TestRowsThatCannotBeReadFailAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	backend, other := reopen(t, path), raw(t, path)
	receipts, err := backend.Enqueue(t.Context(), drafts(8))
	if err != nil {
		t.Fatal(err)
	}
	for i, damage := range map[int]string{
		1: "args = '{not json'", 2: "args = ''", 3: `args = '"' || replace(hex(zeroblob(5000000)), '0', 'x') || '"'`, // ten megabytes
		4: "kind = ''", 5: "tags = '[1,'", 6: "args = cast(x'22ff22' AS TEXT)",
	} {
		run(t, other, fmt.Sprintf("UPDATE holdfast_job SET %s WHERE id = x'%x'", damage, receipts[i].ID[:]))
	}
	leases, err := backend.Claim(t.Context(), store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 10, Start: 10, Lease: time.Minute})
	if err != nil || len(leases) != 8 {
		t.Fatalf("%d leases of 8: %v", len(leases), err)
	}
	settlements := make([]store.Settlement, len(leases))
	for i, l := range leases {
		if whole := i == 0 || i == 7; (l.Corrupt == "") != whole || !json.Valid(l.Args) || len(l.Args) > check.MaxArgs || l.ID != receipts[i].ID {
			t.Errorf("lease %d: corrupt %q, %d bytes of arguments", i, l.Corrupt, len(l.Args))
		}
		settlements[i] = store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Failed, Failure: &holdfast.Failure{Code: "UNREADABLE_JOB"}}
	}
	answers, err := backend.Settle(t.Context(), settlements)
	if err = errors.Join(append(answers, err)...); err != nil {
		t.Error(err)
	}
}

func TestARowWithoutFactsStopsNoOtherAndIsLeftForTheIntegrityCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	backend, other := reopen(t, path), raw(t, path)
	receipts, err := backend.Enqueue(t.Context(), append(drafts(4), holdfast.Draft{Kind: "other"}))
	if err != nil {
		t.Fatal(err)
	}
	run(t, other, fmt.Sprintf("DELETE FROM holdfast_job WHERE id = x'%x'; INSERT INTO holdfast_ready SELECT lane, priority, x'00', 0, 0, 0, 0, 1, NULL FROM holdfast_ready LIMIT 1", receipts[0].ID[:]))
	for range 2 {
		claim := store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 2, Start: 1, Lease: time.Minute}
		leases, err := backend.Claim(t.Context(), claim)
		if err != nil || len(leases) != 2 {
			t.Fatalf("%d leases of 2: %v", len(leases), err)
		}
	}
	findings, err := backend.CheckIntegrity(t.Context())
	if err != nil || !strings.Contains(fmt.Sprint(findings), receipts[0].ID.String()) {
		t.Errorf("the integrity check does not name %v: %v %v", receipts[0].ID, findings, err)
	}
}

func TestAwaitHearsOfWorkInAnotherProcessAndInTheGapBeforeIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		near, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		far, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		await := func(queue string, patience time.Duration) (store.Wake, time.Duration) {
			start := time.Now()
			wake, err := near.Await(t.Context(), []string{queue}, patience)
			if err != nil {
				t.Error(err)
			}
			return wake, time.Since(start)
		}
		claim := func() []store.Lease {
			leases, err := near.Claim(t.Context(), store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 10, Start: 10, Lease: time.Hour})
			if err != nil {
				t.Error(err)
			}
			return leases
		}
		claim()
		if wake, waited := await("default", time.Minute); wake != (store.Wake{}) || waited != time.Minute {
			t.Errorf("nothing to hear: %+v after %v", wake, waited)
		}
		time.AfterFunc(time.Second, func() { _, _ = far.Enqueue(context.Background(), drafts(1)) })
		if wake, waited := await("default", time.Minute); !wake.Work || waited > 1100*time.Millisecond {
			t.Errorf("work of another process: %+v after %v", wake, waited)
		}
		leases := claim()
		if _, err := near.Enqueue(t.Context(), drafts(1)); err != nil { // after the claim and before the await
			t.Fatal(err)
		}
		if wake, waited := await("elsewhere", time.Second); wake.Work || waited != time.Second {
			t.Errorf("work in another queue: %+v after %v", wake, waited)
		}
		if wake, waited := await("default", time.Minute); !wake.Work || waited != 0 {
			t.Errorf("work in the gap: %+v after %v", wake, waited)
		}
		time.AfterFunc(time.Second, func() {
			_, _ = far.Cancel(context.Background(), store.Intervention{Job: leases[0].ID, Actor: "ada"})
		})
		if wake, waited := await("elsewhere", time.Minute); !wake.Cancel || waited > 1100*time.Millisecond {
			t.Errorf("a request to stop: %+v after %v", wake, waited)
		}
	})
}

func TestASettlementThatCannotBeStoredLeavesNothingBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	backend, other := reopen(t, path), raw(t, path)
	if _, err := backend.Enqueue(t.Context(), drafts(3)); err != nil {
		t.Fatal(err)
	}
	leases, err := backend.Claim(t.Context(), store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 3, Start: 3, Lease: time.Minute})
	if err != nil || len(leases) != 3 {
		t.Fatal(leases, err)
	}
	twin := leases[1].ID
	run(t, other, fmt.Sprintf("INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state) VALUES (x'%x', 1, 1, 'w', 0, 0, 'queued')", twin[:]))
	settlements := make([]store.Settlement, len(leases))
	for i, l := range leases {
		settlements[i] = store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Queued, Charge: store.ChargeRelease}
	}
	answers, err := backend.Settle(t.Context(), settlements)
	if err != nil || answers[0] != nil || !errors.Is(answers[1], holdfast.ErrInvalid) || answers[2] != nil {
		t.Fatal(answers, err)
	}
	for i, l := range leases {
		want := holdfast.Queued
		if i == 1 {
			want = holdfast.Processing
		}
		if job, err := backend.Job(t.Context(), l.ID); err != nil || job.State != want {
			t.Errorf("job %d is %s, not %s: %v", i, job.State, want, err)
		}
	}
	run(t, other, fmt.Sprintf("DELETE FROM holdfast_attempt WHERE job = x'%x'", twin[:]))
	healthy(t, backend)
}
