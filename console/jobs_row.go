package console

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// A jobColumn is a column that can be chosen. State and job are always there.
type jobColumn struct{ name, title string }

// jobColumns are those of the list, in their order.
var jobColumns = []jobColumn{
	{"queue", "Queue"}, {"owner", "Owner"}, {"attempts", "Attempts"}, {"code", "Last failure"}, {"waits", "Waits for"}, {"duration", "Duration"}, {"priority", "Priority"}, {"tags", "Tags"},
	{"dependency", "Dependency"}, {"worker", "Worker"}, {"group", "Group"}, {"generation", "Generation"}, {"ended", "Ended"}, {"age", "Age"},
}

// usualColumns are those of a search when nobody chose: what ended waits for nothing, and what went well has no failure.
func usualColumns(f holdfast.Filter) []string {
	switch {
	case f.State == holdfast.Processing:
		return []string{"queue", "owner", "attempts", "worker", "duration", "waits", "age"}
	case f.State == holdfast.Complete || f.State == holdfast.Cancelled:
		return []string{"queue", "owner", "attempts", "duration", "ended", "age"}
	case f.State == holdfast.Failed || f.DeadLetters:
		return []string{"queue", "owner", "attempts", "code", "ended", "age"}
	}
	return []string{"queue", "owner", "attempts", "code", "waits", "age"}
}

// A columnChoice is a column as the form to choose shows it.
type columnChoice struct {
	Name, Title string
	Shown       bool
}

// chosenColumns reads which columns are wanted: as one list with commas, or as a form says it. What is not known is left out.
func chosenColumns(given, usual []string) (has map[string]bool, chosen string) {
	wanted := strings.Split(strings.Join(given, ","), ",")
	wanted = slices.DeleteFunc(wanted, func(name string) bool {
		return !slices.ContainsFunc(jobColumns, func(one jobColumn) bool { return one.name == name })
	})
	if len(wanted) == 0 {
		wanted = usual
	}
	has = map[string]bool{}
	for _, name := range wanted {
		has[name] = true
	}
	var names []string
	other := len(has) != len(usual)
	for _, one := range jobColumns {
		if has[one.name] {
			names = append(names, one.name)
			other = other || !slices.Contains(usual, one.name)
		}
	}
	if !other {
		return has, ""
	}
	return has, strings.Join(names, ",")
}

// A jobRow is a job as the list shows it.
type jobRow struct {
	holdfast.Job
	Badge    string // its state, or what says more
	Made     int    // attempts of this generation, the one that runs among them
	Code     string
	Message  string
	Note     string    // what it waits for, in words
	NoteLink string    // where that is explained
	At       time.Time // when that ends, if it is known
	Took     time.Duration
}

// rowOf makes a row of a job.
func rowOf(job holdfast.Job, held []ops.Held, now time.Time) jobRow {
	row := jobRow{Job: job, Badge: string(job.State), Made: job.Failures + job.Crashes}
	if job.LastFailure != nil {
		row.Code, row.Message = job.LastFailure.Code, cut(job.LastFailure.Message, 160)
	}
	switch job.State {
	case holdfast.Queued:
		row.waits(held, now)
	case holdfast.Processing:
		row.Made++
		row.Took = job.AsOf.Sub(job.StartedAt)
		row.Note = "its worker"
		switch {
		case job.Cancelling:
			row.Note = "its worker to stop"
		case !job.LeaseUntil.IsZero() && job.LeaseUntil.Before(job.AsOf):
			row.Note = "to be reclaimed: its lease is over"
		case job.Progress != nil:
			row.Note = "its worker, " + share(job.Progress.Percent/100) + " done"
		}
	case holdfast.Complete:
		row.Made++
	case holdfast.Failed:
		if job.Discarded {
			row.Badge = "discarded"
		}
	}
	if job.State.Terminal() && !job.StartedAt.IsZero() {
		row.Took = job.FinishedAt.Sub(job.StartedAt)
	}
	return row
}

// Few are the first of its tags.
func (r jobRow) Few() []string { return r.Tags[:min(len(r.Tags), 3)] }

// Rest is how many tags there are besides.
func (r jobRow) Rest() int { return len(r.Tags) - len(r.Few()) }

// waits says what a queued job waits for.
func (r *jobRow) waits(held []ops.Held, now time.Time) {
	for _, one := range held {
		if !one.Closed() || !holdsBack(one.Hold, r.Job) {
			continue
		}
		scope, name := one.On()
		r.Badge, r.Note, r.NoteLink = "held", scope+" "+cut(name, 60)+", paused", "/queues"
		if one.Source != "" && one.Source != holdfast.SourceOperator {
			r.Note = one.Source + " " + cut(name, 60)
		}
		if scope == "dependency" {
			r.NoteLink = "/breakers"
		}
		if r.At = one.Until; r.At.IsZero() {
			r.At = one.Expected
		}
		return
	}
	switch {
	case r.Waiting:
		r.Note = "members of its group"
	case r.DueAt.After(now):
		r.Note, r.At = "its time", r.DueAt
		if r.Failures+r.Crashes > 0 {
			r.Note = "its next attempt"
		}
	default:
		r.Note = "a worker"
	}
}

// holdsBack reports whether a hold keeps a job back.
func holdsBack(h holdfast.Hold, job holdfast.Job) bool {
	if h.Retries && job.Failures == 0 {
		return false
	}
	scope, _ := h.On()
	names := map[string][]string{"queue": {job.Queue}, "kind": {job.Kind}, "owner": {job.Owner}, "dependency": {job.Dependency}, "tag": job.Tags}
	return slices.ContainsFunc(names[scope], h.Covers)
}

// heldNow remembers for a moment what is held: everybody's lists ask for the same.
type heldNow struct {
	mu   sync.Mutex
	last []ops.Held
	at   time.Time
}

// over answers with the holds in force, when one of the jobs waits.
func (h *heldNow) over(q *ask, jobs []holdfast.Job) ([]ops.Held, error) {
	if !slices.ContainsFunc(jobs, func(job holdfast.Job) bool { return job.State == holdfast.Queued }) {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.at) < freshFor {
		return h.last, nil
	}
	all, err := q.desk.Holds(q.ctx)
	if err == nil {
		h.last, h.at = all, time.Now()
	}
	return all, err
}
