package console

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// An errorGroupPage is the data of the page of an error group.
type errorGroupPage struct {
	errorGroupRow
	ops.ErrorGroupDetail
	Spans        []choice
	Span         string
	Chart        chart
	Counts       []tile
	Samples      []sample
	Words        comparison
	Same         []fact
	Letters      []ops.DeadLetter
	Retrying     []holdfast.Job
	Notes        []store.Event
	Why          string // how the newest failure was classified, and what the policy decided
	WhyJob       holdfast.ID
	Audit        string
	Jobs         string // URL of all jobs whose last failure is in the group
	Retries      string
	Triaged      bool // a person acknowledged, ignored or resolved it
	FailuresLeft int  // failures until an ignored group is open again
}

// A sample is a failure of an error group.
type sample struct {
	Job     holdfast.ID
	Kind    string
	State   holdfast.State
	At      time.Time
	Title   string // first line of its detail, or else its message
	Detail  string
	Cut     bool
	Context []fact
}

const (
	maxSamples = 5
	maxDetail  = 64 << 10
	maxLetters = 10
)

// failure renders the page of an error group.
func (c *Console) failure(q *request) (page, error) {
	at, err := q.chosenSpan(errorGroupSpans, "24h")
	if err != nil {
		return page{}, err
	}
	found, err := q.operator.ErrorGroup(q.ctx, q.fingerprint())
	if err != nil {
		return page{}, err
	}
	rows := []errorGroupRow{q.row(found.Group)}
	at = q.bestSpan(rows, at)
	if err := q.trend(rows, at); err != nil {
		return page{}, err
	}
	f := errorGroupPage{errorGroupRow: rows[0], ErrorGroupDetail: found, Span: at.Name, Spans: q.spanChoices(errorGroupSpans, at)}
	f.Chart = q.prefs.clock().errorGroupChart(at, f.Trend.Failures, q.now)
	f.Jobs = q.jobs("fingerprint:" + found.Group.Fingerprint)
	f.Retries = q.jobs("is:retrying", "fingerprint:"+found.Group.Fingerprint)
	f.Audit = q.link("/audit?subject=error/" + found.Group.Fingerprint)
	f.Triaged = f.Status == store.StatusAcknowledged || f.Status == store.StatusIgnored || f.Status == store.StatusResolved
	f.FailuresLeft = max(0, f.UntilCount-f.Failures)
	f.count(q)
	f.sample(found.Jobs)
	for _, event := range found.Story {
		if event.Name == "note" {
			f.Notes = append(f.Notes, event)
		}
	}
	if err := f.readJobs(q); err != nil {
		return page{}, err
	}
	return page{name: "failure", title: found.Group.Code, here: "failures", topics: []string{"failures", "jobs", "feed"}, data: &f}, nil
}

// count sets the numbers at the top of the page.
func (f *errorGroupPage) count(q *request) {
	for _, one := range []struct {
		title, span string
		n           int
	}{{"Last hour", "1h", f.LastHour}, {"Last 3 hours", "6h", f.Last3Hours}, {"Last 24 hours", "24h", f.LastDay}, {"Last 7 days", "7d", f.LastWeek}} {
		f.Counts = append(f.Counts, tile{Title: one.title, Value: num(one.n), Link: q.withQuery("span", one.span), Note: "failed attempts"})
	}
	dead := tile{Title: "Dead letters", Value: deadCount(f.Dead()), Link: f.DeadAt, Note: "not retried automatically", State: toneIf(f.Dead() > 0, "bad")}
	f.Counts = append(f.Counts, dead)
}

// Dead returns the number of dead letters of the group, as far as they were counted.
func (f *errorGroupPage) Dead() int { return max(f.errorGroupRow.Dead, f.ErrorGroupDetail.Dead) }

// sample sets the samples of the newest jobs, and what differs between them.
func (f *errorGroupPage) sample(jobs []holdfast.Job) {
	var texts []string
	for _, job := range jobs {
		if job.LastFailure == nil {
			continue
		}
		texts = append(texts, job.LastFailure.Detail)
		shown := slices.ContainsFunc(f.Samples, func(one sample) bool { return one.Detail == truncate(job.LastFailure.Detail, maxDetail) })
		if shown || len(f.Samples) == maxSamples {
			continue
		}
		one := sample{Job: job.ID, Kind: job.Kind, State: job.State, At: job.FinishedAt, Title: headline(job.LastFailure.Detail, job.LastFailure.Message)}
		if one.At.IsZero() {
			one.At = job.StartedAt
		}
		one.Detail, one.Cut = truncate(job.LastFailure.Detail, maxDetail), len(job.LastFailure.Detail) > maxDetail
		one.Context = sortedFacts(job.LastFailure.Context)
		f.Samples = append(f.Samples, one)
	}
	if len(f.Samples) == 0 {
		f.Samples = []sample{{At: f.FirstSeen, Title: headline(f.Detail, f.Message), Detail: truncate(f.Detail, maxDetail), Cut: len(f.Detail) > maxDetail}}
	}
	f.Words = compareTexts(texts)
	f.Same = sortedFacts(f.ErrorGroupDetail.Same)
}

// headline returns the first line of a text, or fallback if it is empty.
func headline(text, fallback string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first == "" {
		first = fallback
	}
	return truncate(first, 160)
}

// sortedFacts returns facts sorted by name.
func sortedFacts(all map[string]string) (facts []fact) {
	for name, value := range all {
		facts = append(facts, fact{name, value})
	}
	slices.SortFunc(facts, func(a, b fact) int { return strings.Compare(a.Name, b.Name) })
	return facts
}

// readJobs reads the jobs of the group, and why its newest failure was classified as it was.
func (f *errorGroupPage) readJobs(q *request) (err error) {
	of := store.Filter{Fingerprint: f.Fingerprint, Limit: maxLetters, MaxScan: maxScanned}
	if f.Letters, _, err = q.operator.DeadLetters(q.ctx, of); err != nil {
		return err
	}
	of.Retrying, of.Limit = true, maxRows
	if f.Retrying, _, err = q.operator.Jobs(q.ctx, of); err != nil || len(f.ErrorGroupDetail.Jobs) == 0 {
		return err
	}
	history, err := q.operator.History(q.ctx, f.ErrorGroupDetail.Jobs[0].ID)
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
