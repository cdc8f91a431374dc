package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A flatOperation is measured by Flat.
type flatOperation struct {
	name         string
	prepare, run func(*flat)
}

// few is the number of jobs of an operation.
const few = 20

// flatOperations are all ways of claiming, the other calls of a worker, and the duties. The claim beside a held tag is the last, because claims check
// tags from then on.
var flatOperations = slices.Concat(flatClaims, flatSettlements, flatDuties, flatInterventions, []flatOperation{
	{"claim beside a held tag", func(f *flat) { f.put("tagged", few*2); f.put("tagged", few, tagged("red")) }, func(f *flat) {
		f.hold(store.Hold{Tag: "red"})
		f.take("tagged", 2, store.Claim{})
	}},
})

var flatClaims = []flatOperation{
	{"claim from one lane", put("one", few*3), func(f *flat) { f.take("one", 3, store.Claim{}) }},
	{"claim in front of a backlog", nil, func(f *flat) { f.take("settled", 2, store.Claim{}) }},
	{"claim from several lanes", putKinds("several", 4), func(f *flat) { f.take("several", 3, store.Claim{}) }},
	{"claim of a kind", putKinds("kinds", 4), func(f *flat) { f.take("kinds", 1, store.Claim{Kinds: []string{"kind-2"}}) }},
	{"claim of a kind in any queue", put("any", few, ofKind("rare")), func(f *flat) { f.held["any"] = f.claim("", few, store.Claim{Kinds: []string{"rare"}}) }},
	{"claim of many kinds", putKinds("many-kinds", 4), func(f *flat) { f.take("many-kinds", 1, store.Claim{Kinds: kindNames(30)}) }},
	{"claim of a kind among two hundred", func(f *flat) {
		for _, kind := range kindNames(200) {
			f.put("varied", 1, ofKind(kind))
		}
		f.put("varied", few, ofKind("kind-7"))
	}, func(f *flat) { f.take("varied", 1, store.Claim{Kinds: []string{"kind-7"}}) }},
	{"claim among owners", putOwners("shared"), func(f *flat) { f.take("shared", 4, store.Claim{}) }},
	{"claim with slots per owner", putOwners("slots"), func(f *flat) { f.take("slots", 1, store.Claim{OwnerSlots: 4}) }},
	{"claim beside a held owner", func(f *flat) { putOwners("beside")(f); f.hold(store.Hold{Owner: "beside-0"}) }, func(f *flat) { f.take("beside", 2, store.Claim{}) }},
	{"claim behind a limit", func(f *flat) { f.put("limited", few); f.hold(store.Hold{Queue: "limited", AtMost: 1000}) },
		func(f *flat) { f.take("limited", 1, store.Claim{}) }},
	{"claim behind a rate", func(f *flat) {
		f.put("slowed", few)
		f.hold(store.Hold{Queue: "slowed", Rate: &store.Rate{PerSecond: 1000, Burst: 1000, Level: 1000}})
	}, func(f *flat) { f.take("slowed", 1, store.Claim{}) }},
	{"claim of retries", putRetries("again", 0), func(f *flat) { f.take("again", 1, store.Claim{}) }},
	{"claim of retries within a budget", func(f *flat) {
		putRetries("budgeted", 0)(f)
		f.hold(store.Hold{Queue: "budgeted", Retries: true, Rate: &store.Rate{PerSecond: 1000, Burst: 1000, Level: 1000}})
	}, func(f *flat) { f.take("budgeted", 1, store.Claim{}) }},
	{"claim evenly between priorities", func(f *flat) {
		f.put("even", few*2, func(d *holdfast.Draft) { d.Priority = -1 })
		f.put("even", few)
	}, func(f *flat) {
		for range 17 { // one claim in sixteen shares evenly
			f.held["even"] = append(f.held["even"], f.claim("even", 2, store.Claim{})...)
		}
	}},
	{"claim from an empty queue", nil, func(f *flat) { f.claim("empty", few, store.Claim{}) }},
	{"claim from a held queue", nil, func(f *flat) { f.claim("held", few, store.Claim{}) }},
}

var flatSettlements = []flatOperation{
	{"renew", putLeased("renewed"), func(f *flat) {
		var running []holdfast.ID
		for _, l := range f.held["renewed"] {
			running = append(running, l.ID)
		}
		_, err := f.store.Renew(context.Background(), []store.Renewal{{Batch: f.held["renewed"][0].Batch, Running: running}}, time.Hour)
		f.ok(err)
	}},
	{"complete", putLeased("completed"), func(f *flat) { f.settle("completed", completes) }},
	{"fail", putLeased("failed"), func(f *flat) { f.settle("failed", broken) }},
	{"retry later", putLeased("retried"), func(f *flat) {
		f.settle("retried", func(l store.Lease) store.Settlement { return retries(l, time.Hour) })
	}},
	{"release", putLeased("released"), func(f *flat) {
		f.settle("released", func(l store.Lease) store.Settlement { return releases(l, store.ChargeRelease, 0) })
	}},
	{"enqueue", nil, func(f *flat) { f.put("new", 1); f.put("new", few) }},
}

