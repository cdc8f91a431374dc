package sqlite

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A claimPlanner plans claims. It is also all that one claim leaves for the next: which lines had jobs, how much each
// owner has had, the weights of owners, and the lanes of processing jobs.
//
// What it remembers only says where to look for jobs. It never decides whether a job may be taken: take verifies every
// plan in the write transaction.
//
// One claim uses a planner at a time, the one that has the connection of Store.claims, also while the writer runs take
// for it. Other calls may use noteEnqueued and weights at any time.
type claimPlanner struct {
	lanes   *laneCache
	memory  lineMemory
	turns   lane.Turns
	weights lane.Weights
	live    liveCounter

	lastClaimed int // how many jobs the last claim planned to take
}

func newClaimPlanner(known *laneCache) *claimPlanner { return &claimPlanner{lanes: known} }

// planOnReader plans a claim on a reading connection, in one read transaction, so that all of it is read at one moment.
func (p *claimPlanner) planOnReader(s *session, e claimRequest, now int64) (plan claimPlan, err error) {
	if _, err := s.exec("begin_read"); err != nil {
		return claimPlan{}, err
	}
	plan, err = p.plan(p.view(s, e, now), e)
	p.lastClaimed = len(plan.leases)
	if _, ended := s.exec("rollback"); err == nil {
		err = ended
	}
	return plan, err
}

// planOnWriter plans a claim in the write transaction. It neither uses nor changes the line memory, because the
// transaction may still be rolled back.
func (p *claimPlanner) planOnWriter(t *tx, e claimRequest) (plan claimPlan, err error) {
	v := p.view(t.session, e, t.now)
	v.onWriter = true
	return p.plan(v, e)
}

// view returns an empty view for a request on one connection.
func (p *claimPlanner) view(s *session, e claimRequest, now int64) *claimView {
	return &claimView{read: claimReader{s}, now: now, lanes: p.lanes, scope: e.scope, slots: e.OwnerSlots, busy: e.Busy, bytes: e.Bytes}
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
		p.memory.drop(v.scope)
		e.Limit = min(e.Limit, len(plan.leases)) / 2
		writes := v.onWriter
		v = p.view(v.read.session, e, v.now)
		v.onWriter = writes
	}
}

// planOnce plans a claim of e.Limit jobs. If it planned from remembered lines and found fewer jobs than wanted, it
// searches all lines and plans again: memory may delay a job, but a claim that comes back short has looked at
// everything.
func (p *claimPlanner) planOnce(v *claimView, e claimRequest) (plan claimPlan, err error) {
	p.memory.dropOutdated() // before the first read: a job that is enqueued later concerns the next claim
	if err := v.readHolds(); err != nil {
		return plan, err
	}
	remembered, err := p.findLines(v)
	if err != nil || len(v.lines) == 0 && !remembered {
		return plan, err
	}
	if plan, err = p.chooseJobs(v, e); err == nil && remembered && !plan.full && len(plan.leases)+len(plan.setAside) < e.Limit {
		p.undoTurns(&plan)
		p.memory.drop(v.scope) // the remembered lines are not enough: search again
		v.lines = nil
		if _, err = p.findLines(v); err == nil {
			plan, err = p.chooseJobs(v, e)
		}
	}
	return plan, err
}

// findLines finds the non-empty open lines of a view, and reports whether it remembered them.
func (p *claimPlanner) findLines(v *claimView) (remembered bool, err error) {
	if known := p.memory.recall(v); known != nil {
		v.lines, v.open = known.lines, known
		return true, nil
	}
	expected := p.memory.expectLines()
	began := time.Now()
	all, many, err := v.findLines(expected)
	p.memory.nonEmpty = many
	p.memory.drop(v.scope)
	if !v.onWriter && (len(all) > minRememberedLines || len(v.lines) > lane.FewLines && v.singleOwner()) { // also where most lines are held, because walking past them takes long
		v.open = p.memory.keep(v, began)
	}
	return false, err
}

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
	} else if len(v.lines) > lane.FewLines {
		plan.reserve(e.Limit, p.lastClaimed)
		err = v.takeRuns(e.Limit, &plan)
		p.memory.publishUrgent()
	} else {
		err = v.mergeLines(e.Limit, &plan)
	}
	if err != nil {
		return plan, err
	}
	plan.reserve(e.Limit, p.lastClaimed)
	return plan, plan.readShares(v)
}

// hasSeveralPriorities reports whether a claim that is to share evenly finds more than one priority among the owners
// whose turn it is.
func (p *claimPlanner) hasSeveralPriorities(v *claimView, e claimRequest) (bool, error) {
	if !e.even || v.open != nil && v.open.onePriority {
		return false, nil
	}
	first, known := int16(0), false
	turn, _ := p.turns.Next(v.owners(), e.Limit)
	for _, l := range v.linesOf(turn) {
		all, err := v.read.priorities(l.number)
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
	if v.open != nil && len(v.open.owners) == 1 {
		v.open.onePriority = true
	}
	return false, nil
}

// readWeights returns the weights of owners. It reads them at most once a second.
func (p *claimPlanner) readWeights(r claimReader) (map[string]float64, error) {
	weights, version, fresh := p.weights.Cached(time.Now())
	if fresh {
		return weights, nil
	}
	weights, err := r.weights()
	if err == nil {
		p.weights.Set(weights, version, time.Now())
	}
	return weights, err
}

// noteEnqueued tells the planner that these drafts were committed as jobs. It is safe for concurrent use.
func (p *claimPlanner) noteEnqueued(drafts []holdfast.Draft) { p.memory.noteEnqueued(drafts) }
