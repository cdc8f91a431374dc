package console

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// mountFailures mounts the list of what goes wrong, the page of each error group, and what people say about them.
func (c *Console) mountFailures() {
	c.see("/failures", c.failures)
	c.see("/failures/{fingerprint}", c.failure)
	for _, one := range judgements {
		c.do("/failures/{fingerprint}/"+one.verb, apikey.Operator, one.deed)
	}
}

// failures is what goes wrong: now, and over and over.
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
	Rows    []troubleRow
	Narrow  bool // something was asked for: an empty list does not mean that all is well
	Partial bool // sorted among the last seen only
	First   string
	Next    string
}

// A sorting is an order of the list.
type sorting struct{ Name, Title string }

var sortings = []sorting{{"", "Last seen"}, {"hour", "Most in the last hour"}, {"dead", "Most dead letters"}}

const (
	troublePage = 25  // error groups on a page, about
	mostSorted  = 100 // error groups that are put in another order than last seen,
	mostOrdered = 50  // of which so many are shown
	mostPages   = 6   // that are read to fill one
)

// tabs are the statuses to choose from. What regressed is open again, and listed with what is open.
var tabs = []struct {
	name, title string
	has         []holdfast.Status
}{
	{"", "Open", []holdfast.Status{holdfast.Open, holdfast.Regressed}},
	{"regressed", "Regressed", []holdfast.Status{holdfast.Regressed}},
	{"acknowledged", "Acknowledged", []holdfast.Status{holdfast.Acknowledged}},
	{"ignored", "Ignored", []holdfast.Status{holdfast.Ignored}},
	{"resolved", "Resolved", []holdfast.Status{holdfast.Resolved}},
	{"all", "All", nil},
}

// failures shows what goes wrong.
func (c *Console) failures(q *ask) (page, error) {
	f := failures{Status: q.text("status"), Code: q.text("code"), Kind: q.text("kind"), Sort: q.text("sort"), Sorts: sortings}
	if f.Status == string(holdfast.Open) {
		f.Status = ""
	}
	at, err := q.chosenSpan(troubleSpans, "24h")
	if err != nil {
		return page{}, err
	}
	if err := f.choose(q); err != nil {
		return page{}, err
	}
	err = atOnce(
		func() error { return f.list(q, at) },
		func() error {
			seen, err := c.pulse.now(q.ctx)
			f.Alarms = q.alarms(seen)
			return err
		},
	)
	return page{name: "failures", title: "Failures", topics: []string{"failures", "breakers", "jobs"}, data: f}, err
}

// choose checks what was asked for and makes the tabs.
func (f *failures) choose(q *ask) error {
	known := false
	for _, one := range tabs {
		known = known || one.name == f.Status
		f.Tabs = append(f.Tabs, choice{one.title, q.otherwise("status", one.name, "cursor", ""), one.name == f.Status})
	}
	if !known {
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf("status %.40q: use open, regressed, acknowledged, ignored, resolved or all", f.Status)}
	}
	if !slices.ContainsFunc(sortings, func(s sorting) bool { return s.Name == f.Sort }) {
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf("sort %.40q: use hour or dead, or leave it out", f.Sort)}
	}
	f.Narrow = f.Code != "" || f.Kind != "" || f.Status != ""
	return nil
}

// list reads one page of error groups.
func (f *failures) list(q *ask, at span) error {
	i := slices.IndexFunc(tabs, func(t struct {
		name, title string
		has         []holdfast.Status
	}) bool {
		return t.name == f.Status
	})
	filter := holdfast.ErrorFilter{Code: f.Code, Kind: f.Kind, Limit: troublePage, Cursor: q.text("cursor")}
	enough := troublePage
	if f.Sort != "" {
		filter.Limit, filter.Cursor, enough = mostSorted, "", mostSorted
	}
	groups, next, err := q.gather(filter, tabs[i].has, enough)
	if err != nil {
		return err
	}
	for _, g := range groups {
		f.Rows = append(f.Rows, q.row(g))
	}
	if f.Partial = f.Sort != "" && (next != "" || len(f.Rows) > mostOrdered); f.Sort != "" {
		next = ""
	}
	if next != "" {
		f.Next = q.otherwise("cursor", next)
	}
	if filter.Cursor != "" {
		f.First = q.otherwise("cursor", "")
	}
	if f.Sort == "hour" {
		slices.SortStableFunc(f.Rows, func(a, b troubleRow) int { return cmp.Compare(b.LastHour, a.LastHour) })
	}
	if f.Sort == "hour" {
		f.Rows = f.Rows[:min(len(f.Rows), mostOrdered)]
	}
	at = q.closely(f.Rows, at)
	f.Span, f.Spans = at.Name, q.spanChoices(troubleSpans, at)
	if err := q.trend(f.Rows, at); err != nil {
		return err
	}
	if f.Sort == "dead" {
		slices.SortStableFunc(f.Rows, func(a, b troubleRow) int { return cmp.Compare(b.Dead, a.Dead) })
		f.Rows = f.Rows[:min(len(f.Rows), mostOrdered)]
	}
	return nil
}

