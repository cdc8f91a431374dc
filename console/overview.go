package console

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
)

// mountOverview mounts the page that shows how things are.
func (c *Console) mountOverview() { c.see("/overview", c.overview) }

// An overview is how things are, each in a few lines that lead on.
type overview struct {
	Fresh    bool // there is no job yet
	Calm     bool // nothing needs anybody
	Spans    []choice
	Span     string
	Long     string // the span in words
	Chart    chart
	Whole    bar
	Share    float64 // of the attempts that ended, how many failed
	Tiles    []tile
	Troubles []troubleRow
	Breakers []barrierRow
	Queues   []depthRow
	Slow     []slowRow
	Workers  int
	Unmanned []ops.Unattended // kinds with claimable jobs that no live worker handles
	Redrives []runningRow
}

// A tile is a number that leads to what it counts.
type tile struct {
	Title string
	Value string
	Link  string
	Note  any // a text, or an instant as pages show it
	State string
}

const (
	longRun     = 10 * time.Minute // an attempt that takes longer is shown
	mostRows    = 5                // of each list
	mostLooked  = 5000             // jobs that a question on a page may look at
	mostAlone   = 100              // jobs that are read to find the oldest
	newTroubles = 24 * time.Hour   // an error group that was first seen within this is new
)

// overview shows how things are.
func (c *Console) overview(q *ask) (page, error) {
	var (
		o      overview
		seen   glance
		at     span
		trends []holdfast.Trend
		depths []holdfast.Depth
		busy   []holdfast.Job
	)
	err := atOnce(
		func() (err error) { at, trends, err = q.recent(); return err },
		func() (err error) { depths, err = q.desk.Depths(q.ctx); return err },
		func() (err error) { seen, err = c.pulse.now(q.ctx); return err },
		func() (err error) { busy, err = q.longest(); return err },
	)
	if err != nil {
		return page{}, err
	}
	all := at.bars(trends, q.now)
	o.Span, o.Long, o.Spans, o.Chart, o.Whole = at.Name, at.long(), q.spanChoices(spans, at), q.prefs.clock().failuresChart(at, all), sum(all)
	if ended := o.Whole.Complete + o.Whole.Failed + o.Whole.Retried; ended > 0 {
		o.Share = float64(o.Whole.Failed+o.Whole.Retried) / float64(ended)
	}
	o.Breakers, o.Redrives, o.Queues = q.barrierRows(seen.breakers), q.running(seen.redrives), q.depthRows(depths)
	o.Workers, o.Unmanned, o.Slow = len(seen.workers), ops.UnattendedOf(depths, seen.workers), slowest(busy, seen.workers)
	err = atOnce(
		func() (err error) { o.Tiles, err = q.tiles(depths, seen); return err },
		func() (err error) { o.Troubles, err = q.newTroubles(seen); return err },
	)
	o.Calm = !seen.Wrong() && len(o.Slow) == 0 && len(o.Unmanned) == 0 && len(o.Breakers) == 0
	if err == nil && o.Whole == (bar{}) && len(depths) == 0 {
		var jobs []holdfast.Job
		jobs, _, err = q.desk.Jobs(q.ctx, holdfast.Filter{Limit: 1})
		o.Fresh = len(jobs) == 0
	}
	return page{name: "overview", title: "Overview", topics: []string{"jobs", "failures", "breakers", "redrives", "workers"}, data: o}, err
}

// recent are the trends of the span that was chosen. When none was, a store that has just begun is shown closely.
func (q *ask) recent() (span, []holdfast.Trend, error) {
	at, err := q.chosenSpan(spans, spans[1].Name)
	if err != nil {
		return at, nil, err
	}
	trends, err := q.desk.Trends(q.ctx, at.within, at.step)
	if q.text("span") == "" && len(trends) > 0 && trends[0].Step.After(q.now.Add(-spans[0].within)) {
		at = spans[0]
	}
	return at, trends, err
}

