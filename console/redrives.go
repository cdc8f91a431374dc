package console

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// mountRedrives mounts the list of redrives, the wizard and the page of a redrive.
func (c *Console) mountRedrives() {
	c.handlePage("/redrives", redrives)
	c.handlePage("/redrives/new", newRedrive)
	c.handlePage("/redrives/{id}", oneRedrive)
	c.handleAction("/redrives", apikey.Operator, startRedrive)
	c.handleAction("/redrives/{id}/pause", apikey.Operator, redriveAction("Redrive paused. Jobs already taken continue.", ops.Operator.PauseRedrive))
	c.handleAction("/redrives/{id}/resume", apikey.Operator, redriveAction("Redrive resumed. Only jobs that end from now on count for its stop limit.", ops.Operator.ResumeRedrive))
	c.handleAction("/redrives/{id}/cancel", apikey.Operator, redriveAction("Redrive cancelled. Jobs already taken continue.", ops.Operator.CancelRedrive))
}

// A stateBadge is a state with its word, colour and shape.
type stateBadge struct{ Word, Tone, Shape string }

func redriveBadge(s redrive.State) stateBadge {
	shape := map[redrive.State]string{redrive.Running: "processing", redrive.Paused: "held", redrive.Stopped: "failed", redrive.Cancelled: "cancelled", redrive.Done: "complete"}[s]
	return stateBadge{string(s), string(s), shape}
}

// maxRedrives bounds the list. Older redrives are in the audit log.
const maxRedrives = 200

// A redriveList is the data of the redrives page.
type redriveList struct {
	Rows    []redriveLine
	More    int
	Problem string // error of records that cannot be read
}

// A redriveLine is a redrive in the list.
type redriveLine struct {
	redrive.Progress
	StateBadge stateBadge
	Filter     deadLetterFilter
	Parts      []part
}

// redrives renders the list, the newest first.
func redrives(q *request) (page, error) {
	list, err := q.operator.Redrives(q.ctx)
	if err != nil && len(list) == 0 {
		return page{}, err
	}
	var shown redriveList
	if err != nil {
		shown.Problem = sentence(err)
	}
	shown.More = max(0, len(list)-maxRedrives)
	for _, one := range list[:min(len(list), maxRedrives)] {
		row := redriveLine{Progress: one, StateBadge: redriveBadge(one.State), Filter: deadLetterFilterFrom(one.Spec.Filter)}
		row.Parts = progressParts(one.Counts, 0)
		shown.Rows = append(shown.Rows, row)
	}
	return page{name: "redrives", title: "Redrives", topics: []string{"redrives"}, data: shown}, nil
}

// progressParts returns how the jobs of a redrive ended, and the number left.
func progressParts(t store.RedriveCounts, left int) []part {
	return []part{
		{t.Complete, "good", plural(t.Complete, "job") + " complete"}, {t.Discarded, "good", plural(t.Discarded, "job") + " discarded"},
		{t.Failed, "bad", plural(t.Failed, "job") + " failed again"}, {t.Cancelled, "hold", plural(t.Cancelled, "job") + " cancelled"},
		{t.InFlight, "accent", plural(t.InFlight, "job") + " in progress"}, {left, "none", plural(left, "job") + " left"},
	}
}

// A redrivePage is the data of the page of a redrive.
type redrivePage struct {
	ops.Redrive
	StateBadge  stateBadge
	Filter      deadLetterFilter
	Total       int  // jobs to take when it was started
	Many        bool // or more
	Ahead       int  // jobs not taken yet
	Parts       []part
	StopCheck   stopCheck
	Canary      string // state of the canary in words
	Codes       []codeCount
	Again       []holdfast.Job // jobs that failed again, up to maxFailedAgain
	Pause       bool           // Pause, Resume and Cancel report which actions are possible
	Resume      bool
	Cancel      bool
	Lasted      time.Duration
	Pace        float64
	MaxInFlight int // maximum number of jobs in progress
}

// A stopCheck shows how close a redrive is to its automatic stop. It counts from its start, or from the last resume after a stop.
type stopCheck struct {
	Ended, Failed, After int
	Share, Limit         float64
	Never                bool // it never stops automatically
	Stopped              bool // it has stopped automatically
	Yet                  bool // fewer have ended than After, so it does not stop yet
	Picture              template.HTML
}

// A codeCount is the number of jobs that failed again with a code.
type codeCount struct {
	Code string
	Jobs int
}

// maxFailedAgain is the number of jobs listed that failed again. A search lists all.
const maxFailedAgain = 25

