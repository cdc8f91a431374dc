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
)

// mountRedrives mounts the list, the wizard and the page of a redrive.
func (c *Console) mountRedrives() {
	c.see("/redrives", redrives)
	c.see("/redrives/new", newRedrive)
	c.see("/redrives/{id}", oneRedrive)
	c.do("/redrives", apikey.Operator, startRedrive)
	c.do("/redrives/{id}/pause", apikey.Operator, moveRedrive("is paused. What it has taken goes on.", ops.Desk.PauseRedrive))
	c.do("/redrives/{id}/resume", apikey.Operator, moveRedrive("goes on. It is judged by what ends from now on.", ops.Desk.ResumeRedrive))
	c.do("/redrives/{id}/cancel", apikey.Operator, moveRedrive("is cancelled. What it has taken goes on.", ops.Desk.CancelRedrive))
}

// A sign is a state as a badge shows it: the word, its colour and its shape.
type sign struct{ Word, Tone, Shape string }

func signOfRedrive(s redrive.State) sign {
	shape := map[redrive.State]string{redrive.Running: "processing", redrive.Paused: "held", redrive.Stopped: "failed", redrive.Cancelled: "cancelled", redrive.Done: "complete"}[s]
	return sign{string(s), string(s), shape}
}

// mostRedrives bounds the list: older ones are in the audit.
const mostRedrives = 200

// redriveList is the page with all of them.
type redriveList struct {
	Rows    []redriveLine
	More    int
	Problem string // records that cannot be read
}

// A redriveLine is one of the list.
type redriveLine struct {
	redrive.Progress
	Sign  sign
	Pick  pick
	Parts []part
}

// redrives lists them, the newest first.
func redrives(q *ask) (page, error) {
	list, err := q.desk.Redrives(q.ctx)
	if err != nil && len(list) == 0 {
		return page{}, err
	}
	var shown redriveList
	if err != nil {
		shown.Problem = sentence(err)
	}
	shown.More = max(0, len(list)-mostRedrives)
	for _, one := range list[:min(len(list), mostRedrives)] {
		row := redriveLine{Progress: one, Sign: signOfRedrive(one.State), Pick: pickedBy(one.Order.Filter)}
		row.Parts = tallyParts(one.Tally, 0)
		shown.Rows = append(shown.Rows, row)
	}
	return page{name: "redrives", title: "Redrives", topics: []string{"redrives"}, data: shown}, nil
}

// tallyParts is what became of the jobs of a redrive, and how many are left.
func tallyParts(t holdfast.Tally, left int) []part {
	return []part{
		{t.Complete, "good", plural(t.Complete, "job") + " complete"}, {t.Discarded, "good", plural(t.Discarded, "job") + " discarded"},
		{t.Failed, "bad", plural(t.Failed, "job") + " failed again"}, {t.Cancelled, "hold", plural(t.Cancelled, "job") + " cancelled"},
		{t.InFlight, "accent", plural(t.InFlight, "job") + " under way"}, {left, "none", plural(left, "job") + " left"},
	}
}

// redrivePage is the page of one.
type redrivePage struct {
	ops.Redrive
	Sign   sign
	Pick   pick
	Total  int  // that were to be taken when it was started
	Many   bool // or more
	Ahead  int  // not taken yet
	Parts  []part
	Judged judged
	Canary string // how the canary stands, in words
	Codes  []failedSort
	Again  []holdfast.Job // those that failed again, as many as are shown
	Pause  bool           // what can be done now
	Resume bool
	Cancel bool
	Lasted time.Duration
	Pace   float64
	Room   int // so many may be under way
}

// judged is what the governor goes by: since it was started, or resumed after a stop.
type judged struct {
	Ended, Failed, After int
	Share, Limit         float64
	Never                bool // it never stops by itself
	Stopped              bool // it did
	Yet                  bool // so few have ended that nothing follows yet
	Picture              template.HTML
}

