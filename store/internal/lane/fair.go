package lane

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"

	"github.com/holdfastdev/holdfast"
)

// quantum is how many jobs of one owner a large claim takes at a turn: a turn costs a look into the owner's lanes.
const quantum = 16

// A Key is a place in the order of claims within a line: priority first, then age.
type Key struct {
	Priority int16
	Job      holdfast.ID
}

func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Priority, o.Priority), slices.Compare(k.Job[:], o.Job[:]))
}

// A Share is what a claim takes from one line: its first jobs, or the first of one priority.
type Share struct {
	Lane     *Lane
	Line     int64  // the lane's id, negative for its retries
	Priority *int16 // nil: whatever comes first
	Jobs     int
}

// Retries reports whether the line is that of the lane's retries.
func (s *Share) Retries() bool { return s.Line < 0 }

// A Head is the beginning of a share's line, as far as the store looked.
type Head struct {
	Share
	Keys []Key
	More bool // there may be more behind them
}

// Turns remembers how much every owner has had of late, so that owners share by weight over many claims. It is each process's
// own: processes need not agree, for each of them is fair.
type Turns struct {
	mu     sync.Mutex
	had    map[string]float64 // jobs by weight; what everybody has had is forgotten
	served float64            // what the owner served last has had: one who comes back starts there
	claims int

	others  bool    // some were not chosen for the claim under way,
	waiting float64 // and the first of them has had this much: nobody may be thought to have had more

	evens  map[string]int // how often an owner was served evenly: so far along its heads it begins the next time
	before standing       // the last pick
}

// A standing is what owners had had, as far as a pick changed it.
type standing struct {
	had    map[string]float64
	served float64
	even   bool
}

// most bounds what Turns remembers.
const most = 100_000

// Guard reports whether this claim is the one in sixteen that shares evenly between priorities.
func (t *Turns) Guard() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	block, at := t.claims/16, t.claims%16
	t.claims++
	return at == (15+5*block)%16 // not always the same place, or it would always be the same owner's turn
}

// Owners is how many owners a claim of so many jobs should come from, if there are so many.
func Owners(jobs int) int { return max(min(jobs, 32), (jobs+quantum-1)/quantum) }

// Next chooses the owners whose turn it is, of those that have something to take, for a claim of so many jobs. Only their
// lanes need to be looked into, to the depth of its second answer; unless that is not enough.
func (t *Turns) Next(owners []string, jobs int) (turn map[string]bool, depth int) {
	chosen := t.Choose(owners, jobs)
	turn = make(map[string]bool, len(chosen))
	for _, owner := range chosen {
		turn[owner] = true
	}
	return turn, jobs/max(len(turn), 1) + 1
}

