package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
)

// mountJob mounts the page of one job, and what can be done to it.
func (c *Console) mountJob() {
	c.see("/jobs/{id}", c.job)
	c.do("/jobs/{id}/retry", apikey.Operator, retryJob)
	c.do("/jobs/{id}/cancel", apikey.Operator, cancelJob)
	c.do("/jobs/{id}/discard", apikey.Operator, discardJob)
	c.mountEdit()
}

// A jobPage is what stands on the page of one job.
type jobPage struct {
	Job       holdfast.Job
	Badge     badge
	Lead      string
	Reasons   []ops.Reason // what else stands in its way
	Remedy    string
	Until     time.Time
	Held      bool // something keeps it back
	Breaker   bool // its dependency's breaker does
	Can       can
	Fall      waterfall
	Attempts  []attempt
	Left      int // attempts that are not shown
	Args      longText
	Result    longText
	Artifacts []holdfast.Artifact
	Story     []storyLine
	Untold    int // lines that are not shown
	Lineage   lineage
	Link      jobLinks
	Commands  []command
	Delivery  bool
}

// A badge is a word with a shape and a colour.
type badge struct{ State, Shape, Word string }

// A longText is something long: shown up to a limit.
type longText struct {
	Text string
	Size int
	Left int // bytes that are not shown
}

// mostShown is how many bytes of a text are shown.
const mostShown = 64 << 10

func clipped(whole string) longText {
	t := longText{Text: whole, Size: len(whole)}
	if shown := cut(whole, mostShown); shown != whole {
		t.Text, t.Left = shown, len(whole)-len(shown)+len("…")
	}
	return t
}

// asText is JSON in lines, to the letter. What is too long to be shown is not put into lines first.
func asText(body json.RawMessage) longText {
	if len(body) > mostShown {
		return clipped(string(body))
	}
	return clipped(pretty(body))
}

// job shows one job.
func (c *Console) job(q *ask) (page, error) {
	id, err := q.id()
	if err != nil {
		return page{}, err
	}
	history, err := q.desk.History(q.ctx, id)
	if err != nil {
		return page{}, err
	}
	explained, err := q.desk.Explain(q.ctx, id)
	if err != nil {
		return page{}, err
	}
	artifacts, err := q.desk.Artifacts(q.ctx, id)
	if err != nil {
		return page{}, err
	}
	opened, err := q.openedFor(history.Job)
	if err != nil {
		return page{}, err
	}
	job, lines := history.Job, ops.Tell(history)
	shown := jobPage{
		Job: job, Badge: badgeOf(job), Can: canDo(job), Fall: fall(history, lines, opened), Args: asText(job.Args), Result: asText(job.Result),
		Artifacts: artifacts, Lineage: lineageOf(q, history), Link: linksOf(job), Commands: commands(q, job), Delivery: job.Queue == subscription.Queue,
	}
	shown.Attempts, shown.Left = attempts(history, lines)
	shown.Story, shown.Untold = storyOf(lines, q.prefs.clock())
	if canDo(history.Job).Edit && q.may(apikey.Operator) {
		restorable(shown.Story, id)
	}
	shown.explain(explained.Reasons, q.prefs.clock())
	return page{name: "job", title: job.Kind + " " + short(job.ID), here: "jobs", topics: []string{"jobs", "breakers", "holds"}, data: shown}, nil
}

// openedFor are the times in which the breaker of what the job calls kept jobs back.
func (q *ask) openedFor(job holdfast.Job) ([]stretch, error) {
	if job.Dependency == "" {
		return nil, nil
	}
	b, err := q.desk.Breaker(q.ctx, job.Dependency)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, nil
	}
	return shut(b, job.AsOf), err
}

