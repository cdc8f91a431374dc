package sqlite

import (
	"encoding/json"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// weightRoom is the room of the records that hold the weights of owners.
const weightRoom = "share"

// A claimPlanner is what claims remember from one to the next. A claim uses it while it has the connection of
// Store.claims, so only one claim uses it at a time; the fields cachedPriority, cacheOutdated and those under mu are
// also used by other calls.
//
// What it remembers only says where to look for jobs. It never decides whether a job may be taken.
type claimPlanner struct {
	lanes       *laneCache
	turns       lane.Turns
	lastClaimed int                   // how many jobs the last claim took
	caches      map[string]*lineCache // by scope: the lines that were not empty, remembered where there are many
	nonEmpty    int                   // how many lines were not empty at the last search
	searches    int                   // searches for lines since the store was opened
	liveLanes   map[liveJob]int64     // the lanes of processing jobs, as far as they were needed

	cachedPriority atomic.Pointer[int64] // the least urgent of the first priorities that the caches remember; nil: none remembers any
	cacheOutdated  atomic.Bool           // a job was enqueued that is more urgent than that

	mu            sync.Mutex
	weights       map[string]float64
	weightsReadAt time.Time
}

// A claimRequest is a claim with what is decided before it is planned.
type claimRequest struct {
	store.Claim
	scope *lane.Scope
	even  bool // this claim shares evenly between priorities, so that none starves
}

// view returns a claimView for the request on one connection.
func (e *claimRequest) view(s *session, now int64, known *laneCache) *claimView {
	return &claimView{session: s, now: now, lanes: known, scope: e.scope, slots: e.OwnerSlots, busy: e.Busy, bytes: e.Bytes}
}

// plan plans a claim. If the chosen jobs have more bytes than the claim may have, plan repeats with a limit of at most
// half as many jobs, until they fit. Jobs cannot be left out of a finished plan instead: which jobs are chosen depends
// on how many are wanted.
func (p *claimPlanner) plan(v *claimView, e claimRequest) (plan claimPlan, err error) {
	for {
		if plan, err = p.planOnce(v, e); err != nil || !plan.full {
			return plan, err
		}
		p.undoTurns(&plan)
		p.dropCache(v.scope)
		e.Limit = min(e.Limit, len(plan.leases)) / 2
		writes := v.onWriter
		v = e.view(v.session, v.now, p.lanes)
		v.onWriter = writes
	}
}

// planOnce plans a claim of e.Limit jobs. If it planned from remembered lines and found fewer jobs than wanted, it
// searches all lines and plans again: memory may delay a job, but a claim that comes back short has looked at
// everything.
func (p *claimPlanner) planOnce(v *claimView, e claimRequest) (plan claimPlan, err error) {
	if p.cacheOutdated.Swap(false) { // before the first read: a job that is enqueued later concerns the next claim
		clear(p.caches)
	}
	if err := v.readHolds(); err != nil {
		return plan, err
	}
	old, err := p.findLines(v)
	if err != nil || len(v.lines) == 0 && !old {
		return plan, err
	}
	if plan, err = p.chooseJobs(v, e); err == nil && old && !plan.full && len(plan.leases)+len(plan.setAside) < e.Limit {
		p.undoTurns(&plan)
		p.dropCache(v.scope) // the remembered lines are not enough: search again
		v.lines = nil
		if _, err = p.findLines(v); err == nil {
			plan, err = p.chooseJobs(v, e)
		}
	}
	return plan, err
}

// findLines finds the non-empty open lines of a view, and reports whether it took them from a cache.
func (p *claimPlanner) findLines(v *claimView) (old bool, err error) {
	name := v.scope.Key()
	if known := p.caches[name]; !v.onWriter && known.validFor(v) {
		v.lines, v.cache = known.lines, known
		return true, nil
	}
	if p.searches++; p.searches%64 == 0 {
		p.nonEmpty = 0 // search all lines again now and then: there may be few by now
	}
	began := time.Now()
	all, many, err := v.findLines(p.nonEmpty)
	p.nonEmpty = many
	delete(p.caches, name)
	if !v.onWriter && (len(all) > minCachedLines || len(v.lines) > manyLines && v.singleOwner()) { // also where most lines are held, because walking past them takes long
		if p.caches == nil || len(p.caches) >= maxCaches {
			p.caches = map[string]*lineCache{}
		}
		v.cache = newLineCache(v, began)
		p.caches[name] = v.cache
	}
	return false, err
}

// dropCache drops the remembered lines of a scope. They describe the lines after the planned claim, so they are wrong
// if that claim was not taken.
func (p *claimPlanner) dropCache(of *lane.Scope) { delete(p.caches, of.Key()) }

// undoTurns takes back the turns that a plan counted, because nothing of it is taken.
func (p *claimPlanner) undoTurns(plan *claimPlan) {
	if plan.valves != nil {
		p.turns.Undo()
	}
}

// chooseJobs chooses the jobs of a claim from the lines of a view, and reads their facts. There are three ways: in
// turns between owners (divideByTurns), in runs from many lines of one owner (takeRuns), and by merging few lines of
// one owner in exact order (mergeLines).
func (p *claimPlanner) chooseJobs(v *claimView, e claimRequest) (plan claimPlan, err error) {
	plan.holds, plan.edits = v.holds, v.edits
	if len(v.lines) == 0 {
		return plan, nil
	}
	if e.even, err = p.hasSeveralPriorities(v, e); err != nil {
		return plan, err
	}
	if e.even || v.needsTurns() {
		err = p.divideByTurns(v, e, &plan)
	} else if len(v.lines) > manyLines {
		plan.reserve(e.Limit, p.lastClaimed)
		err = v.takeRuns(e.Limit, &plan)
		p.publishCachedPriority()
	} else {
		err = v.mergeLines(e.Limit, &plan)
	}
	if err != nil {
		return plan, err
	}
	plan.reserve(e.Limit, p.lastClaimed)
	for i := range plan.shares {
		if plan.shares[i].rows != nil {
			continue // its rows were read already
		}
		if err := plan.readShare(v, &plan.shares[i]); err != nil {
			return plan, err
		}
	}
	plan.shares = slices.DeleteFunc(plan.shares, func(s share) bool { return len(s.rows) == 0 })
	if len(plan.shares) > 1 && !plan.sorted {
		plan.sort()
	}
	return plan, nil
}

// reserve allocates memory for the leases at once, by what the last claim took: leases are large.
func (v *claimPlan) reserve(limit, brought int) {
	if brought > 0 && v.leases == nil {
		v.leases = make([]store.Lease, 0, min(limit, brought+brought/8))
	}
}

// hasSeveralPriorities reports whether a claim that is to share evenly finds more than one priority among the owners
// whose turn it is.
func (p *claimPlanner) hasSeveralPriorities(v *claimView, e claimRequest) (bool, error) {
	if !e.even || v.cache != nil && v.cache.onePriority {
		return false, nil
	}
	first, known := int16(0), false
	turn, _ := p.turns.Next(v.owners(), e.Limit)
	for _, l := range v.linesOf(turn) {
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
	if v.cache != nil && len(v.cache.owners) == 1 {
		v.cache.onePriority = true
	}
	return false, nil
}

// needsTurns reports whether the order of keys alone does not decide: several owners share, or a hold lets only some
// jobs through.
func (v *claimView) needsTurns() bool {
	capped := v.valves.Caps()
	return len(v.valves.Tags()) > 0 || !v.singleOwner() || capped && slices.ContainsFunc(v.lines, func(l line) bool {
		return v.valves.Capped(l.lane, l.retries())
	})
}

// singleOwner reports whether all lines belong to one owner.
func (v *claimView) singleOwner() bool {
	return !slices.ContainsFunc(v.lines, func(l line) bool { return l.lane.Owner != v.lines[0].lane.Owner })
}

// divideByTurns divides a claim between owners in fair turns, within what the holds let through. It reads the first
// keys of the lines of the owners whose turn it is and lets lane.Turns pick. If the pick needs keys behind those that
// were read, it reads twice as deep; if these owners have too few jobs, it adds owners. Each pick that is repeated is
// undone first.
func (p *claimPlanner) divideByTurns(v *claimView, e claimRequest, plan *claimPlan) (err error) {
	if v.countsLive() {
		if plan.live, err = p.countLive(v.session); err != nil {
			return err
		}
	}
	order := lane.Order{Jobs: e.Limit, Even: e.even}
	if order.Weights, err = p.readWeights(v.session); err != nil {
		return err
	}
	if v.valves.Caps() {
		room := v.valvesWith(plan.live)
		v.lines, v.cache = slices.DeleteFunc(slices.Clone(v.lines), func(l line) bool { return room.Room(l.lane, l.retries()) < 1 }), nil
	}
	owners := v.owners()
	asked := e.Limit
	if v.cache != nil {
		if done, err := p.divideFromCache(v, plan, turnRequest{p.turns.Choose(owners, spareOwners*asked), 0, order}); done || err != nil {
			return err
		}
	}
	turn, depth := p.turns.Next(owners, asked)
	if len(order.Weights) > 0 {
		depth = e.Limit // the owner with the largest weight may get nearly all
	}
	for {
		heads, err := v.readLineHeads(turn, depth, e.even)
		if err != nil {
			return err
		}
		plan.valves = v.valvesWith(plan.live)
		picked, deeper := p.turns.Pick(heads, plan.valves, order)
		if !deeper && (total(picked) >= e.Limit || len(turn) == len(owners)) {
			plan.addShares(picked)
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
func (v *claimView) countsLive() bool {
	return slices.ContainsFunc(v.holds, func(h holdRow) bool { return h.atMost > 0 && h.inForce(v.now) }) &&
		slices.ContainsFunc(v.lines, func(l line) bool { return v.valves.Capped(l.lane, l.retries()) })
}

// valvesWith returns new valves that have counted the processing jobs.
func (v *claimView) valvesWith(live map[int64]int) *lane.Valves {
	valves := v.newValves()
	for number, jobs := range live {
		if l := v.lane(max(number, -number)); l != nil {
			valves.Live(l, number < 0, jobs)
		}
	}
	return valves
}

// owners returns the owners of the lines.
func (v *claimView) owners() (names []string) {
	if v.cache != nil {
		return v.cache.owners
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
func (v *claimView) readLineHeads(turn map[string]bool, depth int, even bool) (heads []lane.Head, err error) {
	for _, l := range v.linesOf(turn) {
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
func (p *claimPlanner) expireWeights() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weightsReadAt = time.Time{}
}

// readWeights returns the weights of owners. It reads them at most once a second. A weight that cannot be read counts
// as absent.
func (p *claimPlanner) readWeights(s *session) (map[string]float64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.weightsReadAt.IsZero() && time.Since(p.weightsReadAt) < time.Second {
		return p.weights, nil
	}
	p.weights, p.weightsReadAt = map[string]float64{}, time.Now()
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
