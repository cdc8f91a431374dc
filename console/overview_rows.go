package console

import (
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A slowRow is a job that has been processing for long, or whose worker is silent.
type slowRow struct {
	Job    holdfast.Job
	What   string        // one sentence
	For    time.Duration // since its start, or since its lease expired
	Silent bool
}

// longRunning returns processing jobs that may be slow. It reads old jobs and new jobs separately: lists are newest first, so among very many jobs the old ones
// would not be read.
func (q *request) longRunning() (all []holdfast.Job, err error) {
	for _, older := range []time.Duration{slowAfter, 0} {
		jobs, _, err := q.operator.Jobs(q.ctx, store.Filter{State: holdfast.Processing, OlderThan: older, Limit: maxJobsRead})
		if err != nil {
			return nil, err
		}
		all = append(all, jobs...)
	}
	return all, nil
}

// slowRows returns the jobs that are stuck or slow, those of silent workers first.
func slowRows(jobs []holdfast.Job, workers []store.WorkerInfo) (rows []slowRow) {
	seen := map[holdfast.ID]bool{}
	for _, job := range jobs {
		if row, slow := slowRowOf(job, workers); slow && !seen[job.ID] {
			seen[job.ID], rows = true, append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b slowRow) int {
		if a.Silent != b.Silent {
			return map[bool]int{true: -1, false: 1}[a.Silent]
		}
		return int(min(max(b.For-a.For, -1), 1))
	})
	return rows[:min(len(rows), maxRows)]
}

// slowRowOf reports whether a processing job is stuck or slow, and why.
func slowRowOf(job holdfast.Job, workers []store.WorkerInfo) (slowRow, bool) {
	known := slices.ContainsFunc(workers, func(w store.WorkerInfo) bool { return w.Worker == job.Worker })
	running := job.AsOf.Sub(job.StartedAt)
	switch {
	case !job.LeaseUntil.After(job.AsOf):
		return slowRow{job, "Lease expired: a live worker will reclaim it", job.AsOf.Sub(job.LeaseUntil), true}, true
	case job.StartedAt.IsZero() || running < slowAfter:
		return slowRow{}, false
	case !known:
		return slowRow{job, "Its worker has not reported recently", running, true}, true
	}
	return slowRow{job, "Processing for a long time", running, false}, true
}

// A breakerRow is a breaker that holds jobs.
type breakerRow struct {
	ops.Breaker
	Link   string
	Jobs   string // URL of the held jobs
	Words  string
	Expect template.HTML // the next automatic change and its time, if known
	State  string        // of the badge
	Shape  string
}

// breakerRows returns the breakers that hold jobs, open ones first.
func (q *request) breakerRows(all []ops.Breaker) (rows []breakerRow) {
	for _, one := range all {
		row := breakerRow{Breaker: one, Link: q.link("/breakers#b-" + url.PathEscape(one.Dependency)), Jobs: q.jobs("state:queued", queryPart{"dependency", one.Dependency}.String()), State: string(one.State), Shape: "shape-open"}
		switch one.State {
		case breaker.Open:
			row.Words, row.Expect = "is unavailable: its breaker is open", q.dueNote("Next probe ", "A probe is due now", one.NextProbe)
		case breaker.ForcedOpen:
			row.Words, row.State = "is held: an operator forced its breaker open", "open"
		case breaker.HalfOpen:
			row.Words, row.Shape = "is being probed with a few calls", "shape-partial"
		case breaker.Recovering:
			row.Words, row.Expect, row.State, row.Shape = "is recovering: calls increase step by step", q.dueNote("Closes ", "Closes now", one.Until), "hold", "shape-partial"
		default:
			continue
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b breakerRow) int {
		return map[bool]int{true: 0, false: 1}[a.Breaker.State.Refuses()] - map[bool]int{true: 0, false: 1}[b.Breaker.State.Refuses()]
	})
	return rows
}

// jobs returns the URL of the jobs that match all qualifiers.
func (q *request) jobs(qualifiers ...string) string {
	return q.link("/jobs?q=" + url.QueryEscape(strings.Join(qualifiers, " ")))
}

// queue returns the URL of a queue.
func (q *request) queue(name string) string { return q.link("/queues#q-" + url.PathEscape(name)) }

// dueNote returns word and a future time, or past if the time has passed, or nothing if there is no time.
func (q *request) dueNote(word, past string, at time.Time) template.HTML {
	switch {
	case at.IsZero():
		return ""
	case !at.After(q.now):
		return template.HTML(template.HTMLEscapeString(past))
	}
	return q.timeNote(word, at)
}

// timeNote returns a word and a time as HTML.
func (q *request) timeNote(word string, at time.Time) template.HTML {
	return template.HTML(template.HTMLEscapeString(word)) + q.prefs.clock().when(at, q.now)
}
