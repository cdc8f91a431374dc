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
	markAge   = 100 * time.Millisecond // how long a job that somebody else put behind a mark may be overtaken, at least
	markShare = 20                     // looking behind the marks may take a twentieth of the time
	maxMarks  = 100                    // more places than that are not worth remembering
)

// Marks tell a claim where to begin. Rows that were claimed stay in the index of ready, dead, until the database clears
// them away, and it cannot while anybody holds an old snapshot open; a claim that begins at the front would wade through
// all of them. So a store remembers how far its claims came while there was plenty. What it puts behind a mark itself
// lowers the mark. What others put there is found when the marks have aged, or when a claim comes back short: then
// everything is looked at once more.
type marks struct {
	mu      sync.Mutex
	at      map[place]holdfast.ID
	staleAt time.Time               // from then on they are not trusted
	scans   map[*claimScan]struct{} // claims under way

	heads map[place]holdfast.ID // no job at the place has a lower id, or one as low; for claims in runs
}

// A place is where jobs wait in the order of their ids: one priority of a line.
type place struct {
	lane     int32 // negative: the line of its retries
	priority int16
}

// A look is one claim under way, with the first job that was put back meanwhile.
type claimScan struct {
	began   time.Time
	marked  bool
	marks   []any // the parameters of the statement
	lowest  holdfast.ID
	invalid bool

	scope    *lane.Scope
	all      bool // it looks at everything
	narrowed bool // it looked only at lines that the store remembers
	even     bool // it is the claim in sixteen that shares evenly between priorities
	planned  bool // it went another way
	tookRuns bool // it took runs
}

// begin starts a look: behind the marks as well when all is wanted, when they have aged, or when there are none.
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
				stretch(p, math.MinInt16-1, holdfast.ID{}, int(p.priority)) // more urgent than anything claimed of late
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

// end moves the marks to the last jobs of a claim that took as many as it asked for. One that came back short leaves none.
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

// drop ends a look that came to nothing.
func (m *marks) dropScan(l *claimScan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.scans, l)
}

// lower makes sure that these jobs, which became claimable just now, are not behind a mark.
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

// before is the greatest id that is smaller.
func previousID(id holdfast.ID) holdfast.ID {
	for i := len(id) - 1; i >= 0; i-- {
		id[i]--
		if id[i] != 0xff {
			break
		}
	}
	return id
}

// clear forgets all marks: nobody knows what became claimable just now.
func (m *marks) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at, m.heads = nil, nil
	for l := range m.scans {
		l.invalid = true
	}
}
