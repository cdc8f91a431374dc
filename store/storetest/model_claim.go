package storetest

import (
	"fmt"
	"slices"

	"github.com/holdfastdev/holdfast/store"
)

// A store chooses between owners, and once in sixteen claims between priorities. So the model does not predict what a claim takes: it checks what was
// taken.

// An offer is what a claim could have taken, and what it took.
type offer struct {
	m        *model
	claim    store.Claim
	jobs     []*record // ready, in its queues, of its kinds, not held; in order
	tags     bool      // there are others with held tags
	taken    map[*record]bool
	capacity map[limit]int  // what each limit has left after what was taken
	slots    map[string]int // what each owner's slots have left, if the claim bounds them
}

func (m *model) offer(c store.Claim) *offer {
	o := &offer{m: m, claim: c, taken: map[*record]bool{}}
	for _, r := range m.where(ready, func(r *record) bool { return covers(c, r) && !m.closed(r) }) {
		if m.tagHeld(r) {
			o.tags, r.aside = true, true
		} else {
			o.jobs = append(o.jobs, r)
		}
	}
	o.capacity = m.capacities(o.jobs)
	if c.OwnerSlots > 0 {
		o.slots = map[string]int{}
		for _, r := range o.jobs {
			o.slots[r.Owner] = c.OwnerSlots - c.Busy[r.Owner]
		}
	}
	return o
}

// covers reports whether a claim asks for jobs of this queue and kind.
func covers(c store.Claim, r *record) bool {
	return (len(c.Queues) == 0 || slices.Contains(c.Queues, r.Queue)) && (len(c.Kinds) == 0 || slices.Contains(c.Kinds, r.Kind))
}

// full reports whether the claim may take no more jobs of an owner.
func (o *offer) full(owner string) bool { return o.slots != nil && o.slots[owner] < 1 }

// check checks the answer of a store against the rules of a claim. It returns the records that were taken, or what is wrong. even is set if the order
// is only right for a claim that shares evenly between priorities.
func (o *offer) check(got []store.Lease) (taken []*record, even bool, wrong string) {
	last := map[string]*record{}
	for _, l := range got {
		r := o.m.jobs[l.ID]
		if r == nil || !slices.Contains(o.jobs, r) || o.taken[r] {
			return nil, false, "a claim took a job that it must not take"
		}
		if before := last[r.Owner]; before != nil && inOrder(before, r) > 0 {
			return nil, false, "a claim does not keep an owner's jobs in order"
		}
		if o.full(r.Owner) {
			return nil, false, "a claim took more of an owner than it has slots for"
		}
		if o.slots != nil {
			o.slots[r.Owner]--
		}
		o.taken[r], last[r.Owner] = true, r
		taken = append(taken, r)
		for _, l := range o.m.limits(r) {
			if o.capacity[l]--; o.capacity[l] < 0 {
				return nil, false, "a claim took more than a limit lets through"
			}
		}
	}
	even = !o.inOwnerOrder()
	switch {
	case len(got) > o.claim.Limit:
		wrong = "a claim took more than its limit"
	case o.tookTooFew():
		wrong = "a claim took fewer jobs than it could"
	case even && !o.even():
		wrong = "a claim took jobs out of turn"
	case !o.tags && !o.fair():
		wrong = "a claim gave one owner more than another"
	}
	return taken, even, wrong
}

// open reports whether a job that was not taken could have been.
func (o *offer) open(r *record) bool {
	return !o.taken[r] && !r.aside && !o.full(r.Owner) && !slices.ContainsFunc(o.m.limits(r), func(l limit) bool { return o.capacity[l] < 1 })
}

// tookTooFew reports whether the claim left a job that it could have taken. A claim that had to set jobs aside may do so, if it took at least one.
func (o *offer) tookTooFew() bool {
	if len(o.taken) >= o.claim.Limit || o.tags && len(o.taken) > 0 {
		return false
	}
	return slices.ContainsFunc(o.jobs, o.open)
}

// overtaken reports whether a job was left and a later one taken, although every limit on the first also applies to the other.
func (o *offer) overtaken(r, other *record) bool {
	if o.taken[r] || r.aside || !o.taken[other] || inOrder(r, other) > 0 {
		return false
	}
	theirs := o.m.limits(other)
	return o.open(r) || !slices.ContainsFunc(o.m.limits(r), func(l limit) bool { return !slices.Contains(theirs, l) })
}

// inOwnerOrder reports whether every owner's jobs were taken in order.
func (o *offer) inOwnerOrder() bool {
	for _, r := range o.jobs {
		for _, other := range o.jobs {
			if r.Owner == other.Owner && o.overtaken(r, other) {
				return false
			}
		}
	}
	return true
}

// An evenLine is a line of jobs that takes turns with the owner's other lines in a claim that shares evenly.
type evenLine struct {
	owner, queue, kind, dependency string
	retries                        bool
	priority                       int16
}

func evenLineOf(r *record) evenLine {
	return evenLine{r.Owner, r.Queue, r.Kind, r.Dependency, r.Failures > 0, r.Priority}
}

// even reports whether the lines of each owner took turns, each in order. Jobs that were set aside had turns too, and their number is unknown.
func (o *offer) even() bool {
	turns := map[evenLine]int{}
	for r := range o.taken {
		turns[evenLineOf(r)]++
	}
	for _, r := range o.jobs {
		for _, other := range o.jobs {
			if evenLineOf(r) == evenLineOf(other) && o.overtaken(r, other) {
				return false
			}
		}
		if !o.open(r) || o.tags {
			continue
		}
		for h, n := range turns {
			if h.owner == r.Owner && n > turns[evenLineOf(r)]+1 {
				return false
			}
		}
	}
	return true
}

// fair reports whether no owner got over two more jobs than another that could have had more: a store also considers earlier claims. Jobs of callers'
// transactions do not count, because a store may not notice their commit for a moment.
func (o *offer) fair() bool {
	shares := map[string]int{}
	for r := range o.taken {
		shares[r.Owner]++
	}
	for _, r := range o.jobs {
		for _, n := range shares {
			if !r.callerTx && o.open(r) && n > shares[r.Owner]+2 {
				return false
			}
		}
	}
	return true
}

// String describes the offer for the message of a failure.
func (o *offer) String() string {
	text := fmt.Sprintf("%+v\n", o.claim)
	for _, r := range o.jobs {
		text += fmt.Sprintf("%.8x owner %q queue %s kind %s priority %d failures %d tags %v taken %v open %v\n",
			r.ID[8:], r.Owner, r.Queue, r.Kind, r.Priority, r.Failures, r.Tags, o.taken[r], o.open(r))
	}
	for l, n := range o.capacity {
		text += fmt.Sprintf("left %d of %+v\n", n, l.hold.Hold)
	}
	return text
}
