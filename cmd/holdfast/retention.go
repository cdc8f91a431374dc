package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func retentionCommand() *cobra.Command {
	c := showRetentionCommand("retention", "Show or change how long ended jobs are kept; list purged jobs")
	c.Example = `  holdfast retention --store jobs.db
  holdfast retention apply rules.json --store jobs.db
  holdfast retention apply --store jobs.db --rule name=mails,kind=mail,state=complete,for=7d --rule name=rest,for=forever
  holdfast retention tombstones --store jobs.db --kind mail`
	c.AddCommand(showRetentionCommand("show", "Show the retention rules and the numbers of purged jobs"), applyRetentionCommand(), tombstonesCommand())
	return c
}

func showRetentionCommand(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				r, err := o.Retention(ctx)
				if err != nil {
					return err
				}
				return show(c, r, func(out io.Writer) { printRetention(out, r) })
			})
		},
	}
}

func printRetention(out io.Writer, r ops.Retention) {
	if r.Applied {
		fmt.Fprintf(out, "rules applied %s, version %d; the first rule that matches a job applies, and jobs that match none are kept:\n", formatTime(r.Since), r.Version)
	} else {
		fmt.Fprintln(out, "no rules are applied: workers follow the rules in their Go code; by default these:")
	}
	rows := make([][]string, len(r.Rules))
	for n, rule := range r.Rules {
		rows[n] = []string{rule.Name, orDash(string(rule.State)), orDash(rule.Kind), orDash(rule.Owner), orDash(rule.Code), orDash(string(rule.Group)), retentionText(rule.For)}
	}
	table(out, []string{"RULE", "STATE", "KIND", "OWNER", "CODE", "GROUP", "KEPT FOR"}, rows)
	if len(r.Counts) > 0 {
		fmt.Fprintln(out, "purged so far:")
		rows = make([][]string, len(r.Counts))
		for n, count := range r.Counts {
			rows[n] = []string{count.Rule, count.Kind, string(count.State), orDash(count.Code), strconv.Itoa(count.Jobs), formatTime(count.Last)}
		}
		table(out, []string{"RULE", "KIND", "STATE", "CODE", "JOBS", "LAST"}, rows)
	}
	say := labelled(out)
	for _, e := range r.Story {
		say("history", "%s %s by %s %s", formatTime(e.At), e.Name, e.Actor, e.Reason)
	}
}

const day = 24 * time.Hour

