//go:build chaos

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/cmd/internal/chaos"
)

// maxPrinted is how many violations are printed. The counts in the report are always complete.
const maxPrinted = 20

// chaosCommands returns the commands that only builds with the tag "chaos" have.
func chaosCommands() []*cobra.Command { return []*cobra.Command{chaosCommand()} }

// chaosCommand kills and stops real processes, breaks the database, and verifies that no acknowledged work was lost.
func chaosCommand() *cobra.Command {
	var c chaos.Config
	var quiet bool
	cmd := &cobra.Command{
		Use:   "chaos",
		Short: "Test a store: kill workers, break its database, verify that nothing was lost",
		Long: `Runs worker and producer processes on a store; kills, stops and interrupts them, and breaks
the database. Then it ends the faults, waits until every job has ended, and compares the store
with the journals that the processes wrote.

Prints one line of JSON. Exits with 1 when a job was lost, duplicated, settled by a stale worker
or started early, or when the integrity check has findings.`,
		Example: `  holdfast-chaos chaos --store sqlite --seconds 60
  holdfast-chaos chaos --store postgres --seconds 60
  holdfast-chaos chaos --store postgres://user@host/scratch --seconds 60 --workers 8`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := completeChaosConfig(cmd, &c); err != nil {
				return err
			}
			if quiet {
				c.Progress = nil
			}
			report, err := chaos.Run(cmd.Context(), c)
			if err != nil {
				return err
			}
			return printChaosReport(cmd, report, report.Clean(), report.Troubles)
		},
	}
	chaosFlags(cmd, &c)
	flags := cmd.Flags()
	flags.IntVar(&c.Seconds, "seconds", 20, "how long faults are injected, in seconds; draining follows")
	flags.IntVar(&c.Workers, "workers", 4, "number of worker processes")
	flags.BoolVar(&quiet, "json", false, "print only the line of JSON, no progress")
	cmd.AddCommand(childCommand(), chaosRedriveCommand(), chaosServersCommand(), chaosOverloadCommand())
	return cmd
}

// chaosRedriveCommand redrives dead letters while the workers that carry out the redrive are killed.
func chaosRedriveCommand() *cobra.Command {
	var c chaos.Config
	var jobs int
	cmd := &cobra.Command{
		Use:   "redrive",
		Short: "Redrive dead letters while workers are killed; verify that each was sent once",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := completeChaosConfig(cmd, &c); err != nil {
				return err
			}
			report, err := chaos.Redrive(cmd.Context(), c, jobs)
			if err != nil {
				return err
			}
			return printChaosReport(cmd, report, report.Clean(), report.Troubles)
		},
	}
	chaosFlags(cmd, &c)
	flags := cmd.Flags()
	flags.IntVar(&jobs, "jobs", 50_000, "number of dead letters")
	flags.IntVar(&c.Workers, "workers", 4, "number of worker processes")
	return cmd
}

// chaosServersCommand kills servers that workers and producers use.
func chaosServersCommand() *cobra.Command {
	var c chaos.Config
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "Kill servers that workers and producers use; verify that nothing was lost",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := completeChaosConfig(cmd, &c); err != nil {
				return err
			}
			report, err := chaos.Run(cmd.Context(), c)
			if err != nil {
				return err
			}
			return printChaosReport(cmd, report, report.Clean(), report.Troubles)
		},
	}
	chaosFlags(cmd, &c)
	flags := cmd.Flags()
	flags.IntVar(&c.Seconds, "seconds", 20, "how long faults are injected, in seconds; draining follows")
	flags.IntVar(&c.Servers, "servers", 1, "number of servers; more than one needs PostgreSQL")
	flags.IntVar(&c.Workers, "workers", 2, "number of worker processes of each type: Go engines, and HTTP workers that report outcomes")
	return cmd
}

// minGoodput is the share of its peak throughput that a server must keep under ten times that load.
const minGoodput = 0.9

// chaosOverloadCommand sends a server ten times the load of its peak throughput.
func chaosOverloadCommand() *cobra.Command {
	var c chaos.Config
	var each int
	cmd := &cobra.Command{
		Use:   "overload",
		Short: "Send a server ten times the load it can handle; verify its goodput",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := completeChaosConfig(cmd, &c); err != nil {
				return err
			}
			report, err := chaos.Overload(cmd.Context(), c, each)
			if err != nil {
				return err
			}
			if report.Ratio < minGoodput {
				report.Troubles = append(report.Troubles, fmt.Sprintf("goodput under overload is %.0f %% of the peak", 100*report.Ratio))
			}
			return printChaosReport(cmd, report, report.Clean() && report.Ratio >= minGoodput, report.Troubles)
		},
	}
	chaosFlags(cmd, &c)
	flags := cmd.Flags()
	flags.IntVar(&c.Seconds, "seconds", 60, "how long the overload lasts, in seconds")
	flags.IntVar(&each, "jobs-per-request", 3000, "jobs in each request; with fewer, a thousand waiting clients cannot generate ten times the load")
	return cmd
}

// chaosFlags adds the flags that every chaos command has.
func chaosFlags(cmd *cobra.Command, c *chaos.Config) {
	flags := cmd.Flags()
	flags.StringVar(&c.Store, "store", "sqlite", `address of the store, or "sqlite" or "postgres" for a temporary one`)
	flags.DurationVar(&c.Lease, "lease", 2*time.Second, "lease duration: jobs of a worker that stops renewing are reclaimed after this time")
	flags.Uint64Var(&c.Seed, "seed", 0, "seed of the random choices; 0 picks one and prints it")
}

// completeChaosConfig sets how a run starts its child processes, which are this program, and where it prints progress.
func completeChaosConfig(cmd *cobra.Command, c *chaos.Config) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find the path of this program, which a chaos run starts as child processes: %w", err)
	}
	c.Command, c.Progress = []string{self, "chaos", "child"}, cmd.ErrOrStderr()
	return nil
}

// childCommand is the hidden command with which a chaos run starts its child processes.
func childCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "child part",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		Run: func(cmd *cobra.Command, args []string) {
			chaos.Child(cmd.Context(), args[0], func(ctx context.Context, line []string) error {
				if code := run(ctx, line, os.Stdout, os.Stderr); code != exitOK {
					return fmt.Errorf("exited with %d", code)
				}
				return nil
			})
		},
	}
}

// printChaosReport prints the report as one line of JSON, and the first violations on standard error.
func printChaosReport(cmd *cobra.Command, report any, clean bool, violations []string) error {
	text, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("cannot encode the report as JSON: %w", err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), string(text))
	if clean {
		return nil
	}
	for i, violation := range violations {
		if i == maxPrinted {
			fmt.Fprintf(cmd.ErrOrStderr(), "... and %d more\n", len(violations)-i)
			break
		}
		fmt.Fprintln(cmd.ErrOrStderr(), violation)
	}
	return errors.New("guarantees were violated: see the lines above, and the counts in the JSON report")
}
