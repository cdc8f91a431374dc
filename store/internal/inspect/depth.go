package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

const (
	// mostReady is how many ready jobs are counted, in all queues together. They are index entries; some thousand are
	// counted in a millisecond.
	mostReady = 50_000
	// mostElsewhere is how many rows are read of each place whose rows have no queue: later, leases and dead letters.
	mostElsewhere = 1_000
	// worthCounting is how many more jobs in each queue a second count must be able to show to be worth its time.
	worthCounting = 100
	// mostLines is how many segments of ready are read.
	mostLines = 5_000
	// mostQueues is how many queues are returned.
	mostQueues = 5_000
)

// depthNumbers are the names of a depth's numbers, in the order of AtLeast.
var depthNumbers = []string{"ready", "later", "retrying", "processing", "dead"}

// numbersOf returns, for each place outside ready, the numbers that its rows add to.
var numbersOf = map[string][]string{"later": {"ready", "later", "retrying"}, "leased": {"processing"}, "dead": {"dead"}}

// Depths returns how many jobs are in each queue that has any. What it reads is bounded, however many jobs there are.
// Ready jobs are counted up to a number that the queues share. Of the jobs that wait for their time it reads those that
// are due next, and of dead letters the newest: if there are more, every queue may have more, and AtLeast says so.
func (i *Inspector) Depths(ctx context.Context) ([]store.Depth, error) {
	d := depths{of: map[string]*store.Depth{}}
	if err := i.countReady(ctx, &d); err != nil {
		return nil, err
	}
	rows := map[string]int{} // rows by place
	err := i.q.Query(ctx, i.statements["inspect_depths"], []any{mostElsewhere + 1, time.Unix(0, 0), endOfTime, holdfast.ID{}, lastID}, func(r Row) error {
		d.add(r.Text(1), r.Text(2), r.Int(3), r.Time(4))
		rows[r.Text(0)] += r.Int(3)
		return nil
	})
	for place, n := range rows {
		if n > mostElsewhere {
			d.lowerBound(numbersOf[place]...)
		}
	}
	return d.all(), err
}

// endOfTime and lastID sort behind everything that is stored.
var (
	endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	lastID    = holdfast.ID(bytes.Repeat([]byte{0xff}, 16))
)

// depths is what was found so far.
type depths struct {
	of    map[string]*store.Depth
	least []string // numbers that are lower bounds in every queue
}

func (d *depths) lowerBound(names ...string) { d.least = append(d.least, names...) }

// queue returns the depth of one queue.
func (d *depths) queue(name string) *store.Depth {
	if d.of[name] == nil {
		d.of[name] = &store.Depth{Queue: name}
	}
	return d.of[name]
}

// add counts jobs of one sort. first is when the oldest of them was created, or when the first of them is due.
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

// addKind notes that a kind has ready jobs in a queue.
func (d *depths) addKind(queue, kind string) {
	q := d.queue(queue)
	if at, known := slices.BinarySearch(q.Kinds, kind); !known {
		q.Kinds = slices.Insert(q.Kinds, at, kind)
	}
}

// all returns the depths, ordered by queue.
func (d *depths) all() []store.Depth {
	all := make([]store.Depth, 0, len(d.of))
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

// countReady counts ready jobs: it goes from segment to segment for the oldest job of each, and then counts the lines
// of each queue. Each queue is counted up to an equal part of half the total; the queues that have more share the rest.
// So a very full queue does not make the counts of the others inexact.
func (i *Inspector) countReady(ctx context.Context, d *depths) error {
	lines, found, seen := map[string][]int{}, 0, map[int]bool{}
	err := i.q.Query(ctx, i.statements["inspect_segments"], []any{mostLines + 1}, func(r Row) error {
		queue, line := r.Text(2), r.Int(0)
		d.add("ready", queue, 0, r.Time(3))
		if !seen[line] {
			seen[line], lines[queue] = true, append(lines[queue], line)
			d.addKind(queue, r.Text(4))
		}
		found++
		return nil
	})
	if err != nil || found == 0 {
		return err
	}
	if found > mostLines {
		if err := i.addUnseenQueues(ctx, d); err != nil {
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
	if len(full) == 0 || left/len(full) < worthCounting { // a second count would not show much more
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

// countLines counts the ready jobs in the lines of each queue: at most one more than enough.
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

// addUnseenQueues adds the queues whose lines may not have been read, because there are too many.
func (i *Inspector) addUnseenQueues(ctx context.Context, d *depths) error {
	d.lowerBound("ready")
	return i.q.Query(ctx, i.statements["inspect_queues"], []any{mostQueues}, func(r Row) error {
		d.queue(r.Text(0))
		return nil
	})
}

// earlier returns the earlier of two instants; a zero instant is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
