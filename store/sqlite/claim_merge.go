package sqlite

import (
	"bytes"
	"container/heap"
	"math"
	"slices"

	"github.com/holdfastdev/holdfast/store/internal/lane"
	"zombiezen.com/go/sqlite"
)

// mergeLines finds how many jobs of a claim come from each line: the first jobs of all lines together, by priority and
// age. It merges the keys of the lines and reads from each line only a few more keys than it takes. A single line needs
// no merge.
func (v *claimView) mergeLines(limit int, plan *claimPlan) error {
	if len(v.lines) == 1 {
		plan.addShares([]lane.Share{{Lane: v.lines[0].lane, Line: v.lines[0].number, Jobs: limit}})
		return nil
	}
	first := limit/len(v.lines) + 1 // every line is read, and where there are many most give few jobs
	m := &streamHeap{chunk: first + 7}
	for _, l := range v.lines {
		next := &stream{share: lane.Share{Lane: l.lane, Line: l.number}, last: lowestKey}
		if err := next.fill(v.session, first); err != nil {
			return err
		}
		if len(next.buffer) > 0 {
			m.streams = append(m.streams, next)
		}
	}
	all := slices.Clone(m.streams)
	heap.Init(m)
	for n := 0; n < limit && len(m.streams) > 0; n++ {
		first := m.streams[0]
		first.share.Jobs++
		if first.buffer = first.buffer[1:]; len(first.buffer) == 0 {
			if err := first.fill(v.session, m.chunk); err != nil {
				return err
			}
		}
		if len(first.buffer) == 0 {
			heap.Pop(m)
		} else {
			heap.Fix(m, 0)
		}
	}
	for _, s := range all {
		if s.share.Jobs > 0 {
			plan.addShares([]lane.Share{s.share})
		}
	}
	return nil
}

// A stream is the keys of one line in order, read in chunks.
type stream struct {
	share     lane.Share
	last      key // the last key that was read
	buffer    []key
	exhausted bool
}

// fill reads the next chunk of keys.
func (f *stream) fill(s *session, chunk int) error {
	if f.exhausted {
		return nil
	}
	f.buffer = f.buffer[:0]
	err := s.rows("peek", []any{f.share.Line, f.last.priority, f.last.job, math.MaxInt16, chunk}, func(st *sqlite.Stmt) error {
		id := columnID(st, 1)
		f.buffer = append(f.buffer, key{st.ColumnInt64(0), bytes.Clone(id[:])})
		return nil
	})
	if f.exhausted = len(f.buffer) < chunk; len(f.buffer) > 0 {
		f.last = f.buffer[len(f.buffer)-1]
	}
	return err
}

// A streamHeap is a heap of streams; the stream with the first key is on top.
type streamHeap struct {
	streams []*stream
	chunk   int
}

func (m *streamHeap) Len() int { return len(m.streams) }
func (m *streamHeap) Less(i, j int) bool {
	return m.streams[i].buffer[0].compare(m.streams[j].buffer[0]) < 0
}
func (m *streamHeap) Swap(i, j int) { m.streams[i], m.streams[j] = m.streams[j], m.streams[i] }
func (m *streamHeap) Push(x any)    { m.streams = append(m.streams, x.(*stream)) }
func (m *streamHeap) Pop() any {
	last := m.streams[len(m.streams)-1]
	m.streams = m.streams[:len(m.streams)-1]
	return last
}
