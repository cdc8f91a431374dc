package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func workersCommand() *cobra.Command {
	return &cobra.Command{
		Use: "workers", Short: "List live workers with their queues and kinds", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				workers, err := o.Workers(ctx)
				if err != nil {
					return err
				}
				return show(c, workers, func(out io.Writer) { printWorkers(out, workers) })
			})
		},
	}
}

func printWorkers(out io.Writer, workers []store.WorkerInfo) {
	if len(workers) == 0 {
		fmt.Fprintln(out, "no live workers")
		return
	}
	rows := make([][]string, len(workers))
	for n, w := range workers {
		rows[n] = []string{w.Worker, strconv.Itoa(w.Slots), orDash(strings.Join(w.Queues, " ")), short(orDash(strings.Join(w.Kinds, " ")), 60), orDash(w.Version), formatTime(w.StartedAt), formatTime(w.SeenAt)}
	}
	table(out, []string{"WORKER", "SLOTS", "QUEUES", "KINDS", "VERSION", "STARTED", "SEEN"}, rows)
}

func queuesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "queues", Aliases: []string{"stats"}, Short: "Show the number of jobs in each queue, by state", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				stats, err := o.Stats(ctx)
				if err != nil {
					return err
				}
				return show(c, stats, func(out io.Writer) { printQueues(out, stats) })
			})
		},
	}
}

func printQueues(out io.Writer, s ops.Stats) {
	rows := make([][]string, len(s.Queues))
	for n, q := range s.Queues {
		held := "-"
		if q.Held {
			held = "paused"
		}
		number := func(name string, jobs int) string {
			if slices.Contains(q.AtLeast, name) {
				return strconv.Itoa(jobs) + "+"
			}
			return strconv.Itoa(jobs)
		}
		rows[n] = []string{q.Queue, held, number("ready", q.Ready), number("later", q.Later), number("processing", q.Processing), number("dead", q.Dead), formatTime(q.Oldest)}
	}
	table(out, []string{"QUEUE", "HELD", "READY", "LATER", "PROCESSING", "DEAD LETTERS", "OLDEST READY"}, rows)
	fmt.Fprintf(out, "%d workers with %d slots\n", s.Workers, s.Slots)
}

func stuckCommand() *cobra.Command {
	var longerThan time.Duration
	c := &cobra.Command{
		Use: "stuck", Short: "List jobs whose lease has expired, or that run for too long", Args: cobra.NoArgs,
		Long: `Lists processing jobs whose lease has expired, or that have been running for longer than --longer-than. While a worker or a server is alive, jobs with
expired leases are reclaimed automatically within seconds; 'holdfast stuck reclaim' does so now. If a worker hangs but still renews its leases, use
'holdfast retry JOB --stuck-after 10m': it takes the job from that worker.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				jobs, err := stuckJobs(ctx, o, longerThan)
				if err != nil {
					return err
				}
				answer := struct {
					Jobs []holdfast.Job `json:"jobs"`
				}{jobs}
				return show(c, answer, func(out io.Writer) { printStuck(out, jobs) })
			})
		},
	}
	c.Flags().DurationVar(&longerThan, "longer-than", 0, "also list jobs that have been running for longer than this")
	c.AddCommand(reclaimStuckCommand())
	return c
}

// maxStuckScan is how many processing jobs are examined.
const maxStuckScan = 10_000

func stuckJobs(ctx context.Context, o ops.Jobs, longerThan time.Duration) (stuck []holdfast.Job, err error) {
	f := store.Filter{State: holdfast.Processing, Limit: 200}
	for seen := 0; seen < maxStuckScan; {
		page, cursor, err := o.Jobs(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, job := range page {
			if job.LeaseUntil.Before(job.AsOf) || longerThan > 0 && !job.StartedAt.IsZero() && job.AsOf.Sub(job.StartedAt) > longerThan {
				stuck = append(stuck, job)
			}
		}
		if seen += len(page); cursor == "" {
			break
		}
		f.Cursor = cursor
	}
	return stuck, nil
}

func printStuck(out io.Writer, jobs []holdfast.Job) {
	if len(jobs) == 0 {
		fmt.Fprintln(out, "no stuck jobs")
		return
	}
	rows := make([][]string, len(jobs))
	for n, job := range jobs {
		rows[n] = []string{job.ID.String(), job.Kind, job.Queue, orDash(job.Worker), formatTime(job.StartedAt), formatTime(job.LeaseUntil)}
	}
	table(out, []string{"JOB", "KIND", "QUEUE", "WORKER", "STARTED", "LEASE UNTIL"}, rows)
}

func reclaimStuckCommand() *cobra.Command {
	var by *ops.Actor
	c := &cobra.Command{
		Use: "reclaim", Aliases: []string{"process"}, Short: "Reclaim jobs with expired leases now", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				return printAnswer(c)("requested: workers and servers reclaim expired leases now", o.RunDuty(ctx, "reclaim", *by))
			})
		},
	}
	by = addByFlags(c)
	return c
}
