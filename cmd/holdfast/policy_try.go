package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/ops"
)

// withPolicy hands over the policy of --file, or else the one that a store's workers follow.
func withPolicy(c *cobra.Command, do func(*policy.Set) error) error {
	if name, _ := c.Flags().GetString("file"); name != "" {
		return withPolicyFile(c, name, do)
	}
	return withDesk(c, func(ctx context.Context, o ops.Desk) error {
		applied, err := o.Policy(ctx)
		if err != nil {
			return err
		}
		codes, err := o.Codes(ctx)
		if err != nil {
			return err
		}
		set, _, err := policy.ParseLenient([]byte(applied.Text), catalog.TaxonomyOf(codes))
		if err != nil {
			return &usageError{fmt.Errorf("the applied policy cannot be used:\n%w", err)}
		}
		return do(set)
	})
}

func policySimulateCommand() *cobra.Command {
	var scene policy.Scenario
	var outage, from time.Duration
	var at string
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Play one job through an outage: when each attempt runs, what holds it, when it gives up",
		Example: `  holdfast policy simulate --file policy.yaml --kind convert --code GW_5XX --outage 10m --take 1s
  holdfast policy simulate --file policy.yaml --kind convert --outage 1h --breaker --dependency gateway --traffic 5
  holdfast policy simulate --file policy.yaml --kind convert --code RATE_LIMITED --outage 30m --retry-after 90s`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if outage < 0 || from < 0 || scene.Take < 0 || scene.RetryAfter < 0 || !(scene.Traffic >= 0) {
				return usage(c, fmt.Errorf("durations and traffic cannot be negative"))
			}
			if scene.At, err = when("--at", at); err != nil {
				return usage(c, err)
			}
			scene.Outage = policy.Outage{From: from, To: from + outage}
			return withPolicy(c, func(set *policy.Set) error {
				trial := policy.Simulate(set, scene)
				return show(c, trial, func(out io.Writer) { printTrial(out, trial) })
			})
		},
	}
	flags := c.Flags()
	flags.String("file", "", "the policy; the one applied to --store when left out")
	flags.StringVar(&scene.Kind, "kind", "", "the job's kind")
	flags.StringVar(&scene.Owner, "owner", "", "its owner")
	flags.StringVar(&scene.Queue, "queue", "", "its queue")
	flags.StringVar(&scene.Dependency, "dependency", "", "what it calls")
	flags.StringVar(&scene.Code, "code", "DEPENDENCY_DOWN", "how its attempts fail during the outage")
	flags.DurationVar(&scene.RetryAfter, "retry-after", 0, "the wait that the dependency asks for during the outage; none when left out")
	flags.DurationVar(&outage, "outage", time.Hour, "how long the dependency is away")
	flags.DurationVar(&from, "outage-from", 0, "how long after the job's enqueue that begins")
	flags.DurationVar(&scene.Take, "take", time.Second, "how long an attempt takes")
	flags.BoolVar(&scene.Breaker, "breaker", false, "let the dependency's breaker watch")
	flags.Float64Var(&scene.Traffic, "traffic", 5, "calls a second that others make, for the breaker to see")
	flags.StringVar(&at, "at", "", "when the job is enqueued, such as 2026-05-04T08:55:00Z, for windows; they are left out without it")
	flags.Uint64Var(&scene.Seed, "seed", 1, "chance: the same seed, the same jitter")
	return c
}

// when reads a moment that a flag names.
func when(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%s %q: give a moment such as 2026-05-04T08:55:00Z", flag, text)
	}
	return t, nil
}

func printTrial(out io.Writer, trial policy.Trial) {
	rows := make([][]string, len(trial.Lines))
	for n, line := range trial.Lines {
		delay := ""
		if line.Delay > 0 {
			delay = brief(line.Delay)
		}
		rows[n] = []string{"+" + brief(line.At), attemptNumber(line.Attempt), line.What, orDash(delay), orDash(line.Why)}
	}
	table(out, []string{"AT", "ATTEMPT", "WHAT", "WAIT", "WHY"}, rows)
	fmt.Fprintf(out, "%s after %s and %d attempts\n", trial.End, brief(trial.After), trial.Attempts)
	printWarnings(out, trial.Warnings)
	printAssumptions(out, trial.Assumptions)
}