var flatDuties = []flatOperation{
	{"promote", put("promoted", few, at(time.Microsecond)), func(f *flat) { f.didSome(f.store.Promote(context.Background(), few)) }},
	{"reclaim", func(f *flat) {
		f.put("lost", few)
		f.held["lost"] = f.claim("lost", few, store.Claim{Lease: time.Microsecond})
	}, func(f *flat) { f.takeOver("lost", f.store.Reclaim) }},
	{"expire", put("expired", few, func(d *holdfast.Draft) { d.ExpireIn = time.Microsecond }), func(f *flat) { f.takeOver("expired", f.store.Expire) }},
	{"find missed deadlines", putRetries("promised", time.Microsecond), func(f *flat) {
		broken, err := f.store.MissedDeadlines(context.Background(), few)
		f.didSome(len(broken), err)
	}},
	{"number the feed", nil, func(f *flat) { _, err := f.store.Sequence(context.Background(), 1000); f.ok(err) }},
	{"advance groups", nil, func(f *flat) { _, err := f.store.AdvanceGroups(context.Background(), 1000); f.ok(err) }},
	{"purge", nil, func(f *flat) {
		_, err := f.store.Purge(context.Background(), store.Purge{Rules: []store.RetentionRule{{Name: "old", For: 1000 * time.Hour}}, Scan: few})
		f.ok(err)
	}},
	{"forget", nil, func(f *flat) {
		for _, history := range []string{store.HistoryFeed, store.HistoryStories, store.HistoryCounts, store.HistoryTombstones} {
			_, err := f.store.DeleteHistory(context.Background(), history, 1000*time.Hour, few)
			f.ok(err)
		}
	}},
	{"wake", put("missed", 1), func(f *flat) {
		_, err := f.store.Await(context.Background(), []string{"missed"}, f.Patience)
		f.ok(err)
	}},
	{"count jobs behind a hold", func(f *flat) { f.put("paused", few); f.hold(store.Hold{Queue: "paused"}) }, func(f *flat) {
		n, err := f.store.CountHeld(context.Background(), store.Hold{Queue: "paused", Source: store.SourceOperator})
		f.ok(err)
		same(f, "behind", n, few)
	}},
}

var flatInterventions = []flatOperation{
	{"redrive", putFailed("redriven"), func(f *flat) {
		_, err := f.store.Redrive(context.Background(), store.Redrive{ID: holdfast.NewID(), Jobs: f.jobs["redriven"], Actor: "ada", Reason: "mended"})
		f.ok(err)
	}},
	{"manual retry", putFailed("retried-by-hand"), func(f *flat) {
		f.each("retried-by-hand", func(id holdfast.ID) error { _, err := f.store.Retry(context.Background(), by(id)); return err })
	}},
	{"edit", put("edited", few), func(f *flat) {
		f.each("edited", func(id holdfast.ID) error {
			_, err := f.store.Edit(context.Background(), store.Edit{Intervention: by(id), Patch: []byte(`{"n":1}`)})
			return err
		})
	}},
	{"cancel", put("cancelled", few), func(f *flat) {
		f.each("cancelled", func(id holdfast.ID) error { _, err := f.store.Cancel(context.Background(), by(id)); return err })
	}},
}

func put(queue string, n int, change ...func(*holdfast.Draft)) func(*flat) {
	return func(f *flat) { f.put(queue, n, change...) }
}

// kindNames returns the names of n kinds.
func kindNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("kind-", i))
	}
	return names
}

// putKinds enqueues jobs of many kinds.
func putKinds(queue string, n int) func(*flat) {
	return func(f *flat) {
		for _, kind := range kindNames(n) {
			f.put(queue, few, ofKind(kind))
		}
	}
}

// putOwners enqueues jobs of five owners.
func putOwners(queue string) func(*flat) {
	return func(f *flat) {
		for i := range 5 {
			f.put(queue, few, owned(fmt.Sprint(queue, "-", i)))
		}
	}
}

// putLeased enqueues and claims jobs.
func putLeased(queue string) func(*flat) {
	return func(f *flat) {
		f.put(queue, few)
		f.held[queue] = f.claim(queue, few, store.Claim{})
	}
}

func broken(l store.Lease) store.Settlement { return fails(l, "BROKEN") }

// putFailed makes dead letters.
func putFailed(queue string) func(*flat) {
	return func(f *flat) {
		putLeased(queue)(f)
		f.settle(queue, broken)
	}
}

// putRetries makes retries: due at once, or in an hour with a start deadline that cannot be kept.
func putRetries(queue string, within time.Duration) func(*flat) {
	return func(f *flat) {
		putLeased(queue)(f)
		f.settle(queue, func(l store.Lease) store.Settlement {
			if within == 0 {
				return retries(l, 0)
			}
			e := retries(l, time.Hour)
			e.StartWithin = within
			return e
		})
	}
}

// takeOver runs a duty that claims jobs that workers did not start or end in time.
func (f *flat) takeOver(queue string, duty func(context.Context, store.Claim) ([]store.Lease, error)) {
	f.Helper()
	leases, err := duty(context.Background(), store.Claim{Worker: "reclaimer", Limit: few, Lease: time.Hour})
	f.didSome(len(leases), err)
	f.held[queue] = leases
}
