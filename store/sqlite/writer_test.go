package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
	"zombiezen.com/go/sqlite"
)

// openCounted opens a store with a count of its commits.
func openCounted(t testing.TB) (store *Store, path string, commits *atomic.Int32) {
	t.Helper()
	commits, path = new(atomic.Int32), filepath.Join(t.TempDir(), "jobs.db")
	store, err := Open(context.Background(), Config{Path: path, Trace: func(statement string) {
		if statement == "commit" {
			commits.Add(1)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store, path, commits
}

func (s *Store) enqueueOne(id holdfast.ID) error {
	_, err := s.Enqueue(context.Background(), []holdfast.Draft{{ID: id, Kind: "mail"}})
	return err
}

// countJobs counts the jobs in the store, and fails the test if the integrity check has findings.
func (s *Store) countJobs(t testing.TB) (n int) {
	t.Helper()
	counts, err := s.Counts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		n += c.Jobs
	}
	if findings, err := s.CheckIntegrity(context.Background()); err != nil || len(findings) > 0 {
		t.Errorf("integrity check: %v %v", findings, err)
	}
	return n
}

// inOneGroup keeps the writer busy until all calls wait for it, so that they share its next transaction.
func (s *Store) inOneGroup(t testing.TB, calls ...func() error) []error {
	t.Helper()
	entered, leave := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = s.writer.write(context.Background(), func(*tx) error { close(entered); <-leave; return nil })
	})
	<-entered
	errs := make([]error, len(calls))
	for i, call := range calls {
		all.Go(func() { errs[i] = call() })
		for waits := 0; waits <= i; runtime.Gosched() {
			s.writer.mu.Lock()
			waits = len(s.writer.queue)
			s.writer.mu.Unlock()
		}
	}
	close(leave)
	all.Wait()
	return errs
}

func TestWhatIsAcknowledgedIsSynced(t *testing.T) {
	store, _, _ := openCounted(t)
	err := store.writer.write(t.Context(), func(t *tx) error {
		sync, err := t.queryValue("PRAGMA synchronous")
		mode, _ := t.queryValue("PRAGMA journal_mode")
		if sync != "2" || mode != "wal" {
			err = fmt.Errorf("synchronous = %s, journal_mode = %s", sync, mode)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCallsThatWaitTogetherShareOneCommitAndOneFailureAffectsNoOther(t *testing.T) {
	store, _, commits := openCounted(t)
	taken := holdfast.NewID()
	if err := store.enqueueOne(taken); err != nil {
		t.Fatal(err)
	}
	before := commits.Load()
	errs := store.inOneGroup(t,
		func() error { return store.enqueueOne(holdfast.NewID()) },
		func() error {
			_, err := store.Enqueue(context.Background(), []holdfast.Draft{{Kind: "half"}, {Kind: "half"}, {ID: taken, Kind: "half"}})
			return err
		},
		func() error { return store.enqueueOne(holdfast.NewID()) },
	)
	if errs[0] != nil || errs[2] != nil || !errors.Is(errs[1], holdfast.ErrConflict) {
		t.Errorf("the answers are %v", errs)
	}
	if made := commits.Load() - before; made != 2 { // the one that kept the writer busy, and the three
		t.Errorf("%d commits", made)
	}
	if n := store.countJobs(t); n != 3 {
		t.Errorf("%d jobs: the refused call left something, or took something along", n)
	}
}

func TestACallThatLosesTheTransactionIsTheOnlyOneToFail(t *testing.T) {
	store, _, _ := openCounted(t)
	for name, harm := range map[string]func(*tx) error{
		"the disk fails":        func(*tx) error { return sqlite.ResultIOErrWrite.ToError() },
		"the database gives up": func(t *tx) error { _, _ = t.exec("rollback"); return sqlite.ResultFull.ToError() },
	} {
		t.Run(name, func(t *testing.T) {
			before := store.countJobs(t)
			errs := store.inOneGroup(t,
				func() error { return store.enqueueOne(holdfast.NewID()) },
				func() error { return store.writer.write(context.Background(), harm) },
				func() error { return store.enqueueOne(holdfast.NewID()) },
			)
			if errs[0] != nil || errs[2] != nil || !errors.Is(errs[1], holdfast.ErrUnavailable) {
				t.Errorf("the answers are %v", errs)
			}
			if n := store.countJobs(t) - before; n != 2 {
				t.Errorf("%d jobs of 2", n)
			}
		})
	}
}

func TestAFullDiskLosesNothingAndHealsWithoutARestart(t *testing.T) {
	store, _, _ := openCounted(t)
	limit := func(pages int) {
		if err := store.writer.write(t.Context(), func(t *tx) error { return t.runScript(fmt.Sprintf("PRAGMA max_page_count = %d", pages)) }); err != nil {
			t.Fatal(err)
		}
	}
	limit(100)
	acknowledged, args := 0, []byte(`"`+strings.Repeat("x", 2000)+`"`)
	var err error
	for err == nil && acknowledged < 1000 {
		if _, err = store.Enqueue(t.Context(), []holdfast.Draft{{Kind: "mail", Args: args}, {Kind: "mail", Args: args}}); err == nil {
			acknowledged += 2
		}
	}
	if !errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(err.Error(), "disk is full") {
		t.Fatalf("after %d jobs: %v", acknowledged, err)
	}
	if n := store.countJobs(t); n != acknowledged {
		t.Errorf("%d jobs of %d acknowledged", n, acknowledged)
	}
	limit(100_000)
	if err := store.enqueueOne(holdfast.NewID()); err != nil {
		t.Error(err)
	}
	if n := store.countJobs(t); n != acknowledged+1 {
		t.Errorf("%d jobs of %d acknowledged", n, acknowledged+1)
	}
}

// lockingSession is another process that can hold the file's lock.
func lockingSession(t testing.TB, path string) *session {
	t.Helper()
	s, err := connect(Config{Path: path}, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	return s
}

// solid_queue#324, #133: locks at the wrong moment lost work or the file.
func TestAStormOfLocksLosesNothing(t *testing.T) {
	store, path, _ := openCounted(t)
	other, end := lockingSession(t, path), make(chan struct{})
	var storm, callers sync.WaitGroup
	storm.Go(func() {
		for {
			if err := retryWhileBusy(context.Background(), func() error { return other.runScript("BEGIN IMMEDIATE") }); err != nil {
				t.Error(err)
				return
			}
			runtime.Gosched()
			if err := other.runScript("COMMIT"); err != nil {
				t.Error(err)
			}
			select {
			case <-end:
				return
			default:
			}
		}
	})
	for range 16 {
		callers.Go(func() {
			for range 10 {
				if err := store.enqueueOne(holdfast.NewID()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	close(end)
	storm.Wait()
	if n := store.countJobs(t); n != 160 {
		t.Errorf("%d jobs of 160", n)
	}
}

func TestACallerMayStopWaitingForALock(t *testing.T) {
	store, path, _ := openCounted(t)
	other := lockingSession(t, path)
	if err := other.runScript("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() {
		_, err := store.Enqueue(ctx, []holdfast.Draft{{Kind: "mail"}})
		answer <- err
	}()
	cancel()
	if err := <-answer; !errors.Is(err, holdfast.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := other.runScript("COMMIT"); err != nil {
		t.Fatal(err)
	}
	if n := store.countJobs(t); n != 0 {
		t.Errorf("%d jobs: the call that was given up was carried out", n)
	}
}

func TestACallThatEndsWhileTheFileIsLockedSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		store, err := Open(t.Context(), Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		other := lockingSession(t, path)
		if err := other.runScript("BEGIN IMMEDIATE"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = store.Enqueue(ctx, []holdfast.Draft{{Kind: "note"}})
		if !errors.Is(err, holdfast.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "open transaction of this one") {
			t.Errorf("while the file is locked: %v", err)
		}
		if err := other.runScript("ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		if err := store.enqueueOne(holdfast.NewID()); err != nil {
			t.Error(err)
		}
	})
}

func TestALockHeldForGoodIsReportedInTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		store, err := Open(t.Context(), Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		other := lockingSession(t, path)
		if err := other.runScript("BEGIN IMMEDIATE"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		err = store.enqueueOne(holdfast.NewID())
		if !errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(err.Error(), "locked by another process") || time.Since(start) > time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if err := other.runScript("ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		if err := store.enqueueOne(holdfast.NewID()); err != nil {
			t.Error(err)
		}
		if n := store.countJobs(t); n != 1 {
			t.Errorf("%d jobs of 1", n)
		}
	})
}
