package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func (f *flat) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// didSome expects that a duty found work.
func (f *flat) didSome(n int, err error) {
	f.Helper()
	f.ok(err)
	if n == 0 {
		f.Fatal("a duty found nothing to do")
	}
}

func (f *flat) put(queue string, n int, change ...func(*holdfast.Draft)) {
	f.Helper()
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		drafts[i] = holdfast.Draft{ID: holdfast.NewID(), Kind: "mail", Queue: queue}
		for _, c := range change {
			c(&drafts[i])
		}
		f.jobs[queue] = append(f.jobs[queue], drafts[i].ID)
	}
	_, err := f.store.Enqueue(context.Background(), drafts)
	f.ok(err)
}

func (f *flat) claim(queue string, limit int, c store.Claim) []store.Lease {
	f.Helper()
	c.Worker, c.Limit, c.Start = "w", limit, limit
	if queue != "" {
		c.Queues = []string{queue}
	}
	if c.Lease == 0 {
		c.Lease = time.Hour
	}
	leases, err := f.store.Claim(context.Background(), c)
	f.ok(err)
	return leases
}

// take claims a few jobs several times, and keeps the leases.
func (f *flat) take(queue string, times int, c store.Claim) {
	f.Helper()
	for range times {
		leases := f.claim(queue, few, c)
		if len(leases) != few {
			f.Fatalf("a claim from queue %q took %d jobs, not %d", queue, len(leases), few)
		}
		f.held[queue] = append(f.held[queue], leases...)
	}
}

// settle settles the leases of a queue.
func (f *flat) settle(queue string, to func(store.Lease) store.Settlement) {
	f.Helper()
	var all []store.Settlement
	for _, l := range f.held[queue] {
		all = append(all, to(l))
	}
	delete(f.held, queue)
	f.end(all...)
}

func (f *flat) end(all ...store.Settlement) {
	f.Helper()
	answers, err := f.store.Settle(context.Background(), all)
	f.ok(err)
	for _, answer := range answers {
		f.ok(answer)
	}
}

func (f *flat) hold(h store.Hold) {
	f.Helper()
	h.Actor = "ada"
	f.ok(f.store.Pause(context.Background(), h))
}

// each runs an intervention on every job of a queue.
func (f *flat) each(queue string, intervene func(holdfast.ID) error) {
	f.Helper()
	for _, id := range f.jobs[queue] {
		f.ok(intervene(id))
	}
}

// clear ends what the operations left, so that the next round starts in the same state.
func (f *flat) clear() {
	ctx := context.Background()
	holds, err := f.store.Holds(ctx)
	f.ok(err)
	for _, h := range holds {
		if h.Queue != "held" {
			f.ok(f.store.Resume(ctx, store.Hold{Queue: h.Queue, Owner: h.Owner, Tag: h.Tag, Actor: "ada"}))
		}
	}
	_, err = f.store.Promote(ctx, 1000)
	f.ok(err)
	for queue := range f.held {
		f.settle(queue, completes)
	}
	var queues []string
	for queue := range f.jobs {
		if queue != "settled" {
			queues = append(queues, queue)
		}
	}
	slices.Sort(queues)
	for {
		leases, err := f.store.Claim(ctx, store.Claim{Worker: "w", Queues: queues, Limit: 500, Start: 500, Lease: time.Hour})
		f.ok(err)
		if len(leases) == 0 {
			break
		}
		var all []store.Settlement
		for _, l := range leases {
			all = append(all, completes(l))
		}
		f.end(all...)
	}
	_, err = f.store.Expire(ctx, store.Claim{Worker: "reclaimer", Limit: 1000, Lease: time.Hour}) // it also removes the expiries of jobs that have ended
	f.ok(err)
}
