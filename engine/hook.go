package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfastdev/holdfast"
)

// maxTold bounds the failures that wait for Config.Failed. Beyond it they are counted in the log instead.
const maxTold = 10_000

// A final is a job that failed for good.
type final struct {
	job     holdfast.Job
	failure holdfast.Failure
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
	e.logEnd(o)
	if v.To != holdfast.Failed || v.Failure == nil || e.cfg.Failed == nil || errors.Is(e.book.causeOf(o.attempt), ErrCancelled) {
		return
	}
	job := o.attempt.lease.Job
	job.State, job.LastFailure = holdfast.Failed, v.Failure
	select {
	case e.finals <- &final{job, *v.Failure}:
	default:
		e.complain("failed", errors.New("Config.Failed is too slow: a failed job was not reported to it"))
	}
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
	case v.To == holdfast.Queued && v.Failure != nil:
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
	if v.Failure != nil {
		attrs = append(attrs, slog.String("error_code", v.Failure.Code))
	}
	if v.To == holdfast.Queued {
		attrs = append(attrs, slog.Duration("delay", v.Delay))
	}
	if v.Why != "" {
		attrs = append(attrs, slog.String("why", v.Why))
	}
	e.cfg.Log.LogAttrs(ctx, level, "an attempt ended", attrs...)
}

// tell calls Config.Failed for one failure after the other until there will be no more.
func (e *Engine) tell() {
	for f := range e.finals {
		e.tellOnce(f)
	}
}

func (e *Engine) tellOnce(f *final) {
	var err error
	defer func() {
		if err != nil {
			e.complain("failed", err)
		}
	}()
	defer recovered(&err)
	e.cfg.Failed(e.keeping, f.job, f.failure)
}

// causeOf is why a was told to stop, if it was.
func (b *book) causeOf(a *attempt) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return a.cause
}
