//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func TestEveryEventIsDeliveredThoughTheSenderIsKilledOnSQLite(t *testing.T) {
	killNotifiers(t, "sqlite")
}
func TestEveryEventIsDeliveredThoughTheSenderIsKilledOnPostgreSQL(t *testing.T) {
	killNotifiers(t, "postgres")
}

// deliveredEvents is the number of events that each receiver must get.
const deliveredEvents = 150

// A receiver records the webhooks that it gets. Sometimes it closes the connection without an answer.
type receiver struct {
	*httptest.Server
	verify *standardwebhooks.Webhook

	mu     sync.Mutex
	heard  map[string]map[string]int // number of calls by event and webhook-id
	forged int
	n      int
}

const chaosSecret = "whsec_Y2hhb3MtY2hhb3MtY2hhb3MtY2hhb3MtY2hhb3M="

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	verify, err := standardwebhooks.NewWebhook(chaosSecret)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{verify: verify, heard: map[string]map[string]int{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	var event struct{ Subject string }
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.verify.Verify(body, q.Header); err != nil || json.Unmarshal(body, &event) != nil {
		r.forged++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.heard[event.Subject] == nil {
		r.heard[event.Subject] = map[string]int{}
	}
	r.heard[event.Subject][q.Header.Get(standardwebhooks.HeaderWebhookID)]++
	if r.n++; r.n%20 == 19 { // recorded, but the sender gets no answer
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			c.Close()
		}
	}
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.heard)
}

// killNotifiers lets jobs fail while the notifiers that report them are killed repeatedly.
func killNotifiers(t *testing.T, storeName string) {
	t.Setenv("HOLDFAST_SECRET_CHAOS", chaosSecret)
	ctx, dir := t.Context(), t.TempDir()
	db, s := openDatabase(t, storeName, dir)
	receivers := []*receiver{newReceiver(t), newReceiver(t)}
	operator := ops.New(s, ops.Config{})
	for i, r := range receivers {
		_, err := operator.Subscribe(ctx, subscription.Subscription{Name: fmt.Sprint("receiver ", i), Sink: "webhook", Target: r.URL, Events: []string{"failed"},
			Kinds: []string{"chaos"}, Secrets: []string{"chaos"}}, ops.Actor{Name: "chaos"})
		if err != nil {
			t.Fatal(err)
		}
	}
	f := &fleet{command: []string{os.Args[0], asChild}, spec: childSpec{Store: db.address, Dir: dir, Lease: 2 * time.Second}}
	defer f.killAll("")
	if err := f.start(roleNotifier, 2); err != nil {
		t.Fatal(err)
	}
	kills, buried := 0, 0
	everywhere := func() bool { return receivers[0].count() >= deliveredEvents && receivers[1].count() >= deliveredEvents }
	for deadline := time.Now().Add(3 * time.Minute); !everywhere(); {
		if time.Now().After(deadline) {
			t.Fatalf("after %d kills the receivers got %d and %d of %d events", kills, receivers[0].count(), receivers[1].count(), deliveredEvents)
		}
		if buried < deliveredEvents {
			if err := makeDeadLetters(ctx, s, 30); err != nil {
				t.Fatal(err)
			}
			buried += 30
		}
		sleep(ctx, 400*time.Millisecond)
		if kills < 12 {
			victim := f.slots[kills%2].process
			victim.asked = true
			victim.signal(sigKill)
			<-victim.gone
			kills++
		}
		if err := f.refill(); err != nil {
			t.Fatal(err)
		}
	}
	expectDeliveries(ctx, t, s)
	for i, r := range receivers {
		r.mu.Lock()
		for subject, ids := range r.heard {
			if len(ids) != 1 {
				t.Errorf("receiver %d got %s with %d ids: %v", i, subject, len(ids), ids)
			}
		}
		if len(r.heard) != deliveredEvents || r.forged > 0 {
			t.Errorf("receiver %d got %d events of %d, and %d with an invalid signature", i, len(r.heard), deliveredEvents, r.forged)
		}
		r.mu.Unlock()
	}
	if findings, err := s.CheckIntegrity(ctx); err != nil || len(findings) > 0 {
		t.Errorf("the integrity check: %v %v", findings, err)
	}
	t.Logf("%s: %d kills, %d events to two receivers", db.name, kills, deliveredEvents)
}

// expectDeliveries expects one delivery for every event and subscription, and no dead letter, because no receiver refused for good. Some deliveries may still
// be queued: they arrived, and the notifier was killed before it could settle them.
func expectDeliveries(ctx context.Context, t *testing.T, s store.Store) {
	t.Helper()
	counts, err := s.Counts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, c := range counts {
		if c.Queue != subscription.Queue {
			continue
		}
		if all += c.Jobs; c.State == holdfast.Failed {
			t.Errorf("%d deliveries failed for good", c.Jobs)
		}
	}
	if all != 2*deliveredEvents {
		t.Errorf("there are %d deliveries for %d events and two receivers", all, deliveredEvents)
	}
}
