package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// An errorGroupRow is an error group in a list.
type errorGroupRow struct {
	store.ErrorGroup
	Link        string
	StatusBadge statusBadge
	New         bool
	Line        string // first line of the detail of the first failure
	Where       []string
	Spark       []int
	Dead        int
	DeadAt      string // URL of its dead letters
	Redrive     string
	Trend       store.ErrorTrend
	Parts       []part
	Outcomes    string // Parts in words, without zeros
}

// A statusBadge is a status with its word, colour and shape.
type statusBadge struct{ Word, Tone, Shape string }

// statusBadges are the badges of the statuses of error groups.
var statusBadges = map[store.Status]statusBadge{
	store.StatusOpen:         {"open", "bad", "shape-failed"},
	store.StatusRegressed:    {"regressed", "bad", "icon-redrives"},
	store.StatusAcknowledged: {"acknowledged", "running", "icon-person"},
	store.StatusIgnored:      {"ignored", "", "shape-cancelled"},
	store.StatusResolved:     {"resolved", "good", "shape-complete"},
}

// row returns the row of an error group.
func (q *request) row(g store.ErrorGroup) errorGroupRow {
	r := errorGroupRow{ErrorGroup: g, Link: q.link("/failures/" + g.Fingerprint), StatusBadge: statusBadges[g.Status], New: isNew(g, q)}
	if r.New {
		r.StatusBadge = statusBadge{"new", "bad", "shape-failed"}
	}
	r.Line, _, _ = strings.Cut(strings.TrimSpace(g.Detail), "\n")
	r.Line = truncate(r.Line, 300)
	r.Where = g.Kinds[:min(len(g.Kinds), 3)]
	r.DeadAt = q.jobs("is:dead", "fingerprint:"+g.Fingerprint)
	r.Redrive = q.link("/redrives/new?fingerprint=" + g.Fingerprint)
	return r
}

// isNew reports whether an open group was first seen within newWithin.
func isNew(g store.ErrorGroup, q *request) bool {
	return g.Status == store.StatusOpen && q.now.Sub(g.FirstSeen) < newWithin
}

// trend adds the trend and the outcomes to rows.
func (q *request) trend(rows []errorGroupRow, at span) error {
	if len(rows) == 0 {
		return nil
	}
	names := make([]string, len(rows))
	for i := range rows {
		names[i] = rows[i].Fingerprint
	}
	trends, err := q.operator.ErrorTrends(q.ctx, names, at.within, at.step)
	if err != nil {
		return err
	}
	for _, one := range trends {
		if i := slices.Index(names, one.Fingerprint); i >= 0 {
			rows[i].Trend, rows[i].Spark, rows[i].Dead, rows[i].Parts, rows[i].Outcomes = one, one.Failures, one.Dead, outcomeParts(one), outcomeWords(one)
		}
	}
	return nil
}

// bestSpan returns the shortest span if all groups are younger than an hour and the visitor chose none; otherwise at.
func (q *request) bestSpan(rows []errorGroupRow, at span) span {
	young := func(r errorGroupRow) bool { return q.now.Sub(r.FirstSeen) < time.Hour }
	if q.text("span") != "" || len(rows) == 0 || slices.ContainsFunc(rows, func(r errorGroupRow) bool { return !young(r) }) {
		return at
	}
	return errorGroupSpans[0]
}

// maxDeadCounted is where counting the dead letters of one error group stops.
const maxDeadCounted = 1000

// deadCount formats the number of dead letters of one error group.
func deadCount(n int) string {
	if n >= maxDeadCounted {
		return num(maxDeadCounted) + "+"
	}
	return num(n)
}

// Letters returns the number of dead letters in words.
func (r errorGroupRow) Letters() string {
	if r.Dead == 1 {
		return "1 dead letter"
	}
	return deadCount(r.Dead) + " dead letters"
}

// outcomeParts returns how the jobs of an error group ended.
func outcomeParts(t store.ErrorTrend) []part {
	return []part{
		{t.Recovered, "good", plural(t.Recovered, "job") + " recovered"}, {t.Live, "hold", plural(t.Live, "job") + " in progress"}, {t.Failed, "bad", plural(t.Failed, "job") + " still failed"},
	}
}

// outcomeWords returns the outcomes in words, without zeros.
func outcomeWords(t store.ErrorTrend) string {
	var words []string
	for _, one := range []struct {
		n    int
		word string
	}{{t.Recovered, "recovered"}, {t.Live, "in progress"}, {t.Failed, "failed"}} {
		if one.n > 0 {
			words = append(words, num(one.n)+" "+one.word)
		}
	}
	return strings.Join(words, ", ")
}

// newErrorGroups returns the regressed and the new error groups that failed in the last 24 hours.
func (q *request) newErrorGroups(seen snapshot) ([]errorGroupRow, error) {
	var rows []errorGroupRow
	for _, g := range slices.Concat(seen.regressed, seen.open) {
		if g.LastDay > 0 && (g.Status == store.StatusRegressed || isNew(g, q)) {
			rows = append(rows, q.row(g))
		}
	}
	slices.SortStableFunc(rows, func(a, b errorGroupRow) int { return cmp.Compare(b.LastHour, a.LastHour) })
	rows = rows[:min(len(rows), maxRows)]
	return rows, q.trend(rows, q.bestSpan(rows, errorGroupSpans[2]))
}
