//go:build unix

package chaos

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func TestAGroupWhoseWorkersAreKilledSettlesOnceOnSQLite(t *testing.T) { killMemberWorkers(t, "sqlite") }
func TestAGroupWhoseWorkersAreKilledSettlesOnceOnPostgreSQL(t *testing.T) {
	killMemberWorkers(t, "postgres")
}

// killMemberWorkers runs groups in several processes while some of them are killed, and counts the outcomes.
func killMemberWorkers(t *testing.T, storeName string) {
	const members, groups = 200, 3
	ctx, dir := t.Context(), t.TempDir()
	db, s := openDatabase(t, storeName, dir)
	first := holdfast.NewID()
	var made []holdfast.ID
	for range groups {
		group, err := s.CreateGroup(ctx, holdfast.Group{Then: []holdfast.Then{{Draft: holdfast.Draft{Kind: "chaos", Args: []byte(`{"do":"nothing"}`), Queue: "left"}}}})
		if err != nil {
			t.Fatal(err)
		}
		drafts := make([]holdfast.Draft, members)
		for i := range drafts {
			do := doSleep
			if i%40 == 7 {
				do = doRefuse
			}
			drafts[i], _ = holdfast.NewDraft(script{Do: do, For: 20 * time.Millisecond})
			drafts[i].Group = group.ID
		}
		if _, err := s.Enqueue(ctx, drafts); err != nil {
			t.Fatal(err)
		}
		if err := s.SealGroup(ctx, group.ID); err != nil {
			t.Fatal(err)
		}
		made = append(made, group.ID)
	}
	f := &fleet{command: []string{os.Args[0], asChild}, spec: childSpec{Store: db.address, Dir: dir, Lease: 2 * time.Second, First: first}}
	defer f.killAll("")
	if err := f.start(roleWorker, 4); err != nil {
		t.Fatal(err)
	}
	for kills := range 8 {
		sleep(ctx, 300*time.Millisecond)
		victim := f.slots[kills%4].process
		victim.asked = true
		victim.signal(sigKill)
		<-victim.gone
		if err := f.refill(); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range made {
		expectOnce(ctx, t, s, id)
	}
	f.stop(roleWorker, time.Minute)
	if findings, err := s.CheckIntegrity(ctx); err != nil || len(findings) > 0 {
		t.Errorf("the integrity check: %v %v", findings, err)
	}
}

// expectOnce waits until a group is settled and expects one outcome event.
func expectOnce(ctx context.Context, t *testing.T, s store.Store, id holdfast.ID) {
	t.Helper()
	var group holdfast.Group
	waitFor(t, "the group is settled", func() (settled bool) {
		var err error
		if group, err = s.Group(ctx, id); err != nil {
			t.Fatal(err)
		}
		return group.State.Settled()
	})
	if group.State != holdfast.GroupPartial || group.Members.Failed != 5 || group.Members.Complete != 195 {
		t.Errorf("the group is %s: %+v", group.State, group.Members)
	}
	events, err := s.Events(ctx, "group/"+id.String(), 100)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := 0
	for _, e := range events {
		if e.Name == string(holdfast.GroupPartial) {
			outcomes++
		}
	}
	if outcomes != 1 {
		t.Errorf("there are %d outcome events: %+v", outcomes, events)
	}
}
