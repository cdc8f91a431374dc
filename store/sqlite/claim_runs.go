package sqlite

import (
	"bytes"
	"container/heap"
	"math"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A lineHead is a line with a lower bound for its keys: the first key when the line was last read, or the last key that
// this process has taken from it since.
type lineHead struct {
	line
	priority int64
	job      holdfast.ID
}

// A headHeap is a heap of lines; the line with the lowest key is on top.
type headHeap []lineHead

func (h headHeap) Len() int      { return len(h) }
func (h headHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *headHeap) Push(x any)   { *h = append(*h, x.(lineHead)) }
func (h headHeap) Less(i, j int) bool {
	if h[i].priority != h[j].priority {
		return h[i].priority < h[j].priority
	}
	return bytes.Compare(h[i].job[:], h[j].job[:]) < 0
}

func (h *headHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// readHeads returns the first key of every line of the view. Remembered lines keep them, and are remembered longer for
// it.
func (v *claimView) readHeads() (*headHeap, error) {
	if v.open != nil && v.open.heads != nil {
		return v.open.heads, nil
	}
	began, all := time.Now(), make(headHeap, 0, len(v.lines))
	for _, l := range v.lines {
		first, err := v.read.keys(nil, wholeLine(l.number, 1))
		if err != nil {
			return nil, err
		}
		if len(first) > 0 {
			all = append(all, lineHead{l, int64(first[0].Priority), first[0].Job})
		}
	}
	heap.Init(&all)
	if v.open != nil {
		v.open.heads = &all
		v.open.until = v.open.until.Add(memoryAgeFactor * time.Since(began))
	}
	return &all, nil
}

// takeRuns chooses the jobs of a claim from more than lane.FewLines lines of one owner: a run of up to lane.RunLength
// jobs from the line with the lowest head, then a run from the line whose head is lowest after that, until there are
// enough.
//
// Every run begins with the first jobs of its line, whatever was remembered, so no line is taken out of order. A run
// contains no job that is less urgent than the head for which its line was chosen, so no job is claimed before a more
// urgent one of another line, unless that one was enqueued after the heads were read (see lineMemory.noteEnqueued). A
// remembered head is only a lower bound: visiting its line too early costs one search. A job waits for at most
// lane.RunLength younger jobs of the same priority from each other line.
func (v *claimView) takeRuns(limit int, plan *claimPlan) error {
	h, err := v.readHeads()
	if err != nil {
		return err
	}
	empty, last := map[int64]bool{}, map[int64]readyRow{}
	for want := limit; want > 0 && len(*h) > 0 && !plan.full; {
		top := &(*h)[0]
		s := share{keySpan: keySpan{line: top.number, from: math.MinInt16, to: top.priority, limit: min(want, lane.RunLength)}, lane: top.lane}
		if at, again := last[s.line]; again { // rows that this claim has already read are still in the line
			s.from, s.after = at.priority, at.job[:]
		}
		if err := plan.readShare(v, &s); err != nil {
			return err
		}
		n := len(s.rows)
		if n > 0 {
			at := s.rows[n-1]
			last[s.line], top.priority, top.job = at, at.priority, at.job
			plan.appendRun(s)
		}
		want -= n
		if n < s.limit { // the line has no more jobs of this priority: read its next key, or drop it
			there, err := v.advance(top, last[s.line])
			if err != nil {
				return err
			}
			if !there {
				empty[s.line] = true
				heap.Pop(h)
				continue
			}
		}
		heap.Fix(h, 0)
	}
	if v.open != nil {
		v.open.dropEmpty(empty, v.open.owners)
	}
	return nil
}

// advance sets a head to the first key of its line behind the last row that the claim takes. It returns false if there
// is none.
func (v *claimView) advance(h *lineHead, taken readyRow) (bool, error) {
	from, after := taken.priority, taken.job[:]
	if taken.job == (holdfast.ID{}) {
		from, after = math.MinInt16, nil
	}
	next, err := v.read.keys(nil, keySpan{line: h.number, from: from, after: after, to: math.MaxInt16, limit: 1})
	if err != nil || len(next) == 0 {
		return false, err
	}
	h.priority, h.job = int64(next[0].Priority), next[0].Job
	return true, nil
}
