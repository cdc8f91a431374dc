package holdfasttest

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
)

// A Setup says in which situation Work runs a handler. The zero value is the first attempt of a new job.
type Setup struct {
	// Job has the facts and counters of the job: Owner, Tags, Failures, MaxAttempts, CreatedAt and so on. Kind and Args are those of the arguments. Fields
	// that are zero get the values that a new job has. With Failures: 3, for example, the attempt has the number 4.
	Job holdfast.Job
	// Checkpoint is what an earlier attempt saved: a value that is marshalled to JSON.
	Checkpoint any
	// Upstreams are the members of its group for which the job waited, as Job.Upstream and Job.Upstreams find them.
	Upstreams []store.Upstream

	Options engine.KindOptions // those with which the program registers the handler: the policy, the time limit
	Config  engine.Config      // of the engine: codes, policies, middleware. Its logger also gets what Attempt.Log returns

	// EndAfter ends the context of the handler this long after the handler began, with the cause End: engine.ErrCancelled, as if a person had cancelled the job,
	// engine.ErrStopping, as if the process were stopping, or holdfast.ErrLeaseLost, as if another worker had taken the job over.
	EndAfter time.Duration
	End      error
}

// An Attempt is the outcome of one run of a handler.
type Attempt struct {
	// State is what the job is now: complete, failed for good, cancelled, or queued for another attempt. It is processing if the lease was lost
	// (Setup.End), because then another worker has the job.
	State   holdfast.State
	Failure *holdfast.Failure // nil if the handler succeeded, snoozed or was stopped
	Charge  store.Charge      // what the attempt cost: a failure, a release, or nothing
	Delay   time.Duration     // with queued: the time until the next attempt
	Why     string            // the reason of the decision, as in the story of the job
	Took    time.Duration

	Enqueued   []holdfast.Draft    // what it passed to Job.Enqueue, if the job is complete
	Result     json.RawMessage     // what the handler passed to Job.Result, if the job is complete
	Checkpoint json.RawMessage     // what it saved last with Job.Checkpoint; nil: nothing
	Progress   []holdfast.Progress // what it reported with Job.Progress
	Log        string              // the lines of Job.Log and of the engine, as slog.TextHandler writes them, without times

	// CompletedIn is the transaction that the handler passed to Job.CompleteIn; nil: it did not call it. Work writes nothing to the transaction and cannot know
	// how it ended: if the handler returns nil, it counts as committed, otherwise as rolled back.
	CompletedIn any
}

// Work runs handler once and returns the outcome of the attempt. The engine does what it does in production: it decodes the arguments, calls the middleware,
// ends the context at the time limit, recovers a panic, classifies the error and decides. There is no database: the job exists only for this call.
//
// The handler runs on a goroutine of the engine, so it must not call t.Fatal; t.Error is fine. Invalid options end the test.
func Work[A holdfast.Args](t testing.TB, handler func(ctx context.Context, job *engine.Job[A]) error, args A, options ...func(*Setup)) *Attempt {
	t.Helper()
	var setup Setup
	for _, option := range options {
		option(&setup)
	}
	draft, err := holdfast.NewDraft(args)
	if err != nil {
		t.Fatalf("holdfasttest: %v", err)
	}
	lease, err := setup.lease(draft)
	if err != nil {
		t.Fatalf("holdfasttest: %v", err)
	}
	var log bytes.Buffer
	setup.Config.Log = slog.New(recordLog(&log, setup.Config.Log))
	setup.Config.Queues = []string{engine.AllQueues}
	jobs := newOneJob(lease, setup)
	worker, err := engine.New(jobs, setup.Config)
	if err != nil {
		t.Fatalf("holdfasttest: %v", err)
	}
	started := handler
	if handler != nil {
		started = func(ctx context.Context, job *engine.Job[A]) error {
			close(jobs.started) // there is one attempt
			return handler(ctx, job)
		}
	}
	engine.Handle(worker, started, setup.Options)
	if err := jobs.run(t.Context(), worker, setup); err != nil {
		t.Fatalf("holdfasttest: %v", err)
	}
	attempt := jobs.attempt()
	attempt.Log = log.String()
	return attempt
}

