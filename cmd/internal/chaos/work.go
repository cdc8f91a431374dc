package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

// unlimitedCrashes is a maximum of crashes that no job reaches because its workers are killed.
const unlimitedCrashes = 100_000

// runWorker runs a worker until ctx ends.
func runWorker(ctx context.Context, p childSpec, r *recorder) error {
	e, err := engine.New(r, engine.Config{
		Name: fmt.Sprintf("chaos-%d", p.N), Queues: []string{holdfast.DefaultQueue, "left", "right"},
		Slots: 8, Lease: p.Lease, Grace: 300 * time.Millisecond, AbandonAfter: 200 * time.Millisecond, Poll: 200 * time.Millisecond,
		// The run tests the limit of this dependency. A breaker and a budget would only make the run longer.
		Dependencies: map[string]engine.Dependency{limitedDependency: {Breaker: breaker.Config{Disabled: true}, NoBudget: true}},
		Timeout:      10 * time.Minute, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	innocent := policy(unlimitedCrashes)
	engine.Handle(e, func(ctx context.Context, job *engine.Job[script]) error {
		return r.runScript(ctx, &job.Lease, job.Args, job.Enqueue)
	}, engine.KindOptions{Policy: innocent})
	engine.Handle(e, func(ctx context.Context, job *engine.Job[hangScript]) error {
		return r.runScript(ctx, &job.Lease, job.Args.script, job.Enqueue)
	}, engine.KindOptions{Policy: innocent, Timeout: 300 * time.Millisecond})
	engine.Handle(e, func(ctx context.Context, job *engine.Job[poisonScript]) error {
		return r.runScript(ctx, &job.Lease, job.Args.script, job.Enqueue)
	}, engine.KindOptions{Policy: policy(3)})
	err = e.Run(ctx)
	if err != nil && ctx.Err() != nil { // stopped while the database was down: its jobs are reclaimed
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return nil
	}
	return err
}

// policy retries soon, also after failures that are not retried by default.
func policy(crashes int) failure.Policy {
	quick, again := failure.Fixed(20*time.Millisecond), true
	return failure.Policy{
		MaxAttempts: 4, Backoff: quick, MaxCrashes: crashes, CrashBackoff: quick,
		Codes: map[string]failure.Override{"SYSTEM_PANIC": {Retryable: &again}, "HANDLER_EXITED": {Retryable: &again}},
	}
}

// runScript records the start in the journal and runs the script. enqueue enqueues jobs with the completion of this one.
func (r *recorder) runScript(ctx context.Context, l *store.Lease, s script, enqueue func(...holdfast.Draft) error) error {
	r.journal.write(line{Saw: sawStart, From: time.Now().UnixNano(), Job: l.ID, Token: l.Token, Generation: l.Generation, AsOf: l.AsOf, Do: s.Do, Content: s.Content})
	if err := enqueue(s.nextDrafts(l)...); err != nil {
		return err
	}
	switch {
	case s.Do == doSleep:
		sleep(ctx, s.For)
		return context.Cause(ctx)
	case s.Do == doFail && l.Failures < s.Times, s.Do == doRefuse:
		return fmt.Errorf("the script of %s says so", l.ID)
	case s.Do == doPanic && l.Failures < 1:
		panic("the script says so")
	case s.Do == doGoexit && l.Failures < 1:
		runtime.Goexit()
	case s.Do == doHang && l.Failures < 1:
		select {} // ignores the end of ctx
	case s.Do == doWait && l.Crashes < 1:
		<-ctx.Done()
		return context.Cause(ctx)
	case s.Do == doSnooze && l.Releases < s.Times:
		return failure.Snooze(s.For)
	case s.Do == doExit && l.Crashes < 1, s.Do == doPoison:
		os.Exit(exitKilled)
	}
	return nil
}

// errTooShort is the error of a run without faults or without jobs: it proves nothing.
var errTooShort = errors.New("the run was too short to prove anything: give it more --seconds")
