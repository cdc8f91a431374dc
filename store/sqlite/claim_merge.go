package sqlite

import (
	"container/heap"
	"slices"

	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// mergeLines finds how many jobs of a claim come from each line: the first jobs of all lines together, by priority and
// age. It merges the keys of the lines and reads from each line only a few more keys than it takes. A single line needs
// no merge.
func (v *claimView) mergeLines(limit int, plan *claimPlan) error {
	if len(v.lines) == 1 {
		plan.addShares(lane.Share{Lane: v.lines[0].lane, Line: v.lines[0].number, Jobs: limit})
		return nil
	}
	first := limit/len(v.lines) + 1 // every line is read, and where there are many most give few jobs
	m := &streamHeap{chunk: first + 7}
	for _, l := range v.lines {
		next := &stream{share: lane.Share{Lane: l.lane, Line: l.number}, next: wholeLine(l.number, 0)}
		if err := next.fill(v.read, first); err != nil {
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
			if err := first.fill(v.read, m.chunk); err != nil {
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
			plan.addShares(s.share)
		}
	}
	return nil
}

// A stream is the keys of one line in order, read in chunks.
type stream struct {
	share     lane.Share
	next      keySpan  // where the next chunk begins: behind last
	last      lane.Key // the last key that was read
	buffer    []lane.Key
	exhausted bool
}

// fill reads the next chunk of keys.
func (f *stream) fill(r claimReader, chunk int) (err error) {
	if f.exhausted {
		return nil
	}
	f.next.limit = chunk
	f.buffer, err = r.keys(f.buffer[:0], f.next)
	if f.exhausted = len(f.buffer) < chunk; len(f.buffer) > 0 {
		f.last = f.buffer[len(f.buffer)-1]
		f.next.from, f.next.after = int64(f.last.Priority), f.last.Job[:]
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
	return m.streams[i].buffer[0].Compare(m.streams[j].buffer[0]) < 0
}
func (m *streamHeap) Swap(i, j int) { m.streams[i], m.streams[j] = m.streams[j], m.streams[i] }
func (m *streamHeap) Push(x any)    { m.streams = append(m.streams, x.(*stream)) }
func (m *streamHeap) Pop() any {
	last := m.streams[len(m.streams)-1]
	m.streams = m.streams[:len(m.streams)-1]
	return last
}
