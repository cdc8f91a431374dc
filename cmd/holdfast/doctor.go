package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

func doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Run the integrity check: verify every invariant and name the rows that break one",
		Long:  "Checks every invariant of the store. Exits with 0 when all hold, and with 1 when rows break one: they are listed.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withTarget(c, func(ctx context.Context, t *target) error {
				report, err := t.operator.CheckIntegrity(ctx)
				if err != nil {
					return err
				}
				if warning := exposureWarning(t.address); warning != "" {
					fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", printable(warning))
				}
				if err := show(c, report, func(out io.Writer) { printReport(out, report) }); err != nil {
					return err
				}
				if !report.Healthy {
					return errFindings
				}
				return nil
			})
		},
	}
}

func printReport(out io.Writer, report ops.IntegrityReport) {
	total := 0
	for _, state := range []holdfast.State{holdfast.Queued, holdfast.Processing, holdfast.Complete, holdfast.Failed, holdfast.Cancelled} {
		total += report.Jobs[state]
		fmt.Fprintf(out, "%-11s %d\n", state, report.Jobs[state])
	}
	if report.Healthy {
		fmt.Fprintf(out, "healthy: no invariant is broken in %d jobs\n", total)
		return
	}
	rows := make([][]string, len(report.Findings))
	for n, finding := range report.Findings {
		rows[n] = []string{finding.Job, finding.Rule, finding.Detail}
	}
	table(out, []string{"ROW", "BROKEN INVARIANT", "DETAIL"}, rows)
	fmt.Fprintf(out, "%d findings\n", len(report.Findings))
}
