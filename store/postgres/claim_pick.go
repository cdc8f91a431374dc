package postgres

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// An ownerTurns is lane.Turns with a lock around a pick and its undo: a pick that has to be repeated with deeper heads must not count.
type ownerTurns struct {
	lane.Turns
	mu sync.Mutex
}

// pick divides a claim among the heads. If deeper is true the pick was undone, and has to be repeated with deeper heads.
func (t *ownerTurns) pick(heads []lane.Head, v *lane.Valves, o lane.Order) (shares []lane.Share, deeper bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	shares, deeper = t.Pick(heads, v, o)
	if deeper {
		t.Undo()
	}
	return shares, deeper
}

// preview picks without counting: it sets the jobs of each head.
func (t *ownerTurns) preview(heads []lane.Head, v *lane.Valves, o lane.Order) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Pick(heads, v, o)
	t.Undo()
}

// lockAndRead locks the limits that apply to the open lines, then reads the holds, the live counts and the heads. It returns errStale if the holds or
// the declared dependencies differ from those that the plan used.
func (p *claimPlan) lockAndRead(ctx context.Context) error {
	var scope, name, source column
	counted := false
	p.locked = p.limits()
	for _, h := range p.locked {
		of, called := h.Scope()
		scope.quote(of)
		name.quote(called)
		source.quote(h.Source)
		counted = counted || h.AtMost > 0
	}
	if scope.text != nil {
		p.p.Queue(p.s.sql["set_idle_timeout"])
		p.p.Queue(p.s.sql["hold_lock"], arrayArgs([]column{scope, name, source})...)
	}
	remembered := p.holds
	p.queueReadHolds()
	kinds := map[string]string{}
	var kind, dependency string
	p.p.queueRows(p.s.sql["kind_read"], nil, []any{&kind, &dependency}, func() error { kinds[kind] = dependency; return nil })
	if counted {
		p.queueCountLive(kinds)
	}
	p.queuePeek()
	if err := p.p.flush(ctx); err != nil {
		return err
	}
	if declared := p.s.holds.setAll(p.holds, p.hash, &p.s.lines, kinds); declared != p.kindsVersion || !sameRules(remembered, p.holds) {
		return errStale
	}
	return nil
}

// limits returns the holds that cap an open line by count or rate, in the order of their keys, which is the lock order of all claims.
func (p *claimPlan) limits() (limits []store.Hold) {
	for _, h := range p.holds {
		valve := lane.NewValves([]store.Hold{h}, p.now)
		if !valve.Caps() {
			continue
		}
		if p.s.lines.anyLine(p.open, valve.Capped) {
			limits = append(limits, h)
		}
	}
	return limits
}

// queueReadHolds queues the query for the holds in force, in the order of their keys.
func (p *claimPlan) queueReadHolds() {
	p.p.Queue(p.s.sql["hold_read"]).Query(func(rows pgx.Rows) error {
		p.holds = nil
		var scope, name, source pgtype.Text
		var retries pgtype.Bool
		var most pgtype.Int4
		var perSecond, burst, level pgtype.Float8
		_, err := pgx.ForEachRow(rows, []any{&p.now, &p.hash, &scope, &name, &source, &retries, &most, &perSecond, &burst, &level}, func() error {
			if !scope.Valid {
				return nil
			}
			h := store.Hold{}.WithScope(scope.String, name.String)
			h.Source, h.Retries, h.AtMost = source.String, retries.Bool, int(most.Int32)
			if perSecond.Valid {
				h.Rate = &store.Rate{PerSecond: perSecond.Float64, Burst: burst.Float64, Level: level.Float64}
			}
			p.holds = append(p.holds, h)
			return nil
		})
		slices.SortFunc(p.holds, compareHolds)
		return err
	})
}

// queueCountLive queues the query for the number of processing jobs in each line.
func (p *claimPlan) queueCountLive(kinds map[string]string) {
	var l lane.Lane
	var own string
	var one liveCount
	p.p.queueRows(p.s.sql["count_live"], nil, []any{&l.ID, &one.retries, &one.jobs, &l.Queue, &l.Kind, &l.Owner, &own}, func() error {
		of := l
		of.Dependency = dependencyOf(kinds, l.Kind, own)
		p.live = append(p.live, liveCount{&of, one.retries, one.jobs})
		return nil
	})
}

