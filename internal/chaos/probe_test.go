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
)

func TestAKilledProbeFreesItsSlotOnSQLite(t *testing.T)     { killTheProbe(t, "sqlite") }
func TestAKilledProbeFreesItsSlotOnPostgreSQL(t *testing.T) { killTheProbe(t, "postgres") }

// killTheProbe lets a breaker open, waits for the one job that may try, kills its process, and expects another to try.
func killTheProbe(t *testing.T, storeName string) {
	ctx, dir := t.Context(), t.TempDir()
	g, s := stand(t, storeName, dir)
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
	f := &fleet{command: []string{os.Args[0], asChild}, part: part{Store: g.address, Dir: dir, Lease: 2 * time.Second}}
	defer f.killAll("")
	if err := f.man(partProber, 2); err != nil {
		t.Fatal(err)
	}
	patiently(t, "the breaker opens, and what was under way has ended", func() bool {
		return circuitOf(ctx, t, s).State == breaker.Open && len(processing(ctx, t, s)) == 0
	})
	flag(gatewayTrap, true)
	flag(gatewayDown, false)
	var prober line
	patiently(t, "a job tries the gateway", func() bool {
		held := processing(ctx, t, s)
		starts := startsOf(t, f)
		i := slices.IndexFunc(starts, func(l line) bool {
			return held[l.Job] == l.Token && circuitOf(ctx, t, s).State == breaker.HalfOpen
		})
		if len(held) > 1 {
			t.Fatalf("%d jobs try at once: one may", len(held))
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
	patiently(t, "everything is complete", func() bool {
		counts, err := s.Counts(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return len(counts) == 1 && counts[0].State == holdfast.Complete && counts[0].Jobs == 20
	})
	patiently(t, "the breaker closes", func() bool { return circuitOf(ctx, t, s).State == breaker.Closed })
	if job, err := s.Job(ctx, prober.Job); err != nil || job.Crashes != 1 {
		t.Errorf("the killed probe was charged %d crashes: %v", job.Crashes, err)
	}
	if findings, err := s.Audit(ctx); err != nil || len(findings) > 0 {
		t.Errorf("the audit: %v %v", findings, err)
	}
}

func patiently(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); pause(t.Context(), 50*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come to pass that %s", what)
		}
	}
}

// circuitOf reads what the processes agree on.
func circuitOf(ctx context.Context, t *testing.T, s holdfast.Store) (c breaker.Circuit) {
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

// processing are the jobs that a worker holds, with the tokens of their attempts.
func processing(ctx context.Context, t *testing.T, s holdfast.Store) map[holdfast.ID]int {
	t.Helper()
	jobs, _, err := s.Jobs(ctx, holdfast.Filter{State: holdfast.Processing})
	if err != nil {
		t.Fatal(err)
	}
	held := map[holdfast.ID]int{}
	for _, job := range jobs {
		held[job.ID] = job.Token
	}
	return held
}

// startsOf are the handlers that began, the newest first.
func startsOf(t *testing.T, f *fleet) []line {
	t.Helper()
	lines, err := readJournals(f.part.Dir, len(f.all))
	if err != nil {
		t.Fatal(err)
	}
	starts := slices.DeleteFunc(lines, func(l line) bool { return l.Saw != sawStart })
	slices.SortFunc(starts, func(a, b line) int { return int(b.From - a.From) })
	return starts
}
