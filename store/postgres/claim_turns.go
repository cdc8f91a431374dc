package postgres

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A reaches is to how many owners a claim in one statement has to reach out for as many jobs as it wants. It is learned: too few
// and the statement comes to nothing, too many and each of them has but a few taken.
type ownerReach struct {
	mu     sync.Mutex
	factor float64 // of what Turns would choose
	failed int     // in a row
	wait   int     // so many claims are planned before it is tried again
}

const (
	reachMost  = 16.0
	reachMore  = 1.5   // after too few
	reachLess  = 0.995 // after enough
	reachPause = 16    // claims, at most
	reachTries = 2     // of one claim
)

// next answers with the factor, or that a plan is better now.
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

func (r *ownerReach) learn(enough bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if enough {
		r.factor, r.failed = max(1, r.factor*reachLess), 0
		return
	}
	r.factor = min(r.factor*reachMore, reachMost)
	if r.failed++; r.failed > 2 { // there is little left, or somebody else takes it
		r.wait = min(1<<min(r.failed-3, 10), reachPause)
	}
}

// takeTurns claims in one statement where owners share and nothing else stands in the way, going by what is remembered. When that
// comes to nothing, for whatever reason, it takes a plan.
func (s *Store) takeTurns(ctx context.Context, c holdfast.Claim, batch holdfast.ID, scope *lane.Scope) (taken claimResult, err error) {
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
		if !p.chooseHeads() || slices.ContainsFunc(p.heads, func(h lane.Head) bool { return valves.Capped(h.Lane, h.Retries()) }) { // which came just now
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

// count remembers what a claim in one statement has shown. An owner who had less than its part has given all there was.
func (p *claimPlan) recordTaken(taken *claimResult) {
	part, had := map[string]int{}, map[string]int{}
	for i := range p.heads {
		h := &p.heads[i]
		n := taken.lines[int32(h.Line)]
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

// parts are the parameters of a claim in one statement: the owners with what they have had, and how far they are looked into: what each of
// them would have if all had enough, and a little more.
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
			w = min(max(given, 1e-6), 1e6) // the database does not divide by next to nothing
		}
		weight.float(w)
	}
	depth := min(p.left, most+most/4+1) + 1
	return append(arrayArgs([]column{line, owner, had, weight}), depth, p.left, hash)
}
