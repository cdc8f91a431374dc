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

// weightRoom is the room of the records that hold the weights of owners.
const shares = "share"

// A claimPlanner is what claims remember from one to the next. A claim uses it while it has the connection of
// Store.claims, so only one claim uses it at a time; the fields cachedPriority, cacheOutdated and those under mu are
// also used by other calls.
//
// What it remembers only says where to look for jobs. It never decides whether a job may be taken.
type planner struct {
	lanes   *lanes
	turns   lane.Turns
	brought int               // how many jobs the last claim took
	crowds  map[string]*crowd // by scope: the lines that were not empty, remembered where there are many
	many    int               // how many lines were not empty at the last search
	surveys int               // searches for lines since the store was opened
	live    map[attempt]int64 // the lanes of processing jobs, as far as they were needed

	top     atomic.Pointer[int64] // the least urgent of the first priorities that the caches remember; nil: none remembers any
	stirred atomic.Bool           // a job was enqueued that is more urgent than that

	mu      sync.Mutex
	weights map[string]float64
	weighed time.Time
}

// A claimRequest is a claim with what is decided before it is planned.
type errand struct {
	holdfast.Claim
	scope *lane.Scope
	guard bool // this claim shares evenly between priorities, so that none starves
}

// view returns a claimView for the request on one connection.
func (e *errand) view(s *session, now int64, known *lanes) *view {
	return &view{session: s, now: now, lanes: known, scope: e.scope, slots: e.OwnerSlots, busy: e.Busy, bytes: e.Bytes}
}

// plan plans a claim. If the chosen jobs have more bytes than the claim may have, plan repeats with a limit of at most
// half as many jobs, until they fit. Jobs cannot be left out of a finished plan instead: which jobs are chosen depends
// on how many are wanted.
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

// planOnce plans a claim of e.Limit jobs. If it planned from remembered lines and found fewer jobs than wanted, it
// searches all lines and plans again: memory may delay a job, but a claim that comes back short has looked at
// everything.
func (p *planner) lookFor(v *view, e errand) (seen sight, err error) {
	if p.stirred.Swap(false) { // before the first read: a job that is enqueued later concerns the next claim
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
		p.forget(v.scope) // the remembered lines are not enough: search again
		v.lines = nil
		if _, err = p.survey(v); err == nil {
			seen, err = p.sight(v, e)
		}
	}
	return seen, err
}

// findLines finds the non-empty open lines of a view, and reports whether it took them from a cache.
func (p *planner) survey(v *view) (old bool, err error) {
	name := v.scope.Key()
	if known := p.crowds[name]; !v.writes && known.fits(v) {
		v.lines, v.crowd = known.lines, known
		return true, nil
	}
	if p.surveys++; p.surveys%64 == 0 {
		p.many = 0 // search all lines again now and then: there may be few by now
	}
	began := time.Now()
	all, many, err := v.survey(p.many)
	p.many = many
	delete(p.crowds, name)
	if !v.writes && (len(all) > crowded || len(v.lines) > manyLines && v.alone()) { // also where most lines are held, because walking past them takes long
		if p.crowds == nil || len(p.crowds) >= mostCrowds {
			p.crowds = map[string]*crowd{}
		}
		v.crowd = newCrowd(v, began)
		p.crowds[name] = v.crowd
	}
	return false, err
}

// dropCache drops the remembered lines of a scope. They describe the lines after the planned claim, so they are wrong
// if that claim was not taken.
func (p *planner) forget(of *lane.Scope) { delete(p.crowds, of.Key()) }

// undoTurns takes back the turns that a plan counted, because nothing of it is taken.
func (p *planner) undo(seen *sight) {
	if seen.valves != nil {
		p.turns.Undo()
	}
}

// chooseJobs chooses the jobs of a claim from the lines of a view, and reads their facts. There are three ways: in
// turns between owners (divideByTurns), in runs from many lines of one owner (takeRuns), and by merging few lines of
// one owner in exact order (mergeLines).
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
			continue // its rows were read already
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

// reserve allocates memory for the leases at once, by what the last claim took: leases are large.
func (v *sight) reserve(limit, brought int) {
	if brought > 0 && v.leases == nil {
		v.leases = make([]holdfast.Lease, 0, min(limit, brought+brought/8))
	}
}

// hasSeveralPriorities reports whether a claim that is to share evenly finds more than one priority among the owners
// whose turn it is.
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

// needsTurns reports whether the order of keys alone does not decide: several owners share, or a hold lets only some
// jobs through.
func (v *view) fussy() bool {
	capped := v.valves.Caps()
	return len(v.valves.Tags()) > 0 || !v.alone() || capped && slices.ContainsFunc(v.lines, func(l line) bool {
		return v.valves.Capped(l.lane, l.retries())
	})
}

// singleOwner reports whether all lines belong to one owner.
func (v *view) alone() bool {
	return !slices.ContainsFunc(v.lines, func(l line) bool { return l.lane.Owner != v.lines[0].lane.Owner })
}

// divideByTurns divides a claim between owners in fair turns, within what the holds let through. It reads the first
// keys of the lines of the owners whose turn it is and lets lane.Turns pick. If the pick needs keys behind those that
// were read, it reads twice as deep; if these owners have too few jobs, it adds owners. Each pick that is repeated is
// undone first.
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
		depth = e.Limit // the owner with the largest weight may get nearly all
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

// countsLive reports whether a hold in force limits how many jobs are processing, among the lines of the view.
func (v *view) counts() bool {
	return slices.ContainsFunc(v.holds, func(h held) bool { return h.atMost > 0 && h.inForce(v.now) }) &&
		slices.ContainsFunc(v.lines, func(l line) bool { return v.valves.Capped(l.lane, l.retries()) })
}

// valvesWith returns new valves that have counted the processing jobs.
func (v *view) fill(live map[int64]int) *lane.Valves {
	valves := v.newValves()
	for number, jobs := range live {
		if l := v.lane(max(number, -number)); l != nil {
			valves.Live(l, number < 0, jobs)
		}
	}
	return valves
}

// owners returns the owners of the lines.
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

// readLineHeads reads the first keys of the lines of these owners; if the claim shares evenly, the first keys of each
// priority separately.
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

// expireWeights makes the next claim that needs the owners' weights read them again.
func (p *planner) forgetWeights() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weighed = time.Time{}
}

// readWeights returns the weights of owners. It reads them at most once a second. A weight that cannot be read counts
// as absent.
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
