//go:build unix

package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// A limit on the file size simulates a full disk without the right to mount one. (make powerloss mounts one.)
func TestAFileThatCannotGrowLosesNothingAndRecovers(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), os.Args[0], asFullDisk, filepath.Join(t.TempDir(), "jobs.db")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// fullDiskMain is the main function of a child process, because the limit applies to a process.
func fullDiskMain(path string) {
	if err := runFull(context.Background(), path); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func runFull(ctx context.Context, path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	unlimited := limit.Cur
	s, err := anystore.Open(ctx, path)
	if err != nil {
		return err
	}
	defer s.Close()
	limit.Cur = 1 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	acked, refusal := enqueueUntilRefused(ctx, s)
	if !errors.Is(refusal, holdfast.ErrUnavailable) || strings.Contains(refusal.Error(), "\n") {
		return fmt.Errorf("the refusal %q is not one line of the kind unavailable", refusal)
	}
	fmt.Printf("%d acknowledged, then refused: %v\n", len(acked), refusal)
	limit.Cur = unlimited
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	receipts, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "full"}})
	if err != nil {
		return fmt.Errorf("there is space again, and the store still refuses: %w", err)
	}
	return checkStore(ctx, s, append(acked, receipts[0].ID))
}

func enqueueUntilRefused(ctx context.Context, s store.Store) ([]holdfast.ID, error) {
	var acked []holdfast.ID
	for range 10_000 {
		receipts, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "full", Args: []byte(`"` + strings.Repeat("words ", 800) + `"`)}})
		if err != nil {
			return acked, err
		}
		acked = append(acked, receipts[0].ID)
	}
	return acked, nil
}

// checkStore checks that every acknowledged job is in the store and that the integrity check has no findings.
func checkStore(ctx context.Context, s store.Store, acked []holdfast.ID) error {
	for _, id := range acked {
		if _, err := s.Job(ctx, id); err != nil {
			return fmt.Errorf("job %s was acknowledged: %w", id, err)
		}
	}
	findings, err := s.CheckIntegrity(ctx)
	if err != nil || len(findings) > 0 {
		return fmt.Errorf("the integrity check: %w %v", err, findings)
	}
	return nil
}

// Another process holds the write lock most of the time (solid_queue#133, #309, #385; reliability.md §2 row 65).
func TestALockHeldByAnotherProcessLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s, err := anystore.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	locker := exec.CommandContext(t.Context(), os.Args[0], asLocker, path)
	output, err := locker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := locker.Start(); err != nil {
		t.Fatal(err)
	}
	defer locker.Wait()
	defer locker.Process.Kill()
	var acked []holdfast.ID
	for locked := bufio.NewReader(output); len(acked) < 15; {
		if _, err := locked.ReadString('\n'); err != nil {
			t.Fatalf("the other process never had the lock: %v", err)
		}
		receipts, err := s.Enqueue(t.Context(), []holdfast.Draft{{Kind: "busy"}})
		if err != nil {
			t.Fatalf("a call did not wait for the lock: %v", err)
		}
		acked = append(acked, receipts[0].ID)
	}
	if err := drain(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := checkStore(t.Context(), s, acked); err != nil {
		t.Fatal(err)
	}
}

// lockerMain is the main function of a child process that holds the lock three quarters of the time until it is killed.
func lockerMain(path string) {
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		panic(err)
	}
	c.SetBusyTimeout(time.Minute)
	for {
		if err := sqlitex.ExecuteTransient(c, "BEGIN IMMEDIATE", nil); err != nil {
			panic(err)
		}
		fmt.Println("locked")
		sleep(context.Background(), 60*time.Millisecond)
		if err := sqlitex.ExecuteTransient(c, "ROLLBACK", nil); err != nil {
			panic(err)
		}
		sleep(context.Background(), 20*time.Millisecond)
	}
}
