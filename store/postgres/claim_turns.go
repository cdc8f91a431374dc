package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// An ownerTurns is lane.Turns with a lock around a pick and its undo: a pick that has to be repeated with deeper heads must not count.
type ownerTurns struct {
	lane.Turns
	mu sync.Mutex
}

// pick divides a claim among the heads. If deeper is true the pick was undone, and has to be repeated with deeper heads.
func (t *ownerTurns) pick(heads []lane.Head, v *lane.Valves, o lane.Order) (shares []lane.Share, deeper bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	shares, deeper = t.Pick(heads, v, o)
	if deeper {
		t.Undo()
	}
	return shares, deeper
}

// preview picks without counting: it sets the jobs of each head.
func (t *ownerTurns) preview(heads []lane.Head, v *lane.Valves, o lane.Order) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Pick(heads, v, o)
	t.Undo()
}

// An ownerReach is a learned factor: from how many owners, in multiples of what lane.Turns would choose, a claim in one statement has to read to find
// as many jobs as it wants. With too few owners the statement takes nothing; with too many it reads more than it needs.
type ownerReach struct {
	mu     sync.Mutex
	factor float64 // multiple of what lane.Turns chooses
	failed int     // consecutive claims that took nothing
	wait   int     // this many claims are planned before the next attempt
}

const (
	reachMost  = 16.0
	reachMore  = 1.5   // growth after a claim that took nothing
	reachLess  = 0.995 // shrinkage after a claim that took jobs
	reachPause = 16    // maximum of wait, in claims
	reachTries = 2     // attempts of one claim
)

// next returns the factor, or false if this claim should be planned.
func (r *ownerReach) next() (factor float64, try bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wait > 0 {
		r.wait--
		return 0, false
	}
	r.factor = max(r.factor, 1)
	return r.factor, true
}

// learn adapts the factor to whether a claim found enough jobs.
func (r *ownerReach) learn(enough bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if enough {
		r.factor, r.failed = max(1, r.factor*reachLess), 0
		return
	}
	r.factor = min(r.factor*reachMore, reachMost)
	if r.failed++; r.failed > 2 { // few jobs are left, or other processes are faster
		r.wait = min(1<<min(r.failed-3, 10), reachPause)
	}
}

// takeTurns claims in one statement where several owners share and no hold limits, counts or looks at tags. It uses the remembered holds, lines and
// weights. The statement recomputes the hash of the holds and takes nothing if it differs. If takeTurns takes nothing, for whatever reason, the
// caller makes a full plan.
func (p *claimPlanner) takeTurns(ctx context.Context, e claimRequest) (taken claimResult, err error) {
	holds, hash, kindsVersion := p.holds.withHash()
	step, trusted := p.memory.cached(e.scope)
	weights, _, fresh := p.weights.Cached(time.Now())
	if hash == "" || !trusted || !fresh || len(p.memory.unreadLanes()) > 0 {
		return taken, nil
	}
	open, declared := p.memory.openLines(e.scope, holds)
	if declared != kindsVersion || p.memory.selective(open) {
		return taken, nil
	}
	for range reachTries {
		factor, try := p.reach.next()
		if !try {
			return taken, nil
		}
		plan := p.newPlan(e)
		plan.view.open, plan.view.weights, plan.view.step, plan.heads.factor = open, weights, step, factor
		if !plan.chooseHeads() || slices.ContainsFunc(plan.heads.list, func(h lane.Head) bool { return open.valves.Capped(h.Lane, h.Retries()) }) { // a capped line was added since the check above
			return taken, nil
		}
		taken, err = p.takeOnce(ctx, "take_turns", &plan.claimRequest, plan.takeTurnsArgs(hash))
		if err != nil || taken.planned {
			return taken, err
		}
		if p.reach.learn(taken.rows > 0); taken.rows > 0 {
			plan.recordTaken(&taken)
			return taken, nil
		}
		if plan.heads.all {
			break
		}
	}
	return taken, nil
}

// recordTaken updates the memory after a claim in one statement. An owner that gave less than its part has no more jobs: its lines that gave nothing
// are empty.
func (p *claimPlan) recordTaken(taken *claimResult) {
	part, had := map[string]int{}, map[string]int{}
	heads := p.heads.list
	for i := range heads {
		h := &heads[i]
		n := taken.perLine[int32(h.Line)]
		part[h.Lane.Owner] += h.Jobs
		had[h.Lane.Owner] += n
		h.Keys = h.Keys[:min(n, len(h.Keys))]
	}
	for i := range heads {
		if h := &heads[i]; len(h.Keys) == 0 && had[h.Lane.Owner] < part[h.Lane.Owner] {
			p.heads.empty = append(p.heads.empty, p.heads.places[i]...)
		}
	}
	p.planner.turns.pick(heads, p.view.open.valves, lane.Order{Jobs: taken.rows, Weights: p.view.weights})
	p.view.memory.removeEmpty(p.view.step, p.heads.empty)
	if p.view.memory.ownerCount(p.view.open) > 1 {
		p.planner.planned.add(p.scope)
	}
}

// takeTurnsArgs returns the parameters of "take_turns": the lines with their owners, what each owner has had and its weight, and how deep each line
// is read. That depth is the largest part of an owner if all owners had enough jobs, plus a quarter.
func (p *claimPlan) takeTurnsArgs(hash string) []any {
	plenty := make([]lane.Key, p.left)
	heads := p.heads.list
	for i := range heads {
		heads[i].Keys = plenty
	}
	p.planner.turns.preview(heads, p.view.open.valves, lane.Order{Jobs: p.left, Weights: p.view.weights})
	part, owners := map[string]int{}, map[string]int{}
	most := 0
	for _, h := range heads {
		if _, met := owners[h.Lane.Owner]; !met {
			owners[h.Lane.Owner] = len(owners)
		}
		part[h.Lane.Owner] += h.Jobs
		most = max(most, part[h.Lane.Owner])
	}
	var line, owner, had, weight column
	for _, h := range heads {
		line.int(int(h.Line))
		owner.int(owners[h.Lane.Owner])
		had.float(p.planner.turns.Had(h.Lane.Owner))
		weight.float(min(max(lane.WeightOf(p.view.weights, h.Lane.Owner), 1e-6), 1e6)) // keeps the division in the statement within range
	}
	depth := min(p.left, most+most/4+1) + 1
	return append(arrayArgs([]column{line, owner, had, weight}), depth, p.left, hash)
}
