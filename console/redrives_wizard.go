package console

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A wizard is the data of one step of the redrive wizard.
type wizard struct {
	redriveForm
	Step   string // select, preview, pace, confirm
	Steps  []wizardStep
	Hidden []formField
	Next   string // URL of the next step
	Back   string
	May    bool

	Matching string // step select: number of matches now
	None     bool   // there is no match
	Codes    []string
	Kinds    []string
	Queues   []string
	Preview  redrivePreview // steps preview and confirm
	Takes    time.Duration
	Least    bool        // a minimum: not all matches were counted
	Ticket   holdfast.ID // step confirm: a form that is sent twice starts one redrive
}

// A wizardStep is a step at the top of the page.
type wizardStep struct {
	Number      int
	Name, Title string
	Link        string // empty for the current and later steps
	Here, Past  bool
}

// A redrivePreview says what the redrive would do.
type redrivePreview struct {
	ops.Preview
	Going        int  // number of jobs that would be taken now
	Many         bool // or more
	ByFailure    []failureCount
	Sampled      int // number of jobs counted in ByFailure
	Skipped      []notTaken
	OpenBreakers []ops.Breaker
	NotRetryable int           // sampled jobs whose code is not retryable
	jobs         []holdfast.ID // the jobs that would be taken, if they were selected one by one
}

// notTaken counts matching jobs that would not be taken, with an explanation.
type notTaken struct {
	ops.Ineligible
	Why string
}

// whyNotTaken explains the reasons of a preview.
var whyNotTaken = map[string]string{
	"not failed": "They are queued, processing, complete or cancelled.", "discarded": "A person discarded them.",
	"expired": "Their start deadline has passed.", "unique key held by another": "Another job holds their unique key.",
	"source gone": "The data that they work on no longer exists.", "another generation": "They were retried since.",
}

// A failureCount is the number of dead letters with the same code and kind.
type failureCount struct {
	ops.DeadLetter // an example
	Jobs           int
}

// newRedrive renders a step of the wizard.
func newRedrive(q *request) (page, error) {
	v := wizard{redriveForm: redriveFormOf(q), May: q.may(apikey.Operator)}
	v.Step = v.stepOf(q.text("step"))
	v.setSteps(q)
	var err error
	switch v.Step {
	case "select":
		err = v.suggest(q)
	case "pace":
		v.Hidden = v.hidden("rate", "canary", "stop", "after", "flight", "limit", "to")
		v.Takes, err = v.estimate(q)
	default:
		v.Hidden, v.Ticket = v.hidden("reason"), holdfast.NewID()
		if v.Preview, err = v.preview(q); errors.Is(err, holdfast.ErrInvalid) {
			v.addProblem("select", err)
			v.Step = "select"
			v.setSteps(q)
			err = v.suggest(q)
		}
	}
	if err != nil {
		return page{}, err
	}
	return page{name: "redrive-new", here: "redrives", title: title(v.Verb()) + " dead letters", data: v}, nil
}

// stepOf returns the requested step, or an earlier one if its input is missing or invalid.
func (v *wizard) stepOf(wanted string) string {
	step := oneOf(wanted, "select", "preview", "pace", "confirm")
	switch {
	case v.problemStep == "select" || step == "select":
		return "select"
	case !v.Selects():
		if step != "" {
			v.addProblem("select", invalid("select dead letters: fill in a field, or choose all of them"))
		}
		return "select"
	case v.problemStep == "pace" && step == "confirm":
		step = "pace"
	case step == "":
		step = "preview"
	}
	if step == "pace" && len(v.Jobs) > 0 {
		return "confirm"
	}
	return step
}

// setSteps sets the steps and the links to the next and the previous one.
func (v *wizard) setSteps(q *request) {
	names := []formField{{"select", "Select"}, {"preview", "Preview"}, {"pace", "Pace"}, {"confirm", "Reason and confirm"}}
	if len(v.Jobs) > 0 {
		names = slices.Delete(names, 2, 3)
	}
	v.Steps, v.Next, v.Back = nil, "", ""
	past := true
	for n, name := range names {
		here := name.Name == v.Step
		past = past && !here
		step := wizardStep{Number: n + 1, Name: name.Name, Title: name.Value, Here: here, Past: past}
		if past {
			step.Link = v.stepLink(q, name.Name)
			v.Back = step.Link
		}
		if v.Steps = append(v.Steps, step); here && n+1 < len(names) {
			v.Next = v.stepLink(q, names[n+1].Name)
		}
	}
}

func (v *wizard) stepLink(q *request, step string) string {
	query := v.values()
	query.Set("step", step)
	return q.pathTo("/redrives/new", query)
}

// suggest sets the suggestions of step select and counts the current matches.
func (v *wizard) suggest(q *request) error {
	v.Hidden = v.hidden(append(slices.Clone(deadLetterFields), "all", "discard", "job")...)
	if v.Problem == "" && v.Selects() && len(v.Jobs) == 0 {
		jobs, least, err := countLetters(q, v.order(q).Filter)
		if err != nil && !errors.Is(err, holdfast.ErrInvalid) {
			return err
		}
		v.addProblem("select", err)
		v.Matching, v.None = atLeast(jobs, least), jobs == 0
	}
	groups, _, err := q.operator.ErrorGroups(q.ctx, store.ErrorFilter{Limit: groupsAsked})
	if err != nil {
		return err
	}
	codes, kinds, queues := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, one := range groups {
		codes[one.Code] = true
		for _, kind := range one.Kinds {
			kinds[kind] = true
		}
		for _, queue := range one.Queues {
			queues[queue] = true
		}
	}
	v.Codes, v.Kinds, v.Queues = slices.Sorted(maps.Keys(codes)), slices.Sorted(maps.Keys(kinds)), slices.Sorted(maps.Keys(queues))
	return nil
}

