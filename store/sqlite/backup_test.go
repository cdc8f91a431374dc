package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// A vault is a store on a file, with a directory for its backups.
type vault struct {
	testing.TB
	dir   string
	store *sqlite.Store
}

func newVault(t testing.TB) *vault {
	v := &vault{TB: t, dir: t.TempDir()}
	v.store = v.open("jobs.db", 0)
	return v
}

// open opens one of the vault's files, with a clock that is ahead by a duration.
func (v *vault) open(name string, ahead time.Duration) *sqlite.Store {
	v.Helper()
	backend, err := sqlite.Open(context.Background(), sqlite.Config{Path: v.at(name), Clock: func() time.Time { return time.Now().Add(ahead) }})
	v.must(err)
	v.Cleanup(func() { _ = backend.Close() })
	return backend
}

func (v *vault) at(name string) string { return filepath.Join(v.dir, name) }

func (v *vault) must(err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

// restored restores a backup and opens it, an hour later.
func (v *vault) restored(backup string) *sqlite.Store {
	v.Helper()
	name := "restored from " + backup
	v.must(sqlite.Restore(v.Context(), v.at(backup), v.at(name)))
	return v.open(name, time.Hour)
}

func (v *vault) enqueue(n int) (jobs []holdfast.ID) {
	v.Helper()
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		drafts[i] = holdfast.Draft{Kind: "mail", Args: fmt.Appendf(nil, `{"n":%d}`, i)}
	}
	receipts, err := v.store.Enqueue(v.Context(), drafts)
	v.must(err)
	for _, r := range receipts {
		jobs = append(jobs, r.ID)
	}
	return jobs
}

func (v *vault) claim(from *sqlite.Store, n int) []store.Lease {
	v.Helper()
	leases, err := from.Claim(v.Context(), store.Claim{Worker: "w", Queues: []string{"default"}, Limit: n, Start: n, Lease: time.Minute})
	v.must(err)
	if len(leases) != n {
		v.Fatalf("claimed %d jobs, not %d", len(leases), n)
	}
	return leases
}

// settle returns the store's answer to a settlement.
func (v *vault) settle(in *sqlite.Store, l store.Lease, to holdfast.State) error {
	v.Helper()
	e := store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: to}
	if to != holdfast.Complete {
		e.Charge, e.Failure = store.ChargeFailure, &holdfast.Failure{Code: "BROKEN", Category: "test", Message: "it broke"}
	}
	answers, err := in.Settle(v.Context(), []store.Settlement{e})
	v.must(err)
	return answers[0]
}

func (v *vault) expectHealthy(backend *sqlite.Store) {
	v.Helper()
	findings, err := backend.CheckIntegrity(v.Context())
	if err != nil || len(findings) > 0 {
		v.Errorf("the doctor finds %+v (%v)", findings, err)
	}
}

// expectFiles checks that there are no other files.
func (v *vault) expectFiles(want ...string) {
	v.Helper()
	entries, err := os.ReadDir(v.dir)
	v.must(err)
	var got []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "jobs.db-") {
			got = append(got, e.Name())
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		v.Errorf("there are %q, not %q", got, want)
	}
}

func TestABackupHasAllThatWasAcknowledgedBeforeItWhileEverybodyWorksOn(t *testing.T) {
	v := newVault(t)
	v.enqueue(500)
	var acknowledged sync.Map // jobs that were acknowledged before each backup
	stop, working := make(chan struct{}), sync.WaitGroup{}
	for i := range 3 {
		working.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				receipts, err := v.store.Enqueue(context.Background(), []holdfast.Draft{{Kind: "mail", Args: []byte(`{"by":"load"}`)}})
				if err != nil {
					t.Errorf("enqueue: %v", err)
					return
				}
				acknowledged.Store(receipts[0].ID, true)
				leases, err := v.store.Claim(context.Background(), store.Claim{Worker: fmt.Sprint("w", i), Queues: []string{"default"}, Limit: 2, Start: 1, Lease: time.Hour})
				if err != nil {
					t.Errorf("claim: %v", err)
				}
				for _, l := range leases[:min(1, len(leases))] {
					_, err := v.store.Settle(context.Background(), []store.Settlement{{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Complete}})
					if err != nil {
						t.Errorf("settle: %v", err)
					}
				}
			}
		})
	}
	for n := range 3 {
		var before []holdfast.ID
		acknowledged.Range(func(id, _ any) bool { before = append(before, id.(holdfast.ID)); return true })
		name := fmt.Sprintf("backup %d", n)
		v.must(v.store.Backup(t.Context(), v.at(name)))
		copied := v.restored(name)
		for _, id := range before {
			if _, err := copied.Job(t.Context(), id); err != nil {
				t.Errorf("job %v was acknowledged before the backup: %v", id, err)
			}
		}
		_, err := copied.Reclaim(t.Context(), store.Claim{Worker: "keeper", Limit: 10_000, Lease: time.Hour}) // an hour has passed
		v.must(err)
		v.expectHealthy(copied)
	}
	close(stop)
	working.Wait()
	v.expectHealthy(v.store)
}

