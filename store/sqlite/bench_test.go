package sqlite_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

func open(t testing.TB) *sqlite.Store {
	t.Helper()
	return reopen(t, filepath.Join(t.TempDir(), "jobs.db"))
}

func reopen(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func drafts(n int) []holdfast.Draft {
	all := make([]holdfast.Draft, n)
	for i := range all {
		all[i] = holdfast.Draft{Kind: "mail.send", Args: json.RawMessage(`{"to":"somebody@example.com","template":"welcome","n":12345}`)}
	}
	return all
}

// BenchmarkEnqueueInBulk adds a thousand jobs per call.
func BenchmarkEnqueueInBulk(b *testing.B) {
	db, ctx := open(b), context.Background()
	for b.Loop() {
		if _, err := db.Enqueue(ctx, drafts(1000)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/job")
}

// BenchmarkEnqueueOneByOne has 16 callers add one job per call.
func BenchmarkEnqueueOneByOne(b *testing.B) {
	db, ctx := open(b), context.Background()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := db.Enqueue(ctx, drafts(1)); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkDrain claims and settles batches of 500.
func BenchmarkDrain(b *testing.B) {
	db, ctx := open(b), context.Background()
	const batch = 500
	for b.Loop() {
		b.StopTimer()
		if _, err := db.Enqueue(ctx, drafts(batch)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		leases, err := db.Claim(ctx, store.Claim{Worker: "w", Queues: []string{"default"}, Limit: batch, Start: batch, Lease: time.Minute})
		if err != nil || len(leases) != batch {
			b.Fatal(len(leases), err)
		}
		settlements := make([]store.Settlement, batch)
		for i, l := range leases {
			settlements[i] = store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Complete, Took: time.Millisecond}
		}
		if _, err := db.Settle(ctx, settlements); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/batch, "µs/job")
}

// BenchmarkClaimAndSettleOne is the least that one job can cost: its own claim and its own settlement, each synced.
func BenchmarkClaimAndSettleOne(b *testing.B) {
	db, ctx := open(b), context.Background()
	if _, err := db.Enqueue(ctx, drafts(50_000)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		leases, err := db.Claim(ctx, store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 1, Start: 1, Lease: time.Minute})
		if err != nil || len(leases) != 1 {
			b.Fatal(len(leases), err)
		}
		l := leases[0]
		if _, err := db.Settle(ctx, []store.Settlement{{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Complete}}); err != nil {
			b.Fatal(err)
		}
	}
}