// oneRedrive renders the page of a redrive.
func oneRedrive(q *request) (page, error) {
	id, err := q.id()
	if err != nil {
		return page{}, err
	}
	r, err := q.operator.Redrive(q.ctx, id)
	if err != nil {
		return page{}, err
	}
	shown := redrivePage{Redrive: r, StateBadge: redriveBadge(r.State), Filter: deadLetterFilterFrom(r.Spec.Filter), Total: r.Eligible, StopCheck: checkStop(r)}
	if r.Spec.Limit > 0 {
		shown.Total = min(shown.Total, r.Spec.Limit)
	}
	shown.Pace, shown.MaxInFlight = cmp.Or(r.Spec.PerSecond, redrive.DefaultPerSecond), cmp.Or(r.Spec.InFlight, redrive.DefaultInFlight)
	shown.Many = shown.Total >= ops.MaxCounted
	if !r.Exhausted && !r.State.Ended() {
		shown.Ahead = max(0, shown.Total-r.Counts.Taken-r.RefusedJobs)
	}
	shown.Parts = progressParts(r.Counts, shown.Ahead)
	shown.Canary = canaryWords(r)
	shown.Codes = countCodes(r.FailedAgain)
	shown.Again = r.FailedAgain[:min(len(r.FailedAgain), maxFailedAgain)]
	shown.Pause, shown.Cancel = r.State == redrive.Running, !r.State.Ended()
	shown.Resume = r.State == redrive.Paused || r.State == redrive.Stopped
	if end := r.EndedAt; !end.IsZero() {
		shown.Lasted = end.Sub(r.StartedAt)
	}
	return page{name: "redrive", here: "redrives", title: "Redrive " + short(id), topics: []string{"redrives", "jobs"}, data: shown}, nil
}

// checkStop compares the share of jobs that failed again with the stop limit.
func checkStop(r ops.Redrive) stopCheck {
	j := stopCheck{After: cmp.Or(r.Spec.StopAfter, redrive.DefaultStopAfter), Limit: cmp.Or(r.Spec.StopAbove, redrive.DefaultStopAbove)}
	j.Failed = max(0, r.Counts.Failed-r.Since.Failed)
	j.Ended = j.Failed + max(0, r.Counts.Complete-r.Since.Complete)
	if j.Ended > 0 {
		j.Share = float64(j.Failed) / float64(j.Ended)
	}
	j.Never, j.Yet, j.Stopped = j.Limit >= 1, j.Ended < j.After, r.State == redrive.Stopped
	tone := "hold"
	if j.Share > j.Limit {
		tone = "bad"
	}
	j.Picture = gauge(j.Share, j.Limit, tone)
	return j
}

// gauge draws a fraction as a bar with a mark at the limit. The page has the numbers as text.
func gauge(share, limit float64, tone string) template.HTML {
	const width, height = 400, 16
	d := draw("gauge", width, height, "")
	d.rect("chart-none", [4]float64{0, 4, width, 8}, "")
	if share > 0 {
		d.rect("chart-"+tone, [4]float64{0, 4, max(min(share, 1)*width, 2), 8}, "")
	}
	if limit < 1 {
		d.line("gauge-mark", limit*width, 0, limit*width, height)
	}
	return d.done()
}

// canaryWords returns the state of the canary in words.
func canaryWords(r ops.Redrive) string {
	of, ended := r.Spec.Canary, r.Counts.Taken-r.Counts.InFlight
	first, goes := fmt.Sprintf("the first %d jobs", of), "go"
	if of == 1 {
		first, goes = "the first job", "goes"
	}
	switch {
	case of == 0:
		return "none"
	case r.Passed:
		return "passed: " + first + " ended within the limit"
	case r.State == redrive.Stopped:
		return "not passed: too many failures in " + first
	case r.State.Ended():
		return first + ", not finished"
	case r.Counts.Taken == 0:
		return first + " " + goes + " first; the others wait"
	}
	return fmt.Sprintf("in progress: %d of the first %d ended; the others wait", min(ended, of), of)
}

// countCodes counts the codes of jobs, the most frequent first.
func countCodes(jobs []holdfast.Job) (sorts []codeCount) {
	for _, job := range jobs {
		code := ""
		if job.LastFailure != nil {
			code = job.LastFailure.Code
		}
		n := slices.IndexFunc(sorts, func(one codeCount) bool { return one.Code == code })
		if n < 0 {
			n, sorts = len(sorts), append(sorts, codeCount{Code: code})
		}
		sorts[n].Jobs++
	}
	slices.SortStableFunc(sorts, func(a, b codeCount) int { return cmp.Compare(b.Jobs, a.Jobs) })
	return sorts
}
