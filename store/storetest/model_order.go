package storetest

import (
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Lines of order keys in the model.

// joinLine puts a waiting job at the end of its line, unless it is in the line, and starts it if it is the first.
func (m *model) joinLine(r *record) {
	if !r.inLine {
		m.lastSeq++
		r.inLine, r.seq = true, m.lastSeq
	}
	m.advanceLine(r)
}

// leaveLine removes an ended job from its line and starts the next one. A dead letter may hold the line.
func (m *model) leaveLine(r *record) {
	if !r.inLine || r.OrderHold && r.state == holdfast.Failed && !r.discarded {
		return
	}
	r.inLine = false
	m.advanceLine(r)
}

// firstInLine returns the first job of the line of a job, or nil.
func (m *model) firstInLine(of *record) (first *record) {
	for _, r := range m.jobs {
		if r.inLine && r.Owner == of.Owner && r.Order == of.Order && (first == nil || r.seq < first.seq) {
			first = r
		}
	}
	return first
}

// advanceLine starts the first job of a line once its own time has come.
func (m *model) advanceLine(of *record) {
	first := m.firstInLine(of)
	if first == nil || first.place != waiting {
		return
	}
	first.place = ready
	if first.due.After(m.now) && !first.due.Equal(first.CreatedAt) {
		first.place = later
	}
}

// shownWaits returns the jobs that are shown as those for which a job waits: members of its group, or the first of its line.
func (m *model) shownWaits(r *record) (after []holdfast.ID, when []holdfast.Condition) {
	if r.Order != "" && r.place == waiting {
		return []holdfast.ID{m.firstInLine(r).ID}, nil
	}
	return r.shownWaits()
}

// heldLines returns the lines whose first job is a dead letter, the oldest job first.
func (m *model) heldLines() (lines []store.HeldLine) {
	for _, r := range m.jobs {
		if !r.inLine || r.place != finished {
			continue
		}
		held := store.HeldLine{Owner: r.Owner, Order: r.Order, Job: r.ID, Kind: r.Kind, Queue: r.Queue, Code: r.lastFailure().Code, Since: r.finishedAt}
		for _, other := range m.jobs {
			held.Waiting += countIf(other.inLine && other.Owner == r.Owner && other.Order == r.Order && other.seq > r.seq)
		}
		lines = append(lines, held)
	}
	slices.SortFunc(lines, func(a, b store.HeldLine) int { return slices.Compare(a.Job[:], b.Job[:]) })
	return lines
}
