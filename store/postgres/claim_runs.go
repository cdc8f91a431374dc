package postgres

import (
	"context"

	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// takeRuns claims in runs if that is possible: jobs of one owner are ready in more than lane.FewLines places, and no hold limits or counts them. done
// is false if another way has to be used.
//
// A worker that handles two hundred kinds claims from two hundred lanes. To merge them by age, a claim of twenty jobs would search all lanes and take
// the twenty jobs from as many pages. So a claim in runs goes to the place whose first job is the most urgent and oldest, takes up to lane.RunLength
// jobs there, and continues with the next such place. Priority is exact as far as the store knows what is ready. Age is exact within a kind; between
// kinds, a job is overtaken by less than a run of each other kind.
//
// The planner remembers the first job of each place (marks.heads) from its last scan of the lines and from its own claims. A remembered id is a lower
// bound: it is never above a job that this process has made claimable since, because marks.lower lowers it. Jobs that other processes put in front are
// found by the next scan, within a second.
//
// The statement compares the hash of the holds with the one that the places were chosen by, and takes nothing if it differs; then takeRuns reads the
// holds and tries once more. So a hold that was committed before the claim is obeyed.
func (p *claimPlanner) takeRuns(ctx context.Context, l *claimTry) (taken claimResult, done bool, err error) {
	for range 2 { // the holds may have changed since they were read
		places, hash, step, err := p.runPlaces(ctx, l.scope)
		if err != nil || len(places) <= lane.FewLines {
			return taken, false, err
		}
		limit := clampLimit(l.Limit)
		run := max(lane.RunLength, (limit+len(places)-1)/len(places))
		starts := p.marks.sortStarts(places)
		starts = starts[:min(len(starts), 2*limit/run+14)] // twice as many places as full runs need, and 14 more, because some have less than a run
		var line, priority, after column
		for i := range starts {
			line.int(int(starts[i].place.lane))
			priority.int(int(starts[i].place.priority))
			after.id(starts[i].after)
		}
		taken, err = p.takeOnce(ctx, "take_runs", &l.claimRequest, append(arrayArgs([]column{line, priority, after}), run, limit, hash))
		if err != nil || !taken.planned {
			l.tookRuns, l.narrowed = true, true
			p.wide.add(l.scope)
			p.memory.removeEmpty(step, exhausted(starts, &taken, run, limit))
			return taken, true, err
		}
		if err := p.readHolds(ctx); err != nil {
			return taken, false, err
		}
	}
	return claimResult{}, false, nil
}

// exhausted returns the places that gave fewer jobs than their run and are therefore empty: those before the last place that gave any, and all of
// them if the claim came back short.
func exhausted(starts []runStart, taken *claimResult, run, limit int) (empty []place) {
	left := taken.rows
	for i := range starts {
		p := starts[i].place
		if left <= 0 && taken.rows >= limit {
			break
		}
		left -= taken.perPlace[p]
		if taken.perPlace[p] < run && (left > 0 || taken.rows < limit) {
			empty = append(empty, p)
		}
	}
	return empty
}

// runPlaces returns the places that a claim may take from, with the hash of the holds that this depends on. It returns none if they belong to several
// owners, or if a hold limits, counts or looks at tags.
func (p *claimPlanner) runPlaces(ctx context.Context, scope *lane.Scope) (places []place, hash string, step int, err error) {
	if err := p.ensureLines(ctx, scope); err != nil {
		return nil, "", 0, err
	}
	if err := p.ensureLanes(ctx); err != nil {
		return nil, "", 0, err
	}
	holds, hash, kindsVersion := p.holds.withHash()
	if hash == "" {
		if err := p.readHolds(ctx); err != nil {
			return nil, "", 0, err
		}
		holds, hash, kindsVersion = p.holds.withHash()
	}
	step, _ = p.memory.cached(scope)
	open, declared := p.memory.openLines(scope, holds)
	if declared != kindsVersion || hash == "" || p.memory.selective(open) {
		return nil, "", 0, nil
	}
	return p.memory.singleOwnerPlaces(open), hash, step, nil
}

// readHolds reads the holds in force and the declared dependencies of kinds into the cache.
func (p *claimPlanner) readHolds(ctx context.Context) error {
	var v claimView
	kinds := map[string]string{}
	send := p.db.newBatch()
	p.read.queueHolds(send, &v)
	p.read.queueKinds(send, kinds)
	if err := p.db.work.send(ctx, send); err != nil {
		return err
	}
	p.holds.setAll(v.holds, v.hash, &p.memory, kinds)
	return nil
}
