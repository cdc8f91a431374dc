package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
)

const (
	// mostReady is how much of ready is counted, in all queues together: entries of an index, some thousand of them a millisecond.
	mostReady = 50_000
	// mostElsewhere is how much is looked at where rows do not know their queue: of later, leases and dead letters each.
	mostElsewhere = 1_000
	// worthCounting is for how many jobs more in each queue the lines are counted a second time.
	worthCounting = 100
	// mostLines is how many strands of ready are looked at.
	mostLines = 5_000
	// mostQueues is how many queues are told.
	mostQueues = 5_000
)

// depthNumbers are the names of a depth's numbers, in the order in which AtLeast has them.
var depthNumbers = []string{"ready", "later", "retrying", "processing", "dead"}

// of each place outside ready, the numbers to which its rows add.
var numbersOf = map[string][]string{"later": {"ready", "later", "retrying"}, "leased": {"processing"}, "dead": {"dead"}}

// Depths tells what stands in each queue, of those in which something does. What it reads is bounded, whatever there is: what is ready is counted to
// a number that the queues share. Of the jobs that wait for their time it looks at those that are due next, of dead letters at the newest: if there
// are more of them, any queue may have more.
func (i *Inspector) Depths(ctx context.Context) ([]holdfast.Depth, error) {
	d := depths{of: map[string]*holdfast.Depth{}}
	if err := i.deepen(ctx, &d); err != nil {
		return nil, err
	}
	stood := map[string]int{} // by place
	err := i.q.Query(ctx, i.statements["inspect_depths"], []any{mostElsewhere + 1, time.Unix(0, 0), endOfTime, holdfast.ID{}, lastID}, func(r Row) error {
		d.add(r.Text(1), r.Text(2), r.Int(3), r.Time(4))
		stood[r.Text(0)] += r.Int(3)
		return nil
	})
	for place, n := range stood {
		if n > mostElsewhere {
			d.everywhere(numbersOf[place]...)
		}
	}
	return d.all(), err
}

// endOfTime and lastID come after whatever there is.
var (
	endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	lastID    = holdfast.ID(bytes.Repeat([]byte{0xff}, 16))
)

// depths are what was found so far.
type depths struct {
	of    map[string]*holdfast.Depth
	least []string // numbers that are lower bounds in every queue
}

func (d *depths) everywhere(names ...string) { d.least = append(d.least, names...) }

// queue is the depth of one queue.
func (d *depths) queue(name string) *holdfast.Depth {
	if d.of[name] == nil {
		d.of[name] = &holdfast.Depth{Queue: name}
	}
	return d.of[name]
}

// add counts jobs of one sort. First is when the oldest of them was created, or when the first of them is due.
func (d *depths) add(sort, queue string, jobs int, first time.Time) {
	q := d.queue(queue)
	switch sort {
	case "ready":
		q.Ready, q.Oldest = q.Ready+jobs, earlier(q.Oldest, first)
	case "later":
		q.Later, q.NextDue = q.Later+jobs, earlier(q.NextDue, first)
	case "retrying":
		q.Retrying, q.NextDue = q.Retrying+jobs, earlier(q.NextDue, first)
	case "processing":
		q.Processing += jobs
	case "dead":
		q.Dead += jobs
	}
}

// kinds notes a kind that has claimable jobs in a queue.
func (d *depths) kinds(queue, kind string) {
	q := d.queue(queue)
	if at, known := slices.BinarySearch(q.Kinds, kind); !known {
		q.Kinds = slices.Insert(q.Kinds, at, kind)
	}
}

// all are the depths by name.
func (d *depths) all() []holdfast.Depth {
	all := make([]holdfast.Depth, 0, len(d.of))
	for _, name := range slices.Sorted(maps.Keys(d.of)) {
		q := *d.of[name]
		least := append(q.AtLeast, d.least...)
		q.AtLeast = nil
		for _, number := range depthNumbers {
			if slices.Contains(least, number) {
				q.AtLeast = append(q.AtLeast, number)
			}
		}
		all = append(all, q)
	}
	return all
}

// deepen counts what is ready: it goes from strand to strand for the oldest job of each, and then counts the lines of each queue. Every queue is
// counted to an equal share of half of what may be counted; the queues that have more share the rest. So one that is full leaves the others exact.
func (i *Inspector) deepen(ctx context.Context, d *depths) error {
	lines, found, seen := map[string][]int{}, 0, map[int]bool{}
	err := i.q.Query(ctx, i.statements["inspect_segments"], []any{mostLines + 1}, func(r Row) error {
		queue, line := r.Text(2), r.Int(0)
		d.add("ready", queue, 0, r.Time(3))
		if !seen[line] {
			seen[line], lines[queue] = true, append(lines[queue], line)
			d.kinds(queue, r.Text(4))
		}
		found++
		return nil
	})
	if err != nil || found == 0 {
		return err
	}
	if found > mostLines {
		if err := i.unseen(ctx, d); err != nil {
			return err
		}
	}
	queues := slices.Sorted(maps.Keys(lines))
	counted, err := i.countLines(ctx, queues, lines, mostReady/2/len(queues))
	if err != nil {
		return err
	}
	left, full := mostReady, []string{}
	for n, queue := range queues {
		left -= counted[n]
		if counted[n] > mostReady/2/len(queues) {
			full = append(full, queue)
		}
		d.queue(queue).Ready += counted[n]
	}
	if len(full) == 0 || left/len(full) < worthCounting { // what they share would not tell much more
		for _, queue := range full {
			q := d.queue(queue)
			q.Ready, q.AtLeast = q.Ready-1, append(q.AtLeast, "ready")
		}
		return nil
	}
	enough := max(1, left/len(full)+mostReady/2/len(queues))
	counted, err = i.countLines(ctx, full, lines, enough)
	for n, count := range counted {
		q := d.queue(full[n])
		q.Ready += min(count, enough) - mostReady/2/len(queues) - 1
		if count > enough {
			q.AtLeast = append(q.AtLeast, "ready")
		}
	}
	return err
}

// countLines counts what is ready in the lines of each queue: at most one more than enough.
func (i *Inspector) countLines(ctx context.Context, queues []string, lines map[string][]int, enough int) ([]int, error) {
	numbered := make([][2]any, len(queues))
	for n, queue := range queues {
		numbered[n] = [2]any{n, lines[queue]}
	}
	text, err := json.Marshal(numbered)
	if err != nil {
		return nil, err
	}
	counted := make([]int, len(queues))
	return counted, i.q.Query(ctx, i.statements["inspect_line_counts"], []any{string(text), enough + 1}, func(r Row) error {
		counted[r.Int(0)] = r.Int(1)
		return nil
	})
}

// unseen adds the queues whose lines may not have been looked at, because others have too many.
func (i *Inspector) unseen(ctx context.Context, d *depths) error {
	d.everywhere("ready")
	return i.q.Query(ctx, i.statements["inspect_queues"], []any{mostQueues}, func(r Row) error {
		d.queue(r.Text(0))
		return nil
	})
}

// earlier is the earlier of two instants, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
