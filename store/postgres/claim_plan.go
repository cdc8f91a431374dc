package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// errStale means that the holds have changed since the plan began. The next plan starts with the new ones.
var errStale = errors.New("the holds have changed")

// planTries is how often a claim is planned whose picks were taken by concurrent claims.
const planTries = 3

// A claimPlan is one planned claim in progress. It is used where owners share or holds limit, count or look at tags, and it runs in one transaction:
//
// 1. loadCached starts with the remembered holds, weights and lines, and reads what is missing.
// 2. chooseHeads chooses owners by turn, and their lines as heads.
// 3. lockAndRead locks the limits that apply, then reads the holds, the live counts and the first jobs of the heads.
// 4. pick divides the claim among the heads; it reads deeper, and chooses further owners, while that can give more.
// 5. queueTake takes what was picked and pays the rate limits.
//
// Why a limit is never exceeded: all claims behind one limit lock its row, in the same order, before they count live leases, so they run one after
// the other. Step 3 compares the holds that it reads under these locks with those that steps 1 and 2 used, and ends with errStale if they differ. If
// a later scan of the lines meets a limit that is not locked, the plan ends with errStale as well. A hold that is committed before the plan reads is
// therefore always obeyed.
//
// Steps 1 to 4 read without locking jobs. Step 5 takes rows that exist at that moment and skips rows that other claims have locked, so no job is
// claimed twice. If it takes fewer than were picked, saveLearned returns the missed turns and tokens.
type claimPlan struct {
	claimRequest
	planner *claimPlanner
	pipe    *pipeline
	view    claimView
	locked  []store.Hold // the limits whose rows are locked
	heads   planHeads
	left    int // jobs that are still wanted

	held     []tagHeldJob // jobs with a held tag that were met and not set aside yet
	setAside int          // jobs that were set aside
	shares   []lane.Share // what was picked
	keys     []lineKey    // the same, job by job
	taken    claimResult
}

// newPlan returns a plan for a request that has not read anything.
func (p *claimPlanner) newPlan(e claimRequest) *claimPlan {
	return &claimPlan{
		claimRequest: e, planner: p, left: e.Limit,
		view:  claimView{memory: &p.memory, scope: e.scope},
		heads: planHeads{even: e.even, peeked: map[place]bool{}},
	}
}

// A lineKey is the position of one ready job.
type lineKey struct {
	line int64
	lane.Key
}

// A tagHeldJob is a ready job with a held tag. The plan sets it aside until the hold ends.
type tagHeldJob struct {
	lineKey
	tag string
}

// claimPlanned claims by a plan. A single statement (takeTurns) is tried first where no limit can apply. A plan that took nothing although it picked
// jobs is repeated, at most planTries times; a plan that set jobs aside made progress and is repeated without counting.
func (p *claimPlanner) claimPlanned(ctx context.Context, e claimRequest) (taken claimResult, err error) {
	e.Limit = clampLimit(e.Limit)
	if !e.even && e.OwnerSlots == 0 {
		if taken, err = p.takeTurns(ctx, e); err != nil || taken.rows > 0 {
			return taken, err
		}
	}
	for tries := planTries; tries > 0 && ctx.Err() == nil; {
		plan := p.newPlan(e)
		err = p.db.transact(ctx, p.db.work, func(pipe *pipeline) error {
			plan.pipe = pipe
			return plan.run(ctx)
		})
		if err != nil {
			p.turns.Return(plan.shares, plan.view.weights)
		}
		if errors.Is(err, errStale) {
			continue
		}
		if err != nil {
			return claimResult{}, err
		}
		plan.saveLearned(ctx)
		if plan.taken.rows > 0 || len(plan.shares) == 0 && plan.setAside == 0 {
			return plan.taken, nil
		}
		if plan.setAside == 0 { // setting jobs aside is progress
			tries--
		}
	}
	return claimResult{leases: []store.Lease{}}, ctx.Err()
}

// run plans the claim. Its last statements are only queued, so that they travel with COMMIT.
func (p *claimPlan) run(ctx context.Context) error {
	p.taken.leases = []store.Lease{}
	if err := p.loadCached(ctx); err != nil {
		return err
	}
	p.chooseHeads()
	if err := p.lockAndRead(ctx); err != nil {
		return err
	}
	for {
		if err := p.pick(ctx); err != nil {
			return err
		}
		if p.left == 0 || p.setAside >= lane.MaxSetAside {
			break
		}
		more := p.chooseHeads()
		if !more && !p.view.scanned {
			if err := p.rescan(ctx); err != nil {
				return err
			}
			more = p.chooseHeads()
		}
		if !more {
			break
		}
		p.queuePeek()
		if err := p.pipe.flush(ctx); err != nil {
			return err
		}
	}
	p.queueTake()
	return nil
}

