package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// maxHookCalls limits the calls of hooks that wait. Further calls are dropped, and the drop is logged.
const maxHookCalls = 10_000

// A hookCall is a call of a hook of the Config that waits to be made.
type hookCall struct {
	hook string // the name of the hook, for the log
	call func(ctx context.Context)
}

// An announcer logs attempts that are settled and calls the hooks of the Config.
type announcer struct {
	*core
	leases *leaseTable
	calls  chan hookCall
}

func newAnnouncer(c *core, leases *leaseTable) *announcer {
	return &announcer{core: c, leases: leases, calls: make(chan hookCall, maxHookCalls)}
}

// queue queues a call of a hook. Hooks run on their own goroutine, so a slow one does not delay jobs.
func (n *announcer) queue(hook string, call func(ctx context.Context)) {
	select {
	case n.calls <- hookCall{hook, call}:
	default:
		n.logIgnored(hook, errors.New("the hook is too slow: a call of it was dropped"))
	}
}

// announce logs a settled attempt and calls the hooks of the Config. answer is the store's answer to the settlement.
func (n *announcer) announce(o *outcome, answer error) {
	var ignored error // a panic of a log handler must not stop the settlements
	defer recoverTo(&ignored)
	if answer != nil {
		n.logRefused(o, answer)
		return
	}
	v := &o.verdict
	if c := o.attempt.completion.Load(); c != nil && c.despite != nil {
		lease := o.attempt.lease
		n.cfg.Log.Warn("the attempt ended with an error after its handler had completed the job in a transaction; the job is complete",
			"event", "error_after_completion", "job_id", lease.ID.String(), "kind", lease.Kind, "queue", lease.Queue, "error", c.despite.Error())
	}
	n.callEnded(o)
	n.logAttempt(o)
	if v.To != holdfast.Failed || v.Failure == nil || v.Failure.Benign || n.cfg.OnJobFailed == nil || errors.Is(n.leases.causeOf(o.attempt), ErrCancelled) {
		return
	}
	job := o.attempt.lease.Job
	job.State, job.LastFailure = holdfast.Failed, v.Failure
	f := *v.Failure
	n.queue("failed", func(ctx context.Context) { n.cfg.OnJobFailed(ctx, job, f) })
}

// logRefused logs that the store did not apply a settlement: the lease was lost, or it rejected the settlement as invalid.
func (n *announcer) logRefused(o *outcome, answer error) {
	lease := o.attempt.lease
	event, level := "lease_lost", slog.LevelWarn
	if !errors.Is(answer, holdfast.ErrLeaseLost) {
		event, level = "unsettled", slog.LevelError
	}
	n.cfg.Log.Log(context.Background(), level, "the store refused the settlement of an attempt",
		"event", event, "job_id", lease.ID.String(), "kind", lease.Kind, "queue", lease.Queue, "error", answer.Error())
}

// logAttempt writes the log line of an attempt. The line is not built if its level is disabled.
func (n *announcer) logAttempt(o *outcome) {
	v, lease := &o.verdict, o.attempt.lease
	event, level := string(v.To), slog.LevelDebug
	switch {
	case v.To == holdfast.Failed && v.Alarm:
		level = slog.LevelError
	case v.To == holdfast.Failed:
		level = slog.LevelWarn
	case v.Throttled:
		event, level = "throttled", slog.LevelInfo
	case v.To == holdfast.Queued && v.Failure != nil && v.Charge != store.ChargeRelease:
		event, level = "retry", slog.LevelWarn
	case v.To == holdfast.Queued:
		event, level = "interrupted", slog.LevelInfo
	case v.To == holdfast.Cancelled:
		level = slog.LevelInfo
	}
	ctx := context.Background()
	if !n.cfg.Log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("event", event), slog.String("job_id", lease.ID.String()), slog.String("kind", lease.Kind),
		slog.String("queue", lease.Queue), slog.Int("attempt", attemptNumber(lease)), slog.String("status", string(v.To)),
		slog.Float64("duration_ms", float64(o.Took)/float64(time.Millisecond)),
	}
	attrs = append(attrs, o.failureAttrs()...)
	if v.To == holdfast.Queued {
		attrs = append(attrs, slog.Float64("delay_ms", float64(v.Delay)/float64(time.Millisecond)))
	}
	if v.Why != "" {
		attrs = append(attrs, slog.String("why", v.Why))
	}
	n.cfg.Log.LogAttrs(ctx, level, "attempt ended", attrs...)
}

// failureAttrs returns the log attributes about the failure and the dependency.
func (o *outcome) failureAttrs() (attrs []slog.Attr) {
	if f := o.verdict.Failure; f != nil {
		attrs = append(attrs, slog.String("error_code", f.Code))
		if text := failure.Summary(f.Detail); text != "" {
			attrs = append(attrs, slog.String("error", text))
		}
		if status := f.Context["http_status"]; status != "" {
			attrs = append(attrs, slog.String("gateway_status", status))
		}
	}
	if d := o.attempt.dep; d != nil {
		attrs = append(attrs, slog.String("dependency", d.name), slog.String("breaker_state", string(d.state())))
	}
	return attrs
}

// callEnded calls Config.OnAttemptEnd.
func (n *announcer) callEnded(o *outcome) {
	if n.cfg.OnAttemptEnd == nil {
		return
	}
	end := o.end()
	if errors.Is(n.leases.causeOf(o.attempt), ErrCancelled) {
		end.To, end.Delay, end.Throttled = holdfast.Cancelled, 0, false
	}
	if err := callSafely(context.Background(), func(context.Context) error { n.cfg.OnAttemptEnd(end); return nil }); err != nil {
		n.logIgnored("ended", err)
	}
}

// close lets run return after the last queued call. Nothing is queued after it.
func (n *announcer) close() { close(n.calls) }

// run makes the queued calls, one at a time, until close is called.
func (n *announcer) run() {
	for t := range n.calls {
		if err := n.call(t); err != nil {
			n.logIgnored(t.hook, err)
		}
	}
}

// call makes one call. A panic is returned as an error.
func (n *announcer) call(t hookCall) (err error) {
	defer recoverTo(&err)
	t.call(n.storeCtx)
	return nil
}

// causeOf returns why a was told to stop, or nil.
func (t *leaseTable) causeOf(a *attempt) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return a.cause
}

// An AttemptEnd describes an attempt that has ended, as the store has settled it.
type AttemptEnd struct {
	Lease   *store.Lease
	To      holdfast.State // the new state; Queued: there will be another attempt
	Charge  store.Charge
	Failure *holdfast.Failure
	Attempt int           // its number in this generation, from 1
	Left    int           // with a failure: how many more attempts its policy allows
	Took    time.Duration // 0 if its handler never started
	Delay   time.Duration // with Queued: the time until the next attempt

	Throttled bool // with Queued: the dependency asked to be called later, and no attempt was spent
}

// end describes the settled outcome for Config.OnAttemptEnd.
func (o *outcome) end() AttemptEnd {
	v, lease := &o.verdict, o.attempt.lease
	end := AttemptEnd{Lease: lease, To: v.To, Charge: v.Charge, Failure: v.Failure, Attempt: attemptNumber(lease), Took: o.Took, Delay: v.Delay, Throttled: v.Throttled}
	if v.Charge == store.ChargeFailure {
		end.Left = max(0, v.Limit-lease.Failures-1)
	}
	return end
}
