package console

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// mountOverview mounts the overview page.
func (c *Console) mountOverview() { c.handlePage("/overview", c.overview) }

// An overview is the data of the overview page.
type overview struct {
	Empty       bool // the store has no job yet
	AllClear    bool // nothing needs attention
	Spans       []choice
	Span        string
	Long        string // the span in words
	Chart       chart
	Total       bar
	Share       float64 // fraction of the ended attempts that failed
	Tiles       []tile
	ErrorGroups []errorGroupRow
	Breakers    []breakerRow
	Queues      []depthRow
	Slow        []slowRow
	Workers     int
	Unattended  []ops.Unattended // kinds with claimable jobs that no live worker handles: the first
	Others      int              // how many more there are
	Redrives    []redriveRow
}

// A tile is a number with a link to what it counts.
type tile struct {
	Title string
	Value string
	Link  string
	Note  any // a string, or HTML with a time
	State string
}

const (
	slowAfter   = 10 * time.Minute // longer attempts are shown as slow
	maxRows     = 5                // of each list
	maxScanned  = 5000             // jobs that one query of a page examines
	maxJobsRead = 100              // jobs read to find the oldest
	newWithin   = 24 * time.Hour   // an error group first seen within this time is new
)

// overview renders the overview page.
func (c *Console) overview(q *request) (page, error) {
	var (
		o      overview
		seen   snapshot
		at     span
		trends []store.Trend
		depths []store.Depth
		busy   []holdfast.Job
	)
	err := inParallel(
		func() (err error) { at, trends, err = q.recent(); return err },
		func() (err error) { depths, err = q.operator.Depths(q.ctx); return err },
		func() (err error) { seen, err = c.snapshots.now(q.ctx); return err },
		func() (err error) { busy, err = q.longRunning(); return err },
	)
	if err != nil {
		return page{}, err
	}
	all := at.bars(trends, q.now)
	o.Span, o.Long, o.Spans, o.Chart, o.Total = at.Name, at.inWords(), q.spanChoices(spans, at), q.prefs.clock().failuresChart(at, all), sum(all)
	if ended := o.Total.Complete + o.Total.Failed + o.Total.Retried; ended > 0 {
		o.Share = float64(o.Total.Failed+o.Total.Retried) / float64(ended)
	}
	o.Breakers, o.Redrives, o.Queues = q.breakerRows(seen.breakers), q.redriveRows(seen.redrives), q.depthRows(depths)
	o.Workers, o.Slow = len(seen.workers), slowRows(busy, seen.workers)
	o.Unattended, o.Others = unattendedRows(depths, seen.workers)
	err = inParallel(
		func() (err error) { o.Tiles, err = q.tiles(depths, seen); return err },
		func() (err error) { o.ErrorGroups, err = q.newErrorGroups(seen); return err },
	)
	o.AllClear = !seen.NeedsAttention() && len(o.Slow) == 0 && len(o.Unattended) == 0 && len(o.Breakers) == 0
	if err == nil && o.Total == (bar{}) && len(depths) == 0 {
		var jobs []holdfast.Job
		jobs, _, err = q.operator.Jobs(q.ctx, store.Filter{Limit: 1})
		o.Empty = len(jobs) == 0
	}
	return page{name: "overview", title: "Overview", topics: []string{"jobs", "failures", "breakers", "redrives", "workers"}, data: o}, err
}

// recent returns the trends of the chosen span. If none was chosen and the first trend is young, it uses the shortest span.
func (q *request) recent() (span, []store.Trend, error) {
	at, err := q.chosenSpan(spans, spans[1].Name)
	if err != nil {
		return at, nil, err
	}
	trends, err := q.operator.Trends(q.ctx, at.within, at.step)
	if q.text("span") == "" && len(trends) > 0 && trends[0].Step.After(q.now.Add(-spans[0].within)) {
		at = spans[0]
	}
	return at, trends, err
}

// tiles returns the numbers at the top of the page.
func (q *request) tiles(depths []store.Depth, seen snapshot) ([]tile, error) {
	whole, lagging := totals(depths)
	dead, err := q.deadTile(seen.Dead)
	if err != nil {
		return nil, err
	}
	tiles := []tile{dead, {Title: "Waiting for retry", Value: depthCount(whole, "retrying", whole.Retrying), Link: q.jobs("is:retrying"), Note: "No job waits for a retry"}}
	if whole.Retrying > 0 {
		tiles[1].Note = q.dueNote("Next due ", "Next is due now", whole.NextDue)
	}
	held := 0
	for _, one := range seen.breakers {
		held += one.Behind
	}
	tiles = append(tiles,
		tile{Title: "Held by breakers", Value: capped(held), Link: q.link("/breakers"), Note: "They use no attempts", State: toneIf(held > 0, "hold")},
		tile{Title: "Open breakers", Value: num(seen.Open), Link: q.link("/breakers"), Note: "of " + plural(len(seen.breakers), "dependency"), State: toneIf(seen.Open > 0, "bad")},
	)
	lag := tile{Title: "Queue lag", Value: "0 s", Link: q.link("/queues"), Note: "No job waits for a worker"}
	if !lagging.Oldest.IsZero() {
		lag.Value, lag.Note, lag.Link = coarse(max(0, q.now.Sub(lagging.Oldest))), "Oldest ready job, in "+lagging.Queue, q.queue(lagging.Queue)
	}
	busy := tile{Title: "Processing", Value: depthCount(whole, "processing", whole.Processing), Link: q.jobs("state:processing"), Note: "of " + plural(whole.Ready+whole.Processing, "runnable job")}
	return append(tiles, lag, busy), nil
}

