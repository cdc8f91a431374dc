package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// maxTold bounds what waits to be told to the hooks of the Config. Beyond it the log is told instead.
const maxTold = 10_000

// A telling is a hook to be called.
type telling struct {
	hook string // its name
	call func(ctx context.Context)
}

// tellLater has a hook called beside the work, after those that wait.
func (e *Engine) tellLater(hook string, call func(ctx context.Context)) {
	select {
	case e.tellings <- telling{hook, call}:
	default:
		e.complain(hook, errors.New("a hook of the Config is too slow: it was not told of something"))
	}
}

// report tells the log, and the hook when a job failed for good, what was written.
func (e *Engine) report(o *outcome, answer error) {
	var broken error // a log handler's panic ends its line, not the settlements
	defer recovered(&broken)
	if answer != nil {
		e.reportRefusal(o, answer)
		return
	}
	v := &o.verdict
	e.tellEnd(o)
	e.logEnd(o)
	if v.To != holdfast.Failed || v.Failure == nil || v.Failure.Benign || e.cfg.Failed == nil || errors.Is(e.book.causeOf(o.attempt), ErrCancelled) {
		return
	}
	job := o.attempt.lease.Job
	job.State, job.LastFailure = holdfast.Failed, v.Failure
	f := *v.Failure
	e.tellLater("failed", func(ctx context.Context) { e.cfg.Failed(ctx, job, f) })
}

func (e *Engine) reportRefusal(o *outcome, answer error) {
	lease := o.attempt.lease
	event, level := "lease_lost", slog.LevelWarn
	if !errors.Is(answer, holdfast.ErrLeaseLost) {
		event, level = "unsettled", slog.LevelError
	}
	e.cfg.Log.Log(context.Background(), level, "what became of an attempt was not applied",
		"event", event, "job_id", lease.ID.String(), "kind", lease.Kind, "queue", lease.Queue, "error", answer.Error())
}

// logEnd writes the one line of an attempt. Building it is skipped when nobody would read it.
func (e *Engine) logEnd(o *outcome) {
	v, lease := &o.verdict, o.attempt.lease
	event, level := string(v.To), slog.LevelDebug
	switch {
	case v.To == holdfast.Failed && v.Alarm:
		level = slog.LevelError
	case v.To == holdfast.Failed:
		level = slog.LevelWarn
	case v.Throttled:
		event, level = "throttled", slog.LevelInfo
	case v.To == holdfast.Queued && v.Failure != nil && v.Charge != holdfast.ChargeInterrupt:
		event, level = "retry", slog.LevelWarn
	case v.To == holdfast.Queued:
		event, level = "interrupted", slog.LevelInfo
	case v.To == holdfast.Cancelled:
		level = slog.LevelInfo
	}
	ctx := context.Background()
	if !e.cfg.Log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("event", event), slog.String("job_id", lease.ID.String()), slog.String("kind", lease.Kind),
		slog.String("queue", lease.Queue), slog.Int("attempt", numberOf(lease)), slog.String("status", string(v.To)),
		slog.Float64("duration_ms", float64(o.Took)/float64(time.Millisecond)),
	}
	attrs = append(attrs, o.trouble()...)
	if v.To == holdfast.Queued {
		attrs = append(attrs, slog.Float64("delay_ms", float64(v.Delay)/float64(time.Millisecond)))
	}
	if v.Why != "" {
		attrs = append(attrs, slog.String("why", v.Why))
	}
	e.cfg.Log.LogAttrs(ctx, level, "an attempt ended", attrs...)
}

// trouble is what a line says about a failure, and about what the attempt called.
func (o *outcome) trouble() (attrs []slog.Attr) {
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

// tellEnd tells whoever counts.
func (e *Engine) tellEnd(o *outcome) {
	if e.cfg.Ended == nil {
		return
	}
	end := o.end()
	if errors.Is(e.book.causeOf(o.attempt), ErrCancelled) {
		end.To, end.Delay, end.Throttled = holdfast.Cancelled, 0, false
	}
	if err := once(context.Background(), func(context.Context) error { e.cfg.Ended(end); return nil }); err != nil {
		e.complain("ended", err)
	}
}

// tell calls one hook after the other until there will be no more.
func (e *Engine) tell() {
	for t := range e.tellings {
		if err := e.tellOnce(t); err != nil {
			e.complain(t.hook, err)
		}
	}
}

func (e *Engine) tellOnce(t telling) (err error) {
	defer recovered(&err)
	t.call(e.keeping)
	return nil
}

// causeOf is why a was told to stop, if it was.
func (b *book) causeOf(a *attempt) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return a.cause
}
