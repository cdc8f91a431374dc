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
	"github.com/holdfastdev/holdfast/store"
)

// mountJob mounts the page of a job and its actions.
func (c *Console) mountJob() {
	c.handlePage("/jobs/{id}", c.job)
	c.handleAction("/jobs/{id}/retry", apikey.Operator, retryJob)
	c.handleAction("/jobs/{id}/cancel", apikey.Operator, cancelJob)
	c.handleAction("/jobs/{id}/discard", apikey.Operator, discardJob)
	c.mountEdit()
}

// A jobPage is the data of the page of a job.
type jobPage struct {
	Job       holdfast.Job
	Badge     badge
	Lead      string
	Reasons   []ops.Reason // further reasons why it does not run
	Remedy    string
	Until     time.Time
	Held      bool // a hold keeps it from being claimed
	Breaker   bool // the hold is the breaker of its dependency
	Can       can
	Waterfall waterfall
	Attempts  []attempt
	Left      int // attempts not shown
	Args      longText
	Result    longText
	Artifacts []store.Artifact
	Story     []storyLine
	MoreLines int // story lines not shown
	Lineage   lineage
	Link      jobLinks
	Commands  []command
	Delivery  bool
}

// A badge is a word with a shape and a colour (State).
type badge struct{ State, Shape, Word string }

// A longText is a text that is shown up to a limit.
type longText struct {
	Text string
	Size int
	Left int // bytes not shown
}

// maxShown is the number of bytes of a text that are shown.
const maxShown = 64 << 10

func clipped(whole string) longText {
	t := longText{Text: whole, Size: len(whole)}
	if shown := truncate(whole, maxShown); shown != whole {
		t.Text, t.Left = shown, len(whole)-len(shown)+len("…")
	}
	return t
}

// prettyText returns indented JSON. JSON that is too long to be shown is truncated without indenting it first.
func prettyText(body json.RawMessage) longText {
	if len(body) > maxShown {
		return clipped(string(body))
	}
	return clipped(pretty(body))
}

// job renders the page of a job.
func (c *Console) job(q *request) (page, error) {
	id, err := q.id()
	if err != nil {
		return page{}, err
	}
	history, err := q.operator.History(q.ctx, id)
	if err != nil {
		return page{}, err
	}
	explained, err := q.operator.Explain(q.ctx, id)
	if err != nil {
		return page{}, err
	}
	artifacts, err := q.operator.Artifacts(q.ctx, id)
	if err != nil {
		return page{}, err
	}
	opened, err := q.openedFor(history.Job)
	if err != nil {
		return page{}, err
	}
	job, lines := history.Job, ops.Story(history)
	shown := jobPage{
		Job: job, Badge: badgeOf(job), Can: canDo(job), Waterfall: buildWaterfall(history, lines, opened), Args: prettyText(job.Args), Result: prettyText(job.Result),
		Artifacts: artifacts, Lineage: lineageOf(q, history), Link: linksOf(job), Commands: commands(q, job), Delivery: job.Queue == subscription.Queue,
	}
	shown.Attempts, shown.Left = attempts(history, lines)
	shown.Story, shown.MoreLines = storyOf(lines, q.prefs.clock())
	if canDo(history.Job).Edit && q.may(apikey.Operator) {
		addRestoreLinks(shown.Story, id)
	}
	shown.explain(explained.Reasons, q.prefs.clock())
	return page{name: "job", title: job.Kind + " " + short(job.ID), here: "jobs", topics: []string{"jobs", "breakers", "holds"}, data: shown}, nil
}

// openedFor returns the periods in which the breaker of the job's dependency was open.
func (q *request) openedFor(job holdfast.Job) ([]segment, error) {
	if job.Dependency == "" {
		return nil, nil
	}
	b, err := q.operator.Breaker(q.ctx, job.Dependency)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, nil
	}
	return openPeriods(b, job.AsOf), err
}

// explain sets the reasons why the job does not run. The first is the lead, the others follow.
func (p *jobPage) explain(reasons []ops.Reason, c clock) {
	for i, one := range reasons {
		p.Held, p.Breaker = p.Held || isHold(one), p.Breaker || one.Name == "breaker"
		one.Text = inZone(one.Text, c)
		if i == 0 {
			p.Lead, p.Remedy, p.Until = phrase(one.Text), phrase(one.Remedy), one.Until
			continue
		}
		one.Text, one.Remedy = phrase(one.Text), phrase(one.Remedy)
		p.Reasons = append(p.Reasons, one)
	}
}

// isHold reports whether a reason is a hold.
func isHold(r ops.Reason) bool {
	return strings.HasSuffix(r.Name, " paused") && r.Name != "duty paused" || slices.Contains([]string{"breaker", "budget", "window", "handler", "limit", "rate"}, r.Name)
}

// phrase returns a clause as a sentence.
func phrase(clause string) string {
	if clause == "" {
		return ""
	}
	return sentence(&holdfast.Error{Message: clause})
}

