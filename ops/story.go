package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// A StoryLine is one line of a job's story: a transition, or an action of a person.
type StoryLine struct {
	At time.Time `json:"at"`
	// Name is one of: queued, scheduled, processing, retry, throttled, released, reclaimed, complete, failed, expired, cancelled,
	// manual retry, redrive, cancel requested, discard, replace, key passed, deadline missed, late result, resend, artifact expired.
	Name       string        `json:"name"`
	Text       string        `json:"text"`              // the line as a sentence
	Attempt    int           `json:"attempt,omitempty"` // number of the attempt in its generation
	Token      int           `json:"token"`
	Generation int           `json:"generation"`
	Code       string        `json:"code,omitempty"`
	Error      string        `json:"error,omitempty"` // text of the error, on one line
	Worker     string        `json:"worker,omitempty"`
	Actor      string        `json:"actor,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	Request    string        `json:"request,omitempty"`  // id of the HTTP request in which a person asked for it
	Duration   time.Duration `json:"duration,omitempty"` // run time of the attempt
	DueAt      time.Time     `json:"due_at,omitzero"`    // when the next attempt may start
	Repeats    int           `json:"repeats,omitempty"`  // number of released attempts directly before it that the line also stands for
	Changes    []Difference  `json:"changes,omitempty"`  // values that an edit or a redrive changed. [Service.Edit] can restore them
}

// Story returns the history of a job as a person reads it: every transition exactly once, in order.
func (s *Service) Story(ctx context.Context, id holdfast.ID) ([]StoryLine, error) {
	history, err := s.store.History(ctx, id)
	if err != nil {
		return nil, err
	}
	return Story(history), nil
}

// Story builds the story from a history. The order follows tokens and generations and not times, because clocks may step back.
func Story(h store.History) []StoryLine {
	t := &storyBuilder{history: h}
	t.begin()
	for _, attempt := range h.Attempts {
		if !attempt.Late {
			t.attempt(attempt)
		}
	}
	changes := differences(h)
	for n, event := range h.Events {
		t.event(event, changes[n])
	}
	t.present()
	slices.SortStableFunc(t.steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Token, b.Token), cmp.Compare(a.order, b.order))
	})
	lines := make([]StoryLine, len(t.steps))
	for n, step := range t.steps {
		lines[n] = step.StoryLine
	}
	number(lines)
	for _, attempt := range h.Attempts {
		if attempt.Late {
			lines = insertLate(lines, attempt)
		}
	}
	return lines
}

// What can happen under one token of one generation, in the order in which it can happen.
const (
	beginning = iota
	started
	cancelAsked // a person asked to cancel it while it ran
	ended
	after // a person changed it after it had ended or returned to its queue
)

// A step is a line with its position in the order.
type step struct {
	StoryLine
	order int
}

type storyBuilder struct {
	history store.History
	steps   []step
}

func (t *storyBuilder) add(order int, line StoryLine) { t.steps = append(t.steps, step{line, order}) }

// begin adds the line of the enqueue.
func (t *storyBuilder) begin() {
	job := t.history.Job
	job.Queue = firstQueue(t.history)
	line := StoryLine{At: job.CreatedAt, Name: "queued", Generation: 1, Text: fmt.Sprintf("queued as %s in queue %s", job.Kind, job.Queue)}
	if !job.RunAt.IsZero() {
		line.Name, line.DueAt = "scheduled", job.RunAt
		line.Text = fmt.Sprintf("scheduled as %s in queue %s for %s", job.Kind, job.Queue, job.RunAt.UTC().Format(momentLayout))
	}
	t.add(beginning, line)
}

// attempt adds the lines of an attempt. An attempt that took no time never started, except for a crash.
func (t *storyBuilder) attempt(a store.Attempt) {
	took := a.EndedAt.Sub(a.StartedAt)
	if took > 0 || a.Charge == store.ChargeCrash {
		t.start(a.StartedAt, a.Token, a.Generation, a.Worker)
	}
	line := StoryLine{At: a.EndedAt, Token: a.Token, Generation: a.Generation, Worker: a.Worker, Duration: max(took, 0), DueAt: a.DueAt}
	what := ""
	if a.Failure != nil {
		line.Code, line.Error = a.Failure.Code, failure.Summary(a.Failure.Detail)
		what = " with " + a.Failure.Code
		if a.Failure.Message != "" {
			what += " (" + a.Failure.Message + ")"
		}
	}
	switch {
	case a.To == holdfast.Queued && a.Charge == store.ChargeFailure:
		line.Name, line.Text = "retry", "failed"+what+", next attempt "+clock(a.DueAt)
	case a.To == holdfast.Queued && a.Charge == store.ChargeCrash:
		line.Name, line.Text = "reclaimed", fmt.Sprintf("worker %s was lost, next attempt %s", a.Worker, clock(a.DueAt))
	case a.To == holdfast.Queued && failure.IsThrottled(a.Failure):
		line.Name, line.Text = "throttled", "throttled"+what+", next attempt "+clock(a.DueAt)
	case a.To == holdfast.Queued:
		line.Name, line.Text = "released", "released"+what+", next attempt "+clock(a.DueAt)
	case a.To == holdfast.Failed && line.Code == expired:
		line.Name, line.Text = "expired", "not started in time"
	case a.To == holdfast.Failed:
		line.Name, line.Text = "failed", "failed for good"+what
		if a.Failure != nil && a.Failure.Benign {
			line.Text += ", a benign failure"
		}
	case a.Said != "" && a.Said != a.To:
		line.Name, line.Text = string(a.To), fmt.Sprintf("%s as requested; its attempt had reported %s%s", a.To, a.Said, what)
	default:
		line.Name, line.Text = string(a.To), string(a.To)
	}
	if a.Why != "" {
		line.Text += ": " + a.Why
	}
	if line.Repeats = a.Repeats; a.Repeats > 0 {
		line.Text += fmt.Sprintf(" (the last of %d releases in a row since %s; the others are not recorded one by one)", a.Repeats+1, a.Since.UTC().Format(momentLayout))
	}
	t.add(ended, line)
}

// expired is the code of a job that could not start in time.
const expired = "JOB_EXPIRED"

func (t *storyBuilder) start(at time.Time, token, generation int, worker string) {
	t.add(started, StoryLine{At: at, Name: "processing", Token: token, Generation: generation, Worker: worker, Text: "processed by " + worker})
}

// event adds the line of an event.
func (t *storyBuilder) event(e store.Event, changes []Difference) {
	line := StoryLine{Changes: changes, At: e.At, Name: e.Name, Token: e.Token, Generation: e.Generation, Actor: e.Actor, Reason: e.Reason, Request: e.Request}
	order, verb := after, e.Name
	switch {
	case e.Name == "manual retry":
		order, verb = beginning, "retried"
	case e.Name == "cancel" && t.askedToStop(e):
		order, line.Name, verb = cancelAsked, "cancel requested", "asked to stop"
	case e.Name == "cancel":
		line.Name, verb = "cancelled", "cancelled"
	case e.Name == "discard":
		verb = "discarded"
	case e.Name == "edit":
		verb = "edited"
	case e.Name == "resend":
		verb = "sent again"
	}
	line.Text = verb + " by " + e.Actor
	if e.Reason != "" {
		line.Text += ": " + e.Reason
	}
	switch e.Name {
	case "redrive":
		order, line.Text = beginning, redriven(e)
	case store.EventExpired:
		line.Name, line.Text = "artifact expired", fmt.Sprintf("its artifact %s expired", e.Reason)
	case "replace":
		line.Text = "content replaced " + e.Reason
	case "key passed":
		line.Text = e.Reason
	case "deadline missed":
		line.Text = "retry_within was exceeded: " + e.Reason
	}
	t.add(order, line)
}

// redriven splits the reason of a redrive event, which begins with the id of the redrive.
func redriven(e store.Event) string {
	id, reason, _ := strings.Cut(e.Reason, ": ")
	if _, err := holdfast.ParseID(id); err != nil {
		return fmt.Sprintf("redriven by %s: %s", e.Actor, e.Reason)
	}
	text := fmt.Sprintf("redriven by %s in redrive %s", e.Actor, id)
	if reason != "" {
		text += ": " + reason
	}
	return text
}

// askedToStop distinguishes a request to a worker from an immediate cancellation, after which the token has no further attempt.
func (t *storyBuilder) askedToStop(e store.Event) bool {
	job := t.history.Job
	if job.Cancelling && job.Generation == e.Generation {
		return true
	}
	return slices.ContainsFunc(t.history.Attempts, func(a store.Attempt) bool {
		toldAfter := a.Token > e.Token || (a.Token == e.Token && a.To == holdfast.Cancelled)
		return !a.Late && a.Generation == e.Generation && toldAfter
	})
}

// present adds what only the job's row shows: that it is running now, or that it completed.
func (t *storyBuilder) present() {
	job := t.history.Job
	switch {
	case job.State == holdfast.Processing && job.StartedAt.IsZero():
		t.add(started, StoryLine{At: job.AsOf, Name: "processing", Token: job.Token, Generation: job.Generation, Worker: job.Worker, Text: "claimed by " + job.Worker + ", not started yet"})
	case job.State == holdfast.Processing:
		t.start(job.StartedAt, job.Token, job.Generation, job.Worker)
	case job.State == holdfast.Complete:
		line := StoryLine{At: job.FinishedAt, Name: "complete", Token: job.Token, Generation: job.Generation, Worker: job.Worker, Text: "complete"}
		if !job.StartedAt.IsZero() {
			t.start(job.StartedAt, job.Token, job.Generation, job.Worker)
			line.Duration = max(job.FinishedAt.Sub(job.StartedAt), 0)
		}
		t.add(ended, line)
	}
}

// An attemptKey identifies an attempt.
type attemptKey struct{ generation, token int }

// number numbers the attempts of each generation, including those that a line stands for.
func number(lines []StoryLine) {
	attempt, generation, token := 0, 0, 0
	repeated := map[attemptKey]int{} // collected first: the line of an attempt's start comes before the line with Repeats
	for _, line := range lines {
		if line.Repeats > 0 {
			repeated[attemptKey{line.Generation, line.Token}] = line.Repeats
		}
	}
	for n := range lines {
		line := &lines[n]
		if line.Generation != generation {
			attempt, generation, token = 0, line.Generation, 0
		}
		switch line.Name {
		case "processing", "retry", "throttled", "released", "reclaimed", "complete", "failed":
			if line.Token != token {
				attempt, token = attempt+1+repeated[attemptKey{line.Generation, line.Token}], line.Token
			}
			line.Attempt = attempt
		}
	}
}

// insertLate inserts a late result at the time when it arrived.
func insertLate(lines []StoryLine, a store.Attempt) []StoryLine {
	line := StoryLine{At: a.EndedAt, Name: "late result", Token: a.Token, Generation: a.Generation, Worker: a.Worker, Duration: max(a.EndedAt.Sub(a.StartedAt), 0)}
	reported := string(a.To)
	if a.Failure != nil {
		line.Code, line.Error = a.Failure.Code, failure.Summary(a.Failure.Detail)
		reported = strings.TrimSpace(reported + " " + a.Failure.Code)
	}
	line.Text = fmt.Sprintf("a worker that had lost the lease reported %s: recorded, not applied", reported)
	if endedBy(lines, a) {
		line.Text = fmt.Sprintf("its attempt had already ended the job, and then the worker reported %s: recorded, not applied", reported)
	}
	place := len(lines)
	for place > 1 && lines[place-1].At.After(line.At) {
		place--
	}
	return slices.Insert(lines, place, line)
}

// endedBy reports whether the attempt itself has ended the job: its handler completed the job in its own transaction, and then panicked or returned an error.
func endedBy(lines []StoryLine, a store.Attempt) bool {
	return slices.ContainsFunc(lines, func(l StoryLine) bool {
		return l.Generation == a.Generation && l.Token == a.Token && (l.Name == "complete" || l.Name == "failed" || l.Name == "cancelled")
	})
}

const momentLayout = "2006-01-02 15:04:05.000"

func clock(t time.Time) string {
	if t.IsZero() {
		return "at once"
	}
	return "at " + t.UTC().Format(momentLayout)
}
