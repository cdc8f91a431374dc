package console

import (
	"cmp"
	"html/template"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// mountQueues mounts the page of queues, and with it everything that keeps jobs back or divides what there is.
func (c *Console) mountQueues() {
	c.see("/queues", queuesScreen)
	c.do("/holds/place", apikey.Operator, placeHold)
	c.do("/holds/lift", apikey.Operator, liftHold)
	c.do("/shares/set", apikey.Operator, setShare)
}

// queuePace is over how long the pace of a queue is measured.
const queuePace = 15 * time.Minute

// A queuePage is all queues, all holds and all shares.
type queuePage struct {
	Rows    []queueLine
	Holds   []holdRow
	Shares  []shareRow
	Minutes int // over which the pace is measured
	More    bool
}

// A shareRow is the weight of an owner.
type shareRow struct {
	ops.Share
	Jobs string // finds the owner's jobs
}

// A queueLine is what stands in one queue, and what comes out of it.
type queueLine struct {
	holdfast.Depth
	Anchor  string
	Lag     time.Duration // how long the oldest claimable job waits
	Pace    float64       // attempts ended a minute
	Bad     float64       // the share of them that failed
	Ended   int
	Spark   template.HTML
	Workers int
	Slots   int
	Alone   bool // jobs wait, and nobody works on them
	Paused  *holdRow
	Limits  []holdRow // what slows it down, without stopping it
	Soon    time.Time // when the first that waits for its time may start, if that is to come

	AllTo, ReadyTo, RetryingTo, ProcessingTo, DeadTo string
}

// queuesScreen shows every queue of which anything is known.
func queuesScreen(q *ask) (page, error) {
	depths, err := q.desk.Depths(q.ctx)
	if err != nil {
		return page{}, err
	}
	trends, err := q.desk.Trends(q.ctx, queuePace, time.Minute)
	if err != nil {
		return page{}, err
	}
	workers, err := q.desk.Workers(q.ctx)
	if err != nil {
		return page{}, err
	}
	holds, err := q.desk.Holds(q.ctx)
	if err != nil {
		return page{}, err
	}
	shown := queuePage{Minutes: int(queuePace.Minutes())}
	shares, err := q.desk.Shares(q.ctx)
	if err != nil {
		return page{}, err
	}
	for _, one := range shares {
		shown.Shares = append(shown.Shares, shareRow{one, q.jobs(queryPart{"owner", one.Owner}.String())})
	}
	rows := queueLines{}
	for _, one := range depths {
		rows.of(one.Queue).Depth = one
		shown.More = shown.More || len(one.AtLeast) > 0
	}
	rows.work(workers)
	rows.measure(trends, q.now)
	for n, one := range holds {
		row := q.holdRow(one, n)
		if !rows.hold(row) {
			shown.Holds = append(shown.Holds, row)
		}
	}
	slices.SortStableFunc(shown.Holds, func(a, b holdRow) int { return cmp.Compare(b.Behind, a.Behind) })
	shown.Rows = rows.all(q)
	return page{name: "queues", title: "Queues", topics: []string{"jobs", "holds", "workers"}, data: shown}, nil
}

// queueLines are what was found so far, by the name of the queue.
type queueLines map[string]*queueLine

func (r queueLines) of(name string) *queueLine {
	if r[name] == nil {
		r[name] = &queueLine{Depth: holdfast.Depth{Queue: name}}
	}
	return r[name]
}

// work notes who works on which queue.
func (r queueLines) work(workers []holdfast.Presence) {
	for _, one := range workers {
		for _, name := range one.Queues {
			row := r.of(name)
			row.Workers++
			row.Slots += one.Slots
		}
	}
}

// measure notes how many attempts ended lately.
func (r queueLines) measure(trends []holdfast.Trend, now time.Time) {
	steps := map[string][]int{}
	bad := map[string]int{}
	first := now.Add(-queuePace)
	for _, one := range trends {
		series := steps[one.Queue]
		if series == nil {
			series = make([]int, int(queuePace/time.Minute))
			steps[one.Queue] = series
		}
		ended := one.Complete + one.Failed + one.Retried + one.Cancelled
		at := int(one.Step.Sub(first) / time.Minute)
		series[min(max(at, 0), len(series)-1)] += ended // clocks differ a little: what is just outside is at the rim
		bad[one.Queue] += one.Failed + one.Retried
		r.of(one.Queue).Ended += ended
	}
	for name, series := range steps {
		row := r.of(name)
		row.Spark, row.Pace = spark(series), float64(row.Ended)/queuePace.Minutes()
		if row.Ended > 0 {
			row.Bad = float64(bad[name]) / float64(row.Ended)
		}
	}
}

// hold notes a hold on a queue where the queue stands, and reports whether it did. A pattern stands for many queues: it is shown on its own, and
// with each of them.
func (r queueLines) hold(one holdRow) bool {
	if one.Hold.Queue == "" {
		return false
	}
	if !one.Pattern {
		r.of(one.Hold.Queue)
	}
	for name, row := range r {
		switch {
		case !one.Hold.Covers(name):
		case !one.Hold.Closed() || one.Hold.Retries || row.Paused != nil:
			row.Limits = append(row.Limits, one)
		default:
			row.Paused = &one
		}
	}
	return !one.Pattern
}

// all are the rows: those that need somebody first, then by name.
func (r queueLines) all(q *ask) (rows []queueLine) {
	for _, name := range slices.Sorted(maps.Keys(r)) {
		row := *r[name]
		of := queryPart{"queue", name}.String()
		row.Anchor, row.Alone = "q-"+name, row.Workers == 0 && row.Ready > 0
		if !row.Oldest.IsZero() {
			row.Lag = max(q.now.Sub(row.Oldest), 0)
		}
		if row.NextDue.After(q.now) {
			row.Soon = row.NextDue
		}
		row.AllTo, row.ReadyTo, row.RetryingTo = q.jobs(of), q.jobs("state:queued", of), q.jobs("is:retrying", of)
		row.ProcessingTo, row.DeadTo = q.jobs("state:processing", of), q.jobs("is:dead", of)
		rows = append(rows, row)
	}
	urgent := func(row queueLine) int {
		switch {
		case row.Paused != nil:
			return 0
		case row.Alone:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(rows, func(a, b queueLine) int { return cmp.Compare(urgent(a), urgent(b)) })
	return rows
}
