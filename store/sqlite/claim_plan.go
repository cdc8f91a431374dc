package sqlite

import (
	"encoding/json"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
	"zombiezen.com/go/sqlite"
)

// shares is the room of the records that say how much more an owner gets than others.
const shares = "share"

// A planner is what claims remember from one to the next. Whoever has the connection of claims has it.
type planner struct {
	lanes   *lanes
	turns   lane.Turns
	brought int               // by the last claim
	crowds  map[string]*crowd // by scope: the lines that were not empty, when all were looked at last and there were many
	many    int               // how many these were
	surveys int               // since the store was opened
	live    map[attempt]int64 // the lanes of jobs in workers' hands, as far as they were asked for

	top     atomic.Pointer[int64] // the least urgent of the lowest heads of all crowds; nil: no heads are remembered
	stirred atomic.Bool           // a job came that is more urgent than this

	mu      sync.Mutex
	weights map[string]float64
	weighed time.Time
}

// An errand is one claim with what is decided before it looks.
type errand struct {
	holdfast.Claim
	scope *lane.Scope
	guard bool // it shares evenly between priorities
}

// view is what the claim may see of lanes and holds, on one connection.
func (e *errand) view(s *session, now int64, known *lanes) *view {
	return &view{session: s, now: now, lanes: known, scope: e.scope, slots: e.OwnerSlots, busy: e.Busy, bytes: e.Bytes}
}

// look finds what a claim would take now. Where that is more than the claim has memory for, it looks for fewer jobs: which ones those are depends on how many
// they are, so that none can be left out afterwards.
func (p *planner) look(v *view, e errand) (seen sight, err error) {
	for {
		if seen, err = p.lookFor(v, e); err != nil || !seen.full {
			return seen, err
		}
		p.undo(&seen)
		p.forget(v.scope)
		e.Limit = min(e.Limit, len(seen.leases)) / 2
		writes := v.writes
		v = e.view(v.session, v.now, p.lanes)
		v.writes = writes
	}
}

// lookFor finds what a claim of so many jobs would take now.
func (p *planner) lookFor(v *view, e errand) (seen sight, err error) {
	if p.stirred.Swap(false) { // before the first read: what comes after it is the next claim's
		clear(p.crowds)
	}
	if err := v.behold(); err != nil {
		return seen, err
	}
	old, err := p.survey(v)
	if err != nil || len(v.lines) == 0 && !old {
		return seen, err
	}
	if seen, err = p.sight(v, e); err == nil && old && !seen.full && len(seen.leases)+len(seen.aside) < e.Limit {
		p.undo(&seen)
		p.forget(v.scope) // what was remembered is not enough: look again
		v.lines = nil
		if _, err = p.survey(v); err == nil {
			seen, err = p.sight(v, e)
		}
	}
	return seen, err
}

// survey finds the lines of a view, and reports whether it did so from memory.
func (p *planner) survey(v *view) (old bool, err error) {
	name := v.scope.Key()
	if known := p.crowds[name]; !v.writes && known.fits(v) {
		v.lines, v.crowd = known.lines, known
		return true, nil
	}
	if p.surveys++; p.surveys%64 == 0 {
		p.many = 0 // look at all of them: they may have become few
	}
	began := time.Now()
	all, many, err := v.survey(p.many)
	p.many = many
	delete(p.crowds, name)
	if !v.writes && (len(all) > crowded || len(v.lines) > manyLines && v.alone()) { // most of them may be held: then it is a long way past them
		if p.crowds == nil || len(p.crowds) >= mostCrowds {
			p.crowds = map[string]*crowd{}
		}
		v.crowd = newCrowd(v, began)
		p.crowds[name] = v.crowd
	}
	return false, err
}

// forget drops the crowd of a scope. Its heads and lines are those after a claim: they are wrong when the claim was not taken.
func (p *planner) forget(of *lane.Scope) { delete(p.crowds, of.Key()) }

// undo forgets that a claim was divided: nothing of it is taken.
func (p *planner) undo(seen *sight) {
	if seen.valves != nil {
		p.turns.Undo()
	}
}

// sight reads what a claim would take from the lines of a view.
func (p *planner) sight(v *view, e errand) (seen sight, err error) {
	seen.holds, seen.edits = v.holds, v.edits
	if len(v.lines) == 0 {
		return seen, nil
	}
	if e.guard, err = p.uneven(v, e); err != nil {
		return seen, err
	}
	if e.guard || v.fussy() {
		err = p.divide(v, e, &seen)
	} else if len(v.lines) > manyLines {
		seen.reserve(e.Limit, p.brought)
		err = v.takeRuns(e.Limit, &seen)
		p.setTop()
	} else {
		err = v.divide(e.Limit, &seen)
	}
	if err != nil {
		return seen, err
	}
	seen.reserve(e.Limit, p.brought)
	for i := range seen.shares {
		if seen.shares[i].row != nil {
			continue // read already
		}
		if err := seen.read(v, &seen.shares[i]); err != nil {
			return seen, err
		}
	}
	seen.shares = slices.DeleteFunc(seen.shares, func(s share) bool { return len(s.row) == 0 })
	if len(seen.shares) > 1 && !seen.sorted {
		seen.sort()
	}
	return seen, nil
}

// reserve makes room for the leases of a claim at once, by what the last claim brought: leases are large.
func (v *sight) reserve(limit, brought int) {
	if brought > 0 && v.leases == nil {
		v.leases = make([]holdfast.Lease, 0, min(limit, brought+brought/8))
	}
}

