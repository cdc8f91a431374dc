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
)

// A slowRow is work that takes suspiciously long, or whose worker is silent.
type slowRow struct {
	Job    holdfast.Job
	What   string        // one sentence
	For    time.Duration // since it began, or since the worker fell silent
	Silent bool
}

// longest are jobs in workers' hands among which those are that take long: the ones that exist for long, as among very many they would be the last, and the others.
func (q *ask) longest() (all []holdfast.Job, err error) {
	for _, older := range []time.Duration{longRun, 0} {
		jobs, _, err := q.desk.Jobs(q.ctx, holdfast.Filter{State: holdfast.Processing, OlderThan: older, Limit: mostAlone})
		if err != nil {
			return nil, err
		}
		all = append(all, jobs...)
	}
	return all, nil
}

// slowest is the work that is stuck or slow, the work of silent workers first.
func slowest(jobs []holdfast.Job, workers []holdfast.Presence) (rows []slowRow) {
	met := map[holdfast.ID]bool{}
	for _, job := range jobs {
		if row, is := slowOf(job, workers); is && !met[job.ID] {
			met[job.ID], rows = true, append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b slowRow) int {
		if a.Silent != b.Silent {
			return map[bool]int{true: -1, false: 1}[a.Silent]
		}
		return int(min(max(b.For-a.For, -1), 1))
	})
	return rows[:min(len(rows), mostRows)]
}

// slowOf tells whether a job in a worker's hands is worth a look.
func slowOf(job holdfast.Job, workers []holdfast.Presence) (slowRow, bool) {
	known := slices.ContainsFunc(workers, func(w holdfast.Presence) bool { return w.Worker == job.Worker })
	running := job.AsOf.Sub(job.StartedAt)
	switch {
	case !job.LeaseUntil.After(job.AsOf):
		return slowRow{job, "Its lease has run out: a live worker takes it over", job.AsOf.Sub(job.LeaseUntil), true}, true
	case job.StartedAt.IsZero() || running < longRun:
		return slowRow{}, false
	case !known:
		return slowRow{job, "Its worker was not seen lately", running, true}, true
	}
	return slowRow{job, "It has been processing for long", running, false}, true
}

// A barrierRow is a breaker that keeps jobs back, in words.
type barrierRow struct {
	ops.Breaker
	Link   string
	Jobs   string // address of the jobs behind it
	Words  string
	Expect template.HTML // what changes by itself next, and when, if it is known
	State  string        // of the badge
	Shape  string
}

// barrierRows are the breakers that keep jobs back, the ones that let nothing through first.
func (q *ask) barrierRows(all []ops.Breaker) (rows []barrierRow) {
	for _, one := range all {
		row := barrierRow{Breaker: one, Link: q.link("/breakers#b-" + url.PathEscape(one.Dependency)), Jobs: q.jobs("state:queued", queryPart{"dependency", one.Dependency}.String()), State: string(one.State), Shape: "shape-open"}
		switch one.State {
		case breaker.Open:
			row.Words, row.Expect = "does not answer: its breaker is open", q.soon("Next probe ", "A probe is due now", one.NextProbe)
		case breaker.ForcedOpen:
			row.Words, row.State = "is held: somebody forced its breaker open", "open"
		case breaker.HalfOpen:
			row.Words, row.Shape = "is being probed: a few calls at a time", "shape-partial"
		case breaker.Recovering:
			row.Words, row.Expect, row.State, row.Shape = "recovers: more and more is let through", q.soon("All of it ", "All of it now", one.Until), "hold", "shape-partial"
		default:
			continue
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b barrierRow) int {
		return map[bool]int{true: 0, false: 1}[a.Breaker.State.Refuses()] - map[bool]int{true: 0, false: 1}[b.Breaker.State.Refuses()]
	})
	return rows
}

// jobs is the address of the jobs that match all of the qualifiers.
func (q *ask) jobs(qualifiers ...string) string {
	return q.link("/jobs?q=" + url.QueryEscape(strings.Join(qualifiers, " ")))
}

// queue is the address of a queue.
func (q *ask) queue(name string) string { return q.link("/queues#q-" + url.PathEscape(name)) }

// soon is a word and an instant that is to come, or other words once it has.
func (q *ask) soon(word, past string, at time.Time) template.HTML {
	switch {
	case at.IsZero():
		return ""
	case !at.After(q.now):
		return template.HTML(template.HTMLEscapeString(past))
	}
	return q.note(word, at)
}

// note is a word and an instant, as pages show it.
func (q *ask) note(word string, at time.Time) template.HTML {
	return template.HTML(template.HTMLEscapeString(word)) + q.prefs.clock().when(at, q.now)
}
