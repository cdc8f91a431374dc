package postgres_test

import (
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/postgres"
)

func released(l store.Lease) store.Settlement {
	return store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Queued, Charge: store.ChargeRelease, Took: time.Millisecond}
}

// River falls from 10,000 jobs a second to 1,800 while a transaction holds an old snapshot.
func TestAnOldSnapshotDoesNotSlowClaims(t *testing.T) {
	w := newWorld(t)
	w.exec("ALTER TABLE holdfast_ready SET (autovacuum_enabled = off)")
	const batch, batches = 50, 40
	w.enqueue(w.store, drafts(batch*batches)...)
	w.exec("BEGIN ISOLATION LEVEL REPEATABLE READ")
	w.count("SELECT count(*) FROM holdfast_lane")
	for range batches {
		if got := len(w.claim(batch)); got != batch {
			t.Fatalf("%d of %d", got, batch)
		}
	}
	w.exec("COMMIT")
	w.ok(w.store.Close())
	w.awaitSessionsEnd() // they report what they read
	const read = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'holdfast_ready_pkey'"
	if n := w.count(read); n > 6*batch*batches {
		t.Errorf("%d claims of %d read %d index entries: they read the dead entries of earlier claims", batches, batch, n)
	}
}

func TestJobsPutBackBehindAMarkAreClaimedFirst(t *testing.T) {
	w := newWorld(t)
	w.enqueue(w.store, drafts(40)...)
	first := w.claim(10)
	_, err := w.store.Settle(w.ctx, []store.Settlement{released(first[3]), released(first[5])})
	w.ok(err)
	if next := w.claim(10); next[0].ID != first[3].ID || next[1].ID != first[5].ID {
		t.Errorf("two older jobs were put back and overtaken")
	}
	urgent := w.enqueue(w.store, holdfast.Draft{Kind: "mail", Priority: -1})
	given := w.enqueue(w.store, holdfast.Draft{Kind: "mail", ID: holdfast.ID{1}})
	if next := w.claim(5); next[0].ID != urgent[0].ID || next[1].ID != given[0].ID {
		t.Errorf("an urgent job and one with a low id were overtaken")
	}
}

func TestAClaimThatComesShortReadsBehindTheMarks(t *testing.T) {
	w := newWorld(t)
	other := w.open(postgres.Config{URL: w.url})
	w.enqueue(w.store, drafts(20)...)
	held := w.claim(10)
	_, err := other.Settle(w.ctx, []store.Settlement{released(held[0])}) // this store does not notice
	w.ok(err)
	if got := len(w.claim(100)); got != 11 {
		t.Errorf("claimed %d of 11", got)
	}
}

func TestMarksBecomeStale(t *testing.T) {
	w := newWorld(t)
	other := w.open(postgres.Config{URL: w.url})
	w.enqueue(w.store, drafts(100_000)...)
	held := w.claim(10)
	_, err := other.Settle(w.ctx, []store.Settlement{released(held[0])})
	w.ok(err)
	claimed := 0
	w.until("an older job is no longer overtaken", func() bool {
		next := w.claim(1)
		claimed++
		return len(next) == 1 && next[0].ID == held[0].ID
	})
	if claimed > 50_000 {
		t.Errorf("it was overtaken %d times", claimed)
	}
}
