package console

import (
	"cmp"
	"net/url"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// mountDeadLetters mounts the dead letters page.
func (c *Console) mountDeadLetters() { c.handlePage("/dead-letters", deadLetters) }

// Limits of what the dead letters page and the preview of a redrive read and show.
const (
	deadLettersPerPage  = 50
	deadLettersScanned  = 1000
	previewScanned      = 400 // dead letters that a preview checks one by one
	previewSampled      = 100 // dead letters whose failures a preview counts
	groupLettersScanned = 500 // dead letters counted for one error group
	groupsAsked         = 30  // error groups read, the last seen first
	groupsShown         = 8
)

// A deadLetterPage is the data of the dead letters page.
type deadLetterPage struct {
	Filter  deadLetterFilter
	Search  string
	Total   int  // number of matches, up to ops.MaxCounted
	Least   bool // there may be more: the scan stopped
	Ages    []deadLetterAge
	Groups  []deadLetterGroup
	Rest    int // dead letters of other groups than those shown; 0 if unknown
	Letters []deadLetterRow
	Page    pagerLinks
	Hidden  []formField // the filter as form fields, for "all that match"
	Redrive string      // URL of the redrive wizard with this filter
	Discard string
	Partial bool // the scan stopped before the page was full
}

// pagerLinks are the links of the pager.
type pagerLinks struct{ First, Next string }

// A deadLetterAge counts dead letters older than an age.
type deadLetterAge struct {
	Title, Link string
	Jobs        int
}

// A deadLetterGroup is an error group with its dead letters.
type deadLetterGroup struct {
	store.ErrorGroup
	Dead     int   // up to a thousand
	Many     bool  // or more
	Failures []int // failed attempts in each hour of the last day
	Link     string
	Redrive  string
	Remedy   string // remedy of its code
}

// A deadLetterRow is a row of the list.
type deadLetterRow struct {
	ops.DeadLetter
	Since   time.Time
	Message string
}

// deadLetters renders the dead letters page.
func deadLetters(q *request) (page, error) {
	shown := deadLetterPage{Filter: deadLetterFilterOf(q)}
	f, err := shown.Filter.storeFilter()
	if err != nil {
		return page{}, err
	}
	all := f
	f.DeadLetters, f.MaxScan = true, deadLettersScanned
	f.Limit, f.Cursor = deadLettersPerPage, q.text("cursor")
	var rows []ops.DeadLetter
	var cursor string
	err = inParallel(
		func() (err error) { shown.Total, shown.Least, err = countLetters(q, all); return err },
		func() (err error) { rows, cursor, err = q.operator.DeadLetters(q.ctx, f); return err },
		func() error {
			if f.Cursor != "" {
				return nil
			}
			return shown.groups(q, f)
		},
	)
	if err != nil {
		return page{}, err
	}
	for _, one := range rows {
		row := deadLetterRow{DeadLetter: one, Since: one.Job.FinishedAt}
		if one.Job.LastFailure != nil {
			row.Message = truncate(one.Job.LastFailure.Message, 240)
		}
		shown.Letters = append(shown.Letters, row)
	}
	shown.Partial = cursor != "" && len(rows) < deadLettersPerPage
	shown.setLinks(q, f.Cursor, cursor)
	if f.Cursor == "" && shown.Total > 0 {
		shown.rest()
		err = shown.ages(q)
	}
	return page{name: "dead-letters", title: "Dead letters", topics: []string{"jobs", "failures", "redrives"}, data: shown}, err
}

// countLetters counts matching dead letters and examines at most deadLettersScanned. least reports whether there may be more.
func countLetters(q *request, f store.Filter) (jobs int, least bool, err error) {
	whole, err := q.operator.Count(q.ctx, store.Filter{DeadLetters: true})
	if err != nil || f == (store.Filter{}) {
		return whole, false, err
	}
	f.DeadLetters, f.MaxScan = true, deadLettersScanned
	jobs, err = q.operator.Count(q.ctx, f)
	return jobs, whole > deadLettersScanned, err
}

// Many returns the total as text.
func (l deadLetterPage) Many() string { return atLeast(l.Total, l.Least) }

// atLeast formats a count, with a plus if there may be more.
func atLeast(jobs int, least bool) string {
	if least && jobs < ops.MaxCounted {
		return num(jobs) + "+"
	}
	return capped(jobs)
}

// setLinks sets the links of the pager and to the wizard.
func (l *deadLetterPage) setLinks(q *request, at, next string) {
	query := l.Filter.values()
	l.Search = l.Filter.Search()
	for _, name := range deadLetterFields {
		if value := query.Get(name); value != "" {
			l.Hidden = append(l.Hidden, formField{name, value})
		}
	}
	if at != "" {
		l.Page.First = q.pathTo("/dead-letters", query)
	}
	if next != "" {
		query.Set("cursor", next)
		l.Page.Next = q.pathTo("/dead-letters", query)
		query.Del("cursor")
	}
	if l.Filter.Empty() {
		query.Set("all", "true")
	}
	l.Redrive = q.pathTo("/redrives/new", query)
	query.Set("discard", "true")
	l.Discard = q.pathTo("/redrives/new", query)
}

// pathTo returns the URL of a page of this console with a query.
func (q *request) pathTo(path string, query url.Values) string {
	if len(query) == 0 {
		return q.link(path)
	}
	return q.link(path) + "?" + query.Encode()
}

// ages counts old dead letters. It counts nothing if there are more than a scan examines: lists are newest first, so the old ones would be missed.
func (l *deadLetterPage) ages(q *request) error {
	if l.Filter.Older != "" || l.Filter.Younger != "" || l.Least || l.Total > deadLettersScanned {
		return nil
	}
	for _, age := range []struct{ title, older string }{{"Older than a day", "1d"}, {"Older than a week", "7d"}} {
		of := l.Filter
		of.Older = age.older
		f, err := of.storeFilter()
		if err != nil {
			return err
		}
		f.DeadLetters = true
		jobs, err := q.operator.Count(q.ctx, f)
		if err != nil {
			return err
		}
		l.Ages = append(l.Ages, deadLetterAge{age.title, q.pathTo("/dead-letters", of.values()), jobs})
	}
	return nil
}

// groups sets the error groups of the dead letters, those with the most dead letters first.
func (l *deadLetterPage) groups(q *request, f store.Filter) error {
	known, _, err := q.operator.ErrorGroups(q.ctx, store.ErrorFilter{Fingerprint: l.Filter.Fingerprint, Code: l.Filter.Code, Kind: l.Filter.Kind, Limit: groupsAsked})
	if err != nil {
		return err
	}
	names, by := make([]string, len(known)), make(map[string]store.ErrorGroup, len(known))
	for n, one := range known {
		names[n], by[one.Fingerprint] = one.Fingerprint, one
	}
	trends, err := q.operator.ErrorTrends(q.ctx, names, 24*time.Hour, time.Hour)
	if err != nil {
		return err
	}
	for _, one := range trends {
		if one.Dead > 0 {
			l.Groups = append(l.Groups, deadLetterGroup{ErrorGroup: by[one.Fingerprint], Dead: one.Dead, Many: one.Dead >= 1000, Failures: one.Failures})
		}
	}
	slices.SortStableFunc(l.Groups, func(a, b deadLetterGroup) int { return cmp.Compare(b.Dead, a.Dead) })
	l.Groups = l.Groups[:min(len(l.Groups), groupsShown)]
	return l.countGroups(q, f)
}

// countGroups counts the dead letters of each group that match the filter, and sets its links and remedy.
func (l *deadLetterPage) countGroups(q *request, f store.Filter) error {
	known, err := q.taxonomy()
	if err != nil {
		return err
	}
	within, counts := l.Filter, []func() error{}
	within.Fingerprint, within.Code = "", ""
	f.Limit, f.Cursor, f.MaxScan = 0, "", groupLettersScanned
	for n := range l.Groups {
		one := &l.Groups[n]
		counts = append(counts, func() (err error) {
			if within.Empty() {
				return nil
			}
			f := f
			f.Fingerprint = one.Fingerprint
			one.Dead, err = q.operator.Count(q.ctx, f)
			one.Many = one.Dead >= groupLettersScanned
			return err
		})
		code, _ := known.Code(one.Code)
		one.Remedy = code.Remedy
		of := l.Filter
		of.Fingerprint = one.Fingerprint
		one.Link, one.Redrive = q.pathTo("/dead-letters", of.values()), q.pathTo("/redrives/new", of.values())
	}
	err = inParallel(counts...)
	l.Groups = slices.DeleteFunc(l.Groups, func(one deadLetterGroup) bool { return one.Dead == 0 })
	return err
}

// rest sets the number of dead letters of other groups than those shown, if all counts are exact.
func (l *deadLetterPage) rest() {
	exact, sum := !l.Least && l.Total < ops.MaxCounted, 0
	for _, one := range l.Groups {
		exact, sum = exact && !one.Many, sum+one.Dead
	}
	if exact && sum > 0 {
		l.Rest = max(0, l.Total-sum)
	}
}
