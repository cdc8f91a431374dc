package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// errStale means that the holds have changed since the plan began. The next plan starts with the new ones.
var errStale = errors.New("the holds have changed")

const (
	planTries   = 3      // attempts of a claim whose picks were taken by concurrent claims
	maxSetAside = 10_000 // maximum number of jobs that one transaction sets aside
)

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
	s    *Store
	p    *pipeline
	c    batchClaim
	even bool

	scope *lane.Scope

	now     time.Time
	holds   []store.Hold
	hash    string
	locked  []store.Hold
	tags    []string
	weights map[string]float64
	live    []liveCount
	step    int // of the line memory, when it was read
	scanned bool

	kindsVersion int // lineMemory.kindsVersion that the view depends on

	open       *view          // open places in the claim's scope
	peeked     map[place]bool // heads that were read, see headPlace
	empty      []place
	heads      []lane.Head
	headPlaces [][]place // the places that each head covers
	held       []tagHeldJob
	depth      int
	all        bool // the heads are those of all remaining owners
	left       int
	round      int
	factor     float64 // multiple of the owners that lane.Turns chooses; see ownerReach

	shares   []lane.Share
	keys     []lineKey
	setAside int
	taken    claimResult
}

// A liveCount is the number of jobs of a line that are processing.
type liveCount struct {
	lane    *lane.Lane
	retries bool
	jobs    int
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
func (s *Store) claimPlanned(ctx context.Context, c store.Claim, batch holdfast.ID, l *claimScan) (taken claimResult, err error) {
	c.Limit = clampLimit(c.Limit)
	if !l.even && c.OwnerSlots == 0 {
		if taken, err = s.takeTurns(ctx, c, batch, l.scope); err != nil || taken.rows > 0 {
			return taken, err
		}
	}
	for tries := planTries; tries > 0 && ctx.Err() == nil; {
		p := &claimPlan{s: s, c: batchClaim{c, batch}, scope: l.scope, even: l.even, left: c.Limit, peeked: map[place]bool{}}
		err = s.transact(ctx, s.work, func(pipe *pipeline) error {
			p.p = pipe
			return p.run(ctx)
		})
		if err != nil {
			s.turns.Return(p.shares, p.weights)
		}
		if errors.Is(err, errStale) {
			continue
		}
		if err != nil {
			return claimResult{}, err
		}
		p.saveLearned(ctx)
		if p.taken.rows > 0 || len(p.shares) == 0 && p.setAside == 0 {
			return p.taken, nil
		}
		if p.setAside == 0 { // setting jobs aside is progress
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
		if p.left == 0 || p.setAside >= maxSetAside {
			break
		}
		more := p.chooseHeads()
		if !more && !p.scanned {
			if err := p.rescan(ctx); err != nil {
				return err
			}
			more = p.chooseHeads()
		}
		if !more {
			break
		}
		p.queuePeek()
		if err := p.p.flush(ctx); err != nil {
			return err
		}
	}
	p.queueTake()
	return nil
}

// loadCached starts the plan with what is remembered, and reads the rest.
func (p *claimPlan) loadCached(ctx context.Context) error {
	s := p.s
	remembered, known := s.holds.cached()
	step, trusted := s.lines.cached(p.scope)
	weights, fresh := s.weights.cached()
	p.holds, p.step, p.weights = remembered, step, weights
	if !fresh {
		p.weights = map[string]float64{}
		s.readWeights(p.p.Batch, p.weights)
	}
	if !known {
		p.queueReadHolds()
	}
	var err error
	switch {
	case !trusted:
		p.scanned = true
		err = s.scanLines(p.p.Batch, p.scope, func() error { return p.p.flush(ctx) })
	case !fresh || !known:
		err = p.p.flush(ctx)
	}
	if err != nil {
		return err
	}
	if !fresh {
		s.weights.set(p.weights)
	}
	if !known {
		s.holds.set(p.holds)
	}
	return p.buildView(ctx)
}

// rescan reads which lines have jobs now. It returns errStale if a limit applies that was not locked.
func (p *claimPlan) rescan(ctx context.Context) error {
	p.scanned = true
	if err := p.s.scanLines(p.p.Batch, p.scope, func() error { return p.p.flush(ctx) }); err != nil {
		return err
	}
	if err := p.buildView(ctx); err != nil {
		return err
	}
	for _, h := range p.limits() {
		if !slices.ContainsFunc(p.locked, func(l store.Hold) bool { return compareHolds(l, h) == 0 }) {
			return errStale
		}
	}
	return nil
}

// buildView determines the open places in the claim's scope and the held tags.
func (p *claimPlan) buildView(ctx context.Context) error {
	if unknown := p.s.lines.unreadLanes(); len(unknown) > 0 {
		p.s.readLanes(p.p.Batch, unknown)
		if err := p.p.flush(ctx); err != nil {
			return err
		}
	}
	p.open, p.kindsVersion = p.s.lines.view(p.scope, p.holds)
	p.tags = slices.Sorted(maps.Keys(lane.NewValves(p.holds, p.now).Tags()))
	return nil
}

// chooseHeads chooses the next heads: of the owners whose turn it is, the lines that were not read yet. Each round considers more owners. It returns
// false if no head is left.
func (p *claimPlan) chooseHeads() bool {
	p.s.lines.mu.Lock()
	defer p.s.lines.mu.Unlock()
	owners := p.open.owners()
	if slots := p.c.OwnerSlots; p.round > 0 || slots > 0 {
		owners = slices.DeleteFunc(slices.Clone(owners), func(owner string) bool {
			return p.round > 0 && p.allPeeked(owner) || slots > 0 && p.c.Busy[owner] >= slots
		})
	}
	jobs := float64(p.left<<min(2*p.round, 16)) * max(p.factor, 1) // four times as many owners each round
	turn, _ := p.s.turns.Next(owners, int(min(jobs, 1<<20)))
	p.round++
	p.heads, p.headPlaces = p.heads[:0], p.headPlaces[:0]
	for owner := range turn {
		first := len(p.heads)
		for _, at := range p.open.byOwner[owner].places {
			switch i := p.headIndex(first, at); {
			case i >= 0:
				p.headPlaces[i] = append(p.headPlaces[i], at.place)
			case !p.peeked[p.headPlace(at.place)]:
				p.peeked[p.headPlace(at.place)] = true
				head := lane.Head{Share: lane.Share{Lane: at.lane, Line: int64(at.place.lane)}}
				if p.even {
					head.Priority = &at.place.priority
				}
				p.heads, p.headPlaces = append(p.heads, head), append(p.headPlaces, []place{at.place})
			}
		}
	}
	p.depth, p.all = p.left/max(len(turn), 1)+1, len(turn) == len(owners)
	return len(p.heads) > 0
}

// headIndex returns the head, from index first on, that a place is read with, or -1.
func (p *claimPlan) headIndex(first int, at lanePlace) int {
	for i := first; i < len(p.heads) && !p.even; i++ {
		if p.heads[i].Line == int64(at.place.lane) {
			return i
		}
	}
	return -1
}

// allPeeked reports whether all places of an owner were read.
func (p *claimPlan) allPeeked(owner string) bool {
	return !slices.ContainsFunc(p.open.byOwner[owner].places, func(at lanePlace) bool { return !p.peeked[p.headPlace(at.place)] })
}

// headPlace returns what a place is read with: its whole line, or only its priority in a claim that shares evenly between priorities.
func (p *claimPlan) headPlace(at place) place {
	if !p.even {
		at.priority = 0
	}
	return at
}

// saveLearned updates the memory after the transaction. Turns and rate-limit tokens of jobs that were picked but taken by concurrent claims are
// returned.
func (p *claimPlan) saveLearned(ctx context.Context) {
	s := p.s
	s.lines.removeEmpty(p.step, p.empty)
	if p.s.lines.ownerCount(p.open) > 1 || len(p.tags) > 0 || len(p.limits()) > 0 {
		s.plannedScopes.add(p.scope)
	}
	had := make(map[int32]int, len(p.taken.perLine))
	for line, n := range p.taken.perLine {
		had[line] = n
	}
	var missed []lane.Share
	for _, share := range p.shares {
		n := min(share.Jobs, had[int32(share.Line)])
		had[int32(share.Line)] -= n
		if share.Jobs -= n; share.Jobs > 0 {
			missed = append(missed, share)
		}
	}
	s.turns.Return(missed, p.weights)
	back := lane.NewValves(p.holds, p.now).Spend(missed)
	if len(back) == 0 {
		return
	}
	_ = s.transact(ctx, s.work, func(pipe *pipeline) error { // if this fails, the bucket refills by itself
		for _, d := range back {
			d.Tokens = -d.Tokens
			s.queueDeposit(pipe.Batch, d, p.now)
		}
		return nil
	})
}

// mixedPriorities reports whether jobs of several priorities are ready in a scope, so that the least urgent could starve.
func (s *Store) mixedPriorities(ctx context.Context, scope *lane.Scope) (bool, error) {
	if err := s.ensureLines(ctx, scope); err != nil {
		return false, err
	}
	return s.lines.mixedPriorities(scope), nil
}

// ensureLines makes sure that the lines of a scope are known, and scans them if not.
func (s *Store) ensureLines(ctx context.Context, scope *lane.Scope) error {
	if _, trusted := s.lines.cached(scope); trusted {
		return nil
	}
	send := &pgx.Batch{}
	send.Queue(s.sql["configure_planner"])
	return s.scanLines(send, scope, func() error { return s.work.SendBatch(ctx, send).Close() })
}
