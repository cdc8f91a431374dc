package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// An editForm holds the flags of an edit.
type editForm struct {
	edit        store.Edit
	patch       string
	queue       string
	priority    int16
	tags        []string
	noTags      bool
	maxAttempts int
	delay       time.Duration
	restore     string
}

func editCommand() *cobra.Command {
	var form editForm
	c := &cobra.Command{
		Use: "edit JOB", Short: "Change a queued job: its arguments, queue, priority, tags or due time",
		Long: `Changes a queued job. Its id, counters and story stay, and the story records the edit and its actor. Of a failed job, arguments, priority and
maximum attempts can be changed before it is retried. Jobs that are processing, complete or cancelled cannot be edited. With --if-digest the
edit is refused if the job has changed since 'holdfast job JOB' printed that digest. The story keeps the replaced values; --restore puts them back.`,
		Example: `  holdfast edit JOB --patch '{"size": "small"}' --reason "too big for the printer"
  holdfast edit JOB --queue slow --delay 1h
  holdfast edit JOB --restore last --reason "that was the wrong job"`,
		Args: exactly("job"),
		RunE: func(c *cobra.Command, args []string) error {
			edit, err := form.read(c)
			if err != nil {
				return err
			}
			return withID(c, args[0], func(ctx context.Context, o ops.Operator) error {
				if edit.Job, err = jobID(ctx, o, args[0]); err != nil {
					return err
				}
				if form.restore == lastChange {
					if edit.Restore, err = lastChanged(ctx, o, edit.Job); err != nil {
						return err
					}
				}
				job, err := o.Edit(ctx, edit)
				if err != nil {
					return err
				}
				return show(c, job, func(out io.Writer) { printJobs(out, []holdfast.Job{job}, "") })
			})
		},
	}
	flags, e := c.Flags(), &form.edit
	flags.StringVar(&form.patch, "patch", "", "JSON merge patch for the arguments: JSON, @file, or - for standard input")
	flags.StringVar(&form.queue, "queue", "", "move it to this queue")
	flags.Int16Var(&form.priority, "priority", 0, "priority; lower numbers are claimed first")
	flags.StringSliceVar(&form.tags, "tag", nil, "replace its tags with these")
	flags.BoolVar(&form.noTags, "no-tags", false, "remove all tags")
	flags.IntVar(&form.maxAttempts, "max-attempts", 0, "maximum attempts; 0: as the policy says")
	flags.DurationVar(&form.delay, "delay", 0, "earliest start, from now; 0s: now")
	flags.StringVar(&form.restore, "restore", "", "restore the values that an edit or a redrive replaced: its time, from 'holdfast story JOB', or last")
	flags.StringVar(&e.IfDigest, "if-digest", "", "edit only if the job still has this digest")
	flags.StringVar(&e.Owner, "owner", "", "edit only if the job belongs to this owner")
	addActorFlags(c, &e.Actor, &e.Reason)
	flags.StringVar(&e.Request, "request", "", "id of the request or ticket, for the audit log")
	return c
}

// read returns the edit. Fields whose flags are not given stay as they are.
func (f *editForm) read(c *cobra.Command) (e store.Edit, err error) {
	e = f.edit
	given := c.Flags().Changed
	if given("patch") {
		var patch json.RawMessage
		if patch, err = readArgs(c, f.patch); err != nil {
			return e, err
		}
		e.Patch = patch
	}
	if given("tag") && f.noTags {
		return e, usage(c, fmt.Errorf("--tag and --no-tags cannot be used together"))
	}
	if given("queue") {
		e.Queue = &f.queue
	}
	if given("priority") {
		e.Priority = &f.priority
	}
	if given("tag") || f.noTags {
		e.Tags = &f.tags
	}
	if given("max-attempts") {
		e.MaxAttempts = &f.maxAttempts
	}
	if given("delay") {
		e.Delay = &f.delay
	}
	if given("restore") && f.restore != lastChange {
		if e.Restore, err = time.Parse(time.RFC3339Nano, f.restore); err != nil {
			return e, usage(c, fmt.Errorf("--restore %.60q: give a time as 'holdfast story JOB' prints it, or last", f.restore))
		}
	}
	return e, nil
}

// lastChange is the value of --restore for the newest edit or redrive that changed the job.
const lastChange = "last"

// lastChanged returns the time of the newest edit or redrive that changed a job.
func lastChanged(ctx context.Context, o ops.Operator, id holdfast.ID) (time.Time, error) {
	lines, err := o.Story(ctx, id)
	if err != nil {
		return time.Time{}, err
	}
	for _, line := range slices.Backward(lines) {
		if len(line.Changes) > 0 {
			return line.At, nil
		}
	}
	return time.Time{}, &holdfast.Error{Err: holdfast.ErrConflict, Job: id, Message: fmt.Sprintf("job %v was never edited: there is nothing to restore", id)}
}