// explain says how the job stands: the strongest reason leads, the others follow.
func (p *jobPage) explain(reasons []ops.Reason, c clock) {
	for i, one := range reasons {
		p.Held, p.Breaker = p.Held || holds(one), p.Breaker || one.Name == "breaker"
		one.Text = inZone(one.Text, c)
		if i == 0 {
			p.Lead, p.Remedy, p.Until = phrase(one.Text), phrase(one.Remedy), one.Until
			continue
		}
		one.Text, one.Remedy = phrase(one.Text), phrase(one.Remedy)
		p.Reasons = append(p.Reasons, one)
	}
}

// holds reports whether a reason is a hold.
func holds(r ops.Reason) bool {
	return strings.HasSuffix(r.Name, " paused") && r.Name != "duty paused" || slices.Contains([]string{"breaker", "budget", "window", "handler", "limit", "rate"}, r.Name)
}

// phrase is a clause as a sentence.
func phrase(clause string) string {
	if clause == "" {
		return ""
	}
	return sentence(&holdfast.Error{Message: clause})
}

// instants are how a desk writes them: in UTC.
var instants = regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b(\.\d+)?`)

// inZone writes the instants of a desk's text in the visitor's zone.
func inZone(said string, c clock) string {
	return instants.ReplaceAllStringFunc(said, func(found string) string {
		at, err := time.Parse(time.DateTime, found)
		if err != nil {
			return found
		}
		return c.exact(at)
	})
}

// badgeOf is how a job stands in one word. A job that failed before and waits is queued: the words beside it say for what.
func badgeOf(job holdfast.Job) badge {
	if job.Discarded {
		return badge{"discarded", "discarded", "discarded"}
	}
	return badge{string(job.State), string(job.State), string(job.State)}
}

// can is what may be done to a job as it stands, and in words what may not.
type can struct {
	Retry, Edit, Cancel, Discard bool
	Not                          string
}

func canDo(job holdfast.Job) can {
	tried := job.Failures+job.Crashes+job.Interrupts > 0
	switch {
	case job.State == holdfast.Failed && job.Discarded:
		return can{Retry: true, Edit: true}
	case job.State == holdfast.Failed:
		return can{Retry: true, Edit: true, Discard: true}
	case job.State == holdfast.Processing && !job.LeaseUntil.After(job.AsOf):
		return can{Retry: true, Cancel: !job.Cancelling}
	case job.State == holdfast.Processing && job.Cancelling:
		return can{Not: "It was asked to stop. Nothing else can be done until its worker answers."}
	case job.State == holdfast.Processing:
		return can{Cancel: true, Not: "It can be retried or edited when its attempt has ended."}
	case job.State == holdfast.Queued && job.Waiting:
		return can{Edit: true, Cancel: true, Not: "It starts when the members of its group have ended for which it waits."}
	case job.State == holdfast.Queued && tried && job.DueAt.After(job.AsOf):
		return can{Retry: true, Edit: true, Cancel: true}
	case job.State == holdfast.Queued:
		return can{Edit: true, Cancel: true, Not: "It waits to run already: there is nothing to retry."}
	case job.State == holdfast.Complete:
		return can{Not: "It is complete, and stays so."}
	}
	return can{Not: "A cancelled job stays cancelled. Enqueue it again if it is needed after all."}
}

// A storyLine is a line of the story, and whether a person said it.
type storyLine struct {
	ops.Line
	Said    string
	Person  bool
	Restore string // the form that puts back what the line changed; empty: it cannot be edited, or not by this person
}

// mostTold is how many lines of a story are shown, and mostWords how much of each.
const (
	mostTold  = 100
	mostWords = 600
)

// storyOf is the story, the newest line first.
func storyOf(lines []ops.Line, c clock) (all []storyLine, untold int) {
	for _, one := range slices.Backward(lines) {
		if len(all) == mostTold {
			return all, len(lines) - mostTold
		}
		said := ""
		if one.Text != one.Name {
			said = phrase(cut(inZone(one.Text, c), mostWords))
		}
		all = append(all, storyLine{Line: one, Said: said, Person: one.Actor != "" && one.Actor != breaker.System})
	}
	return all, 0
}

// restorable says of each line that changed its job where that is put back.
func restorable(lines []storyLine, job holdfast.ID) {
	for n := range lines {
		if len(lines[n].Changes) > 0 {
			lines[n].Restore = "/jobs/" + job.String() + "/edit?restore=" + url.QueryEscape(lines[n].At.UTC().Format(time.RFC3339Nano))
		}
	}
}

// jobLinks are searches for jobs that are like this one.
type jobLinks struct{ Kind, Owner, Worker string }

func linksOf(job holdfast.Job) jobLinks {
	return jobLinks{queryPart{"kind", job.Kind}.String(), queryPart{"owner", job.Owner}.String(), queryPart{"worker", job.Worker}.String()}
}

// lineage is where a job comes from, and what it belongs to.
type lineage struct {
	None     bool          // it belongs to nothing else
	Redrives []holdfast.ID // that took it, the newest first
	After    []holdfast.ID // that end before it starts
	Others   int           // of those, so many more
	Tags     []tagLink
	Limits   []string
}

// A tagLink is a tag, and the jobs that have it.
type tagLink struct{ Name, Link string }

// mostAfter is how many of those are named for which a job waits.
const mostAfter = 12

func lineageOf(q *ask, h holdfast.History) (l lineage) {
	job := h.Job
	for _, e := range slices.Backward(h.Events) {
		if e.Name != "redrive" || len(e.Reason) < 36 {
			continue
		}
		if id, err := holdfast.ParseID(e.Reason[:36]); err == nil && !slices.Contains(l.Redrives, id) {
			l.Redrives = append(l.Redrives, id)
		}
	}
	for _, tag := range job.Tags {
		to, _ := link(q.link("/jobs"), "q", queryPart{"tag", tag}.String()) // a name and a value
		l.Tags = append(l.Tags, tagLink{tag, to})
	}
	l.After = job.After[:min(len(job.After), mostAfter)]
	l.Others = len(job.After) - len(l.After)
	if job.MaxAttempts > 0 {
		l.Limits = append(l.Limits, plural(job.MaxAttempts, "attempt")+" at most")
	}
	if job.RetryWithin > 0 {
		l.Limits = append(l.Limits, "a retry starts within "+took(job.RetryWithin))
	}
	l.None = job.Group.IsZero() && job.Upstream.IsZero() && len(job.Tags)+len(l.Redrives)+len(l.After) == 0 && job.UniqueKey+job.IdempotencyKey+job.Trace == ""
	return l
}

// retryJob sends a job round again.
func retryJob(q *ask) (done, error) {
	id, err := q.id()
	if err != nil {
		return done{}, err
	}
	ahead, err := q.desk.Retry(q.ctx, q.on(id))
	if err != nil {
		return done{}, err
	}
	return done{text: "Retried: it is queued again, " + inFront(ahead) + "."}, nil
}

// inFront says how many jobs come first.
func inFront(ahead int) string {
	if ahead == 0 {
		return "and the next of its queue"
	}
	return fmt.Sprintf("with %s of its queue before it", plural(ahead, "job"))
}

// cancelJob ends a job, or asks its worker to stop.
func cancelJob(q *ask) (done, error) {
	id, err := q.id()
	if err != nil {
		return done{}, err
	}
	state, err := q.desk.Cancel(q.ctx, q.on(id))
	switch {
	case err != nil:
		return done{}, err
	case state == holdfast.Processing:
		return done{text: "Asked to stop: it ends cancelled as soon as its worker lets go."}, nil
	}
	return done{text: "Cancelled."}, nil
}

// discardJob takes a job off the dead letters.
func discardJob(q *ask) (done, error) {
	id, err := q.id()
	if err != nil {
		return done{}, err
	}
	if err := q.desk.Discard(q.ctx, q.on(id)); err != nil {
		return done{}, err
	}
	return done{text: "Discarded: it is no dead letter any more. It can still be retried."}, nil
}
