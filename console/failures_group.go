package console

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// A groupPage is all about one error group.
type groupPage struct {
	troubleRow
	ops.Trouble
	Spans    []choice
	Span     string
	Chart    chart
	Counts   []tile
	Samples  []sample
	Words    comparison
	Same     []feature
	Letters  []ops.DeadLetter
	Retrying []holdfast.Job
	Notes    []holdfast.Event
	Why      string // which rule classified the newest failure, and what the policy did with it
	WhyJob   holdfast.ID
	Audit    string
	Jobs     string // address of all jobs whose last failure it was
	Retries  string
	Judged   bool // a person said what is to become of it
	Untold   int  // failures that are left until it is open again
}

// A feature is a name and what it is.
type feature struct{ Name, Value string }

// A sample is one failure of an error group.
type sample struct {
	Job     holdfast.ID
	Kind    string
	State   holdfast.State
	At      time.Time
	Title   string // the first line of its detail, or else its message
	Detail  string
	Cut     bool
	Context []feature
}

const (
	mostSamples = 5
	mostDetail  = 64 << 10
	mostLetters = 10
)

// failure shows one error group.
func (c *Console) failure(q *ask) (page, error) {
	at, err := q.chosenSpan(troubleSpans, "24h")
	if err != nil {
		return page{}, err
	}
	trouble, err := q.desk.ErrorGroup(q.ctx, q.fingerprint())
	if err != nil {
		return page{}, err
	}
	rows := []troubleRow{q.row(trouble.Group)}
	at = q.closely(rows, at)
	if err := q.trend(rows, at); err != nil {
		return page{}, err
	}
	f := groupPage{troubleRow: rows[0], Trouble: trouble, Span: at.Name, Spans: q.spanChoices(troubleSpans, at)}
	f.Chart = q.prefs.clock().troubleChart(at, f.Trend.Failures, q.now)
	f.Jobs = q.jobs("fingerprint:" + trouble.Group.Fingerprint)
	f.Retries = q.jobs("is:retrying", "fingerprint:"+trouble.Group.Fingerprint)
	f.Audit = q.link("/audit?subject=error/" + trouble.Group.Fingerprint)
	f.Judged = f.Status == holdfast.Acknowledged || f.Status == holdfast.Ignored || f.Status == holdfast.Resolved
	f.Untold = max(0, f.UntilCount-f.Failures)
	f.count(q)
	f.sample(trouble.Jobs)
	for _, event := range trouble.Story {
		if event.Name == "note" {
			f.Notes = append(f.Notes, event)
		}
	}
	if err := f.ask(q); err != nil {
		return page{}, err
	}
	return page{name: "failure", title: trouble.Group.Code, here: "failures", topics: []string{"failures", "jobs", "feed"}, data: &f}, nil
}

// count makes the numbers at the top.
func (f *groupPage) count(q *ask) {
	for _, one := range []struct {
		title, span string
		n           int
	}{{"Last hour", "1h", f.LastHour}, {"Last 3 hours", "6h", f.Last3Hours}, {"Last 24 hours", "24h", f.LastDay}, {"Last 7 days", "7d", f.LastWeek}} {
		f.Counts = append(f.Counts, tile{Title: one.title, Value: num(one.n), Link: q.otherwise("span", one.span), Note: "failed attempts"})
	}
	dead := tile{Title: "Dead letters", Value: lettered(f.Dead()), Link: f.DeadAt, Note: "wait for a person", State: tone(f.Dead() > 0, "bad")}
	f.Counts = append(f.Counts, dead)
}

// Dead is how many dead letters of the group there are, as far as they were counted.
func (f *groupPage) Dead() int { return max(f.troubleRow.Dead, f.Trouble.Dead) }

// sample takes what the newest jobs say, and what differs between them.
func (f *groupPage) sample(jobs []holdfast.Job) {
	var texts []string
	for _, job := range jobs {
		if job.LastFailure == nil {
			continue
		}
		texts = append(texts, job.LastFailure.Detail)
		told := slices.ContainsFunc(f.Samples, func(one sample) bool { return one.Detail == cut(job.LastFailure.Detail, mostDetail) })
		if told || len(f.Samples) == mostSamples {
			continue
		}
		one := sample{Job: job.ID, Kind: job.Kind, State: job.State, At: job.FinishedAt, Title: headline(job.LastFailure.Detail, job.LastFailure.Message)}
		if one.At.IsZero() {
			one.At = job.StartedAt
		}
		one.Detail, one.Cut = cut(job.LastFailure.Detail, mostDetail), len(job.LastFailure.Detail) > mostDetail
		one.Context = sorted(job.LastFailure.Context)
		f.Samples = append(f.Samples, one)
	}
	if len(f.Samples) == 0 {
		f.Samples = []sample{{At: f.FirstSeen, Title: headline(f.Detail, f.Message), Detail: cut(f.Detail, mostDetail), Cut: len(f.Detail) > mostDetail}}
	}
	f.Words = compareTexts(texts)
	f.Same = sorted(f.Trouble.Same)
}

// headline is the first line of a text, or else another text.
func headline(text, otherwise string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first == "" {
		first = otherwise
	}
	return cut(first, 160)
}

// sorted are facts by name.
func sorted(all map[string]string) (facts []feature) {
	for name, value := range all {
		facts = append(facts, feature{name, value})
	}
	slices.SortFunc(facts, func(a, b feature) int { return strings.Compare(a.Name, b.Name) })
	return facts
}

// ask reads the jobs of the group, and why its newest failure was judged as it was.
func (f *groupPage) ask(q *ask) (err error) {
	of := holdfast.Filter{Fingerprint: f.Fingerprint, Limit: mostLetters, Look: mostLooked}
	if f.Letters, _, err = q.desk.DeadLetters(q.ctx, of); err != nil {
		return err
	}
	of.Retrying, of.Limit = true, mostRows
	if f.Retrying, _, err = q.desk.Jobs(q.ctx, of); err != nil || len(f.Trouble.Jobs) == 0 {
		return err
	}
	history, err := q.desk.History(q.ctx, f.Trouble.Jobs[0].ID)
	if err != nil {
		return err
	}
	for _, attempt := range history.Attempts {
		if attempt.Failure != nil && attempt.Failure.Fingerprint == f.Fingerprint && attempt.Why != "" {
			f.Why, f.WhyJob = attempt.Why, attempt.Job
		}
	}
	return nil
}
