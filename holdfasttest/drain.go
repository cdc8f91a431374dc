package holdfasttest

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/dutypace"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A DrainSetup says how Drain runs jobs.
type DrainSetup struct {
	Config engine.Config // of the engine; Queues are all queues when empty
	// Within is how long Drain runs, by the clock of the test: in Run that is virtual time. 24 hours when zero, and outside of Run, where time is real, a
	// minute.
	Within time.Duration
}

// A Story is a job and its history after Drain.
type Story struct {
	Job   holdfast.Job
	Lines []ops.StoryLine
}

// Stories are the jobs of a store, the oldest first.
type Stories []Story

// Drain runs the jobs of a store until none is queued or processing, and returns the story of every job. register registers the handlers, as the program does.
// Jobs that are due later and retries run when they are due: in Run at once, because time is virtual there.
//
// Drain ends the test if jobs are left that can no longer end by themselves: the message says of each what it waits for, such as a pause or a worker that
// handles its kind.
func Drain(t testing.TB, jobs store.Store, register func(e *engine.Engine), options ...func(*DrainSetup)) Stories {
	t.Helper()
	setup := DrainSetup{Config: engine.Config{Queues: []string{engine.AllQueues}}}
	for _, option := range options {
		option(&setup)
	}
	if setup.Within == 0 {
		setup.Within = time.Minute
		if inBubble() {
			setup.Within = 24 * time.Hour
		}
	}
	if setup.Config.Log == nil {
		setup.Config.Log = slog.New(slog.DiscardHandler)
	}
	resting, ctx := newRest(), context.Background()
	if inBubble() {
		setup.Config.Middleware = append([]func(engine.Handler) engine.Handler{resting.wrap}, setup.Config.Middleware...)
		ctx = dutypace.With(ctx, resting.stretch)
	}
	worker, err := engine.New(jobs, setup.Config)
	if err != nil {
		t.Fatalf("holdfasttest: %v", err)
	}
	register(worker)
	ran := make(chan error, 1)
	go func() { ran <- worker.Run(ctx) }()
	start := time.Now()
	left := waitDrained(t, jobs, ran, setup.Within, resting)
	resting.end(0)
	took := time.Since(start).Round(time.Millisecond)
	if err := worker.Stop(context.Background()); err != nil {
		t.Errorf("holdfasttest: stopping the engine: %v", err)
	}
	if err := <-ran; err != nil {
		t.Fatalf("holdfasttest: %v", err)
	}
	if left {
		t.Fatalf("holdfasttest: after %v these jobs are left, and they do not end by themselves:\n%s", took, leftOver(jobs))
	}
	return stories(t, jobs)
}

// stuckAfter is how long no job may change before Drain gives up on jobs that are due: nothing that the engine does by itself takes longer.
const stuckAfter = 15 * time.Minute

// waitDrained waits until no job is queued or processing. It reports whether jobs are left: the time is over, or nothing changes any more.
func waitDrained(t testing.TB, jobs store.Store, ran chan error, within time.Duration, resting *rest) (left bool) {
	t.Helper()
	pause, start, seen, changed := 5*time.Millisecond, time.Now(), "", time.Now()
	for {
		live := append(listLive(t, jobs, holdfast.Queued), listLive(t, jobs, holdfast.Processing)...)
		if len(live) == 0 && allEnded(t, jobs) {
			return false
		}
		until := restUntil(jobs, live)
		early := resting.begin(until)
		now, wait := snapshot(live)
		if rest := time.Until(until); rest > 0 {
			if wait <= 0 { // jobs are due, and an open breaker holds all of them
				wait = maxRest
			}
			wait = min(wait, rest)
		} else {
			wait = min(wait, time.Second) // look again soon: the next rest begins after the next look
		}
		if now != seen || wait > 0 {
			seen, changed = now, time.Now().Add(wait)
		}
		if time.Since(start) > within || time.Since(changed) > stuckAfter {
			return true
		}
		select {
		case err := <-ran: // a refused registration
			ran <- err
			return false
		case <-time.After(max(pause, wait)):
		case <-early:
			pause = time.Millisecond
		}
		pause = min(2*pause, time.Second)
	}
}

// allEnded reports whether every job has ended. Asking for each state by itself is not enough: a job that goes from processing back to queued between the two
// reads is in neither. This reads every job whatever its state, and reads again: a job that another one enqueued during the first reading is in the second.
func allEnded(t testing.TB, jobs store.Store) bool {
	t.Helper()
	count := -1
	for {
		found := 0
		for job := range listAll(t, jobs) {
			if !job.State.Terminal() {
				return false
			}
			found++
		}
		if found == count {
			return true
		}
		count = found
	}
}

