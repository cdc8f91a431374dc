package console

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// mountWorkers mounts the page of workers. What they do on a beat is on the page about health.
func (c *Console) mountWorkers() {
	c.see("/workers", workersScreen)
}

// mostWorkersAsked is of how many workers the page counts what they have in their hands.
const mostWorkersAsked = 100

// A workerPage is who works, on what, and how it goes.
type workerPage struct {
	Rows     []workerRow
	Slots    int
	Used     int
	Silent   int
	Versions []string
	Alone    []ops.Unattended // kinds with claimable jobs that no live worker handles
	Slow     []slowRow
}

// A workerRow is one worker.
type workerRow struct {
	holdfast.Presence
	Sign  sign
	Host  string // the first part of its name
	Rest  string // what tells it from others there
	Used  int    // slots in use; -1 where nobody counted
	Parts []part
	Jobs  string // finds what it has in its hands
}

// workersScreen shows who works.
func workersScreen(q *ask) (page, error) {
	workers, err := q.desk.Workers(q.ctx)
	if err != nil {
		return page{}, err
	}
	var shown workerPage
	versions := map[string]bool{}
	for n, one := range workers {
		row := workerRow{Presence: one, Used: -1, Sign: signOfWorker(one, q.now), Jobs: q.jobs("state:processing", queryPart{"worker", one.Worker}.String())}
		row.Host, row.Rest, _ = strings.Cut(one.Worker, "/")
		if n < mostWorkersAsked {
			if row.Used, err = q.desk.Count(q.ctx, holdfast.Filter{State: holdfast.Processing, Worker: one.Worker, Look: lookedAt}); err != nil {
				return page{}, err
			}
			row.Parts = []part{{min(row.Used, one.Slots), "accent", num(row.Used) + " in use"}, {max(one.Slots-row.Used, 0), "none", "free"}}
			shown.Used += row.Used
		}
		if shown.Slots += one.Slots; row.Sign.Word == "silent" {
			shown.Silent++
		}
		if one.Version != "" {
			versions[one.Version] = true
		}
		shown.Rows = append(shown.Rows, row)
	}
	shown.Versions = slices.Sorted(maps.Keys(versions))
	var depths []holdfast.Depth
	var busy []holdfast.Job
	err = atOnce(
		func() (err error) { depths, err = q.desk.Depths(q.ctx); return err },
		func() (err error) { busy, err = q.longest(); return err },
	)
	if err != nil {
		return page{}, err
	}
	shown.Slow = slowest(busy, workers)
	shown.Alone = ops.UnattendedOf(depths, workers)
	return page{name: "workers", title: "Workers", topics: []string{"workers", "jobs"}, data: shown}, nil
}

// signOfWorker says whether a worker was heard of lately. It is believed to be alive for a while after each report, and reports several times within
// that while.
func signOfWorker(w holdfast.Presence, now time.Time) sign {
	if believed := w.Until.Sub(w.SeenAt); now.Sub(w.SeenAt) > believed*2/3 {
		return sign{"silent", "warn", "partial"}
	}
	return sign{"alive", "good", "complete"}
}
