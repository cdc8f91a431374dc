package postgres

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

const (
	markAge   = 100 * time.Millisecond // minimum time until marks are stale. So long may a job be overtaken that another process put behind a mark
	markShare = 20                     // a read of everything, which makes new marks, may take at most a twentieth of the time
	maxMarks  = 100                    // with more places no marks are kept
)

// Marks tell a claim where to start reading. Rows that were claimed stay in the index of holdfast_ready as dead entries until vacuum removes them,
// and vacuum cannot while a transaction holds an old snapshot. A claim that starts at the front of a line would read all of them. So a store
// remembers, for each place, the last job that it claimed there while its claims came back full; the next claim starts after that job.
//
// A mark can delay a job but never hide it. Jobs that this process makes claimable lower the marks (lower), or clear them if their ids are not known
// (clear). This also applies to the marks that a claim under way will set: the claimScan collects the lowest id until it ends. Jobs that other
// processes put behind a mark are found when the marks are stale, or when a claim comes back short and is repeated without marks. Priorities that are
// more urgent than every mark of a line are always read.
type marks struct {
	mu      sync.Mutex
	at      map[place]holdfast.ID
	staleAt time.Time               // from then on a claim reads everything
	scans   map[*claimScan]struct{} // scans in progress

	heads map[place]holdfast.ID // lower bounds, for claims in runs: every job at the place that this process knows of has a higher id
}

// A place is one priority of a line. Its jobs are ordered by id, which is by age.
type place struct {
	lane     int32 // negative: the line of the lane's retries
	priority int16
}

// A claimScan is one claim in progress, or one scan of the lines.
type claimScan struct {
	began   time.Time
	marked  bool
	marks   []any // parameters of the statement
	lowest  holdfast.ID
	invalid bool

	scope    *lane.Scope
	all      bool // it must read everything, without marks and remembered lines
	narrowed bool // it read only lines that the store remembers
	even     bool // it is the one claim in sixteen that shares evenly between priorities
	planned  bool // it was planned
	tookRuns bool // it took runs (see takeRuns)
}

// beginScan starts a claim. It reads everything if all is set, if the marks are stale, or if there are none. Otherwise its parameters are the parts
// of each line that the marks leave: for each marked line all more urgent priorities, and each marked priority after its mark.
func (m *marks) beginScan(all bool) *claimScan {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &claimScan{began: time.Now(), all: all}
	l.marked = !all && len(m.at) > 0 && l.began.Before(m.staleAt)
	var lanes, priorities, jobs, before column
	if l.marked {
		places := slices.SortedFunc(maps.Keys(m.at), func(a, b place) int {
			return cmp.Or(cmp.Compare(a.lane, b.lane), cmp.Compare(a.priority, b.priority))
		})
		stretch := func(p place, from int, after holdfast.ID, to int) {
			lanes.int(int(p.lane))
			priorities.int(from)
			jobs.id(after)
			before.int(to)
		}
		for i, p := range places {
			if i == 0 || places[i-1].lane != p.lane {
				stretch(p, math.MinInt16-1, holdfast.ID{}, int(p.priority)) // all priorities more urgent than the first mark
			}
			next := math.MaxInt16 + 1
			if i+1 < len(places) && places[i+1].lane == p.lane {
				next = int(places[i+1].priority)
			}
			stretch(p, int(p.priority), m.at[p], next)
		}
	}
	l.marks = arrayArgs([]column{lanes, priorities, jobs, before})
	if m.scans == nil {
		m.scans = map[*claimScan]struct{}{}
	}
	m.scans[l] = struct{}{}
	return l
}

// endScan sets the marks to the last jobs of a claim that took as many as its limit. A claim that came back short removes all marks.
func (m *marks) endScan(l *claimScan, last map[place]holdfast.ID, full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.scans, l)
	if !full {
		m.at = nil
	}
	if !full || l.invalid || l.marked && m.at == nil {
		return
	}
	if now := time.Now(); !l.marked {
		m.at, m.staleAt = map[place]holdfast.ID{}, now.Add(max(markAge, markShare*now.Sub(l.began)))
	}
	maps.Copy(m.at, last)
	if len(m.at) > maxMarks {
		m.at = nil
	}
	m.lowerTo(l.lowest)
}

// dropScan ends a scan without a result.
func (m *marks) dropScan(l *claimScan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.scans, l)
}

// lower makes sure that no mark hides these jobs, which have just become claimable.
func (m *marks) lower(jobs ...holdfast.ID) {
	if len(jobs) == 0 {
		return
	}
	low := slices.MinFunc(jobs, func(a, b holdfast.ID) int { return bytes.Compare(a[:], b[:]) })
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lowerTo(low)
	for l := range m.scans {
		if l.lowest.IsZero() || bytes.Compare(low[:], l.lowest[:]) < 0 {
			l.lowest = low
		}
	}
}

// lowerTo lowers every mark and head that is not below the id.
func (m *marks) lowerTo(low holdfast.ID) {
	if low.IsZero() {
		return
	}
	for _, marks := range []map[place]holdfast.ID{m.at, m.heads} {
		for p, at := range marks {
			if bytes.Compare(low[:], at[:]) <= 0 {
				marks[p] = previousID(low)
			}
		}
	}
}

// previousID returns the greatest id that is smaller.
func previousID(id holdfast.ID) holdfast.ID {
	for i := len(id) - 1; i >= 0; i-- {
		id[i]--
		if id[i] != 0xff {
			break
		}
	}
	return id
}

// clear removes all marks and heads, because jobs with unknown ids became claimable. Scans in progress set none.
func (m *marks) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at, m.heads = nil, nil
	for l := range m.scans {
		l.invalid = true
	}
}