// retentionText formats how long jobs are kept, in whole days where possible.
func retentionText(d time.Duration) string {
	switch {
	case d == store.Forever:
		return "forever"
	case d > 0 && d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}

// parseRetention parses the texts of retentionText and other durations.
func parseRetention(text string) (time.Duration, error) {
	switch text {
	case "ever", "forever", "-1":
		return store.Forever, nil
	}
	if number, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.ParseFloat(number, 64); err == nil && days >= 0 && days <= 36500 {
			return time.Duration(days * float64(day)), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a retention time: give 36h, 7d, 0s or forever", text)
	}
	return d, nil
}

func applyRetentionCommand() *cobra.Command {
	var by *ops.Actor
	var rules []string
	var reset bool
	c := &cobra.Command{
		Use: "apply [FILE]", Short: "Apply retention rules: the workers of the store use them instead of the rules in their Go code",
		Long: `Applies rules from a JSON file (- for standard input) or from --rule. The first rule that matches a job decides how long the job is kept after it has
ended; jobs that match no rule are kept. A rule has a name and "for" (36h, 7d, forever), and may have state, kind, owner, code, and group (the state of
the job's group). Before a rule deletes dead letters for the first time, workers log a warning and wait one day.`,
		Example: `  [{"name": "mails", "kind": "mail", "state": "complete", "for": "7d"},
   {"name": "dead-letters", "state": "failed", "for": "forever"}]`,
		Args: func(c *cobra.Command, args []string) error {
			if ways := len(args) + min(len(rules), 1); len(args) > 1 || reset == (ways == 1) || ways > 1 {
				return usage(c, fmt.Errorf("expected a FILE, or --rule, or --reset"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			list, err := readRules(c, args, rules)
			if err != nil {
				return err
			}
			answer := fmt.Sprintf("applied: %d rules", len(list))
			if reset {
				list, answer = nil, "reset: workers follow the rules in their Go code"
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				return printAnswer(c)(answer, o.ApplyRetention(ctx, list, *by))
			})
		},
	}
	c.Flags().StringArrayVar(&rules, "rule", nil, "rule: name=...,for=... and optionally state, kind, owner, code, group; repeatable, the first that matches applies")
	c.Flags().BoolVar(&reset, "reset", false, "remove the applied rules: workers return to the rules in their Go code")
	by = addByFlags(c)
	return c
}

// readRules returns the rules of a file or of --rule flags.
func readRules(c *cobra.Command, files, lines []string) ([]store.RetentionRule, error) {
	var forms []map[string]any
	for _, line := range lines {
		form := map[string]any{}
		for part := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(part, "=")
			form[strings.TrimSpace(name)] = value
		}
		forms = append(forms, form)
	}
	if len(files) > 0 {
		text, err := readFile(c, files[0])
		if err != nil {
			return nil, &usageError{fmt.Errorf("cannot read the rules: %w", err)}
		}
		if err := json.Unmarshal(text, &forms); err != nil {
			return nil, &usageError{fmt.Errorf("%s is not a JSON list of rules: %w; see '%s --help'", files[0], err, c.CommandPath())}
		}
	}
	rules := make([]store.RetentionRule, 0, len(forms))
	for n, form := range forms {
		rule, err := readRule(form)
		if err != nil {
			return nil, usage(c, fmt.Errorf("rule %d: %w", n+1, err))
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// maxRules is the maximum size of a file of rules, in bytes.
const maxRules = 1 << 20

func readFile(c *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(c.InOrStdin(), maxRules))
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxRules))
}

// readRule parses one rule. "for" is a text such as 7d, or a number as 'retention show --json' prints it. Unknown fields are refused, because a misspelled
// field would make the rule match more jobs than intended.
func readRule(form map[string]any) (rule store.RetentionRule, err error) {
	switch kept := form["for"].(type) {
	case string:
		if rule.For, err = parseRetention(kept); err != nil {
			return rule, err
		}
	case float64:
		rule.For = time.Duration(kept)
	default:
		return rule, fmt.Errorf(`"for" is missing: add how long to keep the jobs`)
	}
	form["for"] = rule.For
	body, err := json.Marshal(form)
	if err != nil {
		return rule, err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	return rule, decoder.Decode(&rule)
}

func tombstonesCommand() *cobra.Command {
	var f store.TombstoneFilter
	var job string
	c := &cobra.Command{
		Use: "tombstones", Short: "List the tombstones of purged jobs, last purged first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if job != "" {
				if f.Job, err = holdfast.ParseID(job); err != nil {
					return err
				}
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				tombstones, cursor, err := o.Tombstones(ctx, f)
				if err != nil {
					return err
				}
				answer := struct {
					Tombstones []store.Tombstone `json:"tombstones"`
					Cursor     string            `json:"cursor,omitempty"`
				}{tombstones, cursor}
				return show(c, answer, func(out io.Writer) { printTombstones(out, tombstones, cursor) })
			})
		},
	}
	c.Flags().StringVar(&job, "job", "", "only the tombstone of this job")
	c.Flags().StringVar(&f.Kind, "kind", "", "only tombstones of this kind")
	c.Flags().IntVar(&f.Limit, "limit", 50, "number of tombstones, at most 200")
	c.Flags().StringVar(&f.Cursor, "cursor", "", "continue after the page that printed this cursor")
	return c
}

func printTombstones(out io.Writer, tombstones []store.Tombstone, cursor string) {
	if len(tombstones) == 0 {
		fmt.Fprintln(out, "no tombstones match")
		return
	}
	rows := make([][]string, len(tombstones))
	for n, t := range tombstones {
		rows[n] = []string{t.Job.String(), t.Kind, t.Queue, orDash(t.Owner), string(t.State), orDash(t.Code), formatTime(t.FinishedAt), formatTime(t.PurgedAt), t.Rule}
	}
	table(out, []string{"JOB", "KIND", "QUEUE", "OWNER", "STATE", "CODE", "ENDED", "PURGED", "RULE"}, rows)
	if cursor != "" {
		fmt.Fprintf(out, "more: --cursor %s\n", cursor)
	}
}