// estimate returns the duration at this pace.
func (v *wizard) estimate(q *request) (time.Duration, error) {
	jobs, least, err := countLetters(q, v.order(q).Filter)
	v.Least = least || jobs >= ops.MaxCounted
	if v.Limit > 0 {
		jobs = min(jobs, v.Limit)
	}
	return time.Duration(float64(jobs) / v.PerSecond * float64(time.Second)), err
}

// preview returns what the redrive would do.
func (v *wizard) preview(q *request) (o redrivePreview, err error) {
	var sample []ops.DeadLetter
	if len(v.Jobs) > 0 {
		o.Preview, sample, err = previewJobs(q, v.redriveForm)
		for _, one := range sample {
			o.jobs = append(o.jobs, one.Job.ID)
		}
	} else {
		order := v.order(q)
		f := order.Filter
		order.Filter.MaxScan = previewScanned
		if o.Preview, err = q.operator.PreviewRedrive(q.ctx, order); err != nil {
			return o, err
		}
		if _, o.Many, err = countLetters(q, f); err != nil {
			return o, err
		}
		f.Limit, f.MaxScan = previewSampled, deadLettersScanned
		sample, _, err = q.operator.DeadLetters(q.ctx, f)
	}
	if err != nil {
		return o, err
	}
	if o.Going = o.Eligible; v.Limit > 0 {
		o.Going = min(o.Going, v.Limit)
	}
	o.Many = (o.Many || o.Looked >= ops.MaxCounted) && (v.Limit == 0 || o.Eligible < v.Limit)
	for _, one := range o.Ineligible {
		o.Skipped = append(o.Skipped, notTaken{one, whyNotTaken[one.Reason]})
	}
	o.sort(sample)
	breakers, err := q.operator.Breakers(q.ctx)
	for _, one := range breakers {
		if one.State.Refuses() && !v.Discard && slices.ContainsFunc(sample, func(l ops.DeadLetter) bool { return callsFor(l.Job, one) }) {
			o.OpenBreakers = append(o.OpenBreakers, one)
		}
	}
	return o, err
}

// callsFor reports whether a job calls the dependency of a breaker.
func callsFor(job holdfast.Job, b ops.Breaker) bool {
	return job.Dependency == b.Dependency || job.Dependency == "" && slices.Contains(b.Kinds, job.Kind)
}

// sort counts dead letters by code and kind, the most frequent first.
func (o *redrivePreview) sort(sample []ops.DeadLetter) {
	type sort struct{ code, kind string }
	at := map[sort]int{}
	for _, one := range sample {
		by := sort{one.Code.Name, one.Job.Kind}
		n, known := at[by]
		if !known {
			n = len(o.ByFailure)
			at[by], o.ByFailure = n, append(o.ByFailure, failureCount{DeadLetter: one})
		}
		o.ByFailure[n].Jobs++
		if one.Code.Name != "" && !one.Code.Retryable {
			o.NotRetryable++
		}
	}
	slices.SortStableFunc(o.ByFailure, func(a, b failureCount) int { return cmp.Compare(b.Jobs, a.Jobs) })
	o.Sampled, o.ByFailure = len(sample), o.ByFailure[:min(len(o.ByFailure), 12)]
}

// previewJobs returns the preview for jobs that were selected one by one.
func previewJobs(q *request, w redriveForm) (p ops.Preview, letters []ops.DeadLetter, err error) {
	known, err := q.taxonomy()
	if err != nil {
		return p, nil, err
	}
	not := map[string]int{}
	for _, id := range w.Jobs {
		job, err := q.operator.Job(q.ctx, id)
		switch {
		case errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged):
			not["deleted"]++
		case err != nil:
			return p, nil, err
		case job.State != holdfast.Failed:
			not["not failed"]++
		case job.Discarded:
			not["discarded"]++
		default:
			p.Eligible++
			letter := ops.DeadLetter{Job: job}
			if job.LastFailure != nil {
				letter.Code, _ = known.Code(job.LastFailure.Code)
				letter.Code.Name = job.LastFailure.Code
			}
			letters = append(letters, letter)
			p.Sample = append(p.Sample, job)
		}
	}
	p.Looked, p.Sample = len(w.Jobs), p.Sample[:min(len(p.Sample), 10)]
	for _, reason := range slices.Sorted(maps.Keys(not)) {
		p.Ineligible = append(p.Ineligible, ops.Ineligible{Reason: reason, Jobs: not[reason]})
	}
	workers, err := q.operator.Workers(q.ctx)
	if p.Workers = len(workers); err == nil && p.Workers == 0 && !w.Discard {
		p.Notes = append(p.Notes, "no worker is alive: no job will run until one is started")
	}
	return p, letters, err
}