// uneven reports whether a claim that is to share between priorities finds more than one, among those whose turn it is.
func (p *planner) uneven(v *view, e errand) (bool, error) {
	if !e.guard || v.crowd != nil && v.crowd.even {
		return false, nil
	}
	first, known := int16(0), false
	turn, _ := p.turns.Next(v.owners(), e.Limit)
	for _, l := range v.of(turn) {
		all, err := v.priorities(l)
		if err != nil {
			return false, err
		}
		for _, priority := range all {
			if known && priority != first {
				return true, nil
			}
			first, known = priority, true
		}
	}
	if v.crowd != nil && len(v.crowd.owners) == 1 {
		v.crowd.even = true
	}
	return false, nil
}

// fussy reports whether the order of keys is not all that matters: several owners share, or some hold lets some through.
func (v *view) fussy() bool {
	capped := v.valves.Caps()
	return len(v.valves.Tags()) > 0 || !v.alone() || capped && slices.ContainsFunc(v.lines, func(l line) bool {
		return v.valves.Capped(l.lane, l.retries())
	})
}

// alone reports whether all lines are of one owner.
func (v *view) alone() bool {
	return !slices.ContainsFunc(v.lines, func(l line) bool { return l.lane.Owner != v.lines[0].lane.Owner })
}

// divide lets the owners take turns within what the holds let through.
func (p *planner) divide(v *view, e errand, seen *sight) (err error) {
	if v.counts() {
		if seen.live, err = p.count(v.session); err != nil {
			return err
		}
	}
	order := lane.Order{Jobs: e.Limit, Even: e.guard}
	if order.Weights, err = p.weigh(v.session); err != nil {
		return err
	}
	if v.valves.Caps() {
		room := v.fill(seen.live)
		v.lines, v.crowd = slices.DeleteFunc(slices.Clone(v.lines), func(l line) bool { return room.Room(l.lane, l.retries()) < 1 }), nil
	}
	owners := v.owners()
	asked := e.Limit
	if v.crowd != nil {
		if done, err := p.divideCrowd(v, seen, chosen{p.turns.Choose(owners, spare*asked), 0, order}); done || err != nil {
			return err
		}
	}
	turn, depth := p.turns.Next(owners, asked)
	if len(order.Weights) > 0 {
		depth = e.Limit // the heaviest may get nearly all
	}
	for {
		heads, err := v.heads(turn, depth, e.guard)
		if err != nil {
			return err
		}
		seen.valves = v.fill(seen.live)
		picked, deeper := p.turns.Pick(heads, seen.valves, order)
		if !deeper && (total(picked) >= e.Limit || len(turn) == len(owners)) {
			seen.pick(picked)
			return nil
		}
		p.turns.Undo()
		if deeper {
			depth *= 2
			continue
		}
		asked *= 4
		turn, _ = p.turns.Next(owners, asked)
	}
}

func total(picked []lane.Share) (jobs int) {
	for _, s := range picked {
		jobs += s.Jobs
	}
	return jobs
}

// counts reports whether a hold in force limits how many are in workers' hands, of jobs that could be taken.
func (v *view) counts() bool {
	return slices.ContainsFunc(v.holds, func(h held) bool { return h.atMost > 0 && h.inForce(v.now) }) &&
		slices.ContainsFunc(v.lines, func(l line) bool { return v.valves.Capped(l.lane, l.retries()) })
}

// fill makes valves that know what is in workers' hands.
func (v *view) fill(live map[int64]int) *lane.Valves {
	valves := v.newValves()
	for number, jobs := range live {
		if l := v.lane(max(number, -number)); l != nil {
			valves.Live(l, number < 0, jobs)
		}
	}
	return valves
}

// owners are those whose lines these are.
func (v *view) owners() (names []string) {
	if v.crowd != nil {
		return v.crowd.owners
	}
	met := map[string]bool{}
	for _, l := range v.lines {
		if !met[l.lane.Owner] {
			met[l.lane.Owner] = true
			names = append(names, l.lane.Owner)
		}
	}
	return names
}

// heads reads the beginnings of the lines of those whose turn it is; of every priority apart when they are to share evenly.
func (v *view) heads(turn map[string]bool, depth int, even bool) (heads []lane.Head, err error) {
	for _, l := range v.of(turn) {
		head := lane.Head{Share: lane.Share{Lane: l.lane, Line: l.number}}
		if !even {
			if head.Keys, err = v.peek(l, math.MinInt16, math.MaxInt16, depth); err != nil {
				return nil, err
			}
			head.More = len(head.Keys) == depth
			heads = append(heads, head)
			continue
		}
		priorities, err := v.priorities(l)
		if err != nil {
			return nil, err
		}
		for _, priority := range priorities {
			head.Priority = &priority
			if head.Keys, err = v.peek(l, int64(priority), int64(priority), depth); err != nil {
				return nil, err
			}
			head.More = len(head.Keys) == depth
			heads = append(heads, head)
		}
	}
	return heads, nil
}

// forgetWeights makes the next claim that needs them read the weights of owners again.
func (p *planner) forgetWeights() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weighed = time.Time{}
}

// weigh reads the weights of owners, at most once a second. A weight that cannot be read is none.
func (p *planner) weigh(s *session) (map[string]float64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.weighed.IsZero() && time.Since(p.weighed) < time.Second {
		return p.weights, nil
	}
	p.weights, p.weighed = map[string]float64{}, time.Now()
	return p.weights, s.rows("read_weights", nil, func(st *sqlite.Stmt) error {
		var body struct {
			Weight float64 `json:"weight"`
		}
		if json.Unmarshal([]byte(st.ColumnText(1)), &body) == nil && body.Weight > 0 {
			p.weights[st.ColumnText(0)] = body.Weight
		}
		return nil
	})
}