func printWarnings(out io.Writer, warnings []string) {
	for _, one := range warnings {
		fmt.Fprintln(out, "warning: "+one)
	}
}

func printAssumptions(out io.Writer, assumptions []string) {
	fmt.Fprintln(out, "assumed:")
	for _, one := range assumptions {
		fmt.Fprintln(out, "- "+one)
	}
}

func attemptNumber(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// brief prints a duration for people.
func brief(d time.Duration) string {
	if d >= time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

func policyWhatIfCommand() *cobra.Command {
	var f holdfast.Filter
	var jobs int
	c := &cobra.Command{
		Use:     "whatif",
		Short:   "Put the newest jobs of a store before a policy: what would it have changed?",
		Example: "  holdfast policy whatif --store jobs.db --file policy.yaml --jobs 5000",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if jobs < 1 || jobs > 100_000 {
				return usage(c, fmt.Errorf("--jobs %d: give 1 to 100000", jobs))
			}
			return withPolicy(c, func(set *policy.Set) error {
				return withDesk(c, func(ctx context.Context, o ops.Desk) error {
					history, err := newest(ctx, o, f, jobs)
					if err != nil {
						return err
					}
					review := policy.WhatIf(set, history)
					return show(c, review, func(out io.Writer) { printReview(out, review) })
				})
			})
		},
	}
	c.Flags().String("file", "", "the policy; the one applied to --store when left out")
	c.Flags().StringVar(&f.Kind, "kind", "", "only jobs of this kind")
	c.Flags().StringVar(&f.Owner, "owner", "", "only this owner's")
	c.Flags().IntVar(&jobs, "jobs", 1000, "how many jobs to look at, the newest first")
	return c
}

// newest reads the histories of the newest jobs, page by page.
func newest(ctx context.Context, o ops.Looking, f holdfast.Filter, most int) ([]holdfast.History, error) {
	var all []holdfast.History
	for len(all) < most {
		f.Limit = min(200, most-len(all))
		page, cursor, err := o.Jobs(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, job := range page {
			h := holdfast.History{Job: job}
			if job.Token > 1 || job.State != holdfast.Complete { // a job that completed at once has no story worth the question
				if h, err = o.History(ctx, job.ID); err != nil {
					return nil, err
				}
			}
			all = append(all, h)
		}
		if f.Cursor = cursor; cursor == "" {
			break
		}
	}
	return all, nil
}

func printReview(out io.Writer, review policy.Review) {
	fmt.Fprintf(out, "%d jobs looked at, %d had failed at least once\n", review.Jobs, review.Failed)
	if len(review.Differences) == 0 {
		return
	}
	rows := make([][]string, len(review.Differences))
	for n, d := range review.Differences {
		rows[n] = []string{
			d.Kind, d.Code, strconv.Itoa(d.Jobs), fmt.Sprintf("%d -> %d", d.AttemptsThen, d.AttemptsNow), strconv.Itoa(d.Saved), strconv.Itoa(d.Further),
			strconv.Itoa(d.Earlier), strconv.Itoa(d.Later), strconv.Itoa(d.Lost), brief(d.EndThen) + " -> " + brief(d.EndNow),
		}
	}
	table(out, []string{"KIND", "CODE", "JOBS", "ATTEMPTS", "SAVED", "FURTHER", "EARLIER", "LATER", "LOST", "TIME TO END"}, rows)
	fmt.Fprintln(out, "earlier and later: given up so; lost: completed then, would have been given up before")
	printWarnings(out, review.Warnings)
	printAssumptions(out, review.Assumptions)
}