// queuePeek queues the query for the first depth jobs of each head, without locks.
func (p *claimPlan) queuePeek() {
	if len(p.heads) == 0 {
		return
	}
	var line, low, high column
	for i := range p.heads {
		from, to := priorityRange(&p.heads[i].Share)
		line.int(int(p.heads[i].Line))
		low.int(from)
		high.int(to)
		p.heads[i].Keys, p.heads[i].More = nil, false
	}
	p.held = nil
	seen := make([]int, len(p.heads))
	args := append(arrayArgs([]column{line, low, high}), p.depth, textArray(p.tags))
	var n int
	var priority int16
	var job [16]byte
	var tag pgtype.Text
	p.p.Queue(p.s.sql["peek"], args...).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&n, &priority, &job, &tag}, func() error {
			h, key := &p.heads[n-1], lane.Key{Priority: priority, Job: job}
			seen[n-1]++
			if tag.Valid {
				p.held = append(p.held, tagHeldJob{lineKey{h.Line, key}, tag.String})
				return nil
			}
			h.Keys = append(h.Keys, key)
			return nil
		})
		for i := range p.heads {
			p.heads[i].More = seen[i] >= p.depth
			if seen[i] == 0 {
				p.empty = append(p.empty, p.headPlaces[i]...) // remembered as non-empty, but empty
			}
		}
		return err
	})
}

// priorityRange returns the lowest and the highest priority of a share.
func priorityRange(s *lane.Share) (low, high int) {
	if s.Priority != nil {
		return int(*s.Priority), int(*s.Priority)
	}
	return math.MinInt16, math.MaxInt16
}

// pick divides the rest of the claim among the heads, and reads them deeper for as long as that could change the result.
func (p *claimPlan) pick(ctx context.Context) error {
	for len(p.heads) > 0 {
		valves := p.valves()
		shares, deeper := p.s.turns.pick(p.heads, valves, lane.Order{Jobs: p.left, Weights: p.weights, Even: p.even})
		p.queueSetAside()
		if !deeper || p.setAside >= maxSetAside {
			for _, share := range shares {
				p.left -= share.Jobs
			}
			p.shares = append(p.shares, shares...)
			for _, h := range p.heads {
				for _, key := range h.Keys[:min(h.Jobs, len(h.Keys))] {
					p.keys = append(p.keys, lineKey{h.Line, key})
				}
			}
			return nil
		}
		if p.depth *= 2; len(p.tags) == 0 { // no line gives more than that; with held tags any number of jobs in front may be skipped
			p.depth = min(p.depth, p.left+1)
		}
		p.queuePeek()
		if err := p.p.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// valves returns the holds after what was already picked: rate limits minus the tokens spent, and live counts including the picked jobs.
func (p *claimPlan) valves() *lane.Valves {
	left := slices.Clone(p.holds)
	for _, spent := range lane.NewValves(p.holds, p.now).Spend(p.shares) {
		i := slices.IndexFunc(left, func(h store.Hold) bool { return compareHolds(h, spent.Hold) == 0 })
		rate := *left[i].Rate
		rate.Level += spent.Tokens
		left[i].Rate = &rate
	}
	valves := lane.NewValves(left, p.now)
	for _, l := range p.live {
		valves.Live(l.lane, l.retries, l.jobs)
	}
	busy := maps.Clone(p.c.Busy)
	if busy == nil {
		busy = map[string]int{}
	}
	for _, s := range p.shares {
		valves.Live(s.Lane, s.Retries(), s.Jobs)
		busy[s.Lane.Owner] = max(busy[s.Lane.Owner], 0) + s.Jobs
	}
	valves.Bound(p.c.OwnerSlots, busy)
	return valves
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
	p.p.Queue(p.s.sql["set_aside"], arrayArgs([]column{line, priority, job, tag})...)
	p.setAside += len(p.held)
	p.held = nil
}

// queueTake queues the statement that takes the picked jobs, and the payment of rate limits. With held tags it takes exactly the jobs that were read,
// because the next ones in line may have a held tag.
func (p *claimPlan) queueTake() {
	if len(p.shares) == 0 {
		return
	}
	if len(p.tags) > 0 {
		var line, priority, job column
		for _, k := range p.keys {
			line.int(int(k.line))
			priority.int(int(k.Priority))
			job.id(k.Job)
		}
		p.taken.queue(p.p.Batch, p.s.sql["take_keys"], p.c, append(arrayArgs([]column{line, priority, job}), textArray(p.tags)))
	} else {
		var line, low, high, jobs column
		for i := range p.shares {
			from, to := priorityRange(&p.shares[i])
			line.int(int(p.shares[i].Line))
			low.int(from)
			high.int(to)
			jobs.int(p.shares[i].Jobs)
		}
		p.taken.queue(p.p.Batch, p.s.sql["take"], p.c, arrayArgs([]column{line, low, high, jobs}))
	}
	for _, d := range lane.NewValves(p.holds, p.now).Spend(p.shares) {
		p.s.queueDeposit(p.p.Batch, d, p.now)
	}
}

// compareHolds orders holds by scope, name and source: the order in which all transactions lock them.
func compareHolds(a, b store.Hold) int {
	of, name := a.Scope()
	other, called := b.Scope()
	return cmp.Or(cmp.Compare(of, other), cmp.Compare(name, called), cmp.Compare(a.Source, b.Source))
}
