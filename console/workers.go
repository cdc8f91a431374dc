package console

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// mountWorkers mounts the workers page. The duties of workers are on the health page.
func (c *Console) mountWorkers() {
	c.handlePage("/workers", workersScreen)
}

// maxWorkersAsked is the number of workers whose processing jobs are counted.
const maxWorkersAsked = 100

// A workerPage is the data of the workers page.
type workerPage struct {
	Rows       []workerRow
	Slots      int
	Used       int
	Silent     int
	Versions   []string
	Unattended []ops.Unattended // kinds with claimable jobs that no live worker handles: the first
	Others     int              // how many more there are
	Slow       []slowRow
}

// A workerRow is one worker.
type workerRow struct {
	store.WorkerInfo
	StateBadge stateBadge
	Host       string // the first part of its name
	Rest       string // the rest of its name
	Used       int    // slots in use; -1 if not counted
	Parts      []part
	Jobs       string // URL of its processing jobs
}

// workersScreen renders the workers page.
func workersScreen(q *request) (page, error) {
	workers, err := q.operator.Workers(q.ctx)
	if err != nil {
		return page{}, err
	}
	var shown workerPage
	versions := map[string]bool{}
	for n, one := range workers {
		row := workerRow{WorkerInfo: one, Used: -1, StateBadge: workerBadge(one, q.now), Jobs: q.jobs("state:processing", queryPart{"worker", one.Worker}.String())}
		row.Host, row.Rest, _ = strings.Cut(one.Worker, "/")
		if n < maxWorkersAsked {
			if row.Used, err = q.operator.Count(q.ctx, store.Filter{State: holdfast.Processing, Worker: one.Worker, MaxScan: maxPageScan}); err != nil {
				return page{}, err
			}
			row.Parts = []part{{min(row.Used, one.Slots), "accent", num(row.Used) + " in use"}, {max(one.Slots-row.Used, 0), "none", "free"}}
			shown.Used += row.Used
		}
		if shown.Slots += one.Slots; row.StateBadge.Word == "silent" {
			shown.Silent++
		}
		if one.Version != "" {
			versions[one.Version] = true
		}
		shown.Rows = append(shown.Rows, row)
	}
	shown.Versions = slices.Sorted(maps.Keys(versions))
	var depths []store.Depth
	var busy []holdfast.Job
	err = inParallel(
		func() (err error) { depths, err = q.operator.Depths(q.ctx); return err },
		func() (err error) { busy, err = q.longRunning(); return err },
	)
	if err != nil {
		return page{}, err
	}
	shown.Slow = slowRows(busy, workers)
	shown.Unattended, shown.Others = unattendedRows(depths, workers)
	return page{name: "workers", title: "Workers", topics: []string{"workers", "jobs"}, data: shown}, nil
}

// workerBadge reports whether a worker is alive or silent. A worker counts as alive for a time after each report and reports several times within it, so a
// worker that has not reported for two thirds of that time is silent.
func workerBadge(w store.WorkerInfo, now time.Time) stateBadge {
	if alive := w.Until.Sub(w.SeenAt); now.Sub(w.SeenAt) > alive*2/3 {
		return stateBadge{"silent", "warn", "partial"}
	}
	return stateBadge{"alive", "good", "complete"}
}
