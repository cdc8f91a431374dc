package console

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A jobColumn is an optional column. State and job are always shown.
type jobColumn struct{ name, title string }

// jobColumns are the optional columns, in order.
var jobColumns = []jobColumn{
	{"queue", "Queue"}, {"owner", "Owner"}, {"attempts", "Attempts"}, {"code", "Last failure"}, {"waits", "Waits for"}, {"duration", "Duration"}, {"priority", "Priority"}, {"tags", "Tags"},
	{"dependency", "Dependency"}, {"worker", "Worker"}, {"group", "Group"}, {"generation", "Generation"}, {"ended", "Ended"}, {"age", "Age"},
}

// defaultColumns returns the columns that suit the state of a search.
func defaultColumns(f store.Filter) []string {
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

// A columnChoice is a column in the form that selects columns.
type columnChoice struct {
	Name, Title string
	Shown       bool
}

// chosenColumns reads the columns from a comma-separated list or from form values, and ignores unknown names. chosen is empty for the default columns.
func chosenColumns(given, defaults []string) (has map[string]bool, chosen string) {
	wanted := strings.Split(strings.Join(given, ","), ",")
	wanted = slices.DeleteFunc(wanted, func(name string) bool {
		return !slices.ContainsFunc(jobColumns, func(one jobColumn) bool { return one.name == name })
	})
	if len(wanted) == 0 {
		wanted = defaults
	}
	has = map[string]bool{}
	for _, name := range wanted {
		has[name] = true
	}
	var names []string
	other := len(has) != len(defaults)
	for _, one := range jobColumns {
		if has[one.name] {
			names = append(names, one.name)
			other = other || !slices.Contains(defaults, one.name)
		}
	}
	if !other {
		return has, ""
	}
	return has, strings.Join(names, ",")
}

// A jobRow is a job in the list.
type jobRow struct {
	holdfast.Job
	Badge    string // its state, or discarded or held
	Made     int    // attempts of this generation, including a running one
	Code     string
	Message  string
	Note     string    // what it waits for
	NoteLink string    // page that explains it
	At       time.Time // when the wait ends, if known
	Took     time.Duration
}

// rowOf returns the row of a job.
func rowOf(job holdfast.Job, held []ops.HoldStatus, now time.Time) jobRow {
	row := jobRow{Job: job, Badge: string(job.State), Made: job.Failures + job.Crashes}
	if job.LastFailure != nil {
		row.Code, row.Message = job.LastFailure.Code, truncate(job.LastFailure.Message, 160)
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
			row.Note = "reclaim: its lease has expired"
		case job.Progress != nil:
			row.Note = "its worker, " + formatPercent(job.Progress.Percent/100) + " done"
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

// Few returns the first tags.
func (r jobRow) Few() []string { return r.Tags[:min(len(r.Tags), 3)] }

// Rest returns the number of further tags.
func (r jobRow) Rest() int { return len(r.Tags) - len(r.Few()) }

// waits sets what a queued job waits for.
func (r *jobRow) waits(held []ops.HoldStatus, now time.Time) {
	for _, one := range held {
		if !one.Closed() || !holdsBack(one.Hold, r.Job) {
			continue
		}
		scope, name := one.Scope()
		r.Badge, r.Note, r.NoteLink = "held", scope+" "+truncate(name, 60)+", paused", "/queues"
		if one.Source != "" && one.Source != store.SourceOperator {
			r.Note = one.Source + " " + truncate(name, 60)
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
		if r.Note = "members of its group"; r.Order != "" {
			r.Note = "jobs with its order key"
		}
	case r.DueAt.After(now):
		r.Note, r.At = "its start time", r.DueAt
		if r.Failures+r.Crashes > 0 {
			r.Note = "its next attempt"
		}
	default:
		r.Note = "a worker"
	}
}

// holdsBack reports whether a hold keeps a job back.
func holdsBack(h store.Hold, job holdfast.Job) bool {
	if h.Retries && job.Failures == 0 {
		return false
	}
	scope, _ := h.Scope()
	names := map[string][]string{"queue": {job.Queue}, "kind": {job.Kind}, "owner": {job.Owner}, "dependency": {job.Dependency}, "tag": job.Tags}
	return slices.ContainsFunc(names[scope], h.Covers)
}

// A holdCache caches the holds for a second, for the lists of all visitors. It is safe for concurrent use.
type holdCache struct {
	mu   sync.Mutex
	last []ops.HoldStatus
	at   time.Time
}

// forJobs returns the active holds if one of the jobs is queued, and nil otherwise.
func (h *holdCache) forJobs(q *request, jobs []holdfast.Job) ([]ops.HoldStatus, error) {
	if !slices.ContainsFunc(jobs, func(job holdfast.Job) bool { return job.State == holdfast.Queued }) {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.at) < snapshotTTL {
		return h.last, nil
	}
	all, err := q.operator.Holds(q.ctx)
	if err == nil {
		h.last, h.at = all, time.Now()
	}
	return all, err
}
