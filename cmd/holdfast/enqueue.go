package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
)

// An enqueueForm is a draft as it stands on the command line.
type enqueueForm struct {
	draft        holdfast.Draft
	id, group    string
	after        []string
	args, runAt  string
	expireAt     string
	ndjson       string
	stopAtErrors bool
}

func enqueueCommand() *cobra.Command {
	var form enqueueForm
	c := &cobra.Command{
		Use: "enqueue KIND", Short: "Enqueue a job, or many from a file of drafts",
		Long: `Enqueues one job. Its arguments are JSON: given here, in a file (@file), or on standard input (-). It answers when the job is durable.

With --ndjson it enqueues many: a file (- for standard input) with one draft in JSON a line, {"kind": "mail", "args": {...}, "delay": "10m"}. They go
in by the hundred, each hundred all or none. A line that cannot be used is named, and the rest goes on; --stop ends there instead.`,
		Example: `  holdfast enqueue mail --args '{"to": "ada@example.com"}' --delay 10m
  holdfast enqueue http --args '{"method": "POST", "url": "https://example.com/hook", "json": {"n": 1}}' --idempotency-key order-17
  holdfast enqueue --ndjson drafts.ndjson`,
		Args: func(c *cobra.Command, args []string) error {
			if (form.ndjson == "") != (len(args) == 1) || len(args) > 1 {
				return usage(c, fmt.Errorf("expected a KIND, or --ndjson FILE"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if form.ndjson != "" {
				return withPlace(c, func(ctx context.Context, p *place) error { return enqueueLines(ctx, c, p.jobs, &form) })
			}
			form.draft.Kind = args[0]
			draft, err := form.read(c)
			if err != nil {
				return err
			}
			return withPlace(c, func(ctx context.Context, p *place) error { return enqueueOne(ctx, c, p.jobs, draft) })
		},
	}
	form.flags(c)
	return c
}

func (f *enqueueForm) flags(c *cobra.Command) {
	flags, d := c.Flags(), &f.draft
	flags.StringVar(&f.args, "args", "", "the arguments: JSON, @file or - for standard input")
	flags.StringVar(&f.id, "id", "", "the job's id, when it was made before")
	flags.StringVar(&d.Queue, "queue", "", "where it waits; default when left out")
	flags.Int16Var(&d.Priority, "priority", 0, "a lower number is claimed first")
	flags.StringVar(&d.Owner, "owner", "", "whose job it is")
	flags.StringSliceVar(&d.Tags, "tag", nil, "tags")
	flags.StringVar(&d.Dependency, "dependency", "", "what it calls, when its kind alone does not say it")
	flags.StringVar(&f.group, "group", "", "make it a member of this group")
	flags.StringSliceVar(&f.after, "after", nil, "members of the group that must have ended before")
	flags.BoolVar(&d.AfterAll, "after-all", false, "start even if one of them did not complete")
	flags.DurationVar(&d.Delay, "delay", 0, "start no sooner than this from now")
	flags.StringVar(&f.runAt, "run-at", "", "or no sooner than this moment, such as 2026-05-04T08:55:00Z")
	flags.DurationVar(&d.ExpireIn, "expire-in", 0, "do not start it after this time")
	flags.StringVar(&f.expireAt, "expire-at", "", "or after this moment")
	flags.DurationVar(&d.RetryWithin, "retry-within", 0, "a promise: after a failure the next attempt starts within this time")
	flags.IntVar(&d.MaxAttempts, "max-attempts", 0, "so many attempts; 0 leaves it to the policy")
	flags.StringVar(&d.UniqueKey, "unique-key", "", "one job of this owner, kind and key at a time")
	flags.BoolVar(&d.UniqueDone, "unique-done", false, "also after it has completed")
	flags.StringVar(&d.IdempotencyKey, "idempotency-key", "", "the same key and draft again are answered with the same job")
	flags.StringVar(&f.ndjson, "ndjson", "", "enqueue every line of this file, - for standard input")
	flags.BoolVar(&f.stopAtErrors, "stop", false, "with --ndjson, end at the first line that cannot be used")
}

// read completes the draft.
func (f *enqueueForm) read(c *cobra.Command) (d holdfast.Draft, err error) {
	d = f.draft
	if d.Args, err = readArgs(c, f.args); err != nil {
		return d, err
	}
	for _, one := range []struct {
		text string
		to   *holdfast.ID
	}{{f.id, &d.ID}, {f.group, &d.Group}} {
		if one.text == "" {
			continue
		}
		if *one.to, err = holdfast.ParseID(one.text); err != nil {
			return d, err
		}
	}
	for _, text := range f.after {
		id, err := holdfast.ParseID(text)
		if err != nil {
			return d, err
		}
		d.After = append(d.After, id)
	}
	if d.RunAt, err = when("--run-at", f.runAt); err != nil {
		return d, usage(c, err)
	}
	if d.ExpireAt, err = when("--expire-at", f.expireAt); err != nil {
		return d, usage(c, err)
	}
	return d, nil
}

// readArgs reads arguments as they are given: JSON, a file, or standard input.
func readArgs(c *cobra.Command, text string) (json.RawMessage, error) {
	switch {
	case text == "":
		return nil, nil
	case text != "-" && !strings.HasPrefix(text, "@"):
		return json.RawMessage(text), nil
	}
	from := c.InOrStdin()
	if name, isFile := strings.CutPrefix(text, "@"); isFile {
		file, err := os.Open(name)
		if err != nil {
			return nil, &usageError{fmt.Errorf("the arguments cannot be read: %w", err)}
		}
		defer file.Close()
		from = file
	}
	body, err := io.ReadAll(io.LimitReader(from, holdfast.MaxArgs+1))
	if err != nil {
		return nil, &usageError{fmt.Errorf("the arguments cannot be read: %w", err)}
	}
	return body, nil
}

// A receipt is how an acknowledgement is printed.
type receipt struct {
	Line     int         `json:"line,omitempty"`
	ID       holdfast.ID `json:"id"`
	Existing bool        `json:"existing,omitempty"`
}

func enqueueOne(ctx context.Context, c *cobra.Command, to holdfast.Enqueuer, d holdfast.Draft) error {
	receipts, err := to.Enqueue(ctx, []holdfast.Draft{d})
	if err != nil {
		return err
	}
	r := receipts[0]
	return show(c, receipt{ID: r.ID, Existing: r.Existing}, func(out io.Writer) {
		if r.Existing {
			fmt.Fprintf(out, "exists already: %s\n", r.ID)
			return
		}
		fmt.Fprintf(out, "enqueued %s\n", r.ID)
	})
}
