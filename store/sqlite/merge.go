package sqlite

import (
	"bytes"
	"container/heap"

	"zombiezen.com/go/sqlite"
)

// divide finds how much of a claim comes from each of several lanes: the first jobs across all of them, by priority and age.
// It merges the lanes' keys, and reads from each only a little more than it takes.
func divide(t *tx, open []int64, limit int) ([]share, error) {
	m := &merge{chunk: limit/len(open) + 8}
	for _, lane := range open {
		s := &stream{lane: lane, seen: lowest}
		if err := s.fill(t, m.chunk); err != nil {
			return nil, err
		}
		if len(s.ahead) > 0 {
			m.streams = append(m.streams, s)
		}
	}
	heap.Init(m)
	shares := map[int64]*share{}
	for n := 0; n < limit && len(m.streams) > 0; n++ {
		first := m.streams[0]
		if shares[first.lane] == nil {
			shares[first.lane] = &share{lane: first.lane}
		}
		shares[first.lane].last = first.ahead[0]
		shares[first.lane].jobs++
		if first.ahead = first.ahead[1:]; len(first.ahead) == 0 {
			if err := first.fill(t, m.chunk); err != nil {
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

func (s *stream) fill(t *tx, chunk int) error {
	if s.dry {
		return nil
	}
	s.ahead = s.ahead[:0]
	err := t.rows("claim-peek", []any{s.lane, s.seen.priority, s.seen.job, chunk}, func(st *sqlite.Stmt) error {
		id := columnID(st, 1)
		s.ahead = append(s.ahead, key{st.ColumnInt64(0), bytes.Clone(id[:])})
		return nil
	})
	if s.dry = len(s.ahead) < chunk; len(s.ahead) > 0 {
		s.seen = s.ahead[len(s.ahead)-1]
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
