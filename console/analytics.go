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

// mountAnalytics mounts the analytics page.
func (c *Console) mountAnalytics() {
	cache := &analyticsCache{operator: c.cfg.Operator, known: map[time.Duration]*analyticsAnswer{}}
	c.handlePage("/analytics", func(q *request) (page, error) { return analyticsScreen(q, cache) })
}

// analyticsSpans are the time ranges.
var analyticsSpans = []span{{Name: "1h", within: time.Hour}, {Name: "24h", within: 24 * time.Hour}, {Name: "7d", within: 7 * 24 * time.Hour}, {Name: "30d", within: 30 * 24 * time.Hour}}

// An analyticsPage is the data of the analytics page: whether retries help, and what they cost.
type analyticsPage struct {
	Spans   []choice
	Long    string
	Waits   bool // the figures are still being computed
	Since   time.Time
	Asof    time.Time
	Took    time.Duration
	Problem string

	Empty      bool // there are no attempts
	Tiles      []tile
	Bars       []chartBar // success by attempt number
	Sum        string     // the bars in a sentence
	Kinds      []analyticsKind
	Codes      []analyticsCode
	Retries    []analyticsRetry
	More       int // retries not shown
	Costs      bool
	Recoveries []ops.Recovery
}

// An analyticsKind is a row of the kinds table.
type analyticsKind struct {
	ops.KindStats
	Parts                []part
	Jobs, GaveUp, Policy string // URLs
	FirstShare           float64
}

// An analyticsCode is the outcome of retries after a code, for all kinds.
type analyticsCode struct {
	Code                            string
	Failed, Complete, Again, GaveUp int
	Success                         float64
	Wasted                          time.Duration
	Bar                             template.HTML
	Words                           string
}

// An analyticsRetry is the outcome of retries for a kind, a code and an attempt number.
type analyticsRetry struct {
	ops.RetryEffect
	Tried int
}

func analyticsScreen(q *request, cache *analyticsCache) (page, error) {
	name := q.text("within")
	if name == "" {
		name = "24h"
	}
	at := slices.IndexFunc(analyticsSpans, func(s span) bool { return s.Name == name })
	if at < 0 {
		return page{}, &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("within %.20q: use 1h, 24h, 7d or 30d", name)}
	}
	chosen := analyticsSpans[at]
	shown := analyticsPage{Long: chosen.inWords()}
	for _, one := range analyticsSpans {
		shown.Spans = append(shown.Spans, choice{one.Name, q.withQuery("within", one.Name), one.Name == name})
	}
	p := page{name: "analytics", title: "Analytics"}
	answer, since := cache.get(q.ctx, chosen.within, q.now)
	switch {
	case answer == nil:
		shown.Waits, shown.Since, p.topics = true, since, slices.Clone(topics) // any change refreshes the page
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
func (q *request) analyticsFill(shown *analyticsPage, a ops.Analytics, within string) {
	var whole ops.KindStats
	age := "age:<" + within
	for _, k := range a.Kinds {
		whole.Jobs, whole.FirstTry, whole.Later, whole.GaveUp = whole.Jobs+k.Jobs, whole.FirstTry+k.FirstTry, whole.Later+k.Later, whole.GaveUp+k.GaveUp
		whole.Attempts, whole.Retries, whole.Took, whole.Wasted = whole.Attempts+k.Attempts, whole.Retries+k.Retries, whole.Took+k.Took, whole.Wasted+k.Wasted
		whole.Cost, whole.RetryCost = whole.Cost+k.Cost, whole.RetryCost+k.RetryCost
		shown.Kinds = append(shown.Kinds, q.analyticsKind(k, age))
	}
	shown.Empty, shown.Costs, shown.Recoveries = whole.Attempts == 0, whole.Cost > 0, a.Recoveries
	shown.Tiles = q.analyticsTiles(whole, age)
	shown.Bars, shown.Sum = analyticsBars(a)
	shown.Codes = analyticsCodes(a.Retries)
	for _, r := range a.Retries {
		if len(shown.Retries) == analyticsRows {
			shown.More++
			continue
		}
		shown.Retries = append(shown.Retries, analyticsRetry{r, r.Complete + r.Again})
	}
}

// analyticsRows is the maximum number of rows of the retries table.
const analyticsRows = 200

func (q *request) analyticsKind(k ops.KindStats, age string) analyticsKind {
	kind := queryPart{"kind", k.Kind}.String()
	row := analyticsKind{KindStats: k, Jobs: q.jobs(kind, age), GaveUp: q.jobs("state:failed", kind, age)}
	row.Policy, _ = link(q.link("/policies"), "kind", k.Kind) // complete pairs
	if k.Jobs > 0 {
		row.FirstShare = float64(k.FirstTry) / float64(k.Jobs)
	}
	row.Parts = []part{
		{k.FirstTry, "good", plural(k.FirstTry, "job") + " complete at the first attempt"}, {k.Later, "hold", plural(k.Later, "job") + " complete after a retry"}, {k.GaveUp, "bad", plural(k.GaveUp, "job") + " failed for good"},
		{max(k.Jobs-k.FirstTry-k.Later-k.GaveUp, 0), "none", "in progress, cancelled or retried"},
	}
	return row
}

func (q *request) analyticsTiles(whole ops.KindStats, age string) []tile {
	part := func(n, of int) string {
		if of == 0 {
			return "–"
		}
		return formatPercent(float64(n) / float64(of))
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
		{Title: "First-attempt success", Value: part(whole.FirstTry, whole.Jobs), Note: fmt.Sprintf("%s of %s", num(whole.FirstTry), plural(whole.Jobs, "job"))},
		{Title: "Complete after retry", Value: num(whole.Later), Note: part(whole.Later, whole.Retries) + " of retries"},
		{Title: "Failed for good", Value: num(whole.GaveUp), Link: q.jobs("state:failed", age), Note: part(whole.GaveUp, whole.Jobs) + " of jobs"},
		{Title: "Attempts per job", Value: amplification, State: tone, Note: "1 without retries"},
		{Title: "Wasted time", Value: formatDuration(whole.Wasted), Note: "Of " + formatDuration(whole.Took) + " in failed attempts"},
	}
	if whole.Cost > 0 {
		tiles = append(tiles, tile{Title: "Retry cost", Value: num(strconv.FormatFloat(whole.RetryCost, 'f', 2, 64)), Note: "Of " + num(strconv.FormatFloat(whole.Cost, 'f', 2, 64)) + " in total, in the unit of the policy"})
	}
	return tiles
}