// A failedSort counts what failed again with one code.
type failedSort struct {
	Code string
	Jobs int
}

// mostAgain is how many of those that failed again are listed; the search has the others.
const mostAgain = 25

// oneRedrive shows how far a redrive is.
func oneRedrive(q *ask) (page, error) {
	id, err := q.id()
	if err != nil {
		return page{}, err
	}
	r, err := q.desk.Redrive(q.ctx, id)
	if err != nil {
		return page{}, err
	}
	shown := redrivePage{Redrive: r, Sign: signOfRedrive(r.State), Pick: pickedBy(r.Order.Filter), Total: r.Eligible, Judged: judge(r)}
	if r.Order.Limit > 0 {
		shown.Total = min(shown.Total, r.Order.Limit)
	}
	shown.Pace, shown.Room = cmp.Or(r.Order.PerSecond, redrive.DefaultPerSecond), cmp.Or(r.Order.InFlight, redrive.DefaultInFlight)
	shown.Many = shown.Total >= ops.MostCounted
	if !r.Exhausted && !r.State.Ended() {
		shown.Ahead = max(0, shown.Total-r.Tally.Taken-r.RefusedJobs)
	}
	shown.Parts = tallyParts(r.Tally, shown.Ahead)
	shown.Canary = canaryWords(r)
	shown.Codes = sortFailed(r.FailedAgain)
	shown.Again = r.FailedAgain[:min(len(r.FailedAgain), mostAgain)]
	shown.Pause, shown.Cancel = r.State == redrive.Running, !r.State.Ended()
	shown.Resume = r.State == redrive.Paused || r.State == redrive.Stopped
	if end := r.EndedAt; !end.IsZero() {
		shown.Lasted = end.Sub(r.StartedAt)
	}
	return page{name: "redrive", here: "redrives", title: "Redrive " + short(id), topics: []string{"redrives", "jobs"}, data: shown}, nil
}

// judge says how many failed again, beside how many may.
func judge(r ops.Redrive) judged {
	j := judged{After: cmp.Or(r.Order.StopAfter, redrive.DefaultStopAfter), Limit: cmp.Or(r.Order.StopAbove, redrive.DefaultStopAbove)}
	j.Failed = max(0, r.Tally.Failed-r.Since.Failed)
	j.Ended = j.Failed + max(0, r.Tally.Complete-r.Since.Complete)
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

// gauge draws a share between nothing and all of it, with a mark where it is too much. The figures stand beside it.
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

// canaryWords tells how the canary stands.
func canaryWords(r ops.Redrive) string {
	of, ended := r.Order.Canary, r.Tally.Taken-r.Tally.InFlight
	first, goes, was, them := fmt.Sprintf("the first %d", of), "go", "were", "them"
	if of == 1 {
		first, goes, was, them = "the first", "goes", "was", "it"
	}
	switch {
	case of == 0:
		return "none"
	case r.Passed:
		return "passed: " + first + " ended well enough"
	case r.State == redrive.Stopped:
		return "did not pass: " + first + " did not end well enough"
	case r.State.Ended():
		return first + " " + was + " to go alone"
	case r.Tally.Taken == 0:
		return first + " " + goes + " alone, and the others wait for " + them
	}
	return fmt.Sprintf("under way: %d of the first %d ended so far, the others wait for %s", min(ended, of), of, them)
}

// sortFailed counts codes, the most frequent first.
func sortFailed(jobs []holdfast.Job) (sorts []failedSort) {
	for _, job := range jobs {
		code := ""
		if job.LastFailure != nil {
			code = job.LastFailure.Code
		}
		n := slices.IndexFunc(sorts, func(one failedSort) bool { return one.Code == code })
		if n < 0 {
			n, sorts = len(sorts), append(sorts, failedSort{Code: code})
		}
		sorts[n].Jobs++
	}
	slices.SortStableFunc(sorts, func(a, b failedSort) int { return cmp.Compare(b.Jobs, a.Jobs) })
	return sorts
}
