package postgres

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

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
func (s *Store) takeTurns(ctx context.Context, c store.Claim, batch holdfast.ID, scope *lane.Scope) (taken claimResult, err error) {
	holds, hash, kindsVersion := s.holds.withHash()
	step, trusted := s.lines.cached(scope)
	weights, fresh := s.weights.cached()
	if hash == "" || !trusted || !fresh || len(s.lines.unreadLanes()) > 0 {
		return taken, nil
	}
	open, declared := s.lines.view(scope, holds)
	valves := open.valves
	if declared != kindsVersion || len(valves.Tags()) > 0 || valves.Caps() && s.lines.anyLine(open, valves.Capped) {
		return taken, nil
	}
	for range reachTries {
		factor, try := s.reach.next()
		if !try {
			return taken, nil
		}
		p := &claimPlan{s: s, c: batchClaim{c, batch}, scope: scope, open: open, weights: weights, step: step, left: c.Limit, factor: factor, peeked: map[place]bool{}}
		if !p.chooseHeads() || slices.ContainsFunc(p.heads, func(h lane.Head) bool { return valves.Capped(h.Lane, h.Retries()) }) { // a capped line was added since the check above
			return taken, nil
		}
		taken, err = s.claimOnce(ctx, "take_turns", c, batch, p.takeTurnsArgs(hash))
		if err != nil || taken.planned {
			return taken, err
		}
		if s.reach.learn(taken.rows > 0); taken.rows > 0 {
			p.recordTaken(&taken)
			return taken, nil
		}
		if p.all {
			break
		}
	}
	return taken, nil
}

// recordTaken updates the memory after a claim in one statement. An owner that gave less than its part has no more jobs: its lines that gave nothing
// are empty.
func (p *claimPlan) recordTaken(taken *claimResult) {
	part, had := map[string]int{}, map[string]int{}
	for i := range p.heads {
		h := &p.heads[i]
		n := taken.perLine[int32(h.Line)]
		part[h.Lane.Owner] += h.Jobs
		had[h.Lane.Owner] += n
		h.Keys = h.Keys[:min(n, len(h.Keys))]
	}
	for i := range p.heads {
		if h := &p.heads[i]; len(h.Keys) == 0 && had[h.Lane.Owner] < part[h.Lane.Owner] {
			p.empty = append(p.empty, p.headPlaces[i]...)
		}
	}
	p.s.turns.pick(p.heads, p.open.valves, lane.Order{Jobs: taken.rows, Weights: p.weights})
	p.s.lines.removeEmpty(p.step, p.empty)
	if p.s.lines.ownerCount(p.open) > 1 {
		p.s.plannedScopes.add(p.scope)
	}
}

// takeTurnsArgs returns the parameters of "take_turns": the lines with their owners, what each owner has had and its weight, and how deep each line
// is read. That depth is the largest part of an owner if all owners had enough jobs, plus a quarter.
func (p *claimPlan) takeTurnsArgs(hash string) []any {
	plenty := make([]lane.Key, p.left)
	for i := range p.heads {
		p.heads[i].Keys = plenty
	}
	p.s.turns.preview(p.heads, p.open.valves, lane.Order{Jobs: p.left, Weights: p.weights})
	part, owners := map[string]int{}, map[string]int{}
	most := 0
	for _, h := range p.heads {
		if _, met := owners[h.Lane.Owner]; !met {
			owners[h.Lane.Owner] = len(owners)
		}
		part[h.Lane.Owner] += h.Jobs
		most = max(most, part[h.Lane.Owner])
	}
	var line, owner, had, weight column
	for _, h := range p.heads {
		line.int(int(h.Line))
		owner.int(owners[h.Lane.Owner])
		had.float(p.s.turns.Had(h.Lane.Owner))
		w := 1.0
		if given := p.weights[h.Lane.Owner]; given > 0 {
			w = min(max(given, 1e-6), 1e6) // keeps the division in the statement within range
		}
		weight.float(w)
	}
	depth := min(p.left, most+most/4+1) + 1
	return append(arrayArgs([]column{line, owner, had, weight}), depth, p.left, hash)
}
