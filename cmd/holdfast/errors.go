package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func errorsCommand() *cobra.Command {
	c := errorsListCommand("errors", "List error groups: failures grouped by cause; acknowledge, ignore or resolve one")
	ignore, ignoring := triageCommand("ignore", "Ignore an error group for a time or for a number of failures", store.StatusIgnored)
	ignore.Flags().DurationVar(&ignoring.For, "for", 0, "how long to ignore it; without --for and --count, forever")
	ignore.Flags().IntVar(&ignoring.Count, "count", 0, "number of further failures to ignore")
	resolve, resolving := triageCommand("resolve", "Mark an error group as resolved; if it occurs again it is regressed", store.StatusResolved)
	resolve.Flags().StringVar(&resolving.Version, "version", "", "version that has the fix: failures in other versions do not reopen the group")
	acknowledge, _ := triageCommand("ack", "Acknowledge an error group: it is being worked on", store.StatusAcknowledged)
	reopen, _ := triageCommand("reopen", "Open an error group again", store.StatusOpen)
	remark, _ := triageCommand("note", "Add a note to an error group's history (--reason is the note)", "")
	c.AddCommand(errorsListCommand("list", "List error groups, last seen first"), errorCommand(), acknowledge, ignore, resolve, reopen, remark)
	return c
}

func errorsListCommand(name, short string) *cobra.Command {
	var f store.ErrorFilter
	var status string
	c := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.Status = store.Status(status)
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				groups, cursor, err := o.ErrorGroups(ctx, f)
				if err != nil {
					return err
				}
				answer := struct {
					Groups []store.ErrorGroup `json:"groups"`
					Cursor string             `json:"cursor,omitempty"`
				}{groups, cursor}
				return show(c, answer, func(out io.Writer) { printErrorGroups(out, groups, cursor) })
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&status, "status", "", "only with this status: open, acknowledged, ignored, resolved or regressed")
	flags.StringVar(&f.Code, "code", "", "only with this code")
	flags.StringVar(&f.Kind, "kind", "", "only with failures of this kind")
	flags.IntVar(&f.Limit, "limit", 50, "number of error groups, at most 200")
	flags.StringVar(&f.Cursor, "cursor", "", "continue after the page that printed this cursor")
	return c
}

func printErrorGroups(out io.Writer, groups []store.ErrorGroup, cursor string) {
	if len(groups) == 0 {
		fmt.Fprintln(out, "no error groups match")
		return
	}
	rows := make([][]string, len(groups))
	for n, g := range groups {
		rows[n] = []string{g.Fingerprint, string(g.Status), g.Code, strconv.Itoa(g.LastHour), strconv.Itoa(g.LastDay), strconv.Itoa(g.Failures), formatTime(g.LastSeen), strings.Join(g.Kinds, " "), short(g.Message, 60), short(orDash(failure.Summary(g.Detail)), 80)}
	}
	table(out, []string{"FINGERPRINT", "STATUS", "CODE", "HOUR", "DAY", "TOTAL", "LAST SEEN", "KINDS", "MESSAGE", "ERROR"}, rows)
	if cursor != "" {
		fmt.Fprintf(out, "more: --cursor %s\n", cursor)
	}
}

// short truncates a text for a table.
func short(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

func errorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show GROUP", Short: "Show one error group: where and when it occurs, what varies, its history", Args: exactly("group"),
		RunE: func(c *cobra.Command, args []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				which, err := fingerprint(ctx, o, args[0])
				if err != nil {
					return err
				}
				group, err := o.ErrorGroup(ctx, which)
				if err != nil {
					return err
				}
				return show(c, group, func(out io.Writer) { printErrorGroup(out, group) })
			})
		},
	}
}

func printErrorGroup(out io.Writer, t ops.ErrorGroupDetail) {
	g := t.Group
	say := func(what, format string, args ...any) {
		fmt.Fprintf(out, "%-14s %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
	say("group", "%s, %s", g.Fingerprint, g.Status)
	say("code", "%s (%s): %s", g.Code, g.Category, g.Message)
	if text := failure.Summary(g.Detail); text != "" {
		say("error", "%s", text)
	}
	if t.Code.Remedy != "" {
		say("remedy", "%s", t.Code.Remedy)
	}
	say("failures", "%d in total; %d in the last hour, %d in 3 hours, %d in a day, %d in a week", g.Failures, g.LastHour, g.Last3Hours, g.LastDay, g.LastWeek)
	say("seen", "first %s, last %s", formatTime(g.FirstSeen), formatTime(g.LastSeen))
	say("where", "kinds %s; queues %s; dependencies %s; versions %s", list(g.Kinds), list(g.Queues), list(g.Dependencies), list(g.Versions))
	for _, name := range slices.Sorted(maps.Keys(t.Same)) {
		say("same", "%s: %s", name, t.Same[name])
	}
	for _, v := range t.Varies {
		var values []string
		for _, value := range v.Values {
			values = append(values, fmt.Sprintf("%s (%d)", orDash(value.Value), value.Jobs))
		}
		say("varies", "%s: %d values: %s", v.Name, v.Distinct, strings.Join(values, ", "))
	}
	for _, e := range t.Story {
		say("history", "%s %s by %s %s", formatTime(e.At), e.Name, e.Actor, e.Reason)
	}
	for _, job := range distinct(t.Jobs) {
		say("sample", "job %s: %s", job.ID, failure.Summary(job.LastFailure.Detail))
	}
	if len(t.Jobs) > 0 {
		printJobs(out, t.Jobs, "")
	}
	if t.Dead > 0 {
		fmt.Fprintf(out, "%d dead letters; to redrive them: holdfast redrive start --fingerprint %s\n", t.Dead, printable(g.Fingerprint))
	}
}

// maxSamples is how many error texts of a group are shown.
const maxSamples = 5

// distinct picks jobs whose last failures have different texts.
func distinct(jobs []holdfast.Job) (some []holdfast.Job) {
	seen := map[string]bool{}
	for _, job := range jobs {
		if job.LastFailure == nil || len(some) == maxSamples {
			continue
		}
		if text := failure.Summary(job.LastFailure.Detail); text != "" && !seen[text] {
			seen[text] = true
			some = append(some, job)
		}
	}
	return some
}

func list(names []string) string { return orDash(strings.Join(names, ", ")) }

// triageCommand makes a command that sets the status of an error group or adds a note to it.
func triageCommand(name, short string, status store.Status) (*cobra.Command, *store.Triage) {
	t := &store.Triage{Status: status}
	c := &cobra.Command{
		Use: name + " GROUP", Short: short, Args: exactly("group"),
		RunE: func(c *cobra.Command, args []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) (err error) {
				if t.Fingerprint, err = fingerprint(ctx, o, args[0]); err == nil {
					err = o.Triage(ctx, *t)
				}
				if err == nil {
					fmt.Fprintln(c.OutOrStdout(), cmp.Or(string(status), "noted"))
				}
				return err
			})
		},
	}
	addActorFlags(c, &t.Actor, &t.Reason)
	return c, t
}
