package console

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// mountAnalytics mounts whether it helps to try again, and what that costs.
func (c *Console) mountAnalytics() {
	memo := &analyticsMemo{desk: c.cfg.Desk, known: map[time.Duration]*analyticsAnswer{}}
	c.see("/analytics", func(q *ask) (page, error) { return analyticsScreen(q, memo) })
}

// analyticsSpans are how far back to look.
var analyticsSpans = []span{{Name: "1h", within: time.Hour}, {Name: "24h", within: 24 * time.Hour}, {Name: "7d", within: 7 * 24 * time.Hour}, {Name: "30d", within: 30 * 24 * time.Hour}}

// An analyticsPage says whether it helps to try again, and what it costs.
type analyticsPage struct {
	Spans   []choice
	Long    string
	Waits   bool // it is still being added up
	Since   time.Time
	Asof    time.Time
	Took    time.Duration
	Problem string

	Fresh      bool // no attempt was made
	Tiles      []tile
	Pillars    []pillar // success by attempt
	Sum        string   // the same in a sentence
	Kinds      []analyticsKind
	Codes      []analyticsCode
	Retries    []analyticsRetry
	More       int // retries that are not shown
	Costs      bool
	Recoveries []ops.Recovery
}

// An analyticsKind is a kind with its bars.
type analyticsKind struct {
	ops.KindFigures
	Parts                []part
	Jobs, GaveUp, Policy string // addresses
	FirstShare           float64
}

// An analyticsCode is what came of trying again after one code, whatever the kind.
type analyticsCode struct {
	Code                            string
	Failed, Complete, Again, GaveUp int
	Success                         float64
	Wasted                          time.Duration
	Bar                             template.HTML
	Words                           string
}

// An analyticsRetry is the same for one kind and the number of an attempt.
type analyticsRetry struct {
	ops.Retried
	Tried int
}

func analyticsScreen(q *ask, memo *analyticsMemo) (page, error) {
	name := q.text("within")
	if name == "" {
		name = "24h"
	}
	at := slices.IndexFunc(analyticsSpans, func(s span) bool { return s.Name == name })
	if at < 0 {
		return page{}, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf("within %.20q: use 1h, 24h, 7d or 30d", name)}
	}
	chosen := analyticsSpans[at]
	shown := analyticsPage{Long: chosen.long()}
	for _, one := range analyticsSpans {
		shown.Spans = append(shown.Spans, choice{one.Name, q.otherwise("within", one.Name), one.Name == name})
	}
	p := page{name: "analytics", title: "Analytics"}
	answer, since := memo.ask(q.ctx, chosen.within, q.now)
	switch {
	case answer == nil:
		shown.Waits, shown.Since, p.topics = true, since, slices.Clone(topics) // whatever changes brings it up
	case answer.err != nil:
		return page{}, answer.err
	default:
		shown.Asof, shown.Took = answer.at, answer.took
		q.analyticsFill(&shown, answer.figures, name)
	}
	p.data = shown
	return p, nil
}

// analyticsFill works the figures out for the page.
func (q *ask) analyticsFill(shown *analyticsPage, a ops.Analytics, within string) {
	var whole ops.KindFigures
	age := "age:<" + within
	for _, k := range a.Kinds {
		whole.Jobs, whole.FirstTry, whole.Later, whole.GaveUp = whole.Jobs+k.Jobs, whole.FirstTry+k.FirstTry, whole.Later+k.Later, whole.GaveUp+k.GaveUp
		whole.Attempts, whole.Retries, whole.Took, whole.Wasted = whole.Attempts+k.Attempts, whole.Retries+k.Retries, whole.Took+k.Took, whole.Wasted+k.Wasted
		whole.Cost, whole.RetryCost = whole.Cost+k.Cost, whole.RetryCost+k.RetryCost
		shown.Kinds = append(shown.Kinds, q.analyticsKind(k, age))
	}
	shown.Fresh, shown.Costs, shown.Recoveries = whole.Attempts == 0, whole.Cost > 0, a.Recoveries
	shown.Tiles = q.analyticsTiles(whole, age)
	shown.Pillars, shown.Sum = analyticsPillars(a)
	shown.Codes = analyticsCodes(a.Retries)
	for _, r := range a.Retries {
		if len(shown.Retries) == analyticsRows {
			shown.More++
			continue
		}
		shown.Retries = append(shown.Retries, analyticsRetry{r, r.Complete + r.Again})
	}
}

// analyticsRows bounds the longest table.
const analyticsRows = 200

func (q *ask) analyticsKind(k ops.KindFigures, age string) analyticsKind {
	kind := queryPart{"kind", k.Kind}.String()
	row := analyticsKind{KindFigures: k, Jobs: q.jobs(kind, age), GaveUp: q.jobs("state:failed", kind, age)}
	row.Policy, _ = link(q.link("/policies"), "kind", k.Kind) // a pair is a pair
	if k.Jobs > 0 {
		row.FirstShare = float64(k.FirstTry) / float64(k.Jobs)
	}
	row.Parts = []part{
		{k.FirstTry, "good", plural(k.FirstTry, "job") + " complete at once"}, {k.Later, "hold", plural(k.Later, "job") + " complete by a retry"}, {k.GaveUp, "bad", plural(k.GaveUp, "job") + " failed for good"},
		{max(k.Jobs-k.FirstTry-k.Later-k.GaveUp, 0), "none", "under way, cancelled, or sent round again"},
	}
	return row
}

func (q *ask) analyticsTiles(whole ops.KindFigures, age string) []tile {
	part := func(n, of int) string {
		if of == 0 {
			return "–"
		}
		return share(float64(n) / float64(of))
	}
	amplification, tone := "–", ""
	if whole.Jobs > 0 {
		factor := float64(whole.Attempts) / float64(whole.Jobs)
		amplification = strconv.FormatFloat(factor, 'f', 2, 64)
		if factor >= 2 {
			tone = "hold"
		}
	}
	tiles := []tile{
		{Title: "Complete at once", Value: part(whole.FirstTry, whole.Jobs), Note: fmt.Sprintf("%s of %s", num(whole.FirstTry), plural(whole.Jobs, "job"))},
		{Title: "Complete by a retry", Value: num(whole.Later), Note: part(whole.Later, whole.Retries) + " of the retries"},
		{Title: "Failed for good", Value: num(whole.GaveUp), Link: q.jobs("state:failed", age), Note: part(whole.GaveUp, whole.Jobs) + " of the jobs"},
		{Title: "Attempts for each job", Value: amplification, State: tone, Note: "1 when nothing is retried"},
		{Title: "Wasted time", Value: took(whole.Wasted), Note: "Of " + took(whole.Took) + " in failed attempts"},
	}
	if whole.Cost > 0 {
		tiles = append(tiles, tile{Title: "Cost of retries", Value: num(strconv.FormatFloat(whole.RetryCost, 'f', 2, 64)), Note: "Of " + num(strconv.FormatFloat(whole.Cost, 'f', 2, 64)) + " in all, by the policy's own unit"})
	}
	return tiles
}