// lease makes the lease of the attempt.
func (s *Setup) lease(draft holdfast.Draft) (store.Lease, error) {
	job, now := s.Job, time.Now().UTC()
	job.Kind, job.Args, job.State = draft.Kind, draft.Args, holdfast.Processing
	if job.ID.IsZero() {
		job.ID = holdfast.NewID()
	}
	if job.Queue == "" {
		job.Queue = holdfast.DefaultQueue
	}
	if job.AsOf.IsZero() {
		job.AsOf = now
	}
	if job.CreatedAt.IsZero() {
		job.CreatedAt = job.AsOf
	}
	if job.StartedAt.IsZero() {
		job.StartedAt = job.AsOf
	}
	job.Generation = max(job.Generation, 1)
	job.Token = max(job.Token, job.Attempt())
	lease := store.Lease{Job: job, Batch: holdfast.NewID(), Since: job.CreatedAt}
	if s.Checkpoint != nil {
		body, err := json.Marshal(s.Checkpoint)
		if err != nil {
			return lease, err
		}
		lease.Checkpoint = body
	}
	if s.Options.Timeout == 0 && s.Config.Timeout == 0 {
		s.Config.Timeout = time.Minute // no handler test waits for the ten minutes of production
	}
	return lease, nil
}

// Code returns the code of the failure, or "" if there is none.
func (a *Attempt) Code() string {
	if a.Failure == nil {
		return ""
	}
	return a.Failure.Code
}

// RequireComplete ends the test unless the job is complete.
func (a *Attempt) RequireComplete(t testing.TB) {
	t.Helper()
	a.require(t, holdfast.Complete, "")
}

// RequireRetry ends the test unless the attempt failed with the code and there will be another one.
func (a *Attempt) RequireRetry(t testing.TB, code string) {
	t.Helper()
	a.require(t, holdfast.Queued, code)
}

// RequireFailed ends the test unless the job failed for good with the code.
func (a *Attempt) RequireFailed(t testing.TB, code string) {
	t.Helper()
	a.require(t, holdfast.Failed, code)
}

func (a *Attempt) require(t testing.TB, state holdfast.State, code string) {
	t.Helper()
	if a.State == state && a.Code() == code {
		return
	}
	t.Fatalf("holdfasttest: the attempt ended otherwise\n  want: %s\n  got:  %s%s\n  why:  %s\n  log:\n%s",
		outcome(state, code), outcome(a.State, a.Code()), detail(a.Failure), a.Why, indent(a.Log))
}

// RequireResult decodes the result of the attempt into value, and ends the test if it has none or cannot be decoded.
func (a *Attempt) RequireResult(t testing.TB, value any) {
	t.Helper()
	if len(a.Result) == 0 {
		t.Fatalf("holdfasttest: the attempt has no result: it ended as %s%s", outcome(a.State, a.Code()), detail(a.Failure))
	}
	if err := json.Unmarshal(a.Result, value); err != nil {
		t.Fatalf("holdfasttest: the result cannot be decoded into %T: %v\n  result: %s", value, err, a.Result)
	}
}

// outcome describes a state and a code.
func outcome(state holdfast.State, code string) string {
	if code == "" {
		return string(state)
	}
	return string(state) + " with " + code
}

// detail returns the text of the error behind a failure, to be appended to a line.
func detail(f *holdfast.Failure) string {
	if f == nil || f.Detail == "" {
		return ""
	}
	return ": " + f.Detail
}

// indent indents the lines of a text for a message.
func indent(text string) string {
	lines := bytes.Split(bytes.TrimSpace([]byte(text)), []byte("\n"))
	return "    " + string(bytes.Join(lines, []byte("\n    ")))
}
