package ops

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// A barrier is a hold on a job, and how it stands just now.
type barrier struct {
	hold    holdfast.Hold
	inHand  int              // of a hold that lets so many through: so many are in workers' hands
	circuit *breaker.Circuit // of a breaker's hold, when its record can be read
	asOf    time.Time
}

// barriers finds every hold on a job.
func (s *Service) barriers(ctx context.Context, job holdfast.Job) (list []barrier, err error) {
	holds, err := s.store.Holds(ctx)
	if err != nil {
		return nil, err
	}
	for _, hold := range holds {
		if !covers(hold, job) {
			continue
		}
		b := barrier{hold: hold, asOf: job.AsOf}
		if hold.AtMost > 0 {
			if b.inHand, err = s.inHand(ctx, hold, job); err != nil {
				return nil, err
			}
		}
		if hold.Source == holdfast.SourceBreaker {
			if b.circuit, err = s.circuit(ctx, hold.Dependency); err != nil {
				return nil, err
			}
		}
		list = append(list, b)
	}
	return list, nil
}

// mostInHand is up to how many jobs in workers' hands are counted for one explanation.
const mostInHand = 2000

// inHand counts what a limit counts: jobs in workers' hands that it covers, or for a pattern those that are called like the job.
func (s *Service) inHand(ctx context.Context, h holdfast.Hold, job holdfast.Job) (n int, err error) {
	f := holdfast.Filter{State: holdfast.Processing, Limit: mostListed}
	switch scope, _ := h.On(); scope {
	case "queue":
		f.Queue = job.Queue
	case "kind":
		f.Kind = job.Kind
	case "owner":
		f.Owner = job.Owner
	case "dependency":
		f.Dependency = job.Dependency
	}
	for looked := 0; looked < mostInHand && n < h.AtMost; looked += mostListed {
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

// stops reports whether the hold keeps the job back at this moment. One that lets some through may just now let this one.
func (b barrier) stops() bool {
	h := b.hold
	return h.Closed() || h.AtMost > 0 && b.inHand >= h.AtMost || h.Rate != nil && h.Rate.Level < 1
}

// reason puts a hold into words: what is held, by whom, since when and until when, and what can be done.
func (b barrier) reason(job holdfast.Job) Reason {
	var r Reason
	switch b.hold.Source {
	case holdfast.SourceBreaker:
		r = b.breaker()
	case holdfast.SourceBudget:
		r = b.budget()
	case holdfast.SourceWindow:
		r = Reason{Name: "window", Text: fmt.Sprintf("%s must wait for the end of a window of the policy", b.what()), Remedy: "wait, or change the window in the policy and apply it: holdfast policy apply FILE"}
	case holdfast.SourceHandler:
		r = Reason{Name: "handler", Text: fmt.Sprintf("a handler was told to leave %s alone", b.what()), Remedy: "wait, or lift it: holdfast resume " + flags(b.hold)}
	default:
		r = b.limit()
	}
	r.Until = b.hold.Until
	r.Text += b.tail()
	if b.hold.Retries && job.DueAt.After(job.AsOf) { // one that is due cannot be retried: it counts as about to run
		r.Remedy += fmt.Sprintf("; or start this job afresh: holdfast retry %s", job.ID)
	}
	return r
}

// what names the jobs that are held.
func (b barrier) what() string {
	scope, name := b.hold.On()
	if b.hold.Retries {
		return fmt.Sprintf("retries of %s %s", scope, name)
	}
	return fmt.Sprintf("%s %s", scope, name)
}

// verb agrees with what is held.
func (b barrier) verb(one, many string) string {
	if b.hold.Retries {
		return " " + many + " "
	}
	return " " + one + " "
}

// tail tells who holds, since when, until when and why.
func (b barrier) tail() string {
	h := b.hold
	if b.circuit != nil { // a breaker's hold is placed anew at every change, by whichever worker; the circuit knows better
		h.Since = b.circuit.Since
		h.Actor = cmp.Or(b.circuit.Actor, h.Actor)
		h.Reason = strings.TrimPrefix(h.Reason, fmt.Sprintf("breaker %s: ", b.circuit.State))
	}
	text := fmt.Sprintf(", by %s since %s", h.Actor, when(h.Since))
	if (h.Source == "" || h.Source == holdfast.SourceOperator) && h.Closed() {
		text = text[1:] // paused by somebody
	}
	switch {
	case !h.Until.IsZero():
		text += " until " + when(h.Until)
	case !h.Expected.IsZero() && h.Source != holdfast.SourceBreaker:
		text += ", expected to change " + when(h.Expected)
	}
	if h.Reason != "" {
		text += ": " + h.Reason
	}
	return text
}

// limit explains what a person or a policy holds or limits.
func (b barrier) limit() Reason {
	h := b.hold
	scope, _ := h.On()
	remedy := "lift it: holdfast resume " + flags(h)
	if h.Source == holdfast.SourceLimit {
		remedy = "raise the limit in the policy and apply it: holdfast policy apply FILE"
	}
	switch {
	case h.Closed():
		return Reason{Name: scope + " paused", Text: b.what() + b.verb("is", "are") + "paused", Remedy: remedy}
	case h.AtMost > 0 && b.inHand >= h.AtMost:
		return Reason{Name: "limit", Text: fmt.Sprintf("at most %d of %s may be in workers' hands, and as many are", h.AtMost, b.what()), Remedy: "wait for one of them to end, or " + remedy}
	}
	return Reason{Name: "rate", Text: fmt.Sprintf("%s%slet through at %s, and the bucket is empty%s", b.what(), b.verb("is", "are"), perSecond(h.Rate.PerSecond), b.refill()), Remedy: "wait, or " + remedy}
}

// budget explains retries that would be too many for now.
func (b barrier) budget() Reason {
	text := b.what() + " have used up their budget"
	if b.hold.Rate != nil {
		text += b.refill()
	}
	return Reason{Name: "budget", Text: text, Remedy: "wait: first attempts that go well earn new retries; or lift it: holdfast resume " + flags(b.hold)}
}

// refill says when there is a token again.
func (b barrier) refill() string {
	rate := b.hold.Rate
	if rate.PerSecond <= 0 {
		return ""
	}
	wait := time.Duration((1 - rate.Level) / rate.PerSecond * float64(time.Second))
	return fmt.Sprintf(" (the next in about %v)", max(wait, 0).Round(100*time.Millisecond))
}

func perSecond(rate float64) string {
	if rate > 0 && rate < 1 {
		return fmt.Sprintf("%.3g a minute", rate*60)
	}
	return fmt.Sprintf("%.3g a second", rate)
}

// breaker explains a circuit that is not closed: its state, what it has seen, and when it tries again.
func (b barrier) breaker() Reason {
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
		r.Text += fmt.Sprintf(": %d of %d probes are under way", b.inHand, b.hold.AtMost)
	case b.hold.Rate != nil:
		r.Text += fmt.Sprintf(" and lets %s through%s", perSecond(b.hold.Rate.PerSecond), b.refill())
	case !b.hold.Expected.IsZero() && b.hold.Expected.Before(b.asOf):
		r.Text += ", and was to be probed " + when(b.hold.Expected) + ", which takes a live worker"
	case !b.hold.Expected.IsZero():
		r.Text += ", next probe " + when(b.hold.Expected)
	}
	r.Remedy = fmt.Sprintf("wait: it probes by itself; look: holdfast breakers show %[1]s; if %[1]s is well again: holdfast breakers close %[1]s --reason '...'", quoted(dependency))
	if state == string(breaker.ForcedOpen) {
		r.Remedy = fmt.Sprintf("somebody forced it open; let it judge by itself again: holdfast breakers auto %s --reason '...'", quoted(dependency))
	}
	return r
}
