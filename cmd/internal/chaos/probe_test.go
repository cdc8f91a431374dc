//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

func TestAKilledProbeFreesItsSlotOnSQLite(t *testing.T)     { killProbe(t, "sqlite") }
func TestAKilledProbeFreesItsSlotOnPostgreSQL(t *testing.T) { killProbe(t, "postgres") }

// killProbe lets a breaker open, waits for the one job that may probe, kills its process, and expects another job to probe.
func killProbe(t *testing.T, storeName string) {
	ctx, dir := t.Context(), t.TempDir()
	db, s := openDatabase(t, storeName, dir)
	flag := func(name string, there bool) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if there {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	flag(gatewayDown, true)
	if _, err := s.Enqueue(ctx, callJobs(20)); err != nil {
		t.Fatal(err)
	}
	f := &fleet{command: []string{os.Args[0], asChild}, spec: childSpec{Store: db.address, Dir: dir, Lease: 2 * time.Second}}
	defer f.killAll("")
	if err := f.start(roleProber, 2); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the breaker opens, and running jobs have ended", func() bool {
		return breakerState(ctx, t, s).State == breaker.Open && len(processing(ctx, t, s)) == 0
	})
	flag(gatewayTrap, true)
	flag(gatewayDown, false)
	var prober line
	waitFor(t, "a job probes the gateway", func() bool {
		held := processing(ctx, t, s)
		starts := startsOf(t, f)
		i := slices.IndexFunc(starts, func(l line) bool {
			return held[l.Job] == l.Token && breakerState(ctx, t, s).State == breaker.HalfOpen
		})
		if len(held) > 1 {
			t.Fatalf("%d jobs probe at the same time: one may", len(held))
		}
		if i >= 0 {
			prober = starts[i]
		}
		return i >= 0
	})
	victim := f.all[prober.process]
	victim.asked = true
	victim.signal(sigKill)
	<-victim.gone
	flag(gatewayTrap, false)
	waitFor(t, "everything is complete", func() bool {
		counts, err := s.Counts(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return len(counts) == 1 && counts[0].State == holdfast.Complete && counts[0].Jobs == 20
	})
	waitFor(t, "the breaker closes", func() bool { return breakerState(ctx, t, s).State == breaker.Closed })
	if job, err := s.Job(ctx, prober.Job); err != nil || job.Crashes != 1 {
		t.Errorf("the killed probe was charged %d crashes: %v", job.Crashes, err)
	}
	if findings, err := s.CheckIntegrity(ctx); err != nil || len(findings) > 0 {
		t.Errorf("the integrity check: %v %v", findings, err)
	}
}

// waitFor waits up to a minute until a condition is true.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); sleep(t.Context(), 50*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// breakerState reads the breaker's state from the store.
func breakerState(ctx context.Context, t *testing.T, s store.Store) (c breaker.Snapshot) {
	t.Helper()
	records, err := s.Records(ctx, "breaker")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Name == gatewayName {
			if err := json.Unmarshal(r.Body, &c); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// processing returns the processing jobs with their tokens.
func processing(ctx context.Context, t *testing.T, s store.Store) map[holdfast.ID]int {
	t.Helper()
	jobs, _, err := s.Jobs(ctx, store.Filter{State: holdfast.Processing})
	if err != nil {
		t.Fatal(err)
	}
	held := map[holdfast.ID]int{}
	for _, job := range jobs {
		held[job.ID] = job.Token
	}
	return held
}

// startsOf returns the starts of handlers, newest first.
func startsOf(t *testing.T, f *fleet) []line {
	t.Helper()
	lines, err := readJournals(f.spec.Dir, len(f.all))
	if err != nil {
		t.Fatal(err)
	}
	starts := slices.DeleteFunc(lines, func(l line) bool { return l.Saw != sawStart })
	slices.SortFunc(starts, func(a, b line) int { return int(b.From - a.From) })
	return starts
}
