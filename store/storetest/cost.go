package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A Cost is what some work took from the database: in total, or per job. A figure that a store does not have is zero.
type Cost struct {
	Trips        float64 // times that the store waited for the database, over a network
	Statements   float64
	Transactions float64 // that were committed
	Rows         float64 // inserted, updated and deleted
	Bytes        float64 // of the write-ahead log
}

// figures are the parts of a cost, in the order in which they are shown.
var figures = []struct {
	name string
	of   func(*Cost) *float64
}{
	{"round trips", func(c *Cost) *float64 { return &c.Trips }},
	{"statements", func(c *Cost) *float64 { return &c.Statements }},
	{"transactions", func(c *Cost) *float64 { return &c.Transactions }},
	{"rows written", func(c *Cost) *float64 { return &c.Rows }},
	{"log bytes", func(c *Cost) *float64 { return &c.Bytes }},
}

func (c Cost) String() string {
	var parts []string
	for _, f := range figures {
		parts = append(parts, f.name+" "+shown(*f.of(&c)))
	}
	return strings.Join(parts, ", ")
}

// shown formats a figure with its significant digits.
func shown(figure float64) string {
	if figure >= 1000 {
		return fmt.Sprintf("%.0f", figure)
	}
	return fmt.Sprintf("%.3g", figure)
}

// A Meter opens a store on the same data as before, runs work, closes the store and returns what the work cost. ready runs first, writes no row and
// is not counted: it is for what a store learns once.
type Meter func(ready, work func(store.Store)) Cost

// batch is how many jobs a claim and a settlement have where costs are measured.
const batch = 500

// A path is a sequence of operations on jobs whose cost is measured.
type path struct {
	name   string
	jobs   int
	before func(*costWorker) // not counted
	work   func(*costWorker)
}

var paths = []path{
	{"enqueue alone", 1, (*costWorker).nothing, func(s *costWorker) { s.enqueue(1) }},
	{"enqueue one by one", 200, (*costWorker).nothing, func(s *costWorker) {
		for range 200 {
			s.enqueue(1)
		}
	}},
	{"enqueue in bulk", 2000, (*costWorker).nothing, func(s *costWorker) { s.enqueue(2000) }},
	{"claim and complete", 2000, func(s *costWorker) { s.enqueue(2000) }, func(s *costWorker) { s.drain(complete) }},
	{"fail once and complete", 2000, func(s *costWorker) { s.enqueue(2000) }, func(s *costWorker) { s.drain(failOnce) }},
}

// Costs compares what a job costs on each path with a budget. It uses no clock, so a busy machine makes no difference. The cheapest of several rounds
// counts, because other activity of the database only adds.
func Costs(t *testing.T, open func(testing.TB) Meter, budget map[string]Cost) {
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			allowed, known := budget[p.name]
			if !known {
				t.Fatalf("%q has no budget: add a line to the table, a tenth above what a job costs now", p.name)
			}
			p.judge(t, p.measure(t, open(t), allowed), allowed)
		})
	}
}

// Numbers of rounds. The first round has an empty store and does not count; the last failure counts.
const fewest, most = 3, 8

func (p path) measure(t testing.TB, meter Meter, allowed Cost) (least Cost) {
	s := &costWorker{TB: t}
	s.run(meter, s.nothing, (*costWorker).prepareLane)
	for round := range most {
		s.run(meter, s.touchLane, p.before)
		spent := s.run(meter, s.touchLane, p.work)
		for _, f := range figures {
			each := *f.of(&spent) / float64(p.jobs)
			if into := f.of(&least); round == 0 || each < *into {
				*into = each
			}
		}
		if round+1 >= fewest && len(p.excess(least, allowed)) == 0 {
			break
		}
	}
	return least
}

// excess returns the figures that exceed their budget.
func (p path) excess(spent, allowed Cost) (complaints []string) {
	for _, f := range figures {
		if is, may := *f.of(&spent), *f.of(&allowed); is > may {
			complaints = append(complaints, fmt.Sprintf("%s: %s per job are %s, the budget is %s", p.name, f.name, shown(is), shown(may)))
		}
	}
	return complaints
}

