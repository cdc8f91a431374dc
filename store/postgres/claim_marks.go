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
// (clear). This also applies to the marks that a claim under way will set: its markScan collects the lowest id until it ends. Jobs that other
// processes put behind a mark are found when the marks are stale, or when a claim comes back short and is repeated without marks. Priorities that are
// more urgent than every mark of a line are always read.
type marks struct {
	mu      sync.Mutex
	at      map[place]holdfast.ID
	staleAt time.Time              // from then on a claim reads everything
	scans   map[*markScan]struct{} // scans in progress

	heads map[place]holdfast.ID // lower bounds, for claims in runs: every job at the place that this process knows of has a higher id
}

// A markScan is a claim in progress, or a scan of the lines in progress. Until it ends, it collects what becomes claimable meanwhile, because that must
// lower the marks that the scan will set.
type markScan struct {
	began   time.Time
	marked  bool        // it starts at the marks
	args    []any       // the marks as parameters of a claim statement
	lowest  holdfast.ID // the lowest id that became claimable meanwhile
	invalid bool        // jobs with unknown ids became claimable meanwhile: the scan sets no marks
}

// beginScan starts a claim. It reads everything if all is set, if the marks are stale, or if there are none. Otherwise its parameters are the parts
// of each line that the marks leave: for each marked line all more urgent priorities, and each marked priority after its mark.
func (m *marks) beginScan(all bool) *markScan {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &markScan{began: time.Now()}
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
	l.args = arrayArgs([]column{lanes, priorities, jobs, before})
	if m.scans == nil {
		m.scans = map[*markScan]struct{}{}
	}
	m.scans[l] = struct{}{}
	return l
}

// endScan sets the marks to the last jobs of a claim that took as many as its limit. A claim that came back short removes all marks.
func (m *marks) endScan(l *markScan, last map[place]holdfast.ID, full bool) {
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
func (m *marks) dropScan(l *markScan) {
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

// beginHeadScan starts a scan of the lines, which sets the heads.
func (m *marks) beginHeadScan() *markScan {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &markScan{began: time.Now()}
	if m.scans == nil {
		m.scans = map[*markScan]struct{}{}
	}
	m.scans[l] = struct{}{}
	return l
}

// maxHeads bounds the number of heads that are remembered.
const maxHeads = 100_000

// endHeadScan ends a scan that found the heads of places, or a claim that moved them. Jobs that were put in front in the meantime lower them.
func (m *marks) endHeadScan(l *markScan, heads map[place]holdfast.ID) {
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