// tiles are the numbers at the top.
func (q *ask) tiles(depths []holdfast.Depth, seen glance) ([]tile, error) {
	whole, lagging := together(depths)
	dead, err := q.deadTile(seen.Dead)
	if err != nil {
		return nil, err
	}
	tiles := []tile{dead, {Title: "Waiting for retry", Value: least(whole, "retrying", whole.Retrying), Link: q.jobs("is:retrying"), Note: "Nothing waits for a retry"}}
	if whole.Retrying > 0 {
		tiles[1].Note = q.soon("Next due ", "The next is due now", whole.NextDue)
	}
	held := 0
	for _, one := range seen.breakers {
		held += one.Behind
	}
	tiles = append(tiles,
		tile{Title: "Held by breakers", Value: most(held), Link: q.link("/breakers"), Note: "They spend no attempt", State: tone(held > 0, "hold")},
		tile{Title: "Open breakers", Value: num(seen.Open), Link: q.link("/breakers"), Note: "of " + plural(len(seen.breakers), "dependency"), State: tone(seen.Open > 0, "bad")},
	)
	lag := tile{Title: "Queue lag", Value: "0 s", Link: q.link("/queues"), Note: "No job waits for a worker"}
	if !lagging.Oldest.IsZero() {
		lag.Value, lag.Note, lag.Link = coarse(max(0, q.now.Sub(lagging.Oldest))), "Oldest claimable job, in "+lagging.Queue, q.queue(lagging.Queue)
	}
	busy := tile{Title: "Processing", Value: least(whole, "processing", whole.Processing), Link: q.jobs("state:processing"), Note: "of " + plural(whole.Ready+whole.Processing, "job") + " that could be"}
	return append(tiles, lag, busy), nil
}

// tone is a colour where it is deserved.
func tone(deserved bool, name string) string {
	if deserved {
		return name
	}
	return ""
}

// together adds queues up, and finds the one whose oldest claimable job waits longest.
func together(depths []holdfast.Depth) (whole, lagging holdfast.Depth) {
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

// deadTile tells of n dead letters how old the oldest is. Where there are very many it says how old it is at least.
func (q *ask) deadTile(n int) (tile, error) {
	t := tile{Title: "Dead letters", Value: "0", Link: q.link("/dead-letters"), Note: "Nothing failed for good"}
	if n == 0 {
		return t, nil
	}
	t.Value, t.State = most(n), "bad"
	jobs, more, err := q.desk.Jobs(q.ctx, holdfast.Filter{DeadLetters: true, Limit: mostAlone})
	if err != nil || len(jobs) == 0 {
		return t, err
	}
	oldest := slices.MinFunc(jobs, func(a, b holdfast.Job) int { return a.FinishedAt.Compare(b.FinishedAt) }).FinishedAt
	if t.Note = q.note("Oldest ", oldest); more != "" {
		t.Note = "Oldest " + coarse(q.now.Sub(oldest)) + " ago or more"
	}
	return t, nil
}

// A runningRow is a redrive under way.
type runningRow struct {
	ID    holdfast.ID
	State redrive.State
	Why   string
	By    string
	Tally holdfast.Tally
	Parts []part
}

// running are the redrives under way, and those that stopped by themselves lately.
func (q *ask) running(all []redrive.Progress) (rows []runningRow) {
	for _, one := range all {
		if one.State != redrive.Running && one.State != redrive.Paused && one.State != redrive.Stopped || len(rows) == mostRows {
			continue
		}
		if one.State == redrive.Stopped && q.now.Sub(one.EndedAt) > newTroubles {
			continue
		}
		t := one.Tally
		rows = append(rows, runningRow{one.ID, one.State, one.Why, one.Order.Actor, t, []part{
			{t.Complete, "good", plural(t.Complete, "job") + " complete"}, {t.InFlight, "accent", num(t.InFlight) + " under way"}, {t.Failed, "bad", num(t.Failed) + " failed again"},
		}})
	}
	return rows
}

// A depthRow is a queue with what stands in it.
type depthRow struct {
	holdfast.Depth
	Link string
	Lag  time.Duration
}

// depthRows are the queues with the longest lag, then the deepest.
func (q *ask) depthRows(depths []holdfast.Depth) (rows []depthRow) {
	for _, one := range depths {
		row := depthRow{Depth: one, Link: q.queue(one.Queue)}
		if !one.Oldest.IsZero() {
			row.Lag = max(0, q.now.Sub(one.Oldest).Truncate(time.Second))
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b depthRow) int { return cmp.Or(cmp.Compare(b.Lag, a.Lag), cmp.Compare(b.Ready, a.Ready)) })
	return rows[:min(len(rows), 2*mostRows)]
}
