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
)

func retentionCommand() *cobra.Command {
	c := showRetentionCommand("retention", "Show and change how long ended jobs are kept, and what was purged")
	c.Example = `  holdfast retention --store jobs.db
  holdfast retention apply rules.json --store jobs.db
  holdfast retention apply --store jobs.db --rule name=mails,kind=mail,state=complete,for=7d --rule name=rest,for=forever
  holdfast retention tombstones --store jobs.db --kind mail`
	c.AddCommand(showRetentionCommand("show", "Show the rules in force and what they have purged"), applyRetentionCommand(), tombstonesCommand())
	return c
}

func showRetentionCommand(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
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
		fmt.Fprintf(out, "rules applied %s, version %d; the first that matches a job decides, and what none matches is kept:\n", moment(r.Since), r.Version)
	} else {
		fmt.Fprintln(out, "no rules were applied: workers follow those in their code; unless it says otherwise these:")
	}
	rows := make([][]string, len(r.Rules))
	for n, rule := range r.Rules {
		rows[n] = []string{rule.Name, orDash(string(rule.State)), orDash(rule.Kind), orDash(rule.Owner), orDash(rule.Code), orDash(string(rule.Group)), keeps(rule.For)}
	}
	table(out, []string{"RULE", "STATE", "KIND", "OWNER", "CODE", "GROUP", "KEPT FOR"}, rows)
	if len(r.Counts) > 0 {
		fmt.Fprintln(out, "purged so far:")
		rows = make([][]string, len(r.Counts))
		for n, count := range r.Counts {
			rows[n] = []string{count.Rule, count.Kind, string(count.State), orDash(count.Code), strconv.Itoa(count.Jobs), moment(count.Last)}
		}
		table(out, []string{"RULE", "KIND", "STATE", "CODE", "JOBS", "LAST"}, rows)
	}
	say := sayer(out)
	for _, e := range r.Story {
		say("said", "%s %s by %s %s", moment(e.At), e.Name, e.Actor, e.Reason)
	}
}

const day = 24 * time.Hour

// keeps says how long, in days where that is even.
func keeps(d time.Duration) string {
	switch {
	case d == holdfast.Forever:
		return "ever"
	case d > 0 && d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}

// parseKeeps reads what keeps says, and what people say instead.
func parseKeeps(text string) (time.Duration, error) {
	switch text {
	case "ever", "forever", "-1":
		return holdfast.Forever, nil
	}
	if number, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.ParseFloat(number, 64); err == nil && days >= 0 && days <= 36500 {
			return time.Duration(days * float64(day)), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is no time to keep something: write 36h, 7d, 0s or forever", text)
	}
	return d, nil
}

func applyRetentionCommand() *cobra.Command {
	var by *ops.By
	var rules []string
	var reset bool
	c := &cobra.Command{
		Use: "apply [FILE]", Short: "Have the workers of a store keep ended jobs by these rules instead of their own",
		Long: `Applies rules from a JSON file (- for standard input) or from --rule. The first rule that matches a job decides how long it is kept after its
end; what none matches is kept. Each has a name and "for" (36h, 7d, forever), and may say state, kind, owner, code, and group (the outcome of its group).
Before a rule deletes dead letters for the first time workers warn, and wait a day.`,
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
				list, answer = nil, "reset: workers follow the rules in their code"
			}
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				return answered(c)(answer, o.ApplyRetention(ctx, list, *by))
			})
		},
	}
	c.Flags().StringArrayVar(&rules, "rule", nil, "a rule: name=...,for=... and state, kind, owner, code, group; may be repeated, the first that matches decides")
	c.Flags().BoolVar(&reset, "reset", false, "go back to the rules in the workers' code")
	by = byWhom(c)
	return c
}

// readRules reads rules as they stand in a file or on the command line.
func readRules(c *cobra.Command, files, lines []string) ([]holdfast.Retain, error) {
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
			return nil, &usageError{fmt.Errorf("the rules cannot be read: %w", err)}
		}
		if err := json.Unmarshal(text, &forms); err != nil {
			return nil, &usageError{fmt.Errorf("%s is no JSON list of rules: %w; see '%s --help'", files[0], err, c.CommandPath())}
		}
	}
	rules := make([]holdfast.Retain, 0, len(forms))
	for n, form := range forms {
		rule, err := readRule(form)
		if err != nil {
			return nil, usage(c, fmt.Errorf("rule %d: %w", n+1, err))
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// maxRules is how long a file of rules may be.
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

// readRule reads one rule. A time is read as people write it, or as 'retention show --json' prints it. What it does not know is refused:
// a misspelled field would make the rule match more than it should.
func readRule(form map[string]any) (rule holdfast.Retain, err error) {
	switch kept := form["for"].(type) {
	case string:
		if rule.For, err = parseKeeps(kept); err != nil {
			return rule, err
		}
	case float64:
		rule.For = time.Duration(kept)
	default:
		return rule, fmt.Errorf(`it does not say for how long: add "for"`)
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
	var f holdfast.TombstoneFilter
	var job string
	c := &cobra.Command{
		Use: "tombstones", Short: "List what remains of purged jobs, the last purged first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if job != "" {
				if f.Job, err = holdfast.ParseID(job); err != nil {
					return err
				}
			}
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				stones, cursor, err := o.Tombstones(ctx, f)
				if err != nil {
					return err
				}
				answer := struct {
					Tombstones []holdfast.Tombstone `json:"tombstones"`
					Cursor     string               `json:"cursor,omitempty"`
				}{stones, cursor}
				return show(c, answer, func(out io.Writer) { printTombstones(out, stones, cursor) })
			})
		},
	}
	c.Flags().StringVar(&job, "job", "", "only of this job")
	c.Flags().StringVar(&f.Kind, "kind", "", "only of this kind")
	c.Flags().IntVar(&f.Limit, "limit", 50, "how many, at most 200")
	c.Flags().StringVar(&f.Cursor, "cursor", "", "go on after the page that gave this cursor")
	return c
}

func printTombstones(out io.Writer, stones []holdfast.Tombstone, cursor string) {
	if len(stones) == 0 {
		fmt.Fprintln(out, "no tombstones match")
		return
	}
	rows := make([][]string, len(stones))
	for n, t := range stones {
		rows[n] = []string{t.Job.String(), t.Kind, t.Queue, orDash(t.Owner), string(t.State), orDash(t.Code), moment(t.FinishedAt), moment(t.PurgedAt), t.Rule}
	}
	table(out, []string{"JOB", "KIND", "QUEUE", "OWNER", "STATE", "CODE", "ENDED", "PURGED", "RULE"}, rows)
	if cursor != "" {
		fmt.Fprintf(out, "more: --cursor %s\n", cursor)
	}
}