// Choose is Next in the order of their turns: who has had least comes first, when there are more than are chosen.
func (t *Turns) Choose(owners []string, jobs int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := Owners(jobs)
	if t.others = len(owners) > n; !t.others {
		return owners
	}
	had := make([]float64, len(owners))
	for i, owner := range owners {
		had[i] = t.of(owner)
	}
	order := slices.Sorted(slices.Values(had))
	t.waiting = order[n]
	below, _ := slices.BinarySearch(order, t.waiting)
	chosen, alike := make([]int, 0, n), n-below
	for i := range owners {
		switch {
		case had[i] < t.waiting:
			chosen = append(chosen, i)
		case had[i] == t.waiting && alike > 0:
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

func (t *Turns) of(owner string) float64 { return max(t.had[owner], t.served) }

// Had is how much an owner counts as having had: who has had least is next, and each job adds one over the owner's weight.
func (t *Turns) Had(owner string) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of(owner)
}

// An Order is what a pick goes by besides the heads.
type Order struct {
	Jobs    int
	Weights map[string]float64 // of owners; 1 where nothing is said
	Even    bool               // heads are of one priority each and take turns, so that none starves
}

// Pick divides a claim among the heads: owner by owner in fair turns, in each the first job that the valves let through. The
// answer is the shares to take, and whether deeper heads would have changed it: somebody had more than could be seen, and the
// others were served in its place.
func (t *Turns) Pick(heads []Head, v *Valves, o Order) (shares []Share, deeper bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := t.line(heads, o)
	t.before = standing{map[string]float64{}, t.served, o.Even}
	left := o.Jobs
	for left > 0 && len(line) > 0 {
		next := line[0]
		h := next.best(v, o.Even)
		if h == nil {
			deeper = deeper || next.more(v)
			heap.Pop(&line)
			continue
		}
		v.take(h.Lane, h.Retries(), 1)
		h.Jobs++
		left--
		t.serve(next)
		heap.Fix(&line, 0)
	}
	for _, h := range heads {
		if h.Jobs > 0 {
			shares = append(shares, h.Share)
		}
	}
	return shares, deeper
}

// Undo takes back what the last pick counted: nothing of it was taken. A store that picks again after a deeper look, or whose
// picked jobs were gone, says so; it lets nobody else pick in between.
func (t *Turns) Undo() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, had := range t.before.had {
		t.had[name] = had
		if t.before.even {
			t.evens[name]--
		}
	}
	if t.before.had != nil {
		t.served = t.before.served
	}
	t.before = standing{}
}

// Return takes back what was counted for shares that came to nothing: the plan was void, or somebody else was faster.
func (t *Turns) Return(missed []Share, weights map[string]float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, share := range missed {
		if had, known := t.had[share.Lane.Owner]; known {
			t.had[share.Lane.Owner] = had - float64(share.Jobs)/weightOf(weights, share.Lane.Owner)
		}
	}
}

// weightOf is an owner's weight: 1 where nothing is said.
func weightOf(weights map[string]float64, owner string) float64 {
	if w := weights[owner]; w > 0 {
		return w
	}
	return 1
}

// serve counts a job against its owner's turn.
func (t *Turns) serve(o *owner) {
	if _, met := t.before.had[o.name]; !met {
		t.before.had[o.name] = t.had[o.name]
		if t.before.even {
			t.evens[o.name]++
		}
	}
	had := o.had
	if t.others {
		had = min(had, t.waiting)
	}
	t.served = max(t.served, had)
	o.had += 1 / o.weight
	if t.had == nil || len(t.had) > most {
		t.had = map[string]float64{}
	}
	t.had[o.name] = o.had
}

// An owner is one of those between whom a claim is divided.
type owner struct {
	name   string
	had    float64
	weight float64
	order  int
	heads  []*Head
}

// best is the head whose next job is taken next. There is none when the valves let nothing through, or when a head is used up
// behind which the next may be.
func (o *owner) best(v *Valves, even bool) (best *Head) {
	for _, h := range o.heads {
		if v.Room(h.Lane, h.Retries()) < 1 || h.Jobs >= len(h.Keys) && (even || !h.More) {
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
		case h.Keys[h.Jobs].compare(best.Keys[best.Jobs]) < 0:
			best = h
		}
	}
	return best
}

// more reports whether a head was used up that may have more behind it.
func (o *owner) more(v *Valves) bool {
	return slices.ContainsFunc(o.heads, func(h *Head) bool {
		return h.More && h.Jobs >= len(h.Keys) && v.Room(h.Lane, h.Retries()) > 0
	})
}

// line puts the owners of the heads in the order of their turns.
func (t *Turns) line(heads []Head, o Order) queue {
	owners := map[string]*owner{}
	var line queue
	for i := range heads {
		h := &heads[i]
		h.Jobs = 0
		of := owners[h.Lane.Owner]
		if of == nil {
			of = &owner{name: h.Lane.Owner, had: t.of(h.Lane.Owner), weight: weightOf(o.Weights, h.Lane.Owner), order: len(line)}
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

// rotate has every owner begin at another head than the last time, for a claim may take a single job.
func (t *Turns) rotate(line queue) {
	if t.evens == nil || len(t.evens) > most {
		t.evens = map[string]int{}
	}
	for _, o := range line {
		n := t.evens[o.name] % len(o.heads)
		o.heads = slices.Concat(o.heads[n:], o.heads[:n])
	}
}

// A queue is a heap of owners: who has had least comes first.
type queue []*owner

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].had < q[j].had || q[i].had == q[j].had && q[i].order < q[j].order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*owner)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
