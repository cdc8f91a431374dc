package sqlite

import (
	"bytes"
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A claim that may take from more than manyLines lines takes runs of up to runLength jobs from one line after the
// other. Merging all lines job by job would read from every line at every claim.
const (
	manyLines = 16
	runLength = 16
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

// readHeads returns the first key of every line of the view. A cache remembers them, and lives the longer for it.
func (v *claimView) readHeads() (*headHeap, error) {
	if v.cache != nil && v.cache.heads != nil {
		return v.cache.heads, nil
	}
	began, all := time.Now(), make(headHeap, 0, len(v.lines))
	for _, l := range v.lines {
		first, err := v.peek(l, math.MinInt16, math.MaxInt16, 1)
		if err != nil {
			return nil, err
		}
		if len(first) > 0 {
			all = append(all, lineHead{l, int64(first[0].Priority), first[0].Job})
		}
	}
	heap.Init(&all)
	if v.cache != nil {
		v.cache.heads = &all
		v.cache.until = v.cache.until.Add(cacheAgeFactor * time.Since(began))
	}
	return &all, nil
}

// takeRuns chooses the jobs of a claim from many lines of one owner: a run from the line with the lowest head, then a
// run from the line whose head is lowest after that, until there are enough.
//
// Every run begins with the first jobs of its line, whatever was remembered, so no line is taken out of order. A run
// contains no job that is less urgent than the head for which its line was chosen, so no job is claimed before a more
// urgent one of another line, unless that one was enqueued after the heads were read (see noteEnqueued). A remembered
// head is only a lower bound: visiting its line too early costs one search. A job waits for at most runLength younger
// jobs of the same priority from each other line.
func (v *claimView) takeRuns(limit int, plan *claimPlan) error {
	h, err := v.readHeads()
	if err != nil {
		return err
	}
	empty, last := map[int64]bool{}, map[int64]readyRow{}
	for want := limit; want > 0 && len(*h) > 0 && !plan.full; {
		top := &(*h)[0]
		s := share{line: top.line, limit: min(want, runLength), from: math.MinInt16, to: top.priority}
		if at, again := last[s.number]; again { // rows that this claim has already read are still in the line
			s.from, s.after = at.priority, at.job[:]
		}
		if err := plan.readShare(v, &s); err != nil {
			return err
		}
		n := len(s.rows)
		if n > 0 {
			at := s.rows[n-1]
			last[s.number], top.priority, top.job = at, at.priority, at.job
			plan.appendRun(s)
		}
		want -= n
		if n < s.limit { // the line has no more jobs of this priority: read its next key, or drop it
			there, err := v.advance(top, last[s.number])
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
	if v.cache != nil {
		v.cache.dropEmpty(empty, v.cache.owners)
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
	next, err := v.peekAfter(h.line, from, after, math.MaxInt16, 1)
	if err != nil || len(next) == 0 {
		return false, err
	}
	h.priority, h.job = int64(next[0].Priority), next[0].Job
	return true, nil
}

// appendRun adds a run to the plan: to the last share if that is of the same line, otherwise as a new share.
func (v *claimPlan) appendRun(s share) {
	if n := len(v.shares); n > 0 && v.shares[n-1].number == s.number {
		v.shares[n-1].rows = append(v.shares[n-1].rows, s.rows...)
		return
	}
	v.shares = append(v.shares, s)
}

// publishCachedPriority tells enqueues which priority would come before everything that claims remember.
func (p *claimPlanner) publishCachedPriority() {
	var top *int64
	for _, c := range p.caches {
		if c.heads != nil && len(*c.heads) > 0 && (top == nil || (*c.heads)[0].priority > *top) {
			priority := (*c.heads)[0].priority
			top = &priority
		}
	}
	p.cachedPriority.Store(top)
}

// noteEnqueued drops the caches before the next claim if one of these committed jobs is more urgent than everything
// they remember. So a claim that follows an enqueue of the same process takes the most urgent job first, whichever line
// it is in. Other new jobs are met in their line's turn, or when the cache has expired.
func (p *claimPlanner) noteEnqueued(drafts []holdfast.Draft) {
	top := p.cachedPriority.Load()
	if top != nil && slices.ContainsFunc(drafts, func(d holdfast.Draft) bool { return int64(d.Priority) < *top }) {
		p.cacheOutdated.Store(true)
	}
}
