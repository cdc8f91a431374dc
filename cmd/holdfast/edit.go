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
)

// An editForm is an edit as it stands on the command line.
type editForm struct {
	edit        holdfast.Edit
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
		Use: "edit JOB", Short: "Change a job that is queued: its arguments, and when and where it waits",
		Long: `Changes a job that is queued. Its id, counts and story stay; the story says who changed it. Of a failed job its arguments, priority and
attempts can be changed before it is retried. A job that is processing, complete or cancelled is refused, and so is one that is
not as it was under the digest that --seen gives, which 'holdfast job JOB' prints. The story keeps what an edit replaced; --restore puts it back.`,
		Example: `  holdfast edit JOB --patch '{"size": "small"}' --reason "too big for the printer"
  holdfast edit JOB --queue slow --delay 1h
  holdfast edit JOB --restore last --reason "that was the wrong job"`,
		Args: exactly("job"),
		RunE: func(c *cobra.Command, args []string) error {
			edit, err := form.read(c)
			if err != nil {
				return err
			}
			return withID(c, args[0], func(ctx context.Context, o ops.Desk) error {
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
	flags.StringVar(&form.patch, "patch", "", "a JSON merge patch of the arguments: JSON, @file or -")
	flags.StringVar(&form.queue, "queue", "", "put it into this queue")
	flags.Int16Var(&form.priority, "priority", 0, "a lower number is claimed first")
	flags.StringSliceVar(&form.tags, "tag", nil, "these tags instead of its own")
	flags.BoolVar(&form.noTags, "no-tags", false, "no tags any more")
	flags.IntVar(&form.maxAttempts, "max-attempts", 0, "so many attempts; 0 leaves it to the policy")
	flags.DurationVar(&form.delay, "delay", 0, "start no sooner than this from now; 0s: at once")
	flags.StringVar(&form.restore, "restore", "", "put back what the edit or redrive at this time replaced: a time from 'holdfast story JOB', or last")
	flags.StringVar(&e.Seen, "seen", "", "refuse unless the job is still as it was under this digest")
	flags.StringVar(&e.Owner, "owner", "", "refuse unless the job is this owner's")
	whoAndWhy(c, &e.Actor, &e.Reason)
	flags.StringVar(&e.Request, "request", "", "the id of the request or ticket in which it was asked for")
	return c
}

// read completes the edit: what is not on the command line stays as it is.
func (f *editForm) read(c *cobra.Command) (e holdfast.Edit, err error) {
	e = f.edit
	said := c.Flags().Changed
	if said("patch") {
		var patch json.RawMessage
		if patch, err = readArgs(c, f.patch); err != nil {
			return e, err
		}
		e.Patch = patch
	}
	if said("tag") && f.noTags {
		return e, usage(c, fmt.Errorf("--tag and --no-tags: give one"))
	}
	if said("queue") {
		e.Queue = &f.queue
	}
	if said("priority") {
		e.Priority = &f.priority
	}
	if said("tag") || f.noTags {
		e.Tags = &f.tags
	}
	if said("max-attempts") {
		e.MaxAttempts = &f.maxAttempts
	}
	if said("delay") {
		e.Delay = &f.delay
	}
	if said("restore") && f.restore != lastChange {
		if e.Restore, err = time.Parse(time.RFC3339Nano, f.restore); err != nil {
			return e, usage(c, fmt.Errorf("--restore %.60q: give a time as 'holdfast story JOB' prints it, or last", f.restore))
		}
	}
	return e, nil
}

// lastChange stands for the newest edit or redrive that changed a job.
const lastChange = "last"

// lastChanged is the time of the newest edit or redrive that changed a job.
func lastChanged(ctx context.Context, o ops.Desk, id holdfast.ID) (time.Time, error) {
	lines, err := o.Story(ctx, id)
	if err != nil {
		return time.Time{}, err
	}
	for _, line := range slices.Backward(lines) {
		if len(line.Changes) > 0 {
			return line.At, nil
		}
	}
	return time.Time{}, &holdfast.Error{Kind: holdfast.ErrConflict, Job: id, Message: fmt.Sprintf("job %v was never edited: there is nothing to restore", id)}
}
