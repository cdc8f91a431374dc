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
)

// A wizard is one page of the way to a redrive.
type wizard struct {
	wish
	Step   string // select, preview, pace, confirm
	Steps  []wizardStep
	Hidden []pickedField
	Next   string // the address of the next step
	Back   string
	May    bool

	Matching string // select: how many match now
	None     bool   // none does
	Codes    []string
	Kinds    []string
	Queues   []string
	Outlook  outlook // preview, confirm
	Takes    time.Duration
	Least    bool        // it may take longer: not all were counted
	Ticket   holdfast.ID // confirm: the same form starts one redrive, however often it is sent
}

// A wizardStep is one of the steps at the top of the page.
type wizardStep struct {
	Number      int
	Name, Title string
	Link        string // empty: not yet, or here
	Here, Past  bool
}

// An outlook says what would happen.
type outlook struct {
	ops.Preview
	Going  int  // so many would go now
	Many   bool // or more
	With   []letterSort
	Asked  int // of so many it was asked what they failed with
	Not    []notTaken
	Before []ops.Breaker
	Vain   int           // of those asked about: waiting does not cure what they failed with
	jobs   []holdfast.ID // those of the named ones that would go
}

// notTaken counts jobs that match and would not be taken, with what that means.
type notTaken struct {
	ops.Ineligible
	Why string
}

// whyNotTaken explains the reasons of a preview.
var whyNotTaken = map[string]string{
	"not failed": "They wait, run, are complete or were cancelled.", "discarded": "Somebody took them off the dead letters.",
	"expired": "The time by which they had to start is over.", "unique key held by another": "Another job has taken their place.",
	"source gone": "What they work on does not exist any more.", "another generation": "They were retried since.",
}

// A letterSort is what some of the dead letters failed with.
type letterSort struct {
	ops.DeadLetter // one of them
	Jobs           int
}

// newRedrive shows one step of the wizard.
func newRedrive(q *ask) (page, error) {
	v := wizard{wish: wishOf(q), May: q.may(apikey.Operator)}
	v.Step = v.stepOf(q.text("step"))
	v.way(q)
	var err error
	switch v.Step {
	case "select":
		err = v.suggest(q)
	case "pace":
		v.Hidden = v.hidden("rate", "canary", "stop", "after", "flight", "limit", "to")
		v.Takes, err = v.estimate(q)
	default:
		v.Hidden, v.Ticket = v.hidden("reason"), holdfast.NewID()
		if v.Outlook, err = v.look(q); errors.Is(err, holdfast.ErrInvalid) {
			v.complain("select", err)
			v.Step = "select"
			v.way(q)
			err = v.suggest(q)
		}
	}
	if err != nil {
		return page{}, err
	}
	return page{name: "redrive-new", here: "redrives", title: title(v.Verb()) + " dead letters", data: v}, nil
}

// stepOf is where the visitor is: where they wanted to be, unless something is missing before.
func (v *wizard) stepOf(wanted string) string {
	step := oneOf(wanted, "select", "preview", "pace", "confirm")
	switch {
	case v.at == "select" || step == "select":
		return "select"
	case !v.Selects():
		if step != "" {
			v.complain("select", unfit("say which dead letters you mean: name something they have in common, or choose all of them"))
		}
		return "select"
	case v.at == "pace" && step == "confirm":
		step = "pace"
	case step == "":
		step = "preview"
	}
	if step == "pace" && len(v.Jobs) > 0 {
		return "confirm"
	}
	return step
}

