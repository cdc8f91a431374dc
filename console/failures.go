package console

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

// mountFailures mounts the errors page, the page of each error group, and the triage actions. The URL paths keep the name failures.
func (c *Console) mountFailures() {
	c.handlePage("/failures", c.failures)
	c.handlePage("/failures/{fingerprint}", c.failure)
	for _, one := range triageActions {
		c.handleAction("/failures/{fingerprint}/"+one.verb, apikey.Operator, one.run)
	}
}

// failures is the data of the errors page.
type failures struct {
	Alarms  []alarm
	Tabs    []choice
	Spans   []choice
	Span    string
	Status  string
	Code    string
	Kind    string
	Sort    string
	Sorts   []sorting
	Rows    []errorGroupRow
	Narrow  bool // the list is filtered, so an empty list does not mean that there are no errors
	Partial bool // sorted among the last seen groups only
	First   string
	Next    string
}

// A sorting is an order of the list.
type sorting struct{ Name, Title string }

var sortings = []sorting{{"", "Last seen"}, {"hour", "Most in the last hour"}, {"dead", "Most dead letters"}}

const (
	errorGroupsPerPage = 25  // error groups on a page; a page that filters several statuses may have more
	maxSorted          = 100 // error groups that are read for another order than last seen,
	maxOrdered         = 50  // of which this many are shown
	maxPages           = 6   // pages that are read to fill one
)

// tabs are the statuses to choose from. Regressed groups are listed with the open ones.
var tabs = []struct {
	name, title string
	has         []store.Status
}{
	{"", "Open", []store.Status{store.StatusOpen, store.StatusRegressed}},
	{"regressed", "Regressed", []store.Status{store.StatusRegressed}},
	{"acknowledged", "Acknowledged", []store.Status{store.StatusAcknowledged}},
	{"ignored", "Ignored", []store.Status{store.StatusIgnored}},
	{"resolved", "Resolved", []store.Status{store.StatusResolved}},
	{"all", "All", nil},
}

// failures renders the errors page.
func (c *Console) failures(q *request) (page, error) {
	f := failures{Status: q.text("status"), Code: q.text("code"), Kind: q.text("kind"), Sort: q.text("sort"), Sorts: sortings}
	if f.Status == string(store.StatusOpen) {
		f.Status = ""
	}
	at, err := q.chosenSpan(errorGroupSpans, "24h")
	if err != nil {
		return page{}, err
	}
	if err := f.choose(q); err != nil {
		return page{}, err
	}
	err = inParallel(
		func() error { return f.list(q, at) },
		func() error {
			seen, err := c.snapshots.now(q.ctx)
			f.Alarms = q.alarms(seen)
			return err
		},
	)
	return page{name: "failures", title: "Errors", topics: []string{"failures", "breakers", "jobs"}, data: f}, err
}

// choose validates the parameters and builds the tabs.
func (f *failures) choose(q *request) error {
	known := false
	for _, one := range tabs {
		known = known || one.name == f.Status
		f.Tabs = append(f.Tabs, choice{one.title, q.withQuery("status", one.name, "cursor", ""), one.name == f.Status})
	}
	if !known {
		return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("status %.40q: use open, regressed, acknowledged, ignored, resolved or all", f.Status)}
	}
	if !slices.ContainsFunc(sortings, func(s sorting) bool { return s.Name == f.Sort }) {
		return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("sort %.40q: use hour or dead, or leave it out", f.Sort)}
	}
	f.Narrow = f.Code != "" || f.Kind != "" || f.Status != ""
	return nil
}

// list reads one page of error groups.
func (f *failures) list(q *request, at span) error {
	i := slices.IndexFunc(tabs, func(t struct {
		name, title string
		has         []store.Status
	}) bool {
		return t.name == f.Status
	})
	filter := store.ErrorFilter{Code: f.Code, Kind: f.Kind, Limit: errorGroupsPerPage, Cursor: q.text("cursor")}
	enough := errorGroupsPerPage
	if f.Sort != "" {
		filter.Limit, filter.Cursor, enough = maxSorted, "", maxSorted
	}
	groups, next, err := q.errorGroups(filter, tabs[i].has, enough)
	if err != nil {
		return err
	}
	for _, g := range groups {
		f.Rows = append(f.Rows, q.row(g))
	}
	if f.Partial = f.Sort != "" && (next != "" || len(f.Rows) > maxOrdered); f.Sort != "" {
		next = ""
	}
	if next != "" {
		f.Next = q.withQuery("cursor", next)
	}
	if filter.Cursor != "" {
		f.First = q.withQuery("cursor", "")
	}
	if f.Sort == "hour" {
		slices.SortStableFunc(f.Rows, func(a, b errorGroupRow) int { return cmp.Compare(b.LastHour, a.LastHour) })
	}
	if f.Sort == "hour" {
		f.Rows = f.Rows[:min(len(f.Rows), maxOrdered)]
	}
	at = q.bestSpan(f.Rows, at)
	f.Span, f.Spans = at.Name, q.spanChoices(errorGroupSpans, at)
	if err := q.trend(f.Rows, at); err != nil {
		return err
	}
	if f.Sort == "dead" {
		slices.SortStableFunc(f.Rows, func(a, b errorGroupRow) int { return cmp.Compare(b.Dead, a.Dead) })
		f.Rows = f.Rows[:min(len(f.Rows), maxOrdered)]
	}
	return nil
}