func TestNoTokenIsGivenTwiceAfterARestore(t *testing.T) {
	v := newVault(t)
	v.enqueue(4)
	leases := v.claim(v.store, 3)
	known, failed, queued := leases[0], leases[1], leases[2]
	v.must(v.settle(v.store, failed, holdfast.Failed))
	v.must(v.settle(v.store, queued, holdfast.Queued))
	v.must(v.store.Backup(t.Context(), v.at("backup")))

	// What the backup does not contain: another attempt of each, and of the dead letter after a manual retry.
	person := store.Intervention{Job: failed.ID, Actor: "ada"}
	_, err := v.store.Retry(t.Context(), person)
	v.must(err)
	highest := map[holdfast.ID]int{known.ID: known.Token}
	var lost []store.Lease
	for range 5 {
		lost = v.claim(v.store, 3)
		for _, l := range lost {
			highest[l.ID] = max(highest[l.ID], l.Token)
			v.must(v.settle(v.store, l, holdfast.Queued))
		}
	}
	lost = v.claim(v.store, 3)
	v.must(v.store.Close())

	copied := v.restored("backup")
	for _, l := range append(lost, known) {
		if err := v.settle(copied, l, holdfast.Complete); !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Errorf("a worker of the store that was lost settled %v with token %d: %v", l.ID, l.Token, err)
		}
	}
	_, err = copied.Retry(t.Context(), person)
	v.must(err)
	taken, err := copied.Reclaim(t.Context(), store.Claim{Worker: "keeper", Limit: 9, Lease: time.Minute})
	v.must(err)
	if len(taken) != 1 || taken[0].ID != known.ID || taken[0].Lost != "w" {
		t.Fatalf("the lease that the backup knew did not run out: %+v", taken)
	}
	for _, l := range append(taken, v.claim(copied, 3)...) {
		if l.Token <= highest[l.ID]+1 {
			t.Errorf("job %v has token %d, but %d was given before", l.ID, l.Token, highest[l.ID])
		}
		v.must(v.settle(copied, l, holdfast.Complete))
	}
	v.expectHealthy(copied)
	story, err := copied.Events(t.Context(), "store", 9)
	if err != nil || len(story) != 1 || story[0].Name != "restore" {
		t.Errorf("the story says %+v (%v)", story, err)
	}
}

func TestAPromiseOutlivesARestore(t *testing.T) {
	v := newVault(t)
	id := v.enqueue(1)[0]
	l := v.claim(v.store, 1)[0]
	_, err := v.store.Settle(t.Context(), []store.Settlement{{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Queued, Charge: store.ChargeRelease,
		Delay: 24 * time.Hour, StartWithin: time.Minute}})
	v.must(err)
	v.must(v.store.Backup(t.Context(), v.at("backup")))
	broken, err := v.restored("backup").MissedDeadlines(t.Context(), 9)
	if err != nil || len(broken) != 1 || broken[0] != id {
		t.Errorf("broken promises are %v (%v)", broken, err)
	}
}

func TestABackupReplacesNothingAndLeavesNothingHalfDone(t *testing.T) {
	v := newVault(t)
	v.enqueue(5000)
	v.must(os.WriteFile(v.at("precious"), []byte("mine"), 0o600))
	if err := v.store.Backup(t.Context(), v.at("precious")); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("over a file that is there: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.store.Backup(gone, v.at("late")); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("for nobody: %v", err)
	}
	for _, bad := range []string{"", v.dir, v.at("no/such/folder")} {
		if err := v.store.Backup(t.Context(), bad); err == nil {
			t.Errorf("a backup in %q", bad)
		}
	}
	v.expectFiles("jobs.db", "precious")
	v.must(v.store.Backup(t.Context(), v.at("whole")))
	v.expectFiles("jobs.db", "precious", "whole")
}

func TestOnlyASoundBackupIsRestoredAndOnlyInANewPlace(t *testing.T) {
	v := newVault(t)
	v.enqueue(200)
	v.must(v.store.Backup(t.Context(), v.at("backup")))
	whole, err := os.ReadFile(v.at("backup"))
	v.must(err)
	damaged := append([]byte{}, whole...)
	for i := len(damaged) / 2; i < len(damaged)/2+8000; i++ {
		damaged[i] = 0xff
	}
	v.must(os.WriteFile(v.at("damaged"), damaged, 0o600))
	v.must(os.WriteFile(v.at("half"), whole[:len(whole)/2], 0o600))
	v.must(os.WriteFile(v.at("text"), []byte(strings.Repeat("no database at all ", 100)), 0o600))
	v.must(os.WriteFile(v.at("newer"), whole, 0o600))
	v.write("newer", "INSERT INTO holdfast_migration (version, at) VALUES (9999, 0)")
	v.write("foreign", "CREATE TABLE notes (text)")
	for _, bad := range []string{"damaged", "half", "text", "newer", "foreign", "missing"} {
		if err := sqlite.Restore(t.Context(), v.at(bad), v.at("restored")); !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("%s: %v", bad, err)
		} else if strings.Contains(err.Error(), v.dir) {
			t.Errorf("%s: the message names a path: %v", bad, err)
		}
	}
	v.must(os.WriteFile(v.at("other.db-wal"), nil, 0o600))
	for _, taken := range []string{"jobs.db", "other.db"} {
		if err := sqlite.Restore(t.Context(), v.at("backup"), v.at(taken)); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("over %s: %v", taken, err)
		}
	}
	v.expectFiles("backup", "damaged", "foreign", "half", "jobs.db", "newer", "other.db-wal", "text")
	v.expectHealthy(v.restored("backup"))
}

// write changes one of the vault's files without the store.
func (v *vault) write(name, text string) {
	v.Helper()
	db, err := sql.Open("sqlite", "file:"+v.at(name))
	v.must(err)
	defer func() { _ = db.Close() }()
	_, err = db.Exec(text)
	v.must(err)
}
