package pages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/access"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/fetchbox/replay"
	"github.com/holdfastdev/holdfast/apps/fetchbox/upload"
	"github.com/holdfastdev/holdfast/apps/fetchbox/view"
	"github.com/holdfastdev/holdfast/apps/fetchbox/work"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/store"
)

// overviewData is the data of the first page.
type overviewData struct {
	Waits    []string // why resources wait
	Tiles    []tile
	Chart    chart
	Jobs     []jobRow
	Next     string
	Failures []failureRow
	Proxies  []proxy.Status
	Pools    []string // of the proxies
	Resting  int      // of the proxies
	Replays  []replay.Progress
}

// A tile is one number with its meaning.
type tile struct {
	Name, Value, Note, Link string
	Bad                     bool
}

// A failureRow is a code with which resources are failed: what it means, and what to do.
type failureRow struct {
	failureCount
	Message, Remedy string
}

// A failureCount is how many resources are failed with a code.
type failureCount struct {
	Code      string
	Resources int
}

// failureRows explains counts by code, the largest first. Codes of the engine are shown as those of the table.
func failureRows(count map[string]int) (rows []failureRow) {
	for _, name := range slices.Sorted(maps.Keys(count)) {
		known := code.Of(name)
		rows = append(rows, failureRow{failureCount{name, count[name]}, known.Message, known.Remedy})
	}
	slices.SortStableFunc(rows, func(a, b failureRow) int { return cmp.Compare(b.Resources, a.Resources) })
	return rows
}

// A jobRow is a job in the list.
type jobRow struct {
	view.Job
	Bar   []segment
	Codes []failureRow
}

// A segment is a part of a progress bar, in thousandths of its width.
type segment struct {
	State    string
	X, Width int
}

func rowOf(v view.Job) jobRow {
	row := jobRow{Job: v, Codes: failureRows(v.Failures)}
	at := 0
	for _, part := range []struct {
		state string
		n     int
	}{{"complete", v.ResourcesComplete}, {"failed", v.ResourcesFailed}, {"cancelled", v.ResourcesCancelled}, {"processing", v.ResourcesRunning}} {
		if part.n > 0 {
			width := max(part.n*1000/max(v.Resources, 1), 4) // one of many is seen, too
			row.Bar = append(row.Bar, segment{part.state, at, width})
			at += width
		}
	}
	return row
}

// Label returns what people call the job.
func (r jobRow) Label() string { return cmp.Or(r.Name, "Job "+r.ID.String()[:8]) }

// Left returns how many resources have not ended.
func (r jobRow) Left() int { return r.ResourcesQueued + r.ResourcesRunning }

// Percent returns how many of the resources have ended, in whole percent.
func (r jobRow) Percent() int { return percentOf(r.Resources-r.Left(), r.Resources) }

func (p *pages) overview(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	var before holdfast.ID
	if text := r.URL.Query().Get("cursor"); text != "" {
		id, err := holdfast.ParseID(text)
		if err != nil {
			return refusal.NoSuchPath
		}
		before = id
	}
	data := overviewData{Proxies: p.Proxies.Status(), Pools: []string{proxy.Direct}}
	jobs, next, err := p.Views.Jobs(r.Context(), c.Scope(), before, pageJobs)
	if err != nil {
		return err
	}
	for _, v := range jobs {
		data.Jobs = append(data.Jobs, rowOf(v))
	}
	if next != nil {
		data.Next = next.String()
	}
	failures, err := p.Views.Failures(c.Scope())
	if err != nil {
		return err
	}
	data.Failures = failureRows(failures)
	if err := p.numbers(r.Context(), &data); err != nil {
		return err
	}
	if data.Waits, err = p.waits(r.Context(), data.Proxies); err != nil {
		return err
	}
	for _, s := range data.Proxies {
		if !s.Usable {
			data.Resting++
		}
		if !slices.Contains(data.Pools, s.Pool) {
			data.Pools = append(data.Pools, s.Pool)
		}
	}
	if data.Replays, err = p.recentReplays(r.Context(), c.Scope()); err != nil {
		return err
	}
	return p.render(w, r, http.StatusOK, "overview.html", page{Title: "FetchBox", Nav: "overview", Data: data})
}

// numbers fills in the tiles and the chart.
func (p *pages) numbers(ctx context.Context, data *overviewData) error {
	depths, err := p.Operator.Depths(ctx)
	if err != nil {
		return err
	}
	var queued, retrying, running int
	for _, d := range depths {
		if d.Queue == work.QueueFetch {
			queued, retrying, running = d.Ready+d.Later+d.Retrying, d.Retrying, d.Processing
		}
	}
	trends, err := p.Operator.Trends(ctx, chartMinutes*time.Minute, time.Minute)
	if err != nil {
		return err
	}
	data.Chart = chartOf(trends, time.Now())
	failed := 0
	for _, f := range data.Failures {
		failed += f.Resources
	}
	usage := p.Spool.Usage()
	data.Tiles = []tile{
		{Name: "Queued", Value: web.FormatCount(queued), Note: web.FormatCount(retrying) + " wait for another attempt"},
		{Name: "Processing", Value: web.FormatCount(running), Note: "this process runs up to " + web.FormatCount(p.Concurrency)},
		{Name: "Complete", Value: web.FormatCount(data.Chart.Complete), Note: "in the last hour"},
		{Name: "Failed", Value: web.FormatCount(failed), Note: "until they are replayed", Link: "/dead-letters", Bad: failed > 0},
		{Name: "Spool", Value: web.FormatBytes(usage.Bytes), Note: fmt.Sprintf("%d files, of %s", usage.Files, web.FormatBytes(usage.Quota))},
	}
	return nil
}

// waits says why resources wait although workers are free: a hold, the storage, the stream, or a pool without a usable proxy.
func (p *pages) waits(ctx context.Context, proxies []proxy.Status) (list []string, err error) {
	holds, err := p.Operator.Holds(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range holds {
		switch {
		case !h.Closed() || h.Queue != "" && h.Queue != work.QueueFetch || h.Kind != "" && h.Kind != (work.Task{}).Kind() || h.Retries:
		case h.Source == store.SourceBreaker && h.Dependency == upload.Dependency:
			list = append(list, "The object storage does not work. Resources wait at no cost and continue by themselves.")
		case h.Source == "":
			line := "Paused by " + h.Actor
			if h.Owner != "" {
				line += " for the owner " + h.Owner
			}
			if h.Reason != "" {
				line += ": " + h.Reason
			}
			list = append(list, line+". `holdfast resume` continues.")
		}
	}
	if _, err := p.Stream.Position(ctx); err != nil {
		list = append(list, "The stream of dead letters cannot be reached. Dead letters wait in the store and are published later.")
	}
	usable, next := map[string]bool{}, map[string]time.Time{}
	for _, s := range proxies {
		usable[s.Pool] = usable[s.Pool] || s.Usable
		if at := next[s.Pool]; at.IsZero() || s.Until.Before(at) {
			next[s.Pool] = s.Until
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(usable)) {
		if !usable[pool] {
			list = append(list, fmt.Sprintf("No proxy of the pool %s is usable. Its resources wait at no cost; a proxy is tried again %s.", pool, web.FormatAge(time.Now(), next[pool])))
		}
	}
	return list, nil
}