// toneIf returns the colour if the condition holds.
func toneIf(condition bool, name string) string {
	if condition {
		return name
	}
	return ""
}

// totals returns the sum of all queues, and the queue whose oldest ready job has waited longest.
func totals(depths []store.Depth) (whole, lagging store.Depth) {
	for _, one := range depths {
		whole.Ready += one.Ready
		whole.Later += one.Later
		whole.Retrying += one.Retrying
		whole.Processing += one.Processing
		whole.Dead += one.Dead
		whole.AtLeast = append(whole.AtLeast, one.AtLeast...)
		if one.Retrying > 0 && !one.NextDue.IsZero() && (whole.NextDue.IsZero() || one.NextDue.Before(whole.NextDue)) {
			whole.NextDue = one.NextDue
		}
		if !one.Oldest.IsZero() && (lagging.Oldest.IsZero() || one.Oldest.Before(lagging.Oldest)) {
			lagging = one
		}
	}
	return whole, lagging
}

// deadTile returns the tile for n dead letters, with the age of the oldest. If there are more than maxJobsRead it shows a minimum age.
func (q *request) deadTile(n int) (tile, error) {
	t := tile{Title: "Dead letters", Value: "0", Link: q.link("/dead-letters"), Note: "No job failed for good"}
	if n == 0 {
		return t, nil
	}
	t.Value, t.State = capped(n), "bad"
	jobs, more, err := q.operator.Jobs(q.ctx, store.Filter{DeadLetters: true, Limit: maxJobsRead})
	if err != nil || len(jobs) == 0 {
		return t, err
	}
	oldest := slices.MinFunc(jobs, func(a, b holdfast.Job) int { return a.FinishedAt.Compare(b.FinishedAt) }).FinishedAt
	if t.Note = q.timeNote("Oldest ", oldest); more != "" {
		t.Note = "Oldest " + coarse(q.now.Sub(oldest)) + " ago or more"
	}
	return t, nil
}

// A redriveRow is a redrive that runs or is paused.
type redriveRow struct {
	ID     holdfast.ID
	State  redrive.State
	Why    string
	By     string
	Counts store.RedriveCounts
	Parts  []part
}

// redriveRows returns the redrives that run or are paused, and those that stopped automatically in the last 24 hours.
func (q *request) redriveRows(all []redrive.Progress) (rows []redriveRow) {
	for _, one := range all {
		if one.State != redrive.Running && one.State != redrive.Paused && one.State != redrive.Stopped || len(rows) == maxRows {
			continue
		}
		if one.State == redrive.Stopped && q.now.Sub(one.EndedAt) > newWithin {
			continue
		}
		t := one.Counts
		rows = append(rows, redriveRow{one.ID, one.State, one.Why, one.Spec.Actor, t, []part{
			{t.Complete, "good", plural(t.Complete, "job") + " complete"}, {t.InFlight, "accent", num(t.InFlight) + " in progress"}, {t.Failed, "bad", num(t.Failed) + " failed again"},
		}})
	}
	return rows
}

// A depthRow is a queue with its depth.
type depthRow struct {
	store.Depth
	Link string
	Lag  time.Duration
}

// depthRows returns the queues with the longest lag, then the deepest.
func (q *request) depthRows(depths []store.Depth) (rows []depthRow) {
	for _, one := range depths {
		row := depthRow{Depth: one, Link: q.queue(one.Queue)}
		if !one.Oldest.IsZero() {
			row.Lag = max(0, q.now.Sub(one.Oldest).Truncate(time.Second))
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b depthRow) int { return cmp.Or(cmp.Compare(b.Lag, a.Lag), cmp.Compare(b.Ready, a.Ready)) })
	return rows[:min(len(rows), 2*maxRows)]
}

// unattendedRows returns the first kinds that no live worker handles, and how many more there are: callers can invent any number of queues and kinds.
func unattendedRows(depths []store.Depth, workers []store.WorkerInfo) (rows []ops.Unattended, others int) {
	rows = ops.FindUnattended(depths, workers)
	others = max(0, len(rows)-4*maxRows)
	return rows[:len(rows)-others], others
}