// loadCached starts the plan with what is remembered, and reads the rest.
func (p *claimPlan) loadCached(ctx context.Context) error {
	planner, v := p.planner, &p.view
	remembered, known := planner.holds.cached()
	step, trusted := planner.memory.cached(p.scope)
	weights, version, fresh := planner.weights.Cached(time.Now())
	v.holds, v.step, v.weights = remembered, step, weights
	if !fresh {
		v.weights = map[string]float64{}
		planner.read.queueWeights(p.pipe.Batch, v.weights)
	}
	if !known {
		planner.read.queueHolds(p.pipe.Batch, v)
	}
	var err error
	switch {
	case !trusted:
		err = p.scanLines(ctx)
	case !fresh || !known:
		err = p.pipe.flush(ctx)
	}
	if err != nil {
		return err
	}
	if !fresh {
		planner.weights.Set(v.weights, version, time.Now())
	}
	if !known {
		planner.holds.set(v.holds)
	}
	return p.openLines(ctx)
}

// scanLines reads which lines have jobs now.
func (p *claimPlan) scanLines(ctx context.Context) error {
	p.view.scanned = true
	return p.planner.scanLines(p.pipe.Batch, p.scope, func() error { return p.pipe.flush(ctx) })
}

// rescan reads which lines have jobs now. It returns errStale if a limit applies that was not locked.
func (p *claimPlan) rescan(ctx context.Context) error {
	if err := p.scanLines(ctx); err != nil {
		return err
	}
	if err := p.openLines(ctx); err != nil {
		return err
	}
	for _, h := range p.view.limits() {
		if !slices.ContainsFunc(p.locked, func(l store.Hold) bool { return compareHolds(l, h) == 0 }) {
			return errStale
		}
	}
	return nil
}

// openLines determines the open lines in the claim's scope and the held tags.
func (p *claimPlan) openLines(ctx context.Context) error {
	v := &p.view
	if unknown := v.memory.unreadLanes(); len(unknown) > 0 {
		p.planner.read.queueLanes(p.pipe.Batch, unknown, v.memory.addLane)
		if err := p.pipe.flush(ctx); err != nil {
			return err
		}
	}
	v.open, v.kindsVersion = v.memory.openLines(p.scope, v.holds)
	v.tags = slices.Sorted(maps.Keys(lane.NewValves(v.holds, v.now).Tags()))
	return nil
}

// chooseHeads chooses the next heads: of the owners whose turn it is, the lines that were not read yet. It returns false if no head is left.
func (p *claimPlan) chooseHeads() bool {
	h, open := &p.heads, p.view.open
	p.view.memory.mu.Lock() // open changes with the memory
	defer p.view.memory.mu.Unlock()
	owners := open.owners()
	if slots := p.OwnerSlots; h.round > 0 || slots > 0 {
		owners = slices.DeleteFunc(slices.Clone(owners), func(owner string) bool {
			return h.round > 0 && h.allPeeked(open.byOwner[owner]) || slots > 0 && p.Busy[owner] >= slots
		})
	}
	turn, _ := p.planner.turns.Next(owners, h.wanted(p.left))
	h.begin(p.left, len(turn), len(owners))
	for owner := range turn {
		h.addOwner(open.byOwner[owner])
	}
	return len(h.list) > 0
}

// lockAndRead locks the limits that apply to the open lines, then reads the holds, the live counts and the heads. It returns errStale if the holds or
// the declared dependencies differ from those that the plan used.
func (p *claimPlan) lockAndRead(ctx context.Context) error {
	var scope, name, source column
	counted := false
	p.locked = p.view.limits()
	for _, h := range p.locked {
		of, called := h.Scope()
		scope.quote(of)
		name.quote(called)
		source.quote(h.Source)
		counted = counted || h.AtMost > 0
	}
	if scope.text != nil {
		p.pipe.Queue(p.planner.db.sql["set_idle_timeout"])
		p.pipe.Queue(p.planner.db.sql["hold_lock"], arrayArgs([]column{scope, name, source})...)
	}
	remembered, read := p.view.holds, p.planner.read
	read.queueHolds(p.pipe.Batch, &p.view)
	kinds := map[string]string{}
	read.queueKinds(p.pipe.Batch, kinds)
	if counted {
		read.queueLive(p.pipe.Batch, kinds, &p.view.live)
	}
	p.queuePeek()
	if err := p.pipe.flush(ctx); err != nil {
		return err
	}
	declared := p.planner.holds.setAll(p.view.holds, p.view.hash, p.view.memory, kinds)
	if declared != p.view.kindsVersion || !sameRules(remembered, p.view.holds) {
		return errStale
	}
	return nil
}