// errorGroups reads error groups of some statuses, the last seen first. A single status is a filter of the store; for several, it reads all and drops the others.
func (q *request) errorGroups(f store.ErrorFilter, has []store.Status, enough int) (groups []store.ErrorGroup, cursor string, err error) {
	if len(has) == 1 {
		f.Status = has[0]
	}
	if len(has) < 2 {
		f.Limit = min(f.Limit, enough)
	}
	for range maxPages {
		var found []store.ErrorGroup
		if found, cursor, err = q.operator.ErrorGroups(q.ctx, f); err != nil {
			return nil, "", err
		}
		for _, g := range found {
			if len(has) == 0 || slices.Contains(has, g.Status) {
				groups = append(groups, g)
			}
		}
		if f.Cursor = cursor; cursor == "" || len(groups) >= enough {
			break
		}
	}
	return groups, cursor, nil
}

// An alarm is a current problem in a sentence.
type alarm struct {
	Tone  string // bad or hold
	Icon  string
	Title string
	Text  string
	Until any // HTML with times, shown below the text
	Link  string
	Name  string // label of the link
	Act   string // label of the button
	Go    string // target of the button
}

// alarms returns the current problems.
func (q *request) alarms(seen snapshot) (all []alarm) {
	for _, row := range q.breakerRows(seen.breakers) {
		a := alarm{Tone: "hold", Icon: "icon-breakers", Title: row.Dependency + " " + row.Words + ".", Link: row.Link, Name: "View breaker of " + row.Dependency, Text: plural(row.Behind, "job") + " held at no cost."}
		if row.Breaker.State.Refuses() {
			a.Tone = "bad"
		}
		if row.Behind == 0 {
			a.Text = "No job waits for it."
		}
		if row.Code != "" {
			a.Text += " Last failure: " + row.Code + "."
		}
		if !row.Since.IsZero() {
			a.Until = q.timeNote("Since ", row.Since)
		}
		if row.Expect != "" {
			a.Until = q.timeNote("Since ", row.Since) + ". " + row.Expect + "."
		}
		all = append(all, a)
	}
	if n := seen.Dead; n > 0 {
		all = append(all, alarm{Tone: "bad", Icon: "icon-dead-letters", Title: plural(n, "dead letter") + ".", Text: "They failed for good and are not retried automatically.", Link: q.link("/dead-letters"), Name: "View dead letters", Act: "Redrive all", Go: q.link("/redrives/new?all=true")})
	}
	return append(all, q.groupAlarms(seen)...)
}

// groupAlarms returns the alarms for regressed and for new error groups.
func (q *request) groupAlarms(seen snapshot) (all []alarm) {
	regressed := seen.regressed
	if n := len(regressed); n > 0 {
		all = append(all, alarm{Tone: "bad", Icon: "icon-redrives", Title: plural(n, "error group") + " regressed.", Text: "Resolved earlier and failing again: " + codeNames(regressed) + ".", Link: q.link("/failures?status=regressed"), Name: "View regressed"})
	}
	open := slices.DeleteFunc(slices.Clone(seen.open), func(g store.ErrorGroup) bool { return !isNew(g, q) })
	if n := len(open); n > 0 {
		all = append(all, alarm{Tone: "hold", Icon: "icon-failures", Title: plural(n, "new error group") + " in the last 24 hours.", Text: codeNames(open) + ".", Link: q.link("/failures?sort=hour"), Name: "View most frequent"})
	}
	return all
}

// codeNames returns the codes of error groups, each once and at most four.
func codeNames(groups []store.ErrorGroup) string {
	var codes []string
	for _, g := range groups {
		if !slices.Contains(codes, g.Code) {
			codes = append(codes, g.Code)
		}
	}
	text := codes[0]
	for _, code := range codes[1:min(len(codes), 4)] {
		text += ", " + code
	}
	if len(codes) > 4 {
		text += fmt.Sprintf(" and %d more", len(codes)-4)
	}
	return text
}

// fingerprint returns the fingerprint in the path.
func (q *request) fingerprint() string {
	text := q.PathValue("fingerprint")
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}
