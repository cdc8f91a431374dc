package sqlite

import (
	"bytes"
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A claim that may take from more than manyLines lines takes runs of runLength jobs from one line after the other. Merging all lines job by job would look
// into every line at every claim.
const (
	manyLines = 16
	runLength = 16
)

// A head is a line with a key that none of its jobs comes before, as far as this process knows: its first key when it was read last, or the last key that
// was taken from it since.
type head struct {
	line
	priority int64
	job      holdfast.ID
}

// heads is a heap of lines, the one with the lowest key on top.
type heads []head

func (h heads) Len() int      { return len(h) }
func (h heads) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)   { *h = append(*h, x.(head)) }
func (h heads) Less(i, j int) bool {
	if h[i].priority != h[j].priority {
		return h[i].priority < h[j].priority
	}
	return bytes.Compare(h[i].job[:], h[j].job[:]) < 0
}

func (h *heads) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// readHeads reads the first key of every line of the view. A crowd remembers them, and is remembered the longer for it.
func (v *view) readHeads() (*heads, error) {
	if v.crowd != nil && v.crowd.heads != nil {
		return v.crowd.heads, nil
	}
	began, all := time.Now(), make(heads, 0, len(v.lines))
	for _, l := range v.lines {
		first, err := v.peek(l, math.MinInt16, math.MaxInt16, 1)
		if err != nil {
			return nil, err
		}
		if len(first) > 0 {
			all = append(all, head{l, int64(first[0].Priority), first[0].Job})
		}
	}
	heap.Init(&all)
	if v.crowd != nil {
		v.crowd.heads = &all
		v.crowd.until = v.crowd.until.Add(rarely * time.Since(began))
	}
	return &all, nil
}

// takeRuns reads what a claim takes from many lines of one owner: a run from the line with the lowest head, then one from the line whose head is lowest
// after that, until there are as many as the claim wants. Every run begins with the first jobs of its line and is no less urgent than the head that the line
// was chosen for, so a line is never taken out of order, and no job is claimed before a more urgent one of another line unless that one came after the heads
// were read. A job waits for at most runLength younger jobs of the same priority from each other line.
func (v *view) takeRuns(limit int, seen *sight) error {
	h, err := v.readHeads()
	if err != nil {
		return err
	}
	empty, last := map[int64]bool{}, map[int64]stand{}
	for want := limit; want > 0 && len(*h) > 0 && !seen.full; {
		top := &(*h)[0]
		s := share{line: top.line, limit: min(want, runLength), from: math.MinInt16, to: top.priority}
		if at, again := last[s.number]; again { // what this claim has read of the line already is still in it
			s.from, s.after = at.priority, at.job[:]
		}
		if err := seen.read(v, &s); err != nil {
			return err
		}
		n := len(s.row)
		if n > 0 {
			at := s.row[n-1]
			last[s.number], top.priority, top.job = at, at.priority, at.job
			seen.extend(s)
		}
		want -= n
		if n < s.limit { // no more of this priority: the next is read now, or the line is empty
			there, err := v.moveOn(top, last[s.number])
			if err != nil {
				return err
			}
			if !there {
				empty[s.number] = true
				heap.Pop(h)
				continue
			}
		}
		heap.Fix(h, 0)
	}
	if v.crowd != nil {
		v.crowd.leave(empty, v.crowd.owners)
	}
	return nil
}

// moveOn gives a head the first key of its line after what a claim takes from it. It is false when there is none.
func (v *view) moveOn(h *head, taken stand) (bool, error) {
	from, after := taken.priority, taken.job[:]
	if taken.job == (holdfast.ID{}) {
		from, after = math.MinInt16, nil
	}
	next, err := v.peekAfter(h.line, from, after, math.MaxInt16, 1)
	if err != nil || len(next) == 0 {
		return false, err
	}
	h.priority, h.job = int64(next[0].Priority), next[0].Job
	return true, nil
}

// extend adds a run to the shares of a claim: to the last share, if that is of the same line and the run goes on where it ends.
func (v *sight) extend(s share) {
	if n := len(v.shares); n > 0 && v.shares[n-1].number == s.number {
		v.shares[n-1].row = append(v.shares[n-1].row, s.row...)
		return
	}
	v.shares = append(v.shares, s)
}

// setTop tells those who enqueue which jobs would come before what claims remember.
func (p *planner) setTop() {
	var top *int64
	for _, c := range p.crowds {
		if c.heads != nil && len(*c.heads) > 0 && (top == nil || (*c.heads)[0].priority > *top) {
			priority := (*c.heads)[0].priority
			top = &priority
		}
	}
	p.top.Store(top)
}

// arrived makes the next claim look at all lines again if one of these jobs, which are committed, is more urgent than all that a claim remembers: so a claim
// after an enqueue of the same process takes the most urgent job first, in whatever line it is. Other jobs are met in their turn, or when a crowd has aged.
func (p *planner) arrived(drafts []holdfast.Draft) {
	top := p.top.Load()
	if top != nil && slices.ContainsFunc(drafts, func(d holdfast.Draft) bool { return int64(d.Priority) < *top }) {
		p.stirred.Store(true)
	}
}
