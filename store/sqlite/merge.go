package sqlite

import (
	"bytes"
	"container/heap"

	"zombiezen.com/go/sqlite"
)

// divide finds how much of a claim comes from each of several lanes: the first jobs across all of them, by priority and age.
// It merges the lanes' keys, and reads from each only a little more than it takes.
func divide(s *session, open []int64, limit int) ([]share, error) {
	m := &merge{chunk: limit/len(open) + 8}
	for _, lane := range open {
		next := &stream{lane: lane, seen: lowest}
		if err := next.fill(s, m.chunk); err != nil {
			return nil, err
		}
		if len(next.ahead) > 0 {
			m.streams = append(m.streams, next)
		}
	}
	heap.Init(m)
	shares := map[int64]*share{}
	for n := 0; n < limit && len(m.streams) > 0; n++ {
		first := m.streams[0]
		if shares[first.lane] == nil {
			shares[first.lane] = &share{lane: first.lane}
		}
		shares[first.lane].limit++
		if first.ahead = first.ahead[1:]; len(first.ahead) == 0 {
			if err := first.fill(s, m.chunk); err != nil {
				return nil, err
			}
		}
		if len(first.ahead) == 0 {
			heap.Pop(m)
		} else {
			heap.Fix(m, 0)
		}
	}
	all := make([]share, 0, len(shares))
	for _, share := range shares {
		all = append(all, *share)
	}
	return all, nil
}

// A stream is one lane's keys in order, read in chunks.
type stream struct {
	lane  int64
	seen  key // the last key read
	ahead []key
	dry   bool
}

func (f *stream) fill(s *session, chunk int) error {
	if f.dry {
		return nil
	}
	f.ahead = f.ahead[:0]
	err := s.rows("claim-peek", []any{f.lane, f.seen.priority, f.seen.job, chunk}, func(st *sqlite.Stmt) error {
		id := columnID(st, 1)
		f.ahead = append(f.ahead, key{st.ColumnInt64(0), bytes.Clone(id[:])})
		return nil
	})
	if f.dry = len(f.ahead) < chunk; len(f.ahead) > 0 {
		f.seen = f.ahead[len(f.ahead)-1]
	}
	return err
}

// merge is a heap of streams, the one with the first key on top.
type merge struct {
	streams []*stream
	chunk   int
}

func (m *merge) Len() int           { return len(m.streams) }
func (m *merge) Less(i, j int) bool { return m.streams[i].ahead[0].compare(m.streams[j].ahead[0]) < 0 }
func (m *merge) Swap(i, j int)      { m.streams[i], m.streams[j] = m.streams[j], m.streams[i] }
func (m *merge) Push(x any)         { m.streams = append(m.streams, x.(*stream)) }
func (m *merge) Pop() any {
	last := m.streams[len(m.streams)-1]
	m.streams = m.streams[:len(m.streams)-1]
	return last
}