// way draws the steps, and says where the next one is.
func (v *wizard) way(q *ask) {
	names := []pickedField{{"select", "Select"}, {"preview", "Preview"}, {"pace", "Pace"}, {"confirm", "Reason and confirm"}}
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

func (v *wizard) stepLink(q *ask, step string) string {
	query := v.values()
	query.Set("step", step)
	return q.pathTo("/redrives/new", query)
}

// suggest offers what can be selected by, and counts what is selected now.
func (v *wizard) suggest(q *ask) error {
	v.Hidden = v.hidden(append(slices.Clone(pickNames), "all", "discard", "job")...)
	if v.Problem == "" && v.Selects() && len(v.Jobs) == 0 {
		jobs, least, err := countLetters(q, v.order(q).Filter)
		if err != nil && !errors.Is(err, holdfast.ErrInvalid) {
			return err
		}
		v.complain("select", err)
		v.Matching, v.None = atLeast(jobs, least), jobs == 0
	}
	groups, _, err := q.desk.ErrorGroups(q.ctx, holdfast.ErrorFilter{Limit: troublesAsked})
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

// estimate is how long it takes at this pace, at least.
func (v *wizard) estimate(q *ask) (time.Duration, error) {
	jobs, least, err := countLetters(q, v.order(q).Filter)
	v.Least = least || jobs >= ops.MostCounted
	if v.Limit > 0 {
		jobs = min(jobs, v.Limit)
	}
	return time.Duration(float64(jobs) / v.PerSecond * float64(time.Second)), err
}

// look asks what would happen.
func (v *wizard) look(q *ask) (o outlook, err error) {
	var sample []ops.DeadLetter
	if len(v.Jobs) > 0 {
		o.Preview, sample, err = lookAtJobs(q, v.wish)
		for _, one := range sample {
			o.jobs = append(o.jobs, one.Job.ID)
		}
	} else {
		order := v.order(q)
		f := order.Filter
		order.Filter.Look = lettersJudged
		if o.Preview, err = q.desk.PreviewRedrive(q.ctx, order); err != nil {
			return o, err
		}
		if _, o.Many, err = countLetters(q, f); err != nil {
			return o, err
		}
		f.Limit, f.Look = lettersAsked, lettersLooked
		sample, _, err = q.desk.DeadLetters(q.ctx, f)
	}
	if err != nil {
		return o, err
	}
	if o.Going = o.Eligible; v.Limit > 0 {
		o.Going = min(o.Going, v.Limit)
	}
	o.Many = (o.Many || o.Looked >= ops.MostCounted) && (v.Limit == 0 || o.Eligible < v.Limit)
	for _, one := range o.Ineligible {
		o.Not = append(o.Not, notTaken{one, whyNotTaken[one.Reason]})
	}
	o.sort(sample)
	breakers, err := q.desk.Breakers(q.ctx)
	for _, one := range breakers {
		if one.State.Refuses() && !v.Discard && slices.ContainsFunc(sample, func(l ops.DeadLetter) bool { return callsFor(l.Job, one) }) {
			o.Before = append(o.Before, one)
		}
	}
	return o, err
}

// callsFor reports whether a job calls what a breaker guards.
func callsFor(job holdfast.Job, b ops.Breaker) bool {
	return job.Dependency == b.Dependency || job.Dependency == "" && slices.Contains(b.Kinds, job.Kind)
}

// sort counts what dead letters failed with, the most frequent first.
func (o *outlook) sort(sample []ops.DeadLetter) {
	type sort struct{ code, kind string }
	at := map[sort]int{}
	for _, one := range sample {
		by := sort{one.Code.Name, one.Job.Kind}
		n, known := at[by]
		if !known {
			n = len(o.With)
			at[by], o.With = n, append(o.With, letterSort{DeadLetter: one})
		}
		o.With[n].Jobs++
		if one.Code.Name != "" && !one.Code.Retryable {
			o.Vain++
		}
	}
	slices.SortStableFunc(o.With, func(a, b letterSort) int { return cmp.Compare(b.Jobs, a.Jobs) })
	o.Asked, o.With = len(sample), o.With[:min(len(o.With), 12)]
}

// lookAtJobs foresees what would become of jobs that are named one by one.
func lookAtJobs(q *ask, w wish) (p ops.Preview, letters []ops.DeadLetter, err error) {
	known, err := q.taxonomy()
	if err != nil {
		return p, nil, err
	}
	not := map[string]int{}
	for _, id := range w.Jobs {
		job, err := q.desk.Job(q.ctx, id)
		switch {
		case errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged):
			not["not there any more"]++
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
	workers, err := q.desk.Workers(q.ctx)
	if p.Workers = len(workers); err == nil && p.Workers == 0 && !w.Discard {
		p.Notes = append(p.Notes, "no worker is alive: nothing will move until one is started")
	}
	return p, letters, err
}
