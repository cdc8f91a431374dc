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
	"github.com/holdfastdev/holdfast/store"
)

// withPolicy calls do with the policy of --file, or else with the policy that is applied to the store.
func withPolicy(c *cobra.Command, do func(*policy.Set) error) error {
	if name, _ := c.Flags().GetString("file"); name != "" {
		return withPolicyFile(c, name, do)
	}
	return withOperator(c, func(ctx context.Context, o ops.Operator) error {
		set, err := policyFor(ctx, c, o)
		if err != nil {
			return err
		}
		return do(set)
	})
}

// policyFor returns the policy of --file, or else the policy that is applied to the store. It knows the failure codes of the store.
func policyFor(ctx context.Context, c *cobra.Command, o ops.Operator) (*policy.Set, error) {
	codes, err := o.Codes(ctx)
	if err != nil {
		return nil, err
	}
	if name, _ := c.Flags().GetString("file"); name != "" {
		text, err := policyText(name)
		if err != nil {
			return nil, err
		}
		return parsePolicy(c, name, text, codes)
	}
	applied, err := o.Policy(ctx)
	if err != nil {
		return nil, err
	}
	set, _, err := policy.ParseLenient([]byte(applied.Text), catalog.TaxonomyOf(codes))
	if err != nil {
		return nil, &usageError{fmt.Errorf("the applied policy is invalid:\n%w", err)}
	}
	return set, nil
}

func policySimulateCommand() *cobra.Command {
	var scene policy.Scenario
	var outage, from time.Duration
	var at string
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Simulate one job during an outage: when attempts run, what holds the job, when it gives up",
		Example: `  holdfast policy simulate --file policy.yaml --kind convert --code GW_5XX --outage 10m --attempt-duration 1s
  holdfast policy simulate --file policy.yaml --kind convert --outage 1h --breaker --dependency gateway --traffic 5
  holdfast policy simulate --file policy.yaml --kind convert --code RATE_LIMITED --outage 30m --retry-after 90s`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if outage < 0 || from < 0 || scene.Take < 0 || scene.RetryAfter < 0 || !(scene.Traffic >= 0) {
				return usage(c, fmt.Errorf("durations and traffic cannot be negative"))
			}
			if scene.At, err = parseTime("--at", at); err != nil {
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
	flags.String("file", "", "policy file; without it, the policy that is applied to the store")
	flags.StringVar(&scene.Kind, "kind", "", "kind of the job")
	flags.StringVar(&scene.Owner, "owner", "", "owner of the job")
	flags.StringVar(&scene.Queue, "queue", "", "queue of the job")
	flags.StringVar(&scene.Dependency, "dependency", "", "dependency that the job calls")
	flags.StringVar(&scene.Code, "code", "DEPENDENCY_DOWN", "failure code of attempts during the outage")
	flags.DurationVar(&scene.RetryAfter, "retry-after", 0, "Retry-After that the dependency returns during the outage; none by default")
	flags.DurationVar(&outage, "outage", time.Hour, "duration of the outage")
	flags.DurationVar(&from, "outage-start", 0, "start of the outage, after the job is enqueued")
	flags.DurationVar(&scene.Take, "attempt-duration", time.Second, "duration of an attempt")
	flags.BoolVar(&scene.Breaker, "breaker", false, "simulate the dependency's breaker")
	flags.Float64Var(&scene.Traffic, "traffic", 5, "with --breaker: calls per second by other jobs")
	flags.StringVar(&at, "at", "", "time at which the job is enqueued, such as 2026-05-04T08:55:00Z; without it, time windows are ignored")
	flags.Uint64Var(&scene.Seed, "seed", 1, "seed of the jitter: the same seed gives the same delays")
	return c
}

// parseTime parses the time that a flag gives. An empty text is the zero time.
func parseTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%s %q: give a time such as 2026-05-04T08:55:00Z", flag, text)
	}
	return t, nil
}

func printTrial(out io.Writer, trial policy.Simulation) {
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
	var f store.Filter
	var jobs int
	c := &cobra.Command{
		Use:     "whatif",
		Short:   "Show what a policy would have changed for the newest jobs of a store",
		Example: "  holdfast policy whatif --store jobs.db --file policy.yaml --jobs 5000",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if jobs < 1 || jobs > 100_000 {
				return usage(c, fmt.Errorf("--jobs %d: give 1 to 100000", jobs))
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				set, err := policyFor(ctx, c, o)
				if err != nil {
					return err
				}
				history, err := newest(ctx, o, f, jobs)
				if err != nil {
					return err
				}
				review := policy.WhatIf(set, history)
				return show(c, review, func(out io.Writer) { printReview(out, review) })
			})
		},
	}
	c.Flags().String("file", "", "policy file; without it, the policy that is applied to the store")
	c.Flags().StringVar(&f.Kind, "kind", "", "only jobs of this kind")
	c.Flags().StringVar(&f.Owner, "owner", "", "only jobs of this owner")
	c.Flags().IntVar(&jobs, "jobs", 1000, "number of jobs to examine, newest first")
	return c
}

// newest reads the histories of up to most jobs, newest first.
func newest(ctx context.Context, o ops.Jobs, f store.Filter, most int) ([]store.History, error) {
	var all []store.History
	for len(all) < most {
		f.Limit = min(200, most-len(all))
		page, cursor, err := o.Jobs(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, job := range page {
			h := store.History{Job: job}
			if job.Token > 1 || job.State != holdfast.Complete { // a job that completed at its first attempt has no failures to examine
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

func printReview(out io.Writer, review policy.WhatIfReport) {
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
