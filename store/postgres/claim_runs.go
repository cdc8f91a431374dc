package postgres

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A worker that handles two hundred kinds claims from two hundred lanes. To merge them by age, a claim of twenty jobs would search all lanes and take
// the twenty jobs from as many pages. So where jobs of one owner are ready in more than fewLanes places, a claim takes them in runs: it goes to the
// place whose first job is the most urgent and oldest, takes up to runLength jobs there, and continues with the next such place. Priority is exact as
// far as the store knows what is ready. Age is exact within a kind; between kinds, a job is overtaken by less than a run of each other kind.
//
// The store remembers the first job of each place (heads) from its last scan of the lines and from its own claims. A remembered id is a lower bound:
// it is never above a job that this process has made claimable since, because marks.lower lowers it. Jobs that other processes put in front are found
// by the next scan, within a second.
const runLength = 16

// beginHeadScan starts a scan of the lines, which sets the heads.
func (m *marks) beginHeadScan() *claimScan {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &claimScan{began: time.Now()}
	if m.scans == nil {
		m.scans = map[*claimScan]struct{}{}
	}
	m.scans[l] = struct{}{}
	return l
}

// maxHeads bounds the number of heads that are remembered.
const maxHeads = 100_000

// endHeadScan ends a scan that found the heads of places, or a claim that moved them. Jobs that were put in front in the meantime lower them.
func (m *marks) endHeadScan(l *claimScan, heads map[place]holdfast.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.scans, l)
	if l.invalid {
		return
	}
	if m.heads == nil || len(m.heads) > maxHeads {
		m.heads = make(map[place]holdfast.ID, len(heads))
	}
	for p, id := range heads {
		m.heads[p] = id
	}
	m.lowerTo(l.lowest)
}

// A runStart is a place and the id after which a claim starts reading there.
type runStart struct {
	place place
	after holdfast.ID
}

// sortStarts sorts places by priority and then by their first jobs. A place without a known head comes first within its priority.
func (m *marks) sortStarts(places []place) []runStart {
	m.mu.Lock()
	defer m.mu.Unlock()
	starts := make([]runStart, len(places))
	for i, p := range places {
		starts[i] = runStart{p, m.heads[p]}
	}
	slices.SortFunc(starts, func(a, b runStart) int {
		return cmp.Or(cmp.Compare(a.place.priority, b.place.priority), bytes.Compare(a.after[:], b.after[:]))
	})
	return starts
}

// takeRuns claims in runs if that is possible: jobs of one owner are ready in more than fewLanes places, and no hold limits or counts them. done is
// false if another way has to be used. The statement compares the hash of the holds with the one that the places were chosen by, and takes nothing if
// it differs; then takeRuns reads the holds and tries once more.
func (s *Store) takeRuns(ctx context.Context, c store.Claim, batch holdfast.ID, l *claimScan) (taken claimResult, done bool, err error) {
	for range 2 { // the holds may have changed since they were read
		places, hash, step, err := s.runPlaces(ctx, l.scope)
		if err != nil || len(places) <= fewLanes {
			return taken, false, err
		}
		limit := clampLimit(c.Limit)
		run := max(runLength, (limit+len(places)-1)/len(places))
		starts := s.marks.sortStarts(places)
		starts = starts[:min(len(starts), 2*limit/run+14)] // twice as many places as full runs need, and 14 more, because some have less than a run
		var line, priority, after column
		for i := range starts {
			line.int(int(starts[i].place.lane))
			priority.int(int(starts[i].place.priority))
			after.id(starts[i].after)
		}
		taken, err = s.claimOnce(ctx, "take_runs", c, batch, append(arrayArgs([]column{line, priority, after}), run, limit, hash))
		if err != nil || !taken.planned {
			l.tookRuns, l.narrowed = true, true
			s.wideScopes.add(l.scope)
			s.lines.removeEmpty(step, exhausted(starts, &taken, run, limit))
			return taken, true, err
		}
		if err := s.readHolds(ctx); err != nil {
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
func (s *Store) runPlaces(ctx context.Context, scope *lane.Scope) (places []place, hash string, step int, err error) {
	if err := s.ensureLines(ctx, scope); err != nil {
		return nil, "", 0, err
	}
	if err := s.ensureLanes(ctx); err != nil {
		return nil, "", 0, err
	}
	holds, hash, kindsVersion := s.holds.withHash()
	if hash == "" {
		if err := s.readHolds(ctx); err != nil {
			return nil, "", 0, err
		}
		holds, hash, kindsVersion = s.holds.withHash()
	}
	step, _ = s.lines.cached(scope)
	open, declared := s.lines.view(scope, holds)
	if declared != kindsVersion || hash == "" || len(open.valves.Tags()) > 0 || open.valves.Caps() && s.lines.anyLine(open, open.valves.Capped) {
		return nil, "", 0, nil
	}
	return s.lines.singleOwnerPlaces(open), hash, step, nil
}

// singleOwnerPlaces returns the places of a view if they all belong to one owner.
func (l *lineMemory) singleOwnerPlaces(v *view) (places []place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(v.byOwner) != 1 {
		return nil
	}
	for _, g := range v.byOwner {
		for _, at := range g.places {
			places = append(places, at.place)
		}
	}
	return places
}

// readHolds reads the holds in force and the declared dependencies of kinds into the cache.
func (s *Store) readHolds(ctx context.Context) error {
	p := &claimPlan{s: s, p: &pipeline{Batch: &pgx.Batch{}}}
	p.p.Queue(s.sql["configure_planner"])
	p.queueReadHolds()
	kinds := map[string]string{}
	var kind, dependency string
	p.p.queueRows(s.sql["kind_read"], nil, []any{&kind, &dependency}, func() error { kinds[kind] = dependency; return nil })
	if err := s.work.SendBatch(ctx, p.p.Batch).Close(); err != nil {
		return err
	}
	s.holds.setAll(p.holds, p.hash, &s.lines, kinds)
	return nil
}