// listAll yields the jobs of a store, the newest first.
func listAll(t testing.TB, jobs store.Store) iter.Seq[holdfast.Job] {
	return func(yield func(holdfast.Job) bool) {
		t.Helper()
		filter := store.Filter{Limit: 200}
		for {
			page, cursor, err := jobs.Jobs(context.Background(), filter)
			if err != nil {
				t.Fatalf("holdfasttest: %v", err)
			}
			for _, job := range page {
				if !yield(job) {
					return
				}
			}
			if filter.Cursor = cursor; cursor == "" {
				return
			}
		}
	}
}

// liveRead is how many jobs in a state listLive returns.
const liveRead = 50

// listLive returns some of the jobs in a state.
func listLive(t testing.TB, jobs store.Store, state holdfast.State) []holdfast.Job {
	t.Helper()
	found, _, err := jobs.Jobs(context.Background(), store.Filter{State: state, Limit: liveRead})
	if err != nil {
		t.Fatalf("holdfasttest: %v", err)
	}
	return found
}

// snapshot returns a text that changes when one of the jobs does, and for how long none of them can end: until the first one is due. One that is running may
// end at any time, so then it is a millisecond.
func snapshot(jobs []holdfast.Job) (text string, wait time.Duration) {
	var b strings.Builder
	wait = time.Hour
	for _, job := range jobs {
		fmt.Fprintln(&b, job.ID, job.Token, job.State)
		until := max(0, job.DueAt.Sub(job.AsOf))
		if job.State == holdfast.Processing {
			until = time.Millisecond
		}
		wait = min(wait, until)
	}
	return b.String(), wait
}

// leftOver says of the jobs that have not ended what they wait for.
func leftOver(jobs store.Store) string {
	const most = 10
	operator := ops.New(jobs, ops.Config{})
	var lines []string
	for _, state := range []holdfast.State{holdfast.Queued, holdfast.Processing} {
		found, _, err := jobs.Jobs(context.Background(), store.Filter{State: state, Limit: most})
		if err != nil {
			return "    " + err.Error()
		}
		for _, job := range found {
			lines = append(lines, describe(job))
			explanation, err := operator.Explain(context.Background(), job.ID)
			if err != nil {
				lines = append(lines, "      "+err.Error())
			}
			for _, reason := range explanation.Reasons {
				lines = append(lines, "      "+reason.Text)
			}
		}
	}
	return strings.Join(lines, "\n")
}

// stories returns the story of every job of a store.
func stories(t testing.TB, jobs store.Store) (all Stories) {
	t.Helper()
	for job := range listAll(t, jobs) {
		history, err := jobs.History(context.Background(), job.ID)
		if err != nil {
			t.Fatalf("holdfasttest: %v", err)
		}
		all = append(all, Story{history.Job, ops.Story(history)})
	}
	slices.Reverse(all)
	return all
}

// Of returns the stories of the jobs of a kind.
func (s Stories) Of(kind string) (found Stories) {
	for _, story := range s {
		if story.Job.Kind == kind {
			found = append(found, story)
		}
	}
	return found
}

// RequireComplete ends the test unless every job is complete.
func (s Stories) RequireComplete(t testing.TB) {
	t.Helper()
	for _, story := range s {
		story.RequireComplete(t)
	}
}

// RequireComplete ends the test unless the job is complete.
func (s Story) RequireComplete(t testing.TB) {
	t.Helper()
	s.require(t, holdfast.Complete, "")
}

// RequireFailed ends the test unless the job failed for good with the code.
func (s Story) RequireFailed(t testing.TB, code string) {
	t.Helper()
	s.require(t, holdfast.Failed, code)
}

func (s Story) require(t testing.TB, state holdfast.State, code string) {
	t.Helper()
	got := ""
	if s.Job.LastFailure != nil && s.Job.State != holdfast.Complete {
		got = s.Job.LastFailure.Code
	}
	if s.Job.State != state || got != code {
		t.Fatalf("holdfasttest: the job ended otherwise\n  want: %s\n  got:  %s\n%s", outcome(state, code), outcome(s.Job.State, got), s)
	}
}

// String returns the story as `holdfast story` prints it, one line for each step, with the time since the job was enqueued.
func (s Story) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\n", s.Job.ID, s.Job.Kind, clip(string(s.Job.Args)))
	for _, line := range s.Lines {
		fmt.Fprintf(&b, "  %10s  %s", line.At.Sub(s.Job.CreatedAt).Round(time.Millisecond), line.Text)
		if line.Error != "" {
			fmt.Fprintf(&b, ": %s", line.Error)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
