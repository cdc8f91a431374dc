//go:build unix

package chaos

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
)

func TestTwentySchedulersMakeOneJobPerSlotOnSQLite(t *testing.T)     { crowdTheClock(t, "sqlite") }
func TestTwentySchedulersMakeOneJobPerSlotOnPostgreSQL(t *testing.T) { crowdTheClock(t, "postgres") }

// slots is how many a run waits for.
const slots = 12

// crowdTheClock lets twenty processes keep one schedule, and freezes or kills some of them at every turn.
func crowdTheClock(t *testing.T, storeName string) {
	ctx, dir := t.Context(), t.TempDir()
	g, s := stand(t, storeName, dir)
	desk := ops.New(s, ops.Config{})
	_, err := desk.SetSchedule(ctx, schedule.Schedule{Name: "chaos", Every: time.Second, Missed: schedule.All, Most: 1000,
		Draft: holdfast.Draft{Kind: slotScript{}.Kind()}}, ops.By{Actor: "chaos"})
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{command: []string{os.Args[0], asChild}, part: part{Store: g.address, Dir: dir, Lease: 2 * time.Second}}
	defer f.killAll("")
	if err := f.man(partScheduler, 20); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 5))
	var made []time.Time
	for deadline := time.Now().Add(3 * time.Minute); len(made) < slots; {
		if time.Now().After(deadline) {
			t.Fatalf("only %d slots made a job", len(made))
		}
		frozen := f.posts[random.IntN(20)].holder
		frozen.signal(sigStop)
		victim := f.posts[random.IntN(20)].holder
		victim.asked = true
		victim.signal(sigKill)
		<-victim.gone
		pause(ctx, 700*time.Millisecond)
		frozen.signal(sigCont)
		if err := f.tend(); err != nil {
			t.Fatal(err)
		}
		made = slotsOf(t, s)
	}
	f.killAll(partScheduler)
	made = slotsOf(t, s)
	for i := 1; i < len(made); i++ {
		if gap := made[i].Sub(made[i-1]); gap != time.Second {
			t.Errorf("slot %v is followed by %v: each comes once, a second after the other", made[i-1], made[i])
		}
	}
	if findings, err := s.Audit(ctx); err != nil || len(findings) > 0 {
		t.Errorf("the audit: %v %v", findings, err)
	}
	t.Logf("%s: %d slots, %d processes", g.name, len(made), len(f.all))
}

// slotsOf are the slots that made a job, in order.
func slotsOf(t *testing.T, s holdfast.Store) (all []time.Time) {
	t.Helper()
	jobs, _, err := s.Jobs(t.Context(), holdfast.Filter{Kind: slotScript{}.Kind(), Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		var args slotScript
		if err := json.Unmarshal(job.Args, &args); err != nil {
			t.Fatalf("the arguments of a slot's job: %s: %v", job.Args, err)
		}
		all = append(all, args.Slot)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}