// instants matches times in texts of an operator, which are in UTC.
var instants = regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b(\.\d+)?`)

// inZone converts the times in a text of an operator to the visitor's zone.
func inZone(text string, c clock) string {
	return instants.ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse(time.DateTime, found)
		if err != nil {
			return found
		}
		return c.exact(at)
	})
}

// badgeOf returns the badge of a job. A job that waits for a retry is queued; the text beside the badge says what it waits for.
func badgeOf(job holdfast.Job) badge {
	if job.Discarded {
		return badge{"discarded", "discarded", "discarded"}
	}
	return badge{string(job.State), string(job.State), string(job.State)}
}

// can is what may be done to a job in its current state, and why other actions are not possible.
type can struct {
	Retry, Edit, Cancel, Discard bool
	Not                          string
}

func canDo(job holdfast.Job) can {
	tried := job.Failures+job.Crashes+job.Releases > 0
	switch {
	case job.State == holdfast.Failed && job.Discarded:
		return can{Retry: true, Edit: true}
	case job.State == holdfast.Failed:
		return can{Retry: true, Edit: true, Discard: true}
	case job.State == holdfast.Processing && !job.LeaseUntil.After(job.AsOf):
		return can{Retry: true, Cancel: !job.Cancelling}
	case job.State == holdfast.Processing && job.Cancelling:
		return can{Not: "A stop was requested. Wait for its worker."}
	case job.State == holdfast.Processing:
		return can{Cancel: true, Not: "You can retry or edit it when its attempt has ended."}
	case job.State == holdfast.Queued && job.Waiting:
		return can{Edit: true, Cancel: true, Not: "It starts when the jobs that it waits for have ended."}
	case job.State == holdfast.Queued && tried && job.DueAt.After(job.AsOf):
		return can{Retry: true, Edit: true, Cancel: true}
	case job.State == holdfast.Queued:
		return can{Edit: true, Cancel: true, Not: "It is already queued: there is nothing to retry."}
	case job.State == holdfast.Complete:
		return can{Not: "A complete job cannot be changed."}
	}
	return can{Not: "A cancelled job cannot be retried. Enqueue it again if you need it."}
}

// A storyLine is a line of a story, and whether it records an action of a person.
type storyLine struct {
	ops.StoryLine
	Sentence string // the text, if it says more than the name
	Person   bool
	Restore  string // URL of the form that restores what the line changed; empty if the visitor cannot edit the job
}

// maxStoryLines is the number of story lines shown, and maxLineBytes the length of each.
const (
	maxStoryLines = 100
	maxLineBytes  = 600
)

// storyOf returns the story, the newest line first, and the number of lines left out.
func storyOf(lines []ops.StoryLine, c clock) (all []storyLine, more int) {
	for _, one := range slices.Backward(lines) {
		if len(all) == maxStoryLines {
			return all, len(lines) - maxStoryLines
		}
		text := ""
		if one.Text != one.Name {
			text = phrase(truncate(inZone(one.Text, c), maxLineBytes))
		}
		all = append(all, storyLine{StoryLine: one, Sentence: text, Person: one.Actor != "" && one.Actor != breaker.System})
	}
	return all, 0
}

// addRestoreLinks sets the restore link of each line that changed the job.
func addRestoreLinks(lines []storyLine, job holdfast.ID) {
	for n := range lines {
		if len(lines[n].Changes) > 0 {
			lines[n].Restore = "/jobs/" + job.String() + "/edit?restore=" + url.QueryEscape(lines[n].At.UTC().Format(time.RFC3339Nano))
		}
	}
}

// jobLinks are searches for similar jobs.
type jobLinks struct{ Kind, Owner, Worker string }

func linksOf(job holdfast.Job) jobLinks {
	return jobLinks{queryPart{"kind", job.Kind}.String(), queryPart{"owner", job.Owner}.String(), queryPart{"worker", job.Worker}.String()}
}

// lineage is what a job belongs to.
type lineage struct {
	None     bool          // it belongs to nothing
	Redrives []holdfast.ID // redrives that took it, the newest first
	After    []holdfast.ID // jobs that must end before it starts
	Others   int           // further ones
	Tags     []tagLink
	Limits   []string
}

// A tagLink is a tag with a link to its jobs.
type tagLink struct{ Name, Link string }

// maxAfter is the number of jobs listed that a job waits for.
const maxAfter = 12

func lineageOf(q *request, h store.History) (l lineage) {
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
	l.After = job.After[:min(len(job.After), maxAfter)]
	l.Others = len(job.After) - len(l.After)
	if job.MaxAttempts > 0 {
		l.Limits = append(l.Limits, plural(job.MaxAttempts, "attempt")+" at most")
	}
	if job.RetryWithin > 0 {
		l.Limits = append(l.Limits, "a retry starts within "+formatDuration(job.RetryWithin))
	}
	l.None = job.Group.IsZero() && job.Upstream.IsZero() && len(job.Tags)+len(l.Redrives)+len(l.After) == 0 && job.UniqueKey+job.IdempotencyKey+job.Trace == ""
	return l
}

// retryJob retries a job.
func retryJob(q *request) (actionResult, error) {
	id, err := q.id()
	if err != nil {
		return actionResult{}, err
	}
	ahead, err := q.operator.Retry(q.ctx, q.on(id))
	if err != nil {
		return actionResult{}, err
	}
	return actionResult{text: "Retried. The job is queued, " + aheadWords(ahead) + "."}, nil
}

// aheadWords says how many jobs of the queue are claimed first.
func aheadWords(ahead int) string {
	if ahead == 0 {
		return "next in its queue"
	}
	return fmt.Sprintf("behind %s", plural(ahead, "job"))
}

// cancelJob cancels a job, or asks its worker to stop it.
func cancelJob(q *request) (actionResult, error) {
	id, err := q.id()
	if err != nil {
		return actionResult{}, err
	}
	state, err := q.operator.Cancel(q.ctx, q.on(id))
	switch {
	case err != nil:
		return actionResult{}, err
	case state == holdfast.Processing:
		return actionResult{text: "Stop requested. The job is cancelled when its worker stops it."}, nil
	}
	return actionResult{text: "Cancelled."}, nil
}

// discardJob removes a job from the dead letters.
func discardJob(q *request) (actionResult, error) {
	id, err := q.id()
	if err != nil {
		return actionResult{}, err
	}
	if err := q.operator.Discard(q.ctx, q.on(id)); err != nil {
		return actionResult{}, err
	}
	return actionResult{text: "Discarded. The job is no longer a dead letter. You can still retry it."}, nil
}
