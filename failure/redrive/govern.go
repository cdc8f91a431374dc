package redrive

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Next returns how many jobs to take now, and why not more. It may end or stop the redrive. The caller must store the returned
// progress even if take is 0, because the rate limit has advanced.
func Next(p Progress, t store.RedriveCounts, now time.Time) (take int, next Progress, why string) {
	p.Counts = t
	if p.State != Running {
		return 0, p, p.Why
	}
	o := p.Spec
	p.refill(now)
	if why := p.tooManyFailed(t); why != "" {
		return p.end(Stopped, why, now)
	}
	rest := o.most() - t.Taken
	if p.Exhausted || rest <= 0 {
		if t.InFlight > 0 {
			return p.wait("all jobs taken; waiting until the last %d have ended", t.InFlight)
		}
		return p.end(Done, p.summary(t), now)
	}
	if canary := o.Canary - t.Taken; !p.Passed && o.Canary > 0 && canary <= 0 {
		if t.InFlight > 0 {
			return p.wait("waiting until the canary of %d has ended; %d in flight", o.Canary, t.InFlight)
		}
		if why := p.canaryFailed(t); why != "" {
			return p.end(Stopped, why, now)
		}
		p.Passed = true
	} else if !p.Passed && o.Canary > 0 {
		rest = min(rest, canary)
	}
	free := o.inFlight() - t.InFlight
	if free <= 0 {
		return p.wait("waiting: %d in flight, the limit is %d", t.InFlight, o.inFlight())
	}
	take = min(rest, free, int(p.Tokens), MaxStep)
	if take <= 0 {
		return p.wait("limited to %v per second", o.perSecond())
	}
	p.Tokens -= float64(take)
	p.Why = fmt.Sprintf("%d taken so far, %d complete, %d failed again", t.Taken, t.Complete, t.Failed)
	return take, p, p.Why
}

func (p Progress) wait(format string, args ...any) (int, Progress, string) {
	p.Why = fmt.Sprintf(format, args...)
	return 0, p, p.Why
}

func (p Progress) end(to State, why string, now time.Time) (int, Progress, string) {
	p.State, p.Why, p.EndedAt = to, why, now
	return 0, p, why
}

// refill adds tokens for the time since the last step, up to one second's worth in total. A clock that goes backwards adds
// nothing.
func (p *Progress) refill(now time.Time) {
	rate := p.Spec.perSecond()
	if passed := now.Sub(p.StepAt).Seconds(); passed > 0 {
		p.Tokens += rate * passed
		p.StepAt = now
	}
	if !(p.Tokens >= 0) { // also when it is not a number
		p.Tokens = 0
	}
	p.Tokens = min(p.Tokens, burst(rate))
}

// burst returns one second's worth of tokens, and at least one.
func burst(rate float64) float64 { return math.Max(1, rate) }

// judged counts the jobs that have ended since the redrive was last resumed. Cancelled jobs are left out, because they show
// nothing about the cause.
func (p Progress) judged(t store.RedriveCounts) (ended, failed int) {
	failed = max(0, t.Failed-p.Since.Failed)
	return failed + max(0, t.Complete-p.Since.Complete), failed
}

func (p Progress) tooManyFailed(t store.RedriveCounts) string {
	ended, failed := p.judged(t)
	if ended < p.Spec.stopAfter() || !p.above(ended, failed) {
		return ""
	}
	return fmt.Sprintf("stopped: %d of %d failed again, more than %s", failed, ended, percent(p.Spec.stopAbove()))
}

func (p Progress) canaryFailed(t store.RedriveCounts) string {
	ended, failed := p.judged(t)
	switch {
	case ended == 0:
		return fmt.Sprintf("stopped: none of the canary's %d jobs completed or failed", p.Spec.Canary)
	case p.above(ended, failed):
		return fmt.Sprintf("stopped: %d of the canary's %d failed again, more than %s", failed, ended, percent(p.Spec.stopAbove()))
	}
	return ""
}

func (p Progress) above(ended, failed int) bool {
	return ended > 0 && float64(failed) > p.Spec.stopAbove()*float64(ended)
}

func (p Progress) summary(t store.RedriveCounts) string {
	if p.Spec.Discard {
		return fmt.Sprintf("done: %d discarded", t.Discarded)
	}
	text := fmt.Sprintf("done: %d complete, %d failed again", t.Complete, t.Failed)
	if t.Cancelled > 0 {
		text += fmt.Sprintf(", %d cancelled", t.Cancelled)
	}
	if t.Discarded > 0 {
		text += fmt.Sprintf(", %d discarded", t.Discarded)
	}
	return text
}

func percent(share float64) string { return fmt.Sprintf("%.3g%%", share*100) }

// Pause keeps a redrive from taking more jobs. Jobs that it has taken continue. The time is not used; Pause, Resume and
// Cancel have the same signature.
func Pause(p Progress, actor, reason string, _ time.Time) (Progress, error) {
	if p.State != Running {
		return p, conflict("pause", p, "only a running one can be paused")
	}
	p.State, p.Why, p.Actor = Paused, actionBy("paused", actor, reason), actor
	return p, nil
}

// Resume continues a paused or stopped redrive. The automatic stop counts only jobs that end from now on, because the
// person who resumes has seen the earlier results. A canary that stopped the redrive counts as passed.
func Resume(p Progress, actor, reason string, now time.Time) (Progress, error) {
	if p.State != Paused && p.State != Stopped {
		return p, conflict("resume", p, "only a paused or stopped one can be resumed")
	}
	if p.State == Stopped {
		p.Since = p.Counts
		p.Passed = p.Passed || p.Counts.Taken >= p.Spec.Canary
	}
	p.State, p.Why, p.Actor, p.EndedAt, p.StepAt, p.Tokens = Running, actionBy("resumed", actor, reason), actor, time.Time{}, now, 0
	return p, nil
}

// Cancel ends a redrive for good. Jobs that it has taken continue.
func Cancel(p Progress, actor, reason string, now time.Time) (Progress, error) {
	if p.State.Ended() {
		return p, conflict("cancel", p, "it has ended")
	}
	_, p, _ = p.end(Cancelled, actionBy("cancelled", actor, reason), now)
	p.Actor = actor
	return p, nil
}

func actionBy(what, actor, reason string) string {
	text := what + " by " + actor
	if reason != "" {
		text += ": " + reason
	}
	return text
}

func conflict(verb string, p Progress, rule string) error {
	return &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("cannot %s redrive %s: it is %s; %s", verb, p.ID, p.State, rule)}
}
