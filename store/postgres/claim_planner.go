package postgres

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A claimPlanner chooses how and where a claim takes its jobs. It is also all that one claim leaves for the next: where the last claims ended, which
// lines have jobs, the holds, the weights of owners and how much each owner has had.
//
// What it remembers only says where to look for jobs. It never decides whether a job may be taken: a statement takes only rows that exist at that
// moment, under their locks, so no job is claimed twice; and a plan is verified before anything is taken (see claimPlan).
//
// All methods are safe for concurrent use, and so is each part, which has a lock of its own. No part calls another one while it holds its lock, with two
// exceptions that are never reversed: holdCache.setAll uses the lineMemory, and claimPlan.chooseHeads uses the turns under the lock of the lineMemory.
type claimPlanner struct {
	db   *database
	read claimReader

	marks   marks
	memory  lineMemory
	holds   holdCache
	weights lane.Weights
	turns   ownerTurns
	reach   ownerReach

	planned   scopeSet     // scopes whose claims need a plan
	wide      scopeSet     // scopes with more than lane.FewLines lanes
	multiLine atomic.Int32 // this many further claims expect jobs in more than one line
}

func newClaimPlanner(db *database) *claimPlanner {
	return &claimPlanner{db: db, read: claimReader{db}}
}

// noteEnqueued tells the planner that these entries were committed as jobs.
func (p *claimPlanner) noteEnqueued(entries []entry) {
	p.marks.lower(slices.MinFunc(entries, func(a, b entry) int { return bytes.Compare(a.ID[:], b.ID[:]) }).ID)
	p.memory.addEntries(entries)
}

// noteCallerTx tells the planner that these entries become jobs when a caller's transaction commits.
func (p *claimPlanner) noteCallerTx(entries []entry) { p.memory.addCallerPlaces(entries) }

// noteJobs tells the planner that these jobs are claimable again. No later claim of this process starts behind them.
func (p *claimPlanner) noteJobs(jobs ...holdfast.ID) { p.marks.lower(jobs...) }

// noteUnknownJobs tells the planner that jobs whose ids are not known are claimable.
func (p *claimPlanner) noteUnknownJobs() { p.marks.clear() }

// notePlaces tells the planner where jobs have become claimable.
func (p *claimPlanner) notePlaces(places []place) { p.memory.add(places...) }

// A claimTry is one try of a claim.
type claimTry struct {
	claimRequest
	scan *markScan
	all  bool // it must read everything, without marks and remembered lines

	narrowed bool // it read only lines that the planner remembers
	planned  bool // it was planned
	tookRuns bool // it took runs (see takeRuns)
}

// claim claims jobs for a request. It returns their leases, and jobs that the caller must release because they exceed the byte limit of the claim.
//
// A claim may start from what the planner remembers: marks, or the lines that are not empty. The memory can miss jobs of other processes, so a claim
// that used it and returns fewer jobs than its limit is tried a second time without it. So memory may delay a job, but a claim that comes back short
// has looked at everything.
func (p *claimPlanner) claim(ctx context.Context, e claimRequest) (leases []store.Lease, excess []store.Settlement, err error) {
	l := &claimTry{claimRequest: e, scan: p.marks.beginScan(false)}
	taken, err := p.try(ctx, l)
	leases = taken.leases
	if err != nil || !l.scan.marked && !l.narrowed || l.planned || len(leases) >= clampLimit(e.Limit) || len(taken.excess) > 0 {
		return leases, taken.excess, err
	}
	e.even = false
	e.Limit, e.Start = e.Limit-len(leases), max(0, e.Start-len(leases))
	if e.Bytes > 0 {
		e.Bytes = max(1, e.Bytes-taken.bytes)
	}
	rest, err := p.try(ctx, &claimTry{claimRequest: e, scan: p.marks.beginScan(true), all: true})
	if err != nil && len(leases) > 0 { // jobs that were claimed must be returned
		return leases, rest.excess, nil
	}
	return append(leases, rest.leases...), rest.excess, err
}

// try claims one batch and sets the marks. The batch id is chosen here: if the answer of the database is lost, the planner finds the batch by its id
// and returns it instead of claiming again.
func (p *claimPlanner) try(ctx context.Context, l *claimTry) (taken claimResult, err error) {
	l.batch = holdfast.NewID()
	lost := false
	err = p.db.withRetries(ctx, "claim", true, func(ctx context.Context) (err error) {
		if lost { // the claim may have committed: look for its batch
			if taken.leases, err = p.recoverClaim(ctx, l.batch); err != nil || len(taken.leases) > 0 {
				return err
			}
		}
		taken, err = p.takeBatch(ctx, l)
		if lost && (isDuplicate(err) || err == nil && len(taken.leases) == 0) { // the first attempt committed in the meantime
			taken.leases, err = p.recoverClaim(ctx, l.batch)
		}
		lost = lost || err != nil && mayHaveCommitted(err)
		return err
	})
	switch {
	case l.planned: // a plan does not use marks
		p.marks.dropScan(l.scan)
	case l.tookRuns:
		p.marks.endHeadScan(l.scan, taken.last)
	default:
		p.marks.endScan(l.scan, taken.last, err == nil && taken.rows == clampLimit(l.Limit))
	}
	return taken, err
}

// multiLineClaims is how many claims skip "claim_lane" after jobs were seen in several lines: a round trip with the single-line statement would take
// nothing.
const multiLineClaims = 8

