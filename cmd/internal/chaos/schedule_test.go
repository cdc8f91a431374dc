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
	"github.com/holdfastdev/holdfast/store"
)

func TestTwentySchedulersMakeOneJobPerSlotOnSQLite(t *testing.T)     { runSchedulers(t, "sqlite") }
func TestTwentySchedulersMakeOneJobPerSlotOnPostgreSQL(t *testing.T) { runSchedulers(t, "postgres") }

// slots is the number of slots that a run waits for.
const slots = 12

// runSchedulers lets twenty processes serve one schedule, and repeatedly freezes and kills some of them.
func runSchedulers(t *testing.T, storeName string) {
	ctx, dir := t.Context(), t.TempDir()
	db, s := openDatabase(t, storeName, dir)
	operator := ops.New(s, ops.Config{})
	_, err := operator.SetSchedule(ctx, schedule.Schedule{Name: "chaos", Every: time.Second, Missed: schedule.All, Most: 1000,
		Draft: holdfast.Draft{Kind: slotScript{}.Kind()}}, ops.Actor{Name: "chaos"})
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{command: []string{os.Args[0], asChild}, spec: childSpec{Store: db.address, Dir: dir, Lease: 2 * time.Second}}
	defer f.killAll("")
	if err := f.start(roleScheduler, 20); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 5))
	var made []time.Time
	for deadline := time.Now().Add(3 * time.Minute); len(made) < slots; {
		if time.Now().After(deadline) {
			t.Fatalf("only %d slots have a job", len(made))
		}
		frozen := f.slots[random.IntN(20)].process
		frozen.signal(sigStop)
		victim := f.slots[random.IntN(20)].process
		victim.asked = true
		victim.signal(sigKill)
		<-victim.gone
		sleep(ctx, 700*time.Millisecond)
		frozen.signal(sigCont)
		if err := f.refill(); err != nil {
			t.Fatal(err)
		}
		made = slotsOf(t, s)
	}
	f.killAll(roleScheduler)
	made = slotsOf(t, s)
	for i := 1; i < len(made); i++ {
		if gap := made[i].Sub(made[i-1]); gap != time.Second {
			t.Errorf("slot %v is followed by %v: expected one job per slot, one second apart", made[i-1], made[i])
		}
	}
	if findings, err := s.CheckIntegrity(ctx); err != nil || len(findings) > 0 {
		t.Errorf("the integrity check: %v %v", findings, err)
	}
	t.Logf("%s: %d slots, %d processes", db.name, len(made), len(f.all))
}

// slotsOf returns the slots that have a job, in order.
func slotsOf(t *testing.T, s store.Store) (all []time.Time) {
	t.Helper()
	jobs, _, err := s.Jobs(t.Context(), store.Filter{Kind: slotScript{}.Kind(), Limit: 200})
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
