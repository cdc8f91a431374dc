package ops

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

// A jobHold is a hold on a job, with its current state.
type jobHold struct {
	hold    store.Hold
	running int               // with AtMost: number of jobs that run under the hold
	circuit *breaker.Snapshot // of a breaker's hold, if its record can be read
	asOf    time.Time
}

// holdsOn returns every hold on a job.
func (s *Service) holdsOn(ctx context.Context, job holdfast.Job) (list []jobHold, err error) {
	holds, err := s.store.Holds(ctx)
	if err != nil {
		return nil, err
	}
	for _, hold := range holds {
		if !covers(hold, job) {
			continue
		}
		b := jobHold{hold: hold, asOf: job.AsOf}
		if hold.AtMost > 0 {
			if b.running, err = s.running(ctx, hold, job); err != nil {
				return nil, err
			}
		}
		if hold.Source == store.SourceBreaker {
			if b.circuit, err = s.circuit(ctx, hold.Dependency); err != nil {
				return nil, err
			}
		}
		list = append(list, b)
	}
	return list, nil
}

// maxRunning limits how many running jobs are counted for one explanation.
const maxRunning = 2000

// running counts the jobs that a limit counts: running jobs that the hold covers, or for a pattern those with the same name
// as the job.
func (s *Service) running(ctx context.Context, h store.Hold, job holdfast.Job) (n int, err error) {
	f := store.Filter{State: holdfast.Processing, Limit: maxPage}
	switch scope, _ := h.Scope(); scope {
	case "queue":
		f.Queue = job.Queue
	case "kind":
		f.Kind = job.Kind
	case "owner":
		f.Owner = job.Owner
	case "dependency":
		f.Dependency = job.Dependency
	}
	for looked := 0; looked < maxRunning && n < h.AtMost; looked += maxPage {
		jobs, cursor, err := s.store.Jobs(ctx, f)
		if err != nil {
			return 0, err
		}
		for _, other := range jobs {
			if !h.Retries || other.Failures > 0 {
				n++
			}
		}
		if f.Cursor = cursor; cursor == "" {
			break
		}
	}
	return n, nil
}

// blocks reports whether the hold keeps the job from being claimed now.
func (b jobHold) blocks() bool {
	h := b.hold
	return h.Closed() || h.AtMost > 0 && b.running >= h.AtMost || h.Rate != nil && h.Rate.Level < 1
}

// reason describes a hold: what is held, by whom, since when and until when, and what can be done.
func (b jobHold) reason(job holdfast.Job) Reason {
	var r Reason
	switch b.hold.Source {
	case store.SourceBreaker:
		r = b.breaker()
	case store.SourceBudget:
		r = b.budget()
	case store.SourceWindow:
		r = Reason{Name: "window", Text: fmt.Sprintf("%s must wait until a time window of the policy ends", b.what()), Remedy: "wait, or change the window in the policy and apply it: holdfast policy apply FILE"}
	case store.SourceHandler:
		r = Reason{Name: "handler", Text: fmt.Sprintf("a handler asked to hold %s", b.what()), Remedy: "wait, or lift it: holdfast resume " + holdFlags(b.hold)}
	default:
		r = b.limit()
	}
	r.Until = b.hold.Until
	r.Text += b.tail()
	if b.hold.Retries && job.DueAt.After(job.AsOf) { // a due job cannot be retried: it counts as waiting to run
		r.Remedy += fmt.Sprintf("; or retry this job: holdfast retry %s", job.ID)
	}
	return r
}

// what names the jobs that are held.
func (b jobHold) what() string {
	scope, name := b.hold.Scope()
	if b.hold.Retries {
		return fmt.Sprintf("retries of %s %s", scope, name)
	}
	return fmt.Sprintf("%s %s", scope, name)
}

// each names the jobs that a limit counts; for a pattern it says that each name has its own limit.
func (b jobHold) each() string {
	scope, name := b.hold.Scope()
	text := scope + " " + name
	switch {
	case name == "*":
		text = "each " + scope
	case strings.HasSuffix(name, "*"):
		text = "each " + text
	}
	if b.hold.Retries {
		return "retries of " + text
	}
	return "jobs of " + text
}

// verb returns the verb form for what().
func (b jobHold) verb(one, many string) string {
	if b.hold.Retries {
		return " " + many + " "
	}
	return " " + one + " "
}

