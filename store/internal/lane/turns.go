package lane

import (
	"bytes"
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sync"

	"github.com/holdfastdev/holdfast"
)

// quantum is how many jobs of one owner a large claim takes at a turn, because each turn costs a read of the owner's
// lanes.
const quantum = 16

// A Key is a position in the order of claims within a line: priority first, then age.
type Key struct {
	Priority int16
	Job      holdfast.ID
}

// Compare returns a negative number if k comes before o, a positive one if it comes after o, and 0 if they are equal.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Priority, o.Priority), bytes.Compare(k.Job[:], o.Job[:]))
}

// A Share is what a claim takes from one line: its first jobs, or the first jobs of one priority.
type Share struct {
	Lane     *Lane
	Line     int64  // the lane's id, negative for its retries
	Priority *int16 // nil: whatever comes first
	Jobs     int
}

// Retries reports whether the line is that of the lane's retries.
func (s *Share) Retries() bool { return s.Line < 0 }

// Priorities returns the lowest and the highest priority of the jobs that the share may take.
func (s *Share) Priorities() (low, high int16) {
	if s.Priority != nil {
		return *s.Priority, *s.Priority
	}
	return math.MinInt16, math.MaxInt16
}

// Total returns how many jobs the shares take together.
func Total(shares []Share) (jobs int) {
	for i := range shares {
		jobs += shares[i].Jobs
	}
	return jobs
}

// A Head is the first keys of a share's line, as far as the store has read them.
type Head struct {
	Share
	Keys []Key
	More bool // there may be more keys behind them
}

// Turns remembers how many jobs each owner has had recently, so that owners share by weight over many claims (weighted
// virtual time). Each process has its own; processes need not agree, because each is fair by itself. A Turns is safe
// for concurrent use, but see Undo.
type Turns struct {
	mu     sync.Mutex
	had    map[string]float64 // jobs divided by weight; an owner that is missing or has had less counts as having had served
	served float64            // what the owner served last had had: an owner that was idle starts there and cannot catch up
	claims int

	moreOwners   bool    // some owners were not chosen for the present claim,
	firstWaiting float64 // and the first of them has had this much, so served may not rise above it

	evens map[string]int // how often an owner was served evenly; its next even pick begins that many heads later
	undo  pickUndo       // the state before the last pick, for Undo
}

// A pickUndo is what a pick changed: the state of Turns before it.
type pickUndo struct {
	had    map[string]float64
	served float64
	even   bool
}

// maxOwners bounds how many owners Turns remembers.
const maxOwners = 100_000

// Guard reports whether this claim shares evenly between priorities, as one claim in sixteen does so that no priority
// starves.
func (t *Turns) Guard() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	block, at := t.claims/16, t.claims%16
	t.claims++
	return at == (15+5*block)%16 // the position moves, or it would always meet the same owner
}

// Owners returns from how many owners a claim of this many jobs should take, if there are that many.
func Owners(jobs int) int { return max(min(jobs, 32), (jobs+quantum-1)/quantum) }

// Next chooses the owners whose turn it is in a claim of this many jobs. owners are those that have jobs to take. Only
// the chosen owners' lanes need to be read, to the returned depth, unless that is not enough.
func (t *Turns) Next(owners []string, jobs int) (turn map[string]bool, depth int) {
	chosen := t.Choose(owners, jobs)
	turn = make(map[string]bool, len(chosen))
	for _, owner := range chosen {
		turn[owner] = true
	}
	return turn, jobs/max(len(turn), 1) + 1
}

// Choose is Next in the order of the turns: if not all owners are chosen, the owner that has had least comes first.
func (t *Turns) Choose(owners []string, jobs int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := Owners(jobs)
	if t.moreOwners = len(owners) > n; !t.moreOwners {
		return owners
	}
	had := make([]float64, len(owners))
	for i, owner := range owners {
		had[i] = t.hadBy(owner)
	}
	order := slices.Sorted(slices.Values(had))
	t.firstWaiting = order[n]
	below, _ := slices.BinarySearch(order, t.firstWaiting)
	chosen, alike := make([]int, 0, n), n-below
	for i := range owners {
		switch {
		case had[i] < t.firstWaiting:
			chosen = append(chosen, i)
		case had[i] == t.firstWaiting && alike > 0:
			chosen, alike = append(chosen, i), alike-1
		}
	}
	slices.SortStableFunc(chosen, func(a, b int) int { return cmp.Compare(had[a], had[b]) })
	names := make([]string, len(chosen))
	for i, at := range chosen {
		names[i] = owners[at]
	}
	return names
}

func (t *Turns) hadBy(owner string) float64 { return max(t.had[owner], t.served) }

// Had returns how much an owner counts as having had. The owner with the least is next; each job adds one divided by
// the owner's weight.
func (t *Turns) Had(owner string) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hadBy(owner)
}

// An Order is what a pick depends on besides the heads.
type Order struct {
	Jobs    int
	Weights map[string]float64 // of owners; 1 if missing
	Even    bool               // each head has one priority, and the heads take turns, so that none starves
}