// takeBatch takes one batch by the cheapest way that is correct: a plan if one is needed, else runs if many lines of one owner have jobs, else the
// statement for a single open line, else the statement for several lines.
//
// If jobs are ready but nothing was taken, because concurrent claims hold the first rows of every line, the last try takes an equal share of every
// line. A line that others are claiming from can then not hide the other lines.
func (p *claimPlanner) takeBatch(ctx context.Context, l *claimTry) (taken claimResult, err error) {
	l.planned = l.OwnerSlots > 0 || p.planned.has(l.scope)
	if !l.planned && l.even {
		l.planned, err = p.mixedPriorities(ctx, l.scope)
	}
	if err != nil {
		return taken, err
	}
	if l.planned {
		return p.claimPlanned(ctx, l.claimRequest)
	}
	if !l.all && p.wide.has(l.scope) {
		if taken, done, err := p.takeRuns(ctx, l); done || err != nil {
			return taken, err
		}
	}
	known, err := p.knownLines(ctx, l)
	if err != nil {
		return taken, err
	}
	form := lanesForm(l.scope, known)
	statements := []string{"claim_lane", "claim", "claim"}
	if p.multiLine.Load() > 0 {
		statements = statements[1:]
	}
	for n, statement := range statements {
		even := n == len(statements)-1
		args := append([]any{cleanText(textArray(l.scope.Queues)), clampLimit(l.Limit), even}, l.scan.args...)
		args = append(args, cleanText(textArray(l.scope.Kinds)), intArray(known))
		taken, err = p.takeOnce(ctx, statement+form, &l.claimRequest, args)
		p.learnLines(statement, l.scope, &taken)
		if err != nil || len(taken.leases) > 0 || !taken.more && !taken.planned {
			return taken, err
		}
		if taken.planned {
			l.planned = true
			p.planned.add(l.scope)
			return p.claimPlanned(ctx, l.claimRequest)
		}
	}
	return taken, nil
}

// maxSearchedKinds is up to how many kinds a claim searches one by one.
const maxSearchedKinds = 16

// lanesForm names the form of the claim statements that finds the lanes of a scope, or of the known lines.
func lanesForm(scope *lane.Scope, known []int32) string {
	switch queues, kinds := len(scope.Queues), len(scope.Kinds); {
	case len(known) > 0:
		return " of lines"
	case queues > 0 && kinds > 0 && kinds <= maxSearchedKinds:
		return " of kinds"
	default:
		return " of queues"
	}
}

// learnLines remembers whether a claim of this scope has many lanes, and whether jobs are in more than one line.
func (p *claimPlanner) learnLines(statement string, scope *lane.Scope, taken *claimResult) {
	if taken.lanes > lane.FewLines {
		p.wide.add(scope)
	}
	if len(taken.perLine) > 1 || statement == "claim_lane" && taken.more {
		p.multiLine.Store(multiLineClaims)
	} else if statement == "claim" {
		p.multiLine.Add(-1)
	}
}

// maxKnownLines is the maximum number of lines in the parameter of a statement.
const maxKnownLines = 1000

// knownLines returns the lines that a claim has to read; empty for all of them.
//
// Two hundred kinds in one queue are two hundred lanes, most of them empty. A claim that searches each of them pays for all. So for a claim with more
// than lane.FewLines lanes the planner remembers which lines are not empty, as it does for planned claims, and the statement reads only these. Jobs
// that another process puts into an empty lane are found when the memory is stale, or when a claim comes back short.
func (p *claimPlanner) knownLines(ctx context.Context, l *claimTry) ([]int32, error) {
	if l.all || !p.wide.has(l.scope) {
		return nil, nil
	}
	if err := p.ensureLines(ctx, l.scope); err != nil {
		return nil, err
	}
	if err := p.ensureLanes(ctx); err != nil {
		return nil, err
	}
	known := p.memory.inScope(l.scope)
	if len(known) > maxKnownLines {
		known = nil
	}
	l.narrowed = len(known) > 0
	return known, nil
}

// mixedPriorities reports whether jobs of several priorities are ready in a scope, so that the least urgent could starve.
func (p *claimPlanner) mixedPriorities(ctx context.Context, scope *lane.Scope) (bool, error) {
	if err := p.ensureLines(ctx, scope); err != nil {
		return false, err
	}
	return p.memory.mixedPriorities(scope), nil
}

// ensureLines makes sure that the lines of a scope are known, and scans them if not.
func (p *claimPlanner) ensureLines(ctx context.Context, scope *lane.Scope) error {
	if _, trusted := p.memory.cached(scope); trusted {
		return nil
	}
	send := p.db.newBatch()
	return p.scanLines(send, scope, func() error { return p.db.work.send(ctx, send) })
}

// ensureLanes reads the rows of unknown lanes that have ready jobs.
func (p *claimPlanner) ensureLanes(ctx context.Context) error {
	unknown := p.memory.unreadLanes()
	if len(unknown) == 0 {
		return nil
	}
	send := p.db.newBatch()
	p.read.queueLanes(send, unknown, p.memory.addLane)
	return p.db.work.send(ctx, send)
}

// scanLines finds all places with ready jobs in a scope, and perhaps some of other scopes. It also remembers the first job of each place, for runs.
// send must send the batch.
func (p *claimPlanner) scanLines(b *pgx.Batch, scope *lane.Scope, send func() error) error {
	step := p.memory.beginScan()
	began := time.Now()
	var found []place
	heads := map[place]holdfast.ID{}
	scan := p.marks.beginHeadScan()
	p.read.queueLines(b, scope, func(at place, first holdfast.ID) {
		found = append(found, at)
		heads[at] = previousID(first)
	})
	if err := send(); err != nil {
		p.marks.dropScan(scan)
		return err
	}
	p.marks.endHeadScan(scan, heads)
	p.memory.replaceScope(scope, began, step, found)
	return nil
}
