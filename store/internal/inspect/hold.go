package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// mostBehind is the number up to which Behind counts.
const mostBehind = 10_000

// Holds lists the holds in force, ordered by what they hold and by source. A rate limit shows its level of this moment.
func (i *Inspector) Holds(ctx context.Context) ([]store.Hold, error) {
	now, err := i.now(ctx)
	if err != nil {
		return nil, err
	}
	var holds []store.Hold
	err = i.q.Query(ctx, i.statements["inspect_holds"], []any{now}, func(r Row) error {
		holds = append(holds, readHold(r, now))
		return nil
	})
	// Sorted here and not in the statement: databases disagree on the order of texts.
	slices.SortFunc(holds, func(a, b store.Hold) int {
		scopeA, nameA := a.Scope()
		scopeB, nameB := b.Scope()
		return cmp.Or(strings.Compare(scopeA, scopeB), strings.Compare(nameA, nameB), strings.Compare(a.Source, b.Source))
	})
	return holds, err
}

// mostHeldLines is the most that HeldLines lists.
const mostHeldLines = 1000

// HeldLines lists up to limit lines that a dead letter holds, the oldest job first.
func (i *Inspector) HeldLines(ctx context.Context, limit int) (lines []store.HeldLine, err error) {
	if limit < 1 || limit > mostHeldLines {
		return nil, invalid("%d held lines: give a limit between 1 and %d", limit, mostHeldLines)
	}
	err = i.q.Query(ctx, i.statements["inspect_held_lines"], []any{limit, holdfast.ID{}}, func(r Row) error {
		lines = append(lines, store.HeldLine{
			Owner: r.Text(0), Order: r.Text(1), Job: r.ID(2), Kind: r.Text(3), Queue: r.Text(4), Code: r.Text(5), Since: r.Time(6), Waiting: r.Int(7),
		})
		return nil
	})
	return lines, err
}

// readHold reads one row of the statement inspect_holds.
func readHold(r Row, now time.Time) store.Hold {
	hold := store.Hold{}.WithScope(r.Text(0), r.Text(1))
	hold.Source, hold.Retries, hold.AtMost = r.Text(2), r.Bool(3), r.Int(4)
	hold.Since, hold.Until, hold.Expected, hold.Actor, hold.Reason = r.Time(9), r.Time(10), r.Time(11), r.Text(12), r.Text(13)
	if !r.Null(5) {
		hold.Rate = &store.Rate{PerSecond: r.Float(5), Burst: r.Float(6)}
		filled := max(0, now.Sub(cmp.Or(r.Time(8), hold.Since)).Seconds()) * hold.Rate.PerSecond
		hold.Rate.Level = min(hold.Rate.Burst, r.Float(7)+filled)
	}
	return hold
}

// Records reads the records of a namespace, ordered by name.
func (i *Inspector) Records(ctx context.Context, namespace string) ([]store.Record, error) {
	now, err := i.now(ctx)
	if err != nil {
		return nil, err
	}
	var records []store.Record
	err = i.q.Query(ctx, i.statements["inspect_records"], []any{namespace}, func(r Row) error {
		records = append(records, store.Record{
			Namespace: namespace, Name: r.Text(0), Version: r.Int(1), Body: json.RawMessage(r.Text(2)), KeptAt: r.Time(3), AsOf: now,
		})
		return nil
	})
	slices.SortFunc(records, func(a, b store.Record) int { return strings.Compare(a.Name, b.Name) })
	return records, err
}

// CountHeld counts the due jobs that a hold keeps back, up to ten thousand: those in the lanes that it covers, or those
// that were set aside behind its tag. The hold need not be in force.
func (i *Inspector) CountHeld(ctx context.Context, h store.Hold) (int, error) {
	scope, name := h.Scope()
	if name == "" || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return 0, invalid("a hold on %.40q: name a queue, kind, owner, dependency or tag", name)
	}
	from, args := "holdfast_later l WHERE l.hold = $1", []any{name}
	if scope != "tag" {
		from, args = i.lines(h)
	}
	behind := 0
	args = append(args, mostBehind)
	err := i.q.Query(ctx, fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s LIMIT $%d) AS behind", from, len(args)), args, func(r Row) error {
		behind = r.Int(0)
		return nil
	})
	return behind, err
}

// lines selects the ready jobs in the lanes that a hold covers; only retries, if the hold applies only to these.
func (i *Inspector) lines(h store.Hold) (from string, args []any) {
	scope, name := h.Scope()
	column := "n." + scope
	if scope == "dependency" {
		column = dependency("n")
	}
	covered, args := column+" = $1", []any{name}
	if begin, pattern := strings.CutSuffix(name, "*"); pattern {
		covered = column + " <> '' AND substr(" + column + ", 1, $2) = $1"
		args = []any{begin, utf8.RuneCountInString(begin)}
	}
	if i.dialect == Postgres { // line by line: with a join the planner may decide to read all of ready
		line := "n.id, -n.id"
		if h.Retries {
			line = "-n.id"
		}
		return fmt.Sprintf("holdfast_lane n CROSS JOIN LATERAL unnest(ARRAY[%s]) AS v (line) CROSS JOIN LATERAL (SELECT 1 FROM holdfast_ready w WHERE w.lane = v.line ORDER BY w.priority, w.job LIMIT %d) AS r WHERE %s",
			line, mostBehind, covered), args
	}
	line := "r.lane IN (n.id, -n.id)"
	if h.Retries {
		line = "r.lane = -n.id"
	}
	return "holdfast_lane n CROSS JOIN holdfast_ready r ON " + line + " WHERE " + covered, args
}
