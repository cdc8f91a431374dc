package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
)

func redriveCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "redrive", Short: "Redrive dead letters: retry or discard many of them; without a subcommand, list redrives",
		Long: `Sends selected dead letters to their queues again at a steady rate: a few first (--canary), then the rest. It stops when too many fail again
(--stop-above). Workers carry it out, so nothing happens while none is alive. A redrive sends each job at most once, even if processes are killed.`,
		Example: `  holdfast redrive preview --store jobs.db --code GW_5XX
  holdfast redrive start --store jobs.db --code GW_5XX --canary 10 --rate 20 --stop-above 20% --reason "the gateway is repaired"
  holdfast redrive show REDRIVE --store jobs.db --watch`,
		Args: cobra.NoArgs,
		RunE: listRedrives,
	}
	c.AddCommand(
		startRedriveCommand(), previewRedriveCommand(), listRedrivesCommand(), showRedriveCommand(),
		redriveActionCommand("pause", "Pause a redrive; jobs that it has sent continue", "paused", ops.Operator.PauseRedrive),
		redriveActionCommand("resume", "Resume a paused or stopped redrive", "resumed", ops.Operator.ResumeRedrive),
		redriveActionCommand("cancel", "Cancel a redrive; jobs that it has sent continue", "cancelled", ops.Operator.CancelRedrive),
	)
	return c
}

// A redriveForm holds the flags of a redrive request.
type redriveForm struct {
	request          redrive.Spec
	patch, stopAbove string
	redriveOf        string // id of an earlier redrive, as a filter
}

func (f *redriveForm) flags(c *cobra.Command) {
	flags := c.Flags()
	addFilterFlags(c, &f.request.Filter)
	flags.StringVar(&f.redriveOf, "redrive", "", "only jobs that this earlier redrive sent")
	flags.BoolVar(&f.request.All, "all", false, "all dead letters")
	flags.IntVar(&f.request.Limit, "limit", 0, "maximum number of jobs; without it, no maximum")
	flags.IntVar(&f.request.Canary, "canary", 0, "number of jobs to send first; the rest follows only if at most the share --stop-above of these fails")
	flags.Float64Var(&f.request.PerSecond, "rate", redrive.DefaultPerSecond, "jobs per second")
	flags.IntVar(&f.request.InFlight, "in-flight", redrive.DefaultInFlight, "maximum number of sent jobs that have not ended")
	flags.StringVar(&f.stopAbove, "stop-above", "50%", "stop when more than this share of jobs fails again; 100%: never")
	flags.IntVar(&f.request.StopAfter, "stop-min-jobs", redrive.DefaultStopAfter, "number of sent jobs that must have ended before --stop-above applies")
	flags.StringVar(&f.patch, "patch", "", "JSON merge patch for the arguments of each job, such as '{\"size\": \"small\"}'")
	flags.StringVar(&f.request.Queue, "to-queue", "", "send the jobs to this queue instead of their own")
	flags.BoolVar(&f.request.Discard, "discard", false, "discard the dead letters instead of sending them")
	addActorFlags(c, &f.request.Actor, &f.request.Reason)
	c.Flags().StringVar(&f.request.Request, "request", "", "id of the request or ticket, for the audit log")
}

// read returns the request.
func (f *redriveForm) read(c *cobra.Command) (redrive.Spec, error) {
	request := f.request
	number, isPercent := strings.CutSuffix(strings.TrimSpace(f.stopAbove), "%")
	share, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return request, usage(c, fmt.Errorf("--stop-above %q: give a share such as 20%% or 0.2", f.stopAbove))
	}
	if isPercent {
		share /= 100
	}
	if request.StopAbove = share; share == 0 {
		request.StopAbove = 1e-9 // no failure is allowed; 0 would mean the default
	}
	if f.patch != "" {
		request.Patch = json.RawMessage(f.patch)
	}
	if f.redriveOf != "" {
		request.Filter.Redrive, err = holdfast.ParseID(f.redriveOf)
	}
	return request, err
}

