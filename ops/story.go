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
)

// A Line is one transition of a job's story, or a word somebody said about it.
type Line struct {
	At time.Time `json:"at"`
	// Name is one of: queued, scheduled, processing, retry, throttled, released, reclaimed, complete, failed, expired, cancelled,
	// manual retry, redrive, cancel requested, discard, breach, late result, resend, artifact expired.
	Name       string        `json:"name"`
	Text       string        `json:"text"`              // the line as a sentence
	Attempt    int           `json:"attempt,omitempty"` // which attempt of its generation
	Token      int           `json:"token"`
	Generation int           `json:"generation"`
	Code       string        `json:"code,omitempty"`
	Error      string        `json:"error,omitempty"` // what went wrong, in the words of the error, on one line
	Worker     string        `json:"worker,omitempty"`
	Actor      string        `json:"actor,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	Request    string        `json:"request,omitempty"`  // in which a person asked for it
	Duration   time.Duration `json:"duration,omitempty"` // how long the attempt ran
	DueAt      time.Time     `json:"due_at,omitzero"`    // when the next attempt may start
	Repeats    int           `json:"repeats,omitempty"`  // for how many released attempts right before it the line also stands
	Changes    []Difference  `json:"changes,omitempty"`  // of an edit or a redrive: what it changed. [Service.Edit] restores it
}

// Story tells how a job came to stand where it stands: every transition exactly once, in order.
func (s *Service) Story(ctx context.Context, id holdfast.ID) ([]Line, error) {
	history, err := s.store.History(ctx, id)
	if err != nil {
		return nil, err
	}
	return Tell(history), nil
}

// Tell folds a history into its story. The order follows tokens and generations, not clocks: clocks may step back.
func Tell(h holdfast.History) []Line {
	t := &teller{history: h}
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
	lines := make([]Line, len(t.steps))
	for n, step := range t.steps {
		lines[n] = step.Line
	}
	number(lines)
	for _, attempt := range h.Attempts {
		if attempt.Late {
			lines = insertLate(lines, attempt)
		}
	}
	return lines
}

// What can happen under one token of one generation, in the order in which it can.
const (
	beginning = iota
	started
	spoken // somebody asked it to stop while it was processed
	ended
	after // somebody acted on it after it had ended or gone back
)

// A step is a line that knows its place.
type step struct {
	Line
	order int
}

type teller struct {
	history holdfast.History
	steps   []step
}

func (t *teller) add(order int, line Line) { t.steps = append(t.steps, step{line, order}) }

// begin tells how the job came to be.
func (t *teller) begin() {
	job := t.history.Job
	job.Queue = firstQueue(t.history)
	line := Line{At: job.CreatedAt, Name: "queued", Generation: 1, Text: fmt.Sprintf("queued as %s in queue %s", job.Kind, job.Queue)}
	if !job.RunAt.IsZero() {
		line.Name, line.DueAt = "scheduled", job.RunAt
		line.Text = fmt.Sprintf("scheduled as %s in queue %s for %s", job.Kind, job.Queue, job.RunAt.UTC().Format(momentLayout))
	}
	t.add(beginning, line)
}

// attempt tells a span in a worker's hands. One that took no time never started; a crash always had.
func (t *teller) attempt(a holdfast.Attempt) {
	took := a.EndedAt.Sub(a.StartedAt)
	if took > 0 || a.Charge == holdfast.ChargeCrash {
		t.start(a.StartedAt, a.Token, a.Generation, a.Worker)
	}
	line := Line{At: a.EndedAt, Token: a.Token, Generation: a.Generation, Worker: a.Worker, Duration: max(took, 0), DueAt: a.DueAt}
	what := ""
	if a.Failure != nil {
		line.Code, line.Error = a.Failure.Code, failure.Summary(a.Failure.Detail)
		what = " with " + a.Failure.Code
		if a.Failure.Message != "" {
			what += " (" + a.Failure.Message + ")"
		}
	}
	switch {
	case a.To == holdfast.Queued && a.Charge == holdfast.ChargeFailure:
		line.Name, line.Text = "retry", "failed"+what+", next attempt "+clock(a.DueAt)
	case a.To == holdfast.Queued && a.Charge == holdfast.ChargeCrash:
		line.Name, line.Text = "reclaimed", fmt.Sprintf("worker %s was lost, next attempt %s", a.Worker, clock(a.DueAt))
	case a.To == holdfast.Queued && failure.IsThrottled(a.Failure):
		line.Name, line.Text = "throttled", "throttled"+what+", next attempt "+clock(a.DueAt)
	case a.To == holdfast.Queued:
		line.Name, line.Text = "released", "handed back"+what+", next attempt "+clock(a.DueAt)
	case a.To == holdfast.Failed && line.Code == expired:
		line.Name, line.Text = "expired", "not started in time"
	case a.To == holdfast.Failed:
		line.Name, line.Text = "failed", "failed for good"+what
		if a.Failure != nil && a.Failure.Benign {
			line.Text += ", as was to be expected"
		}
	case a.Said != "" && a.Said != a.To:
		line.Name, line.Text = string(a.To), fmt.Sprintf("%s, as it was asked to be; its attempt said %s%s", a.To, a.Said, what)
	default:
		line.Name, line.Text = string(a.To), string(a.To)
	}
	if a.Why != "" {
		line.Text += ": " + a.Why
	}
	if line.Repeats = a.Repeats; a.Repeats > 0 {
		line.Text += fmt.Sprintf(" (the last of %d releases in a row since %s; the others are not kept one by one)", a.Repeats+1, a.Since.UTC().Format(momentLayout))
	}
	t.add(ended, line)
}

// expired is the code of a job that could not start in time.
const expired = "JOB_EXPIRED"

func (t *teller) start(at time.Time, token, generation int, worker string) {
	t.add(started, Line{At: at, Name: "processing", Token: token, Generation: generation, Worker: worker, Text: "processed by " + worker})
}

// event tells what a person did.
func (t *teller) event(e holdfast.Event, changes []Difference) {
	line := Line{Changes: changes, At: e.At, Name: e.Name, Token: e.Token, Generation: e.Generation, Actor: e.Actor, Reason: e.Reason, Request: e.Request}
	order, verb := after, e.Name
	switch {
	case e.Name == "manual retry":
		order, verb = beginning, "retried"
	case e.Name == "cancel" && t.askedToStop(e):
		order, line.Name, verb = spoken, "cancel requested", "asked to stop"
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
	case holdfast.EventExpired:
		line.Name, line.Text = "artifact expired", fmt.Sprintf("its artifact %s expired", e.Reason)
	case "breach":
		line.Text = "a promise was broken: " + e.Reason
	}
	t.add(order, line)
}

// redriven tells a redrive apart from its reason, which the store keeps together.
func redriven(e holdfast.Event) string {
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

// askedToStop tells a request to a worker from an end at once: under an end at once nothing of the token came after.
func (t *teller) askedToStop(e holdfast.Event) bool {
	job := t.history.Job
	if job.Cancelling && job.Generation == e.Generation {
		return true
	}
	return slices.ContainsFunc(t.history.Attempts, func(a holdfast.Attempt) bool {
		toldAfter := a.Token > e.Token || (a.Token == e.Token && a.To == holdfast.Cancelled)
		return !a.Late && a.Generation == e.Generation && toldAfter
	})
}

// present tells what only the job's own row proves: that it is processed now, or how it ended.
func (t *teller) present() {
	job := t.history.Job
	switch {
	case job.State == holdfast.Processing && job.StartedAt.IsZero():
		t.add(started, Line{At: job.AsOf, Name: "processing", Token: job.Token, Generation: job.Generation, Worker: job.Worker, Text: "claimed by " + job.Worker + ", not started yet"})
	case job.State == holdfast.Processing:
		t.start(job.StartedAt, job.Token, job.Generation, job.Worker)
	case job.State == holdfast.Complete:
		line := Line{At: job.FinishedAt, Name: "complete", Token: job.Token, Generation: job.Generation, Worker: job.Worker, Text: "complete"}
		if !job.StartedAt.IsZero() {
			t.start(job.StartedAt, job.Token, job.Generation, job.Worker)
			line.Duration = max(job.FinishedAt.Sub(job.StartedAt), 0)
		}
		t.add(ended, line)
	}
}

// A place is an attempt: its generation and its token.
type place struct{ generation, token int }

// number counts the attempts of each generation, those that a line stands for too.
func number(lines []Line) {
	attempt, generation, token := 0, 0, 0
	repeated := map[place]int{} // the line of an attempt's start comes before the one that says so
	for _, line := range lines {
		if line.Repeats > 0 {
			repeated[place{line.Generation, line.Token}] = line.Repeats
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
				attempt, token = attempt+1+repeated[place{line.Generation, line.Token}], line.Token
			}
			line.Attempt = attempt
		}
	}
}

// insertLate puts a result that came too late where it arrived.
func insertLate(lines []Line, a holdfast.Attempt) []Line {
	line := Line{At: a.EndedAt, Name: "late result", Token: a.Token, Generation: a.Generation, Worker: a.Worker, Duration: max(a.EndedAt.Sub(a.StartedAt), 0)}
	said := string(a.To)
	if a.Failure != nil {
		line.Code, line.Error = a.Failure.Code, failure.Summary(a.Failure.Detail)
		said = strings.TrimSpace(said + " " + a.Failure.Code)
	}
	line.Text = fmt.Sprintf("a worker that had lost the job said %s: kept as evidence, not applied", said)
	place := len(lines)
	for place > 1 && lines[place-1].At.After(line.At) {
		place--
	}
	return slices.Insert(lines, place, line)
}

const momentLayout = "2006-01-02 15:04:05.000"

func clock(t time.Time) string {
	if t.IsZero() {
		return "at once"
	}
	return "at " + t.UTC().Format(momentLayout)
}