// gather reads error groups of some statuses, the last seen first. A single one is asked for; of several, all are read and the others passed over.
func (q *ask) gather(f holdfast.ErrorFilter, has []holdfast.Status, enough int) (groups []holdfast.ErrorGroup, cursor string, err error) {
	if len(has) == 1 {
		f.Status = has[0]
	}
	if len(has) < 2 {
		f.Limit = min(f.Limit, enough)
	}
	for range mostPages {
		var found []holdfast.ErrorGroup
		if found, cursor, err = q.desk.ErrorGroups(q.ctx, f); err != nil {
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

// An alarm is one thing that is wrong now, in plain words.
type alarm struct {
	Tone  string // bad or hold
	Icon  string
	Title string
	Text  string
	Until any // an instant as pages show it, after the text
	Link  string
	Name  string // of the link
	Act   string // of the button
	Go    string // where the button leads
}

// alarms are what is wrong now.
func (q *ask) alarms(seen glance) (all []alarm) {
	for _, row := range q.barrierRows(seen.breakers) {
		a := alarm{Tone: "hold", Icon: "icon-breakers", Title: row.Dependency + " " + row.Words + ".", Link: row.Link, Name: "See the breaker of " + row.Dependency, Text: plural(row.Behind, "job") + " held, spending nothing."}
		if row.Breaker.State.Refuses() {
			a.Tone = "bad"
		}
		if row.Behind == 0 {
			a.Text = "No job waits for it now."
		}
		if row.Code != "" {
			a.Text += " Last failure: " + row.Code + "."
		}
		if !row.Since.IsZero() {
			a.Until = q.note("Since ", row.Since)
		}
		if row.Expect != "" {
			a.Until = q.note("Since ", row.Since) + ". " + row.Expect + "."
		}
		all = append(all, a)
	}
	if n := seen.Dead; n > 0 {
		all = append(all, alarm{Tone: "bad", Icon: "icon-dead-letters", Title: plural(n, "dead letter") + ".", Text: "They failed for good and wait for a person: nothing tries them again by itself.", Link: q.link("/dead-letters"), Name: "See the dead letters", Act: "Bring them back", Go: q.link("/redrives/new?all=true")})
	}
	return append(all, q.unseen(seen)...)
}

// unseen are the error groups that came back, and those that are new.
func (q *ask) unseen(seen glance) (all []alarm) {
	regressed := seen.regressed
	if n := len(regressed); n > 0 {
		all = append(all, alarm{Tone: "bad", Icon: "icon-redrives", Title: plural(n, "error group") + " came back.", Text: "Somebody had resolved " + them(n) + ": " + names(regressed) + ".", Link: q.link("/failures?status=regressed"), Name: "See what regressed"})
	}
	open := slices.DeleteFunc(slices.Clone(seen.open), func(g holdfast.ErrorGroup) bool { return !isNew(g, q) })
	if n := len(open); n > 0 {
		all = append(all, alarm{Tone: "hold", Icon: "icon-failures", Title: plural(n, "new error group") + " within a day.", Text: names(open) + ".", Link: q.link("/failures?sort=hour"), Name: "See what fails most"})
	}
	return all
}

func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// names are the codes of error groups, each once, a few of them.
func names(groups []holdfast.ErrorGroup) string {
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

// fingerprint is the error group that the path names.
func (q *ask) fingerprint() string {
	text := q.PathValue("fingerprint")
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}