// pick divides the rest of the claim among the heads, and reads them deeper for as long as that could change the result.
func (p *claimPlan) pick(ctx context.Context) error {
	for h := &p.heads; len(h.list) > 0; {
		valves := p.view.valves(&p.Claim, p.shares)
		shares, deeper := p.planner.turns.pick(h.list, valves, lane.Order{Jobs: p.left, Weights: p.view.weights, Even: p.even})
		p.queueSetAside()
		if !deeper || p.setAside >= lane.MaxSetAside {
			p.left -= lane.Total(shares)
			p.shares = append(p.shares, shares...)
			for i := range h.list {
				for _, key := range h.list[i].Keys[:min(h.list[i].Jobs, len(h.list[i].Keys))] {
					p.keys = append(p.keys, lineKey{h.list[i].Line, key})
				}
			}
			return nil
		}
		if h.depth *= 2; len(p.view.tags) == 0 { // no line gives more than that; with held tags any number of jobs in front may be skipped
			h.depth = min(h.depth, p.left+1)
		}
		p.queuePeek()
		if err := p.pipe.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// queueSetAside queues the statement that moves jobs with a held tag out of the ready lines.
func (p *claimPlan) queueSetAside() {
	if len(p.held) == 0 {
		return
	}
	var line, priority, job, tag column
	for _, a := range p.held {
		line.int(int(a.line))
		priority.int(int(a.Priority))
		job.id(a.Job)
		tag.quote(a.tag)
	}
	p.pipe.Queue(p.planner.db.sql["set_aside"], arrayArgs([]column{line, priority, job, tag})...)
	p.setAside += len(p.held)
	p.held = nil
}

// queueTake queues the statement that takes the picked jobs, and the payment of rate limits. With held tags it takes exactly the jobs that were read,
// because the next ones in line may have a held tag.
func (p *claimPlan) queueTake() {
	if len(p.shares) == 0 {
		return
	}
	sql := p.planner.db.sql
	if len(p.view.tags) > 0 {
		var line, priority, job column
		for _, k := range p.keys {
			line.int(int(k.line))
			priority.int(int(k.Priority))
			job.id(k.Job)
		}
		p.taken.queue(p.pipe.Batch, sql["take_keys"], &p.claimRequest, append(arrayArgs([]column{line, priority, job}), textArray(p.view.tags)))
	} else {
		var line, low, high, jobs column
		for i := range p.shares {
			from, to := p.shares[i].Priorities()
			line.int(int(p.shares[i].Line))
			low.int(int(from))
			high.int(int(to))
			jobs.int(p.shares[i].Jobs)
		}
		p.taken.queue(p.pipe.Batch, sql["take"], &p.claimRequest, arrayArgs([]column{line, low, high, jobs}))
	}
	for _, d := range p.view.spend(p.shares) {
		p.planner.db.queueDeposit(p.pipe.Batch, d, p.view.now)
	}
}

// saveLearned updates the memory after the transaction. Turns and rate-limit tokens of jobs that were picked but taken by concurrent claims are
// returned.
func (p *claimPlan) saveLearned(ctx context.Context) {
	planner, v := p.planner, &p.view
	v.memory.removeEmpty(v.step, p.heads.empty)
	if v.memory.ownerCount(v.open) > 1 || len(v.tags) > 0 || len(v.limits()) > 0 {
		planner.planned.add(p.scope)
	}
	missed := p.missedShares()
	planner.turns.Return(missed, v.weights)
	back := v.spend(missed)
	if len(back) == 0 {
		return
	}
	_ = planner.db.transact(ctx, planner.db.work, func(pipe *pipeline) error { // if this fails, the bucket refills by itself
		for _, d := range back {
			d.Tokens = -d.Tokens
			planner.db.queueDeposit(pipe.Batch, d, v.now)
		}
		return nil
	})
}

// missedShares returns what was picked and not taken.
func (p *claimPlan) missedShares() (missed []lane.Share) {
	had := make(map[int32]int, len(p.taken.perLine))
	maps.Copy(had, p.taken.perLine)
	for _, share := range p.shares {
		n := min(share.Jobs, had[int32(share.Line)])
		had[int32(share.Line)] -= n
		if share.Jobs -= n; share.Jobs > 0 {
			missed = append(missed, share)
		}
	}
	return missed
}