// tail says who placed the hold, since when, until when and why.
func (b jobHold) tail() string {
	h := b.hold
	if b.circuit != nil { // any worker places a breaker's hold again at each change; the circuit has the original values
		h.Since = b.circuit.Since
		h.Actor = cmp.Or(b.circuit.Actor, h.Actor)
		h.Reason = strings.TrimPrefix(h.Reason, fmt.Sprintf("breaker %s: ", b.circuit.State))
	}
	text := fmt.Sprintf(", by %s since %s", h.Actor, when(h.Since))
	if (h.Source == "" || h.Source == store.SourceOperator) && h.Closed() {
		text = text[1:] // "paused by ann"
	}
	switch {
	case !h.Until.IsZero():
		text += " until " + when(h.Until)
	case !h.Expected.IsZero() && h.Source != store.SourceBreaker:
		text += ", expected to change " + when(h.Expected)
	}
	if h.Reason != "" {
		text += ": " + h.Reason
	}
	return text
}

// limit describes a pause or a limit of a person or a policy.
func (b jobHold) limit() Reason {
	h := b.hold
	scope, _ := h.Scope()
	remedy := "lift it: holdfast resume " + holdFlags(h)
	if h.Source == store.SourceLimit {
		remedy = "raise the limit in the policy and apply it: holdfast policy apply FILE"
	}
	switch {
	case h.Closed():
		return Reason{Name: scope + " paused", Text: b.what() + b.verb("is", "are") + "paused", Remedy: remedy}
	case h.AtMost > 0 && b.running >= h.AtMost:
		return Reason{Name: "limit", Text: fmt.Sprintf("at most %d %s may run at once, and as many are running", h.AtMost, b.each()), Remedy: "wait for one of them to end, or " + remedy}
	}
	return Reason{Name: "rate", Text: fmt.Sprintf("%s%slimited to %s, and the limit is used up%s", b.what(), b.verb("is", "are"), perSecond(h.Rate.PerSecond), b.refill()), Remedy: "wait, or " + remedy}
}

// budget describes a retry budget that is used up.
func (b jobHold) budget() Reason {
	text := b.what() + " have used up the retry budget"
	if b.hold.Rate != nil {
		text += b.refill()
	}
	return Reason{Name: "budget", Text: text, Remedy: "wait: new first attempts add to the budget; or lift it: holdfast resume " + holdFlags(b.hold)}
}

// refill says when the next token is available.
func (b jobHold) refill() string {
	rate := b.hold.Rate
	if rate.PerSecond <= 0 {
		return ""
	}
	wait := time.Duration((1 - rate.Level) / rate.PerSecond * float64(time.Second))
	return fmt.Sprintf(" (the next one in about %v)", max(wait, 0).Round(100*time.Millisecond))
}

func perSecond(rate float64) string {
	if rate > 0 && rate < 1 {
		return fmt.Sprintf("%.3g per minute", rate*60)
	}
	return fmt.Sprintf("%.3g per second", rate)
}

// breaker describes a breaker that is not closed: its state, its reason, and the next probe.
func (b jobHold) breaker() Reason {
	dependency := b.hold.Dependency
	state := "open"
	switch {
	case b.circuit != nil:
		state = string(b.circuit.State)
	case b.hold.AtMost > 0:
		state = string(breaker.HalfOpen)
	case b.hold.Rate != nil:
		state = string(breaker.Recovering)
	}
	r := Reason{Name: "breaker", Text: fmt.Sprintf("the breaker of %s is %s", dependency, state)}
	switch {
	case b.hold.AtMost > 0:
		r.Text += fmt.Sprintf(": %d of %d probes are running", b.running, b.hold.AtMost)
	case b.hold.Rate != nil:
		r.Text += fmt.Sprintf(" and lets %s through%s", perSecond(b.hold.Rate.PerSecond), b.refill())
	case !b.hold.Expected.IsZero() && b.hold.Expected.Before(b.asOf):
		r.Text += ", and a probe is overdue since " + when(b.hold.Expected) + ": it needs a live worker"
	case !b.hold.Expected.IsZero():
		r.Text += ", next probe " + when(b.hold.Expected)
	}
	r.Remedy = fmt.Sprintf("wait: it is probed automatically; see: holdfast breakers show %[1]s; if %[1]s works again: holdfast breakers close %[1]s --reason '...'", shellQuoted(dependency))
	if state == string(breaker.ForcedOpen) {
		r.Remedy = fmt.Sprintf("it was forced open; return it to automatic: holdfast breakers auto %s --reason '...'", shellQuoted(dependency))
	}
	return r
}
