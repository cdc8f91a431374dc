package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// errStale says that a claim was planned for other holds than there are by now. The next plan knows them.
var errStale = errors.New("the holds have changed")

const (
	planTries   = 3      // of a claim to whom others were faster
	maxSetAside = 10_000 // jobs that one transaction sets aside
)

// A planning is one planned claim under way: it reads what stands in the way, picks what is to be taken, and takes that.
type claimPlan struct {
	s    *Store
	p    *pipeline
	c    batchClaim
	even bool

	scope *lane.Scope

	now     time.Time
	holds   []holdfast.Hold
	hash    string
	locked  []holdfast.Hold
	tags    []string
	weights map[string]float64
	live    []liveCount
	step    int // of the lines, when they were recalled
	scanned bool

	kindsVersion int // how often kinds had been declared

	open       *view          // all that is open, in the claim's scope
	peeked     map[place]bool // heads that were looked into
	empty      []place
	heads      []lane.Head
	headPlaces [][]place // of each head
	held       []tagHeldJob
	depth      int
	all        bool // the heads are those of every owner who is left
	left       int
	round      int
	factor     float64 // so many times as many owners as else

	shares   []lane.Share
	keys     []lineKey
	setAside int
	taken    claimResult
}

// An inHand is how many jobs of a line workers have in their hands.
type liveCount struct {
	lane    *lane.Lane
	retries bool
	jobs    int
}

// A key3 is where one job waits.
type lineKey struct {
	line int64
	lane.Key
}

// An aside is a job that has to wait behind the hold on its tag.
type tagHeldJob struct {
	lineKey
	tag string
}

// claimPlanned claims where owners share, or holds let some through and not others.
func (s *Store) claimPlanned(ctx context.Context, c holdfast.Claim, batch holdfast.ID, l *claimScan) (taken claimResult, err error) {
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
		if p.setAside == 0 { // or else what stood in front is out of the way, and that is progress
			tries--
		}
	}
	return claimResult{leases: []holdfast.Lease{}}, ctx.Err()
}

// run plans and takes. The last words are queued, to travel with the commit.
func (p *claimPlan) run(ctx context.Context) error {
	p.taken.leases = []holdfast.Lease{}
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

// recall begins with what is remembered, and asks for what is not.
func (p *claimPlan) loadCached(ctx context.Context) error {
	s := p.s
	believed, known := s.holds.cached()
	step, trusted := s.lines.cached(p.scope)
	weights, fresh := s.weights.cached()
	p.holds, p.step, p.weights = believed, step, weights
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

// walk finds out where something waits by now. If a limit stands before it that was not locked, the plan begins anew.
func (p *claimPlan) rescan(ctx context.Context) error {
	p.scanned = true
	if err := p.s.scanLines(p.p.Batch, p.scope, func() error { return p.p.flush(ctx) }); err != nil {
		return err
	}
	if err := p.buildView(ctx); err != nil {
		return err
	}
	for _, h := range p.limits() {
		if !slices.ContainsFunc(p.locked, func(l holdfast.Hold) bool { return compareHolds(l, h) == 0 }) {
			return errStale
		}
	}
	return nil
}

// survey finds out which places are open, in the claim's scope.
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

// choose makes the next heads: of the owners whose turn it is, the lines that were not looked into. There may be none.
func (p *claimPlan) chooseHeads() bool {
	p.s.lines.mu.Lock()
	defer p.s.lines.mu.Unlock()
	owners := p.open.owners()
	if slots := p.c.OwnerSlots; p.round > 0 || slots > 0 {
		owners = slices.DeleteFunc(slices.Clone(owners), func(owner string) bool {
			return p.round > 0 && p.allPeeked(owner) || slots > 0 && p.c.Busy[owner] >= slots
		})
	}
	jobs := float64(p.left<<min(2*p.round, 16)) * max(p.factor, 1) // more owners each round
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

// met finds the head that a place is looked into with, among those from the first on.
func (p *claimPlan) headIndex(first int, at lanePlace) int {
	for i := first; i < len(p.heads) && !p.even; i++ {
		if p.heads[i].Line == int64(at.place.lane) {
			return i
		}
	}
	return -1
}

// seen reports whether all that an owner has was looked into.
func (p *claimPlan) allPeeked(owner string) bool {
	return !slices.ContainsFunc(p.open.byOwner[owner].places, func(at lanePlace) bool { return !p.peeked[p.headPlace(at.place)] })
}

// head is what a place is looked into with: its whole line, but for a claim that shares evenly between priorities.
func (p *claimPlan) headPlace(at place) place {
	if !p.even {
		at.priority = 0
	}
	return at
}

// remember keeps what the claim has shown. Where others were faster, the turns and the tokens of what was not had go back.
func (p *claimPlan) saveLearned(ctx context.Context) {
	s := p.s
	s.lines.removeEmpty(p.step, p.empty)
	if p.s.lines.ownerCount(p.open) > 1 || len(p.tags) > 0 || len(p.limits()) > 0 {
		s.plannedScopes.add(p.scope)
	}
	had := make(map[int32]int, len(p.taken.lines))
	for line, n := range p.taken.lines {
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
	_ = s.transact(ctx, s.work, func(pipe *pipeline) error { // a bucket that loses some fills again
		for _, d := range back {
			d.Tokens = -d.Tokens
			s.queueDeposit(pipe.Batch, d, p.now)
		}
		return nil
	})
}

// starving reports whether jobs of several priorities wait in a scope, so that the last may never have its turn.
func (s *Store) mixedPriorities(ctx context.Context, scope *lane.Scope) (bool, error) {
	if err := s.ensureLines(ctx, scope); err != nil {
		return false, err
	}
	return s.lines.mixedPriorities(scope), nil
}

// trust makes sure that the lines of a scope are known.
func (s *Store) ensureLines(ctx context.Context, scope *lane.Scope) error {
	if _, trusted := s.lines.cached(scope); trusted {
		return nil
	}
	send := &pgx.Batch{}
	send.Queue(s.sql["configure_planner"])
	return s.scanLines(send, scope, func() error { return s.work.SendBatch(ctx, send).Close() })
}
