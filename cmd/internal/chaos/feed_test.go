//go:build unix

package chaos

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/store"
)

var events = flag.Int("chaos.events", soak.Pick("events that a reader of the feed receives", 20_000, 300_000), "number of events that a reader of the feed receives")

func TestAReaderThatStopsAndGoesOnIsToldEverythingOnceOnSQLite(t *testing.T) { readFeed(t, "sqlite") }
func TestAReaderThatStopsAndGoesOnIsToldEverythingOnceOnPostgreSQL(t *testing.T) {
	readFeed(t, "postgres")
}

// readFeed reads the feed while it is being written. Sometimes the reader loses a page and continues after the last number that it saved.
func readFeed(t *testing.T, storeName string) {
	ctx := t.Context()
	db, err := prepareDatabase(storeName, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.close() })
	s, err := openWithRetry(ctx, db.address)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Apply(ctx, store.Change{Listen: []store.Listener{{Name: "reader", Events: []string{store.EventQueued}}}}); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- enqueueJobs(ctx, s, *events) }()
	began := time.Now()
	random := rand.New(rand.NewPCG(1, 2))
	kept, seen := int64(0), make(map[holdfast.ID]bool, *events)
	for deadline := time.Now().Add(8 * time.Minute); len(seen) < *events; {
		if time.Now().After(deadline) {
			t.Fatalf("only %d of %d events were received", len(seen), *events)
		}
		if _, err := s.Sequence(ctx, 1000); err != nil {
			t.Fatal(err)
		}
		page, err := s.Feed(ctx, kept, 1+random.IntN(2000))
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) == 0 {
			sleep(ctx, 20*time.Millisecond)
			continue
		}
		if random.IntN(50) == 0 { // the reader dies before it can save its position
			continue
		}
		for i, e := range page.Events {
			if e.Seq != kept+1+int64(i) {
				t.Fatalf("event %d follows %d", e.Seq, kept+int64(i))
			}
			if e.Name == store.EventQueued && e.Kind == (script{}).Kind() {
				if seen[e.Job] {
					t.Fatalf("job %s was queued twice", e.Job)
				}
				seen[e.Job] = true
			}
		}
		kept = page.Next
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d events in %v", db.name, len(seen), time.Since(began).Round(time.Millisecond))
	if findings, err := s.CheckIntegrity(ctx); err != nil || len(findings) > 0 {
		t.Errorf("the integrity check: %v %v", findings, err)
	}
}

// enqueueJobs enqueues as fast as it can.
func enqueueJobs(ctx context.Context, s store.Store, jobs int) error {
	for left := jobs; left > 0; {
		drafts := make([]holdfast.Draft, min(left, 2000))
		for i := range drafts {
			drafts[i], _ = holdfast.NewDraft(script{Do: doNothing})
		}
		if _, err := s.Enqueue(ctx, drafts); err != nil {
			return err
		}
		left -= len(drafts)
	}
	return nil
}
