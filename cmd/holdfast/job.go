package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

func jobCommand() *cobra.Command {
	ask := func(ctx context.Context, o ops.Operator, id holdfast.ID) (holdfast.Job, error) { return o.Job(ctx, id) }
	return jobQueryCommand("job", "Show one job: its attributes, state, last failure and result", ask, printJob)
}

func printJob(out io.Writer, job holdfast.Job) {
	say := labelled(out)
	known := func(what, text string) {
		if text != "" {
			say(what, "%s", text)
		}
	}
	at := func(what string, t time.Time) {
		if !t.IsZero() {
			say(what, "%s", formatTime(t))
		}
	}
	say("job", "%s", job.ID)
	say("kind", "%s in queue %s, priority %d", job.Kind, job.Queue, job.Priority)
	known("owner", job.Owner)
	known("tags", strings.Join(job.Tags, " "))
	known("calls", job.Dependency)
	if !job.Group.IsZero() {
		say("group", "%s", job.Group)
	}
	say("state", "%s, attempt %d of generation %d; %d failures, %d crashes, released %d times", stateText(job), job.Attempt(), job.Generation, job.Failures, job.Crashes, job.Releases)
	at("created", job.CreatedAt)
	at("due", job.DueAt)
	at("started", job.StartedAt)
	at("finished", job.FinishedAt)
	at("expires", job.ExpireAt)
	known("worker", job.Worker)
	at("lease until", job.LeaseUntil)
	if job.Progress != nil {
		say("progress", "%.0f%% %s", job.Progress.Percent, job.Progress.Note)
	}
	if f := job.LastFailure; f != nil {
		say("last failure", "%s: %s", f.Code, f.Message)
		printLines(out, "", f.Detail)
	}
	known("unique key", job.UniqueKey)
	known("idempotency", job.IdempotencyKey)
	known("trace", job.Trace)
	say("digest", "%s", job.Digest())
	fmt.Fprintf(out, "arguments\n  %s\n", printable(compact(job.Args)))
	if len(job.Result) > 0 {
		fmt.Fprintf(out, "result\n  %s\n", printable(compact(job.Result)))
	}
}
