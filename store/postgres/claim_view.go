package postgres

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A claimView is what one plan sees of holds, weights, lines and live leases. A plan begins with what is remembered; claimPlan.lockAndRead then replaces
// the holds by those that it reads under locks, and ends the plan if they differ.
type claimView struct {
	memory  *lineMemory
	scope   *lane.Scope
	now     time.Time
	holds   []store.Hold // in force, in the order of their keys
	hash    string       // of the holds and of the declared dependencies of kinds
	tags    []string     // held tags
	weights map[string]float64
	live    []liveCount
	open    *openLines // open lines in the claim's scope
	step    int        // of the line memory, when it was read
	scanned bool       // the lines were scanned for this plan

	kindsVersion int // lineMemory.kindsVersion that open depends on
}

// limits returns the holds that cap an open line by count or rate, in the order of their keys, which is the lock order of all claims.
func (v *claimView) limits() (limits []store.Hold) {
	for _, h := range v.holds {
		valve := lane.NewValves([]store.Hold{h}, v.now)
		if !valve.Caps() {
			continue
		}
		if v.memory.anyLine(v.open, valve.Capped) {
			limits = append(limits, h)
		}
	}
	return limits
}

// valves returns the holds after what was already picked: rate limits minus the tokens spent, and live counts including the picked jobs.
func (v *claimView) valves(c *store.Claim, picked []lane.Share) *lane.Valves {
	left := slices.Clone(v.holds)
	for _, spent := range v.spend(picked) {
		i := slices.IndexFunc(left, func(h store.Hold) bool { return compareHolds(h, spent.Hold) == 0 })
		rate := *left[i].Rate
		rate.Level += spent.Tokens
		left[i].Rate = &rate
	}
	valves := lane.NewValves(left, v.now)
	for _, l := range v.live {
		valves.Live(l.lane, l.retries, l.jobs)
	}
	busy := maps.Clone(c.Busy)
	if busy == nil {
		busy = map[string]int{}
	}
	for _, s := range picked {
		valves.Live(s.Lane, s.Retries(), s.Jobs)
		busy[s.Lane.Owner] = max(busy[s.Lane.Owner], 0) + s.Jobs
	}
	valves.Bound(c.OwnerSlots, busy)
	return valves
}

// spend returns how many tokens the shares cost, for each rate limit, as negative deposits.
func (v *claimView) spend(shares []lane.Share) []store.Deposit {
	return lane.NewValves(v.holds, v.now).Spend(shares)
}
