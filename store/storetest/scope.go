package storetest

import (
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A claimPath is a situation in which a store claims in a particular way.
type claimPath struct {
	name string
	set  func(*scene)
	more func(*holdfast.Draft) // applied to the drafts that are claimed
}

// claimPaths are all of them. Every law about what a claim may take must hold on each.
var claimPaths = []claimPath{
	{name: "one owner, nothing held"},
	{name: "owners share", set: func(s *scene) {
		for i := range 3 {
			s.enqueue(owned(fmt.Sprint("other", i)))
		}
	}},
	{name: "a limit", set: func(s *scene) { s.pause(store.Hold{Queue: "default", AtMost: 1000}) }},
	{name: "a rate", set: func(s *scene) {
		s.pause(store.Hold{Queue: "default", Rate: &store.Rate{PerSecond: 1, Burst: 1000, Level: 1000}})
	}},
	{name: "a held tag", set: func(s *scene) { s.pause(store.Hold{Tag: "red"}); s.enqueueMany(3, tagged("red"), ofKind("pdf")) }},
	{name: "a hold on retries", set: func(s *scene) { s.pause(store.Hold{Kind: "never-heard-of", Retries: true}) }},
	{name: "retries", more: func(d *holdfast.Draft) { d.Tags = []string{"again"} }},
	{name: "many owners", set: func(s *scene) {
		for i := range 100 {
			s.enqueue(owned(fmt.Sprint("other", i)))
		}
	}},
	{name: "priorities", set: func(s *scene) { s.enqueueMany(3, func(d *holdfast.Draft) { d.Priority = -3 }) }},
}

// begin prepares the situation, and returns a scene with a handle that has made no claim yet.
func (w claimPath) begin(s *scene) *scene {
	s.Wipe()
	if w.set != nil {
		w.set(s)
	}
	return s.reopened()
}

// fill enqueues the jobs of the law. On the path "retries" each has failed once.
func (w claimPath) fill(s *scene, n int, change ...func(*holdfast.Draft)) []holdfast.ID {
	if w.more != nil {
		change = append(change, w.more)
	}
	all := s.enqueueMany(n, change...)
	if w.name == "retries" {
		for _, l := range s.claimAs(store.Claim{Worker: "w", Limit: n, Start: n}) {
			s.settle(retries(l, 0))
		}
	}
	return all
}

func ofKind(kind string) func(*holdfast.Draft) {
	return func(d *holdfast.Draft) { d.Kind = kind }
}

var scopeLaws = []law{
	{"a claim takes only the kinds it names, in every way of claiming; the others are not touched", func(s *scene) {
		for _, w := range claimPaths {
			other := w.begin(s)
			pdf := w.fill(s, 40, ofKind("pdf"))
			mail := w.fill(s, 40)
			before := s.job(mail[0])
			got := 0
			for range 24 { // one in sixteen shares evenly between priorities, and some start after a mark
				for _, l := range other.claimAs(store.Claim{Worker: "w", Limit: 2, Start: 2, Kinds: []string{"pdf", "never-heard-of"}}) {
					same(s, w.name+": the kind", l.Kind, "pdf")
					got++
				}
			}
			same(s, w.name+": claimed", got, len(pdf))
			same(s, w.name+": a job of another kind", s.job(mail[0]), before)
			same(s, w.name+": of a kind that no job has", len(other.claimAs(store.Claim{Worker: "w", Limit: 2, Kinds: []string{"never-heard-of"}})), 0)
		}
	}},
	{"a claim of many kinds takes them in order", func(s *scene) {
		kinds := []string{"never-heard-of"}
		var want []holdfast.ID
		for i := range 30 {
			kind := fmt.Sprint("kind", i)
			kinds = append(kinds, kind)
			want = append(want, s.enqueue(ofKind(kind)))
			s.enqueue(ofKind("other"))
		}
		same(s, "claimed", ids(s.reopened().claimAs(store.Claim{Worker: "w", Limit: 100, Kinds: kinds})), want)
	}},
	{"a claim that names kinds and no queues takes them from every queue", func(s *scene) {
		put := func(queue, kind string) holdfast.ID {
			return s.enqueue(func(d *holdfast.Draft) { d.Queue, d.Kind = queue, kind })
		}
		want := []holdfast.ID{put("default", "pdf"), put("slow", "pdf")}
		put("slow", "mail")
		newly := put("fresh-"+holdfast.NewID().String(), "pdf")
		leases, err := s.reopened().Store.Claim(s.ctx, store.Claim{Worker: "w", Kinds: []string{"pdf"}, Limit: 10, Lease: shortLease})
		s.must(err)
		same(s, "claimed", ids(leases), append(want, newly))
	}},
	{"a claim that names neither queues nor kinds is refused, and the error says what to name", func(s *scene) {
		s.enqueue()
		_, err := s.Store.Claim(s.ctx, store.Claim{Worker: "w", Limit: 1, Lease: shortLease})
		s.expectError(err, holdfast.ErrInvalid)
		same(s, "message", err.Error(), "a claim without queues and without kinds: name the queues to claim from, the kinds the worker handles, or both")
		_, err = s.Store.Claim(s.ctx, store.Claim{Worker: "w", Queues: []string{"default"}, OwnerSlots: -1, Limit: 1, Lease: shortLease})
		s.expectError(err, holdfast.ErrInvalid)
		same(s, "claimed", len(s.claim(5)), 1)
	}},
	{"a claim takes no more jobs of an owner than its slots, in every way of claiming", func(s *scene) {
		for _, w := range claimPaths {
			if w.name == "retries" { // its jobs were claimed before
				continue
			}
			other := w.begin(s)
			w.fill(s, 12, owned("acme"), ofKind("pdf"))
			w.fill(s, 12, ofKind("pdf"))
			w.fill(s, 12, owned("zeta"), ofKind("pdf"))
			c := store.Claim{Worker: "w", Limit: 30, Start: 30, Kinds: []string{"pdf"}, OwnerSlots: 5, Busy: map[string]int{"acme": 3, "zeta": 7, "gone": -4}}
			for range 20 {
				leases := other.claimAs(c)
				same(s, w.name+": shares", byOwner(leases), map[string]int{"acme": 2, "": 5})
				for _, l := range leases {
					other.settle(releases(l, store.ChargeRelease, 0))
				}
			}
			c.Busy = map[string]int{"acme": 5, "": 5, "zeta": 5}
			same(s, w.name+": claimed when all slots are taken", len(other.claimAs(c)), 0)
		}
	}},
	{"the slots of an owner apply to all lanes of a claim together", func(s *scene) {
		s.enqueueMany(5, owned("acme"))
		s.enqueueMany(5, owned("acme"), ofKind("pdf"))
		s.enqueueMany(5, owned("acme"), func(d *holdfast.Draft) { d.Queue = "slow" })
		lease := s.claimOne()
		s.settle(retries(lease, 0))
		leases := s.claimAs(store.Claim{Worker: "w", Limit: 30, Queues: []string{"default", "slow"}, OwnerSlots: 4})
		same(s, "shares", byOwner(leases), map[string]int{"acme": 4})
	}},
	{"new work in any queue wakes a worker that names no queue", func(s *scene) {
		queue := "fresh-" + holdfast.NewID().String()
		put := func() { s.enqueue(func(d *holdfast.Draft) { d.Queue = queue }) }
		woken := make(chan store.Wake, 1)
		for {
			go func() {
				wake, err := s.Store.Await(s.ctx, nil, patience)
				if err != nil {
					s.Errorf("await: %v", err)
				}
				woken <- wake
			}()
			for waiting := true; waiting; {
				put() // repeated, because a wake-up may come before the waiter listens
				select {
				case wake := <-woken:
					if wake.Work {
						return
					}
					same(s, "a wake-up for a cancel request", wake.Cancel, true)
					waiting = false
				case <-time.After(20 * time.Millisecond):
				}
			}
		}
	}},
}