func (p path) judge(t testing.TB, spent, allowed Cost) {
	t.Logf("%s, per job: %v", p.name, spent)
	for _, complaint := range p.excess(spent, allowed) {
		t.Errorf("%s: find what became more expensive, this is not noise. Lower the budget when the code improves; raise it only for a guarantee that is worth it", complaint)
	}
	for _, f := range figures {
		if is, may := *f.of(&spent), *f.of(&allowed); is < 0.75*may {
			t.Logf("%s: %s per job are %s, the budget is %s: the code has improved, lower the budget to %s", p.name, f.name, shown(is), shown(may), shown(1.1*is))
		}
	}
}

// A costWorker enqueues, claims and settles while costs are measured.
type costWorker struct {
	testing.TB
	store store.Store
}

// run runs work on a store that the meter opened.
func (s *costWorker) run(meter Meter, ready func(), work func(*costWorker)) Cost {
	hand := func(do func()) func(store.Store) {
		return func(db store.Store) { s.store = db; do() }
	}
	return meter(hand(ready), hand(func() { work(s) }))
}

func (s *costWorker) nothing() {}

// typicalDraft has two hundred bytes of arguments, as most drafts do.
var typicalDraft = holdfast.Draft{Kind: "mail.send", Args: []byte(`{"to":"somebody@example.org","template":"welcome","body":"` + strings.Repeat("x", 140) + `"}`)}

func (s *costWorker) enqueue(n int) {
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		drafts[i] = typicalDraft
	}
	s.put(drafts...)
}

func (s *costWorker) put(drafts ...holdfast.Draft) {
	s.Helper()
	if _, err := s.store.Enqueue(context.Background(), drafts); err != nil {
		s.Fatal(err)
	}
}

// touchLane enqueues a job that exists, by its idempotency key: nothing is written, and the store caches the lane.
func (s *costWorker) touchLane() {
	again := typicalDraft
	again.IdempotencyKey = "once"
	s.put(again)
}

// prepareLane enqueues the job that touchLane repeats, and completes it.
func (s *costWorker) prepareLane() {
	s.touchLane()
	s.drain(complete)
}

// drain claims and settles until a claim returns nothing.
func (s *costWorker) drain(settle func(store.Lease) store.Settlement) {
	s.Helper()
	ctx := context.Background()
	for {
		leases, err := s.store.Claim(ctx, store.Claim{Worker: "worker-1", Queues: []string{"default"}, Limit: batch, Start: batch, Lease: time.Minute})
		if err != nil {
			s.Fatal(err)
		}
		if len(leases) == 0 {
			return
		}
		settlements := make([]store.Settlement, len(leases))
		for i := range leases {
			settlements[i] = settle(leases[i])
		}
		answers, err := s.store.Settle(ctx, settlements)
		for _, answer := range answers {
			if answer != nil {
				err = answer
			}
		}
		if err != nil {
			s.Fatal(err)
		}
	}
}

func complete(l store.Lease) store.Settlement {
	return store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Complete, Took: 3 * time.Millisecond}
}

// failOnce fails every job once, with a typical failure record.
func failOnce(l store.Lease) store.Settlement {
	if l.Failures > 0 {
		return complete(l)
	}
	return store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Queued, Charge: store.ChargeFailure, Limit: 5, Took: 3 * time.Millisecond,
		Why: "GW_5XX is retryable; failure 1 of 5", Failure: &holdfast.Failure{
			Code: "GW_5XX", Category: "gateway", Message: "the gateway answered 503 Service Unavailable",
			Detail: "POST https://gateway.example.org/v1/messages: 503 Service Unavailable: upstream connect error or disconnect before headers", Dependency: "gateway",
			Context: map[string]string{"http_status": "503", "worker": "worker-1"}, Fingerprint: "5f0c6c7b4f1f9a3e",
		}}
}
