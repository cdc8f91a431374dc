package console

import (
	"cmp"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// mountQueues mounts the queues page and the actions on holds and shares.
func (c *Console) mountQueues() {
	c.handlePage("/queues", queuesScreen)
	c.handleAction("/holds/place", apikey.Operator, placeHold)
	c.handleAction("/holds/lift", apikey.Operator, liftHold)
	c.handleAction("/shares/set", apikey.Operator, setShare)
}

const (
	queuePace    = 15 * time.Minute // time over which the pace of a queue is measured
	maxQueueRows = 200              // queues on the page, because callers can invent any number of queues
)

// A queuePage is the data of the queues page.
type queuePage struct {
	Find    string // only queues whose name contains this
	All     int    // queues that match, of which Rows has the first
	Rows    []queueRow
	Holds   []holdRow
	Lines   []store.HeldLine // lines of order keys that dead letters hold
	Shares  []shareRow
	Minutes int // time over which the pace is measured
	More    bool
	Longer  bool // there are more held lines than the page lists
}

// A shareRow is the weight of an owner.
type shareRow struct {
	ops.Share
	Jobs string // URL of the jobs of the owner
}

// A queueRow is a queue with its depth, pace, workers and holds.
type queueRow struct {
	store.Depth
	Anchor   string
	Lag      time.Duration // how long the oldest ready job has waited
	Pace     float64       // ended attempts per minute
	Bad      float64       // fraction of them that failed
	Ended    int
	Spark    template.HTML
	Workers  int
	Slots    int
	NoWorker bool // jobs are ready and no worker claims from the queue
	Paused   *holdRow
	Limits   []holdRow // holds that slow it down without stopping it
	NextAt   time.Time // when the next scheduled job or retry is due, if in the future

	AllTo, ReadyTo, RetryingTo, ProcessingTo, DeadTo string
}

// queuesScreen renders the queues page.
func queuesScreen(q *request) (page, error) {
	depths, err := q.operator.Depths(q.ctx)
	if err != nil {
		return page{}, err
	}
	trends, err := q.operator.Trends(q.ctx, queuePace, time.Minute)
	if err != nil {
		return page{}, err
	}
	workers, err := q.operator.Workers(q.ctx)
	if err != nil {
		return page{}, err
	}
	holds, err := q.operator.Holds(q.ctx)
	if err != nil {
		return page{}, err
	}
	shown := queuePage{Minutes: int(queuePace.Minutes())}
	if shown.Lines, shown.Longer, err = q.operator.HeldLines(q.ctx); err != nil {
		return page{}, err
	}
	shares, err := q.operator.Shares(q.ctx)
	if err != nil {
		return page{}, err
	}
	for _, one := range shares {
		shown.Shares = append(shown.Shares, shareRow{one, q.jobs(queryPart{"owner", one.Owner}.String())})
	}
	rows := queueRows{}
	for _, one := range depths {
		rows.of(one.Queue).Depth = one
		shown.More = shown.More || len(one.AtLeast) > 0
	}
	rows.addWorkers(workers)
	rows.addTrends(trends, q.now)
	for n, one := range holds {
		row := q.holdRow(one, n)
		if !rows.addHold(row) {
			shown.Holds = append(shown.Holds, row)
		}
	}
	slices.SortStableFunc(shown.Holds, func(a, b holdRow) int { return cmp.Compare(b.Behind, a.Behind) })
	shown.Find = q.text("find")
	maps.DeleteFunc(rows, func(name string, _ *queueRow) bool { return !strings.Contains(name, shown.Find) })
	shown.Rows, shown.All = rows.all(q), len(rows)
	shown.Rows = shown.Rows[:min(len(shown.Rows), maxQueueRows)]
	return page{name: "queues", title: "Queues", topics: []string{"jobs", "holds", "workers"}, data: shown}, nil
}

// queueRows are the rows by queue name.
type queueRows map[string]*queueRow

func (r queueRows) of(name string) *queueRow {
	if r[name] == nil {
		r[name] = &queueRow{Depth: store.Depth{Queue: name}}
	}
	return r[name]
}

// addWorkers adds the workers of each queue.
func (r queueRows) addWorkers(workers []store.WorkerInfo) {
	for _, one := range workers {
		for _, name := range one.Queues {
			row := r.of(name)
			row.Workers++
			row.Slots += one.Slots
		}
	}
}

// addTrends adds the recently ended attempts.
func (r queueRows) addTrends(trends []store.Trend, now time.Time) {
	steps := map[string][]int{}
	bad := map[string]int{}
	first := now.Add(-queuePace)
	for _, one := range trends {
		if one.Queue == "" {
			continue // settled by a program that does not say the queue
		}
		series := steps[one.Queue]
		if series == nil {
			series = make([]int, int(queuePace/time.Minute))
			steps[one.Queue] = series
		}
		ended := one.Complete + one.Failed + one.Retried + one.Cancelled
		at := int(one.Step.Sub(first) / time.Minute)
		series[min(max(at, 0), len(series)-1)] += ended // clocks differ slightly: count steps just outside the range at its edge
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

// addHold adds a hold to the queues that it covers, and reports whether it is on exactly one queue. A pattern covers many queues, so the page lists it
// separately as well.
func (r queueRows) addHold(one holdRow) bool {
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

// all returns the rows: those that need attention first, then by name.
func (r queueRows) all(q *request) (rows []queueRow) {
	for _, name := range slices.Sorted(maps.Keys(r)) {
		row := *r[name]
		of := queryPart{"queue", name}.String()
		row.Anchor, row.NoWorker = "q-"+name, row.Workers == 0 && row.Ready > 0
		if !row.Oldest.IsZero() {
			row.Lag = max(q.now.Sub(row.Oldest), 0)
		}
		if row.NextDue.After(q.now) {
			row.NextAt = row.NextDue
		}
		row.AllTo, row.ReadyTo, row.RetryingTo = q.jobs(of), q.jobs("state:queued", of), q.jobs("is:retrying", of)
		row.ProcessingTo, row.DeadTo = q.jobs("state:processing", of), q.jobs("is:dead", of)
		rows = append(rows, row)
	}
	urgent := func(row queueRow) int {
		switch {
		case row.Paused != nil:
			return 0
		case row.NoWorker:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(rows, func(a, b queueRow) int { return cmp.Compare(urgent(a), urgent(b)) })
	return rows
}
