package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/ops"
)

func analyticsCommand() *cobra.Command {
	var within time.Duration
	c := &cobra.Command{
		Use: "analytics", Short: "Show how often retries succeed, what they cost, and how dependencies recovered", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				figures, err := o.Analytics(ctx, within)
				if err != nil {
					return err
				}
				return show(c, figures, func(out io.Writer) { printAnalytics(out, figures) })
			})
		},
	}
	c.Flags().DurationVar(&within, "within", 24*time.Hour, "only jobs that were enqueued within this time")
	return c
}

func printAnalytics(out io.Writer, a ops.Analytics) {
	if len(a.Kinds) == 0 {
		fmt.Fprintf(out, "no job enqueued within %v has been attempted\n", a.Within)
	} else {
		printKinds(out, a.Kinds)
	}
	if len(a.Retries) > 0 {
		fmt.Fprintln(out, "\nretries by failure code")
		rows := make([][]string, len(a.Retries))
		for n, r := range a.Retries {
			rows[n] = []string{r.Kind, orDash(r.Code), strconv.Itoa(r.Number), strconv.Itoa(r.Failed), strconv.Itoa(r.Complete), strconv.Itoa(r.Again), strconv.Itoa(r.GaveUp), successRate(r), formatSpan(r.Wasted)}
		}
		table(out, []string{"KIND", "CODE", "ATTEMPT", "FAILED", "NEXT COMPLETE", "NEXT FAILED", "GAVE UP", "SUCCESS", "WASTED"}, rows)
	}
	if len(a.Recoveries) > 0 {
		fmt.Fprintln(out, "\nrecoveries of dependencies (BACKLOG TOOK is an estimate)")
		rows := make([][]string, len(a.Recoveries))
		for n, r := range a.Recoveries {
			rows[n] = []string{r.Dependency, formatTime(r.Opened), formatSpan(r.Away), strconv.Itoa(r.Reopened), formatTime(r.Back), formatTime(r.Closed), formatSpan(r.Drain), countText(r.Waiting), short(orDash(r.Why), 50)}
		}
		table(out, []string{"DEPENDENCY", "OPENED", "DOWN FOR", "REOPENED", "RECOVERED", "CLOSED", "BACKLOG TOOK", "WAITING", "REASON"}, rows)
	}
}

func printKinds(out io.Writer, kinds []ops.KindStats) {
	rows := make([][]string, len(kinds))
	for n, k := range kinds {
		cost := "-"
		if k.Cost > 0 {
			cost = fmt.Sprintf("%.6g (retries %.6g)", k.Cost, k.RetryCost)
		}
		rows[n] = []string{k.Kind, strconv.Itoa(k.Jobs), strconv.Itoa(k.FirstTry), strconv.Itoa(k.Later), strconv.Itoa(k.GaveUp), strconv.Itoa(k.Retries), fmt.Sprintf("%.2f", k.Amplification), formatSpan(k.Took), formatSpan(k.Wasted), cost}
	}
	table(out, []string{"KIND", "JOBS", "FIRST TRY", "BY RETRY", "GAVE UP", "RETRIES", "AMPLIFICATION", "FAILED FOR", "WASTED", "COST"}, rows)
}

func successRate(r ops.RetryEffect) string {
	if r.Complete+r.Again == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", r.Success*100)
}

// formatSpan formats a duration for a table: rounded, and "-" for none.
func formatSpan(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