func previewRedriveCommand() *cobra.Command {
	var form redriveForm
	c := &cobra.Command{
		Use: "preview", Short: "Show which jobs a redrive would send and which not, without changing anything", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			request, err := form.read(c)
			if err != nil {
				return err
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				preview, err := o.PreviewRedrive(ctx, request)
				if err != nil {
					return err
				}
				return show(c, preview, func(out io.Writer) { printPreview(out, preview) })
			})
		},
	}
	form.flags(c)
	return c
}

func startRedriveCommand() *cobra.Command {
	var form redriveForm
	var dry, watch bool
	c := &cobra.Command{
		Use: "start", Short: "Start a redrive: shows a preview and asks for confirmation", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			request, err := form.read(c)
			if err != nil {
				return err
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				preview, err := o.PreviewRedrive(ctx, request)
				if err != nil {
					return err
				}
				if dry {
					return show(c, preview, func(out io.Writer) { printPreview(out, preview) })
				}
				printPreview(c.ErrOrStderr(), preview)
				if err := confirm(c, question(preview)); err != nil {
					return err
				}
				return startRedrive(ctx, c, o, request, watch)
			})
		},
	}
	form.flags(c)
	c.Flags().BoolVar(&dry, "dry-run", false, "only show the preview")
	c.Flags().BoolVar(&watch, "watch", false, "show progress until the redrive ends, stops or is paused")
	addYesFlag(c)
	return c
}

func startRedrive(ctx context.Context, c *cobra.Command, o ops.Operator, request redrive.Spec, watch bool) error {
	id, err := o.StartRedrive(ctx, request)
	if err != nil {
		return err
	}
	if watch {
		r, err := o.Redrive(ctx, id)
		if err == nil {
			r, err = watchRedrive(ctx, c.ErrOrStderr(), o, r)
		}
		if err != nil {
			return err
		}
		return show(c, r, func(out io.Writer) { printRedrive(out, r) })
	}
	answer := struct {
		ID holdfast.ID `json:"id"`
	}{id}
	return show(c, answer, func(out io.Writer) {
		fmt.Fprintf(out, "started %s\nwatch it: holdfast redrive show %s --watch\n", id, id)
	})
}

// question is the confirmation question of a redrive.
func question(p ops.Preview) string {
	verb := "redrive"
	if p.Spec.Discard {
		verb = "discard"
	}
	return fmt.Sprintf("%s %s dead letters?", verb, countText(willTake(p)))
}

func willTake(p ops.Preview) int {
	if p.Spec.Limit > 0 {
		return min(p.Eligible, p.Spec.Limit)
	}
	return p.Eligible
}

func printPreview(out io.Writer, p ops.Preview) {
	verb := "would be redriven"
	if p.Spec.Discard {
		verb = "would be discarded"
	}
	fmt.Fprintf(out, "%s dead letters %s, which takes at least %v\n", countText(willTake(p)), verb, p.Takes)
	for _, not := range p.Ineligible {
		fmt.Fprintf(out, "%s jobs would not: %s\n", countText(not.Jobs), not.Reason)
	}
	if len(p.Sample) > 0 {
		fmt.Fprintln(out, "the first jobs:")
		printJobs(out, p.Sample, "")
	}
	for _, note := range p.Notes {
		fmt.Fprintln(out, "note:", printable(note))
	}
}

// redriveActionCommand makes a command that changes the state of one redrive. The change is recorded with actor and reason.
func redriveActionCommand(name, short, answer string, act func(o ops.Operator, ctx context.Context, id holdfast.ID, by ops.Actor) error) *cobra.Command {
	var by *ops.Actor
	c := &cobra.Command{
		Use: name + " REDRIVE", Short: short, Args: exactly("redrive"),
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, args[0], func(ctx context.Context, o ops.Operator) error {
				id, err := redriveID(ctx, o, args[0])
				if err == nil {
					err = act(o, ctx, id, *by)
				}
				if err == nil {
					fmt.Fprintln(c.OutOrStdout(), answer)
				}
				return err
			})
		},
	}
	by = addByFlags(c)
	return c
}
