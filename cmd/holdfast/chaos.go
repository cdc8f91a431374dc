package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/internal/chaos"
)

// shownTroubles bounds how many broken promises are spelled out; the count is always complete.
const shownTroubles = 20

// chaosCommand puts a store through kills, stops and database faults, and shows that nothing is lost.
func chaosCommand() *cobra.Command {
	var c chaos.Config
	var quiet bool
	cmd := &cobra.Command{
		Use:   "chaos",
		Short: "kill workers and break the database under them, then show that nothing was lost",
		Long: `Runs real worker and producer processes on a store for a while, kills, stops and interrupts
them, breaks the database under them, heals, lets everything drain, and compares what is left
with what every process wrote down at the time.

Prints one line of JSON. Exits 1 when anything was lost, duplicated, stale or early, or when
the audit found something.`,
		Example: `  holdfast chaos --store sqlite --seconds 60
  holdfast chaos --store postgres --seconds 60
  holdfast chaos --store postgres://user@host/scratch --seconds 60 --workers 8`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := equip(cmd, &c); err != nil {
				return err
			}
			if quiet {
				c.Progress = nil
			}
			report, err := chaos.Run(cmd.Context(), c)
			if err != nil {
				return err
			}
			return tell(cmd, report, report.Clean(), report.Troubles)
		},
	}
	chaosFlags(cmd, &c)
	flags := cmd.Flags()
	flags.IntVar(&c.Seconds, "seconds", 20, "how long the faults last; draining comes after")
	flags.IntVar(&c.Workers, "workers", 4, "worker processes at once")
	flags.BoolVar(&quiet, "json", false, "print the line of JSON and nothing else")
	cmd.AddCommand(childCommand(), chaosRedriveCommand(), chaosServersCommand(), chaosOverloadCommand())
	return cmd
}

// chaosRedriveCommand redrives dead letters while the workers that do it are killed.
func chaosRedriveCommand() *cobra.Command {
	var c chaos.Config
	var jobs int
	cmd := &cobra.Command{
		Use:   "redrive",
		Short: "redrive dead letters while workers are killed, then show that each went once",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := equip(cmd, &c); err != nil {
				return err
			}
			report, err := chaos.Redrive(cmd.Context(), c, jobs)
			if err != nil {
				return err
			}
			return tell(cmd, report, report.Clean(), report.Troubles)
		},
	}
	chaosFlags(cmd, &c)
	flags := cmd.Flags()
	flags.IntVar(&jobs, "jobs", 50_000, "how many dead letters")
	flags.IntVar(&c.Workers, "workers", 4, "worker processes at once")
	return cmd
}

// chaosServersCommand kills servers under those who work and enqueue by way of them.
func chaosServersCommand() *cobra.Command {
	var c chaos.Config
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "kill servers under producers and workers that go by way of them, then show that nothing was lost",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := equip(cmd, &c); err != nil {
				return err
			}
			report, err := chaos.Run(cmd.Context(), c)
			if err != nil {
				return err
			}
			return tell(cmd, report, report.Clean(), report.Troubles)
		},
	}
	chaosFlags(cmd, &c)
	flags := cmd.Flags()
	flags.IntVar(&c.Seconds, "seconds", 20, "how long the faults last; draining comes after")
	flags.IntVar(&c.Servers, "servers", 1, "servers at once; more than one needs PostgreSQL")
	flags.IntVar(&c.Workers, "workers", 2, "worker processes of each sort at once: engines, and workers that report outcomes")
	return cmd
}

// leastGoodput is the share of its peak that a server must do when it is offered ten times of it.
const leastGoodput = 0.9

// chaosOverloadCommand offers a server ten times of what it can take.
func chaosOverloadCommand() *cobra.Command {
	var c chaos.Config
	var each int
	cmd := &cobra.Command{
		Use:   "overload",
		Short: "offer a server ten times of what it can take, then show that it went on doing what it can",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := equip(cmd, &c); err != nil {
				return err
			}
			report, err := chaos.Overload(cmd.Context(), c, each)
			if err != nil {
				return err
			}
			if report.Ratio < leastGoodput {
				report.Troubles = append(report.Troubles, fmt.Sprintf("under overload it did %.0f %% of what it can do", 100*report.Ratio))
			}
			return tell(cmd, report, report.Clean() && report.Ratio >= leastGoodput, report.Troubles)
		},
	}
	chaosFlags(cmd, &c)
	flags := cmd.Flags()
	flags.IntVar(&c.Seconds, "seconds", 60, "how long it is overloaded")
	flags.IntVar(&each, "each", 3000, "jobs that one request brings; with fewer, a thousand clients that are kept waiting do not offer ten times as much")
	return cmd
}

// chaosFlags are those that every run has.
func chaosFlags(cmd *cobra.Command, c *chaos.Config) {
	flags := cmd.Flags()
	flags.StringVar(&c.Store, "store", "sqlite", `where the jobs are kept: an address, or "sqlite" or "postgres" for one that is thrown away`)
	flags.DurationVar(&c.Lease, "lease", 2*time.Second, "how long a silent worker is believed in")
	flags.Uint64Var(&c.Seed, "seed", 0, "of the run's choices; 0 draws one and says which")
}

// equip says how a run starts this program again, and where it tells how it goes.
func equip(cmd *cobra.Command, c *chaos.Config) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("this program does not know where it is, so it cannot start itself again: %w", err)
	}
	c.Command, c.Progress = []string{self, "chaos", "child"}, cmd.ErrOrStderr()
	return nil
}

// childCommand is what a run starts this program with. Nobody else has a use for it.
func childCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "child part",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		Run: func(cmd *cobra.Command, args []string) {
			chaos.Child(cmd.Context(), args[0], func(ctx context.Context, line []string) error {
				if code := run(ctx, line, os.Stdout, os.Stderr); code != exitOK {
					return fmt.Errorf("it ended with %d", code)
				}
				return nil
			})
		},
	}
}

func tell(cmd *cobra.Command, report any, clean bool, troubles []string) error {
	text, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("the report cannot be written as JSON: %w", err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), string(text))
	if clean {
		return nil
	}
	for i, trouble := range troubles {
		if i == shownTroubles {
			fmt.Fprintf(cmd.ErrOrStderr(), "... and %d more\n", len(troubles)-i)
			break
		}
		fmt.Fprintln(cmd.ErrOrStderr(), trouble)
	}
	return errors.New("promises were broken: the lines above say which, and the line of JSON how many")
}
