package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A troubleRow is an error group as lists show it.
type troubleRow struct {
	holdfast.ErrorGroup
	Link    string
	Look    statusLook
	New     bool
	Line    string // the first line of what the first failure said in detail
	Where   []string
	Spark   []int
	Dead    int
	DeadAt  string // address of its dead letters
	Redrive string
	Trend   holdfast.ErrorTrend
	Parts   []part
	Fate    string // the same in words, without what is none
}

// A statusLook is how a status is shown: a word, a shape and a colour.
type statusLook struct{ Word, Tone, Shape string }

// statusLooks are how the statuses of error groups look.
var statusLooks = map[holdfast.Status]statusLook{
	holdfast.Open:         {"open", "bad", "shape-failed"},
	holdfast.Regressed:    {"regressed", "bad", "icon-redrives"},
	holdfast.Acknowledged: {"acknowledged", "running", "icon-person"},
	holdfast.Ignored:      {"ignored", "", "shape-cancelled"},
	holdfast.Resolved:     {"resolved", "good", "shape-complete"},
}

// row makes a row of an error group.
func (q *ask) row(g holdfast.ErrorGroup) troubleRow {
	r := troubleRow{ErrorGroup: g, Link: q.link("/failures/" + g.Fingerprint), Look: statusLooks[g.Status], New: isNew(g, q)}
	if r.New {
		r.Look = statusLook{"new", "bad", "shape-failed"}
	}
	r.Line, _, _ = strings.Cut(strings.TrimSpace(g.Detail), "\n")
	r.Line = cut(r.Line, 300)
	r.Where = g.Kinds[:min(len(g.Kinds), 3)]
	r.DeadAt = q.jobs("is:dead", "fingerprint:"+g.Fingerprint)
	r.Redrive = q.link("/redrives/new?fingerprint=" + g.Fingerprint)
	return r
}

// isNew reports whether nobody can have seen the group for long.
func isNew(g holdfast.ErrorGroup, q *ask) bool {
	return g.Status == holdfast.Open && q.now.Sub(g.FirstSeen) < newTroubles
}

// trend adds to rows how they come and go.
func (q *ask) trend(rows []troubleRow, at span) error {
	if len(rows) == 0 {
		return nil
	}
	names := make([]string, len(rows))
	for i := range rows {
		names[i] = rows[i].Fingerprint
	}
	trends, err := q.desk.ErrorTrends(q.ctx, names, at.within, at.step)
	if err != nil {
		return err
	}
	for _, one := range trends {
		if i := slices.Index(names, one.Fingerprint); i >= 0 {
			rows[i].Trend, rows[i].Spark, rows[i].Dead, rows[i].Parts, rows[i].Fate = one, one.Failures, one.Dead, fates(one), fateWords(one)
		}
	}
	return nil
}

// closely is the span in which rows are seen best: what began within the last hour is shown in steps of five minutes, unless a span was chosen.
func (q *ask) closely(rows []troubleRow, at span) span {
	young := func(r troubleRow) bool { return q.now.Sub(r.FirstSeen) < time.Hour }
	if q.text("span") != "" || len(rows) == 0 || slices.ContainsFunc(rows, func(r troubleRow) bool { return !young(r) }) {
		return at
	}
	return troubleSpans[0]
}

// mostLettered is where dead letters of one error group stop being counted: there are that many, or more.
const mostLettered = 1000

// lettered is a count of dead letters of one error group.
func lettered(n int) string {
	if n >= mostLettered {
		return num(mostLettered) + "+"
	}
	return num(n)
}

// Letters are the dead letters of the row, in words.
func (r troubleRow) Letters() string {
	if r.Dead == 1 {
		return "1 dead letter"
	}
	return lettered(r.Dead) + " dead letters"
}

// fates are what became of the jobs that met an error group.
func fates(t holdfast.ErrorTrend) []part {
	return []part{
		{t.Recovered, "good", plural(t.Recovered, "job") + " recovered"}, {t.Live, "hold", plural(t.Live, "job") + " under way"}, {t.Failed, "bad", plural(t.Failed, "job") + " still failed"},
	}
}

// fateWords say what became of them, without what is none.
func fateWords(t holdfast.ErrorTrend) string {
	var words []string
	for _, one := range []struct {
		n    int
		word string
	}{{t.Recovered, "recovered"}, {t.Live, "under way"}, {t.Failed, "failed"}} {
		if one.n > 0 {
			words = append(words, num(one.n)+" "+one.word)
		}
	}
	return strings.Join(words, ", ")
}

// newTroubles are the error groups that came back or are new, and failed within a day.
func (q *ask) newTroubles(seen glance) ([]troubleRow, error) {
	var rows []troubleRow
	for _, g := range slices.Concat(seen.regressed, seen.open) {
		if g.LastDay > 0 && (g.Status == holdfast.Regressed || isNew(g, q)) {
			rows = append(rows, q.row(g))
		}
	}
	slices.SortStableFunc(rows, func(a, b troubleRow) int { return cmp.Compare(b.LastHour, a.LastHour) })
	rows = rows[:min(len(rows), mostRows)]
	return rows, q.trend(rows, q.closely(rows, troubleSpans[2]))
}
