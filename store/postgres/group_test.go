package postgres_test

import (
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/postgres"
)

func (w *world) gather(to holdfast.Enqueuer, g holdfast.Group) holdfast.ID {
	w.Helper()
	made, err := to.CreateGroup(w.ctx, g)
	w.ok(err)
	return made.ID
}

// advanceGroups calls AdvanceGroups until nothing is left to do, and counts the steps.
func (w *world) advanceGroups() (steps int) {
	w.Helper()
	for n := 1; n > 0; steps++ {
		var err error
		n, err = w.store.AdvanceGroups(w.ctx, 5000)
		w.ok(err)
	}
	return steps
}

func (w *world) expectGroup(id holdfast.ID, state holdfast.GroupState, generation int) {
	w.Helper()
	g, err := w.store.Group(w.ctx, id)
	w.ok(err)
	if g.State != state || g.Generation != generation {
		w.Fatalf("the group is %s in generation %d, want %s in %d: %+v", g.State, g.Generation, state, generation, g.Members)
	}
}

// end claims all jobs and settles them.
func (w *world) end(to holdfast.State) (n int) {
	w.Helper()
	for {
		leases := w.claim(10_000)
		if len(leases) == 0 {
			return n
		}
		settlements := make([]store.Settlement, len(leases))
		for i, l := range leases {
			settlements[i] = complete(l)
			if settlements[i].To = to; to == holdfast.Failed {
				settlements[i].Failure, settlements[i].Charge = &holdfast.Failure{Code: "BROKEN", Category: "test", Message: "no"}, store.ChargeFailure
			}
		}
		answers, err := w.store.Settle(w.ctx, settlements)
		w.ok(errors.Join(append(answers, err)...))
		n += len(leases)
	}
}

func TestThousandsOfMembersSettleAndAreRetriedTogether(t *testing.T) {
	many := soak.Pick("PostgreSQL: members of a group", 20_000, 100_000)
	w := newWorld(t)
	group := w.gather(w.store, holdfast.Group{Then: []holdfast.Then{{On: holdfast.GroupReady, Draft: holdfast.Draft{Kind: "report", Queue: "next"}}}})
	for range many / 10_000 {
		list := drafts(10_000)
		for i := range list {
			list[i].Group = group
		}
		w.enqueue(w.store, list...)
	}
	w.ok(w.store.SealGroup(w.ctx, group))
	w.advanceGroups()
	w.expectGroup(group, holdfast.GroupProcessing, 1)
	if n := w.end(holdfast.Failed); n != many {
		t.Fatalf("%d ran", n)
	}
	t.Logf("advanced in %d steps", w.advanceGroups())
	w.expectGroup(group, holdfast.GroupFailed, 1)
	n, err := w.store.RetryGroup(w.ctx, store.Intervention{Group: group, Actor: "ada", Reason: "the gateway is back"})
	if err != nil || n != many {
		t.Fatalf("%d members were retried: %v", n, err)
	}
	w.end(holdfast.Complete)
	w.advanceGroups()
	w.expectGroup(group, holdfast.GroupReady, 2)
	if n := w.count("SELECT count(*)::int FROM holdfast_job WHERE kind = 'report'"); n != 1 {
		t.Fatalf("%d continuations of the group", n)
	}
}

func TestGroupsAreMadeAndSealedInATransactionOfDatabaseSQL(t *testing.T) {
	w := newWorld(t)
	db, err := sql.Open("pgx", w.url)
	w.ok(err)
	defer db.Close()
	for _, commit := range []bool{false, true} {
		tx, err := db.BeginTx(w.ctx, nil)
		w.ok(err)
		in := w.store.In(tx)
		parent := w.gather(in, holdfast.Group{Name: "around"})
		group := w.gather(in, holdfast.Group{Parent: parent, ExpireIn: time.Hour, Then: []holdfast.Then{{Draft: holdfast.Draft{Kind: "report"}}}})
		first := holdfast.NewID()
		w.enqueue(in, holdfast.Draft{Kind: "mail", ID: first, Group: group}, holdfast.Draft{Kind: "mail", Group: group, After: []holdfast.ID{first}})
		w.ok(in.SealGroup(w.ctx, group))
		w.ok(in.SealGroup(w.ctx, parent))
		if _, err := in.Enqueue(w.ctx, []holdfast.Draft{{Kind: "mail", Group: group}}); !errors.Is(err, holdfast.ErrConflict) {
			t.Fatalf("a sealed group took a member: %v", err)
		}
		if !commit {
			w.ok(tx.Rollback())
			continue
		}
		w.ok(tx.Commit())
		for range 2 {
			w.end(holdfast.Complete)
			w.advanceGroups()
		}
		w.expectGroup(group, holdfast.GroupReady, 1)
		w.expectGroup(parent, holdfast.GroupReady, 1)
	}
}

