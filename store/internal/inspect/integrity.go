package inspect

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

const (
	// grace is how long a duty may take before its absence is a finding.
	grace = 2 * time.Minute
	// maxFindings is how many findings of one rule are returned.
	maxFindings = "100"
)

// CheckIntegrity runs the integrity check: it returns the rows that break a rule, at most a hundred for each rule. A healthy
// store has no findings, also while it is in use.
func (i *Inspector) CheckIntegrity(ctx context.Context) ([]store.Finding, error) {
	var all []store.Finding
	for _, name := range slices.Sorted(maps.Keys(i.statements)) {
		rule, overdue := strings.CutPrefix(name, "overdue: ")
		if !overdue {
			var is bool
			if rule, is = strings.CutPrefix(name, "audit: "); !is {
				continue
			}
		}
		findings, err := i.checkRule(ctx, rule, i.statements[name], overdue)
		if err != nil {
			return nil, err
		}
		all = append(all, findings...)
	}
	findings, err := i.chain(ctx)
	return append(all, findings...), err
}

// checkRule checks one rule.
func (i *Inspector) checkRule(ctx context.Context, rule, text string, overdue bool) ([]store.Finding, error) {
	if !strings.Contains(text, "$1") {
		return i.runCheck(ctx, rule, text, nil)
	}
	// The clock is read before the rows, so a job that became due in between looks early. Only what is still wrong by a
	// later clock is wrong.
	first, err := i.runTimedCheck(ctx, rule, text, overdue)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	again, err := i.runTimedCheck(ctx, rule, text, overdue)
	return slices.DeleteFunc(again, func(f store.Finding) bool { return !slices.Contains(first, f) }), err
}

// runTimedCheck runs the statement of a rule about time.
func (i *Inspector) runTimedCheck(ctx context.Context, rule, text string, overdue bool) ([]store.Finding, error) {
	now, err := i.q.Now(ctx)
	if err != nil {
		return nil, err
	}
	if overdue {
		now = now.Add(-grace)
	}
	return i.runCheck(ctx, rule, text, []any{now.UTC().Truncate(time.Microsecond)})
}

// runCheck runs the statement of one rule.
func (i *Inspector) runCheck(ctx context.Context, rule, text string, args []any) ([]store.Finding, error) {
	var findings []store.Finding
	text = "WITH job_rows AS (" + i.statements["audit_job_rows"] + ")\nSELECT * FROM (" + text + ") AS broken LIMIT " + maxFindings
	err := i.whole(ctx, text, args, func(r Row) error {
		finding := store.Finding{Rule: rule, Job: r.Text(1), Detail: r.Text(2)}
		if !r.Null(0) {
			finding.Job = r.ID(0).String()
		}
		findings = append(findings, finding)
		return nil
	})
	return findings, err
}
