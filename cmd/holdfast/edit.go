package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
}

func editCommand() *cobra.Command {
	var form editForm
	c := &cobra.Command{
		Use: "edit JOB", Short: "Change a job that is queued: its arguments, and when and where it waits",
		Long: `Changes a job that is queued. Its id, counts and story stay; the story says who changed it. Of a failed job its arguments, priority and
attempts can be changed before it is retried. A job that is processing, complete or cancelled is refused, and so is one that is
not as it was under the digest that --seen gives, which 'holdfast job JOB' prints.`,
		Example: `  holdfast edit JOB --patch '{"size": "small"}' --reason "too big for the printer"
  holdfast edit JOB --queue slow --delay 1h`,
		Args: exactly("job"),
		RunE: func(c *cobra.Command, args []string) error {
			edit, err := form.read(c, args[0])
			if err != nil {
				return err
			}
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
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
	flags.StringVar(&e.Seen, "seen", "", "refuse unless the job is still as it was under this digest")
	flags.StringVar(&e.Owner, "owner", "", "refuse unless the job is this owner's")
	whoAndWhy(c, &e.Actor, &e.Reason)
	flags.StringVar(&e.Request, "request", "", "the id of the request or ticket in which it was asked for")
	return c
}

// read completes the edit: what is not on the command line stays as it is.
func (f *editForm) read(c *cobra.Command, job string) (e holdfast.Edit, err error) {
	e = f.edit
	if e.Job, err = holdfast.ParseID(job); err != nil {
		return e, err
	}
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
	return e, nil
}