func TestACallersTransactionThatAddsMembersDoesNotBlockOtherGroups(t *testing.T) {
	w := newWorld(t)
	busy, other := w.gather(w.store, holdfast.Group{}), w.gather(w.store, holdfast.Group{})
	first := w.enqueue(w.store, holdfast.Draft{Kind: "mail", Group: busy})[0].ID
	w.enqueue(w.store, holdfast.Draft{Kind: "mail", Group: busy, After: []holdfast.ID{first}}, holdfast.Draft{Kind: "mail", Group: other})
	w.ok(w.store.SealGroup(w.ctx, other))
	tx, err := w.conn.Begin(w.ctx)
	w.ok(err)
	defer tx.Rollback(w.ctx)
	w.enqueue(w.store.In(tx), holdfast.Draft{Kind: "mail", Group: busy, After: []holdfast.ID{first}})
	w.end(holdfast.Complete)
	w.advanceGroups()
	w.expectGroup(other, holdfast.GroupReady, 1)
	if n := w.end(holdfast.Complete); n != 1 {
		t.Fatalf("%d that waited ran, want the one that is committed", n)
	}
	w.ok(tx.Commit(w.ctx))
	w.advanceGroups()
	if n := w.end(holdfast.Complete); n != 1 {
		t.Fatalf("%d that waited ran after the commit, want 1", n)
	}
}

func TestRetriesRedrivesAndStepsOfNestedGroupsDoNotDeadlock(t *testing.T) {
	w := newWorld(t)
	parent := w.gather(w.store, holdfast.Group{})
	var members []holdfast.ID
	for range 4 {
		group := w.gather(w.store, holdfast.Group{Parent: parent})
		list := drafts(10)
		for i := range list {
			list[i].Group = group
		}
		for _, r := range w.enqueue(w.store, list...) {
			members = append(members, r.ID)
		}
		w.ok(w.store.SealGroup(w.ctx, group))
	}
	w.ok(w.store.SealGroup(w.ctx, parent))
	w.end(holdfast.Failed)
	w.advanceGroups()
	stores := []*postgres.Store{w.store, w.open(postgres.Config{URL: w.url}), w.open(postgres.Config{URL: w.url})}
	var all sync.WaitGroup
	allowConflict := func(err error) {
		if err != nil && !errors.Is(err, holdfast.ErrConflict) {
			t.Error(err)
		}
	}
	for i := range 12 {
		s := stores[i%3]
		all.Go(func() {
			for n := range 5 {
				word := store.Intervention{Job: members[(i*5+n)%40], Group: parent, Actor: "ada", Reason: "again"}
				var err error
				switch i % 4 {
				case 0:
					_, err = s.Retry(w.ctx, word)
				case 1:
					_, err = s.RetryGroup(w.ctx, word)
				case 2:
					_, err = s.Redrive(w.ctx, store.Redrive{ID: holdfast.NewID(), Jobs: members[n*8 : n*8+8], Actor: "ada"})
				default:
					_, err = s.AdvanceGroups(w.ctx, 100)
				}
				allowConflict(err)
			}
		})
	}
	all.Wait()
	w.end(holdfast.Complete)
	w.advanceGroups()
	g, err := w.store.Group(w.ctx, parent)
	w.ok(err)
	if g.State != holdfast.GroupReady || g.Members.Complete != 4 {
		t.Fatalf("%+v", g)
	}
	findings, err := w.store.CheckIntegrity(w.ctx)
	if err != nil || len(findings) > 0 {
		t.Fatalf("%v %v", findings, err)
	}
}

func TestADatabaseAboveMaxSizeRefusesNewJobs(t *testing.T) {
	w := newWorld(t)
	w.enqueue(w.store, drafts(1)...)
	full := w.open(postgres.Config{URL: w.url, MaxSize: 1})
	tx, err := w.conn.Begin(w.ctx)
	w.ok(err)
	defer tx.Rollback(w.ctx)
	_, alone := full.Enqueue(w.ctx, drafts(1))
	_, guest := full.In(tx).Enqueue(w.ctx, drafts(1))
	kept := full.Apply(w.ctx, store.Change{Enqueue: drafts(1)})
	for _, err := range []error{alone, guest, kept} {
		if !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("a database above max_size returned %v", err)
		}
	}
	leases, err := full.Claim(w.ctx, store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 1, Start: 1, Lease: time.Minute})
	w.ok(err)
	answers, err := full.Settle(w.ctx, []store.Settlement{complete(leases[0])})
	w.ok(errors.Join(append(answers, err)...))
}
