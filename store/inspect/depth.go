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
	// mostDeep is where counting what is ready in a queue stops.
	mostDeep = 10_000
	// mostElsewhere is how much is looked at where rows do not know their queue: of later, leases and dead letters each.
	mostElsewhere = 2_000
	// mostStood is how much of ready is counted in all queues together, or nearly.
	mostStood = 50_000
	// mostLines is how many strands of ready are looked at.
	mostLines = 1_000
)

// Depths tells what stands in each queue, of those in which something does. Of the jobs that wait for their time it looks at those that are due
// next, of dead letters at the newest: if there are more of them, any queue may have more.
func (i *Inspector) Depths(ctx context.Context) ([]holdfast.Depth, error) {
	d := depths{of: map[string]*holdfast.Depth{}}
	if err := i.deepen(ctx, &d); err != nil {
		return nil, err
	}
	stood := map[string]int{} // by place
	err := i.q.Query(ctx, i.statements["inspect depths"], []any{mostElsewhere + 1, time.Unix(0, 0), endOfTime, holdfast.ID{}, lastID}, func(r Row) error {
		d.add(r.Text(1), r.Text(2), r.Int(3), r.Time(4))
		stood[r.Text(0)] += r.Int(3)
		return nil
	})
	for _, n := range stood {
		d.more = d.more || n > mostElsewhere
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
	of   map[string]*holdfast.Depth
	more bool // of any queue
}

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

// all are the depths by name.
func (d *depths) all() []holdfast.Depth {
	all := make([]holdfast.Depth, 0, len(d.of))
	for _, name := range slices.Sorted(maps.Keys(d.of)) {
		q := *d.of[name]
		q.More = q.More || d.more || q.Ready > mostDeep
		q.Ready = min(q.Ready, mostDeep)
		all = append(all, q)
	}
	return all
}

// deepen counts what is ready: it goes from strand to strand for the oldest job of each, and then counts the lines of each queue until there
// is enough.
func (i *Inspector) deepen(ctx context.Context, d *depths) error {
	lines, found := map[string][]int{}, 0
	err := i.q.Query(ctx, i.statements["inspect strands"], []any{mostLines + 1}, func(r Row) error {
		queue, line := r.Text(2), r.Int(0)
		d.add("ready", queue, 0, r.Time(3))
		if !slices.Contains(lines[queue], line) {
			lines[queue] = append(lines[queue], line)
		}
		found++
		return nil
	})
	if err != nil || found == 0 {
		return err
	}
	d.more = found > mostLines
	queues := slices.Sorted(maps.Keys(lines))
	numbered := make([][2]any, len(queues))
	for n, queue := range queues {
		numbered[n] = [2]any{n, lines[queue]}
	}
	text, err := json.Marshal(numbered)
	if err != nil {
		return err
	}
	enough := min(mostDeep, max(1, mostStood/len(queues)))
	return i.q.Query(ctx, i.statements["inspect depth of lines"], []any{string(text), enough + 1}, func(r Row) error {
		queue := d.queue(queues[r.Int(0)])
		queue.Ready += min(r.Int(1), enough)
		queue.More = r.Int(1) > enough
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