// Pick divides a claim among the heads: in fair turns between owners, and in each turn the first job that the valves
// let through. It returns the shares to take, and whether deeper heads would have changed the result: an owner had more
// jobs than were read, and others were served instead.
func (t *Turns) Pick(heads []Head, v *Valves, o Order) (shares []Share, deeper bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	owners := t.ownersInTurn(heads, o)
	t.undo = pickUndo{map[string]float64{}, t.served, o.Even}
	left := o.Jobs
	for left > 0 && len(owners) > 0 {
		next := owners[0]
		h := next.nextHead(v, o.Even)
		if h == nil {
			deeper = deeper || next.mayHaveMore(v)
			heap.Pop(&owners)
			continue
		}
		v.take(h.Lane, h.Retries(), 1)
		h.Jobs++
		left--
		t.serve(next)
		heap.Fix(&owners, 0)
	}
	for _, h := range heads {
		if h.Jobs > 0 {
			shares = append(shares, h.Share)
		}
	}
	return shares, deeper
}

// Undo takes back what the last pick counted, because nothing of it is taken. A store calls it before it picks again
// with deeper heads, and when the picked jobs were gone. The store must not let another claim pick in between.
func (t *Turns) Undo() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, had := range t.undo.had {
		t.had[name] = had
		if t.undo.even {
			t.evens[name]--
		}
	}
	if t.undo.had != nil {
		t.served = t.undo.served
	}
	t.undo = pickUndo{}
}

// Return takes back what was counted for shares that were not taken: the plan was outdated, or another process was
// faster.
func (t *Turns) Return(missed []Share, weights map[string]float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, share := range missed {
		if had, known := t.had[share.Lane.Owner]; known {
			t.had[share.Lane.Owner] = had - float64(share.Jobs)/WeightOf(weights, share.Lane.Owner)
		}
	}
}

// serve counts a job against its owner's turn.
func (t *Turns) serve(o *owner) {
	if _, met := t.undo.had[o.name]; !met {
		t.undo.had[o.name] = t.had[o.name]
		if t.undo.even {
			t.evens[o.name]++
		}
	}
	had := o.had
	if t.moreOwners {
		had = min(had, t.firstWaiting)
	}
	t.served = max(t.served, had)
	o.had += 1 / o.weight
	if t.had == nil || len(t.had) > maxOwners {
		t.had = map[string]float64{}
	}
	t.had[o.name] = o.had
}

// An owner is one of the owners among which a claim is divided.
type owner struct {
	name   string
	had    float64
	weight float64
	order  int
	heads  []*Head
}

// nextHead returns the head whose next job is taken. It returns nil if the valves let nothing through, or if all keys of a
// head are taken and the next key in order may be behind them.
func (o *owner) nextHead(v *Valves, even bool) (best *Head) {
	for _, h := range o.heads {
		if v.Remaining(h.Lane, h.Retries()) < 1 || h.Jobs >= len(h.Keys) && (even || !h.More) {
			continue
		}
		if h.Jobs >= len(h.Keys) {
			return nil
		}
		switch {
		case best == nil:
			best = h
		case even:
			if h.Jobs < best.Jobs {
				best = h
			}
		case h.Keys[h.Jobs].Compare(best.Keys[best.Jobs]) < 0:
			best = h
		}
	}
	return best
}

// mayHaveMore reports whether all keys of a head are taken and there may be more behind them.
func (o *owner) mayHaveMore(v *Valves) bool {
	return slices.ContainsFunc(o.heads, func(h *Head) bool {
		return h.More && h.Jobs >= len(h.Keys) && v.Remaining(h.Lane, h.Retries()) > 0
	})
}

// ownersInTurn returns the owners of the heads in the order of their turns.
func (t *Turns) ownersInTurn(heads []Head, o Order) ownerHeap {
	owners := map[string]*owner{}
	var line ownerHeap
	for i := range heads {
		h := &heads[i]
		h.Jobs = 0
		of := owners[h.Lane.Owner]
		if of == nil {
			of = &owner{name: h.Lane.Owner, had: t.hadBy(h.Lane.Owner), weight: WeightOf(o.Weights, h.Lane.Owner), order: len(line)}
			owners[of.name] = of
			line = append(line, of)
		}
		of.heads = append(of.heads, h)
	}
	if o.Even {
		t.rotate(line)
	}
	heap.Init(&line)
	return line
}

// rotate lets every owner begin at another head than the last time, because a claim may take a single job.
func (t *Turns) rotate(line ownerHeap) {
	if t.evens == nil || len(t.evens) > maxOwners {
		t.evens = map[string]int{}
	}
	for _, o := range line {
		n := t.evens[o.name] % len(o.heads)
		o.heads = slices.Concat(o.heads[n:], o.heads[:n])
	}
}

// An ownerHeap is a heap of owners; the owner that has had least is on top.
type ownerHeap []*owner

func (q ownerHeap) Len() int { return len(q) }
func (q ownerHeap) Less(i, j int) bool {
	return q[i].had < q[j].had || q[i].had == q[j].had && q[i].order < q[j].order
}
func (q ownerHeap) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *ownerHeap) Push(x any)   { *q = append(*q, x.(*owner)) }
func (q *ownerHeap) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
