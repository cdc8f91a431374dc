package console

import (
	"cmp"
	"net/url"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// mountDeadLetters mounts its screens.
func (c *Console) mountDeadLetters() { c.see("/dead-letters", deadLetters) }

// What one page of dead letters looks at: rows, error groups that are asked about, and those that are shown.
const (
	lettersOnPage = 50
	lettersLooked = 1000
	lettersJudged = 400 // one by one, by a preview
	lettersAsked  = 100 // what they failed with
	troubleLooked = 500 // dead letters of one error group
	troublesAsked = 30  // those seen last
	troublesShown = 8
)

// letters is the page of dead letters.
type letters struct {
	Pick    pick
	Search  string
	Total   int  // that match, up to ops.MostCounted
	Least   bool // or more: looking stopped
	Ages    []letterAge
	Groups  []letterGroup
	Rest    int // dead letters of the groups that are not shown; 0 when that cannot be told
	Letters []letter
	Page    letterPages
	Hidden  []pickedField // the pick, for those who mean all that match
	Redrive string        // leads to the wizard, with what is selected here
	Discard string
	Stale   bool // looking stopped before the page was full
}

// letterPages are the links of the pager.
type letterPages struct{ First, Next string }

// A letterAge counts dead letters that are older than something.
type letterAge struct {
	Title, Link string
	Jobs        int
}

// A letterGroup is one error group and its dead letters.
type letterGroup struct {
	holdfast.ErrorGroup
	Dead     int // up to a thousand
	Many     bool
	Failures []int // of the last day
	Link     string
	Redrive  string
	Remedy   string // what can be done about it
}

// A letter is one row.
type letter struct {
	ops.DeadLetter
	Since   time.Time
	Message string
}

// deadLetters shows what failed for good and waits for a person.
func deadLetters(q *ask) (page, error) {
	shown := letters{Pick: pickOf(q)}
	f, err := shown.Pick.filter()
	if err != nil {
		return page{}, err
	}
	all := f
	f.DeadLetters, f.Look = true, lettersLooked
	f.Limit, f.Cursor = lettersOnPage, q.text("cursor")
	var rows []ops.DeadLetter
	var cursor string
	err = atOnce(
		func() (err error) { shown.Total, shown.Least, err = countLetters(q, all); return err },
		func() (err error) { rows, cursor, err = q.desk.DeadLetters(q.ctx, f); return err },
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
		row := letter{DeadLetter: one, Since: one.Job.FinishedAt}
		if one.Job.LastFailure != nil {
			row.Message = cut(one.Job.LastFailure.Message, 240)
		}
		shown.Letters = append(shown.Letters, row)
	}
	shown.Stale = cursor != "" && len(rows) < lettersOnPage
	shown.paths(q, f.Cursor, cursor)
	if f.Cursor == "" && shown.Total > 0 {
		shown.rest()
		err = shown.ages(q)
	}
	return page{name: "dead-letters", title: "Dead letters", topics: []string{"jobs", "failures", "redrives"}, data: shown}, err
}

// countLetters counts the dead letters that match, among as many as may be looked at; there may be more where there are many dead letters.
func countLetters(q *ask, f holdfast.Filter) (jobs int, least bool, err error) {
	whole, err := q.desk.Count(q.ctx, holdfast.Filter{DeadLetters: true})
	if err != nil || f == (holdfast.Filter{}) {
		return whole, false, err
	}
	f.DeadLetters, f.Look = true, lettersLooked
	jobs, err = q.desk.Count(q.ctx, f)
	return jobs, whole > lettersLooked, err
}

// Many is the total as people read it.
func (l letters) Many() string { return atLeast(l.Total, l.Least) }

// atLeast is a count, with a plus when there may be more.
func atLeast(jobs int, least bool) string {
	if least && jobs < ops.MostCounted {
		return num(jobs) + "+"
	}
	return most(jobs)
}

// paths are where the page leads: on, and to the wizard.
func (l *letters) paths(q *ask, at, next string) {
	query := l.Pick.values()
	l.Search = l.Pick.Search()
	for _, name := range pickNames {
		if value := query.Get(name); value != "" {
			l.Hidden = append(l.Hidden, pickedField{name, value})
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
	if l.Pick.Empty() {
		query.Set("all", "true")
	}
	l.Redrive = q.pathTo("/redrives/new", query)
	query.Set("discard", "true")
	l.Discard = q.pathTo("/redrives/new", query)
}

// pathTo is the address of a page of this console with a query.
func (q *ask) pathTo(path string, query url.Values) string {
	if len(query) == 0 {
		return q.link(path)
	}
	return q.link(path) + "?" + query.Encode()
}

// ages counts those that have waited for long: where there are so many that not all can be looked at it says nothing, for the old ones come last.
func (l *letters) ages(q *ask) error {
	if l.Pick.Older != "" || l.Pick.Younger != "" || l.Least || l.Total > lettersLooked {
		return nil
	}
	for _, age := range []struct{ title, older string }{{"Older than a day", "1d"}, {"Older than a week", "7d"}} {
		of := l.Pick
		of.Older = age.older
		f, err := of.filter()
		if err != nil {
			return err
		}
		f.DeadLetters = true
		jobs, err := q.desk.Count(q.ctx, f)
		if err != nil {
			return err
		}
		l.Ages = append(l.Ages, letterAge{age.title, q.pathTo("/dead-letters", of.values()), jobs})
	}
	return nil
}

// groups finds the error groups behind the dead letters, those with the most first.
func (l *letters) groups(q *ask, f holdfast.Filter) error {
	known, _, err := q.desk.ErrorGroups(q.ctx, holdfast.ErrorFilter{Fingerprint: l.Pick.Fingerprint, Code: l.Pick.Code, Kind: l.Pick.Kind, Limit: troublesAsked})
	if err != nil {
		return err
	}
	names, by := make([]string, len(known)), make(map[string]holdfast.ErrorGroup, len(known))
	for n, one := range known {
		names[n], by[one.Fingerprint] = one.Fingerprint, one
	}
	trends, err := q.desk.ErrorTrends(q.ctx, names, 24*time.Hour, time.Hour)
	if err != nil {
		return err
	}
	for _, one := range trends {
		if one.Dead > 0 {
			l.Groups = append(l.Groups, letterGroup{ErrorGroup: by[one.Fingerprint], Dead: one.Dead, Many: one.Dead >= 1000, Failures: one.Failures})
		}
	}
	slices.SortStableFunc(l.Groups, func(a, b letterGroup) int { return cmp.Compare(b.Dead, a.Dead) })
	l.Groups = l.Groups[:min(len(l.Groups), troublesShown)]
	return l.narrow(q, f)
}

// narrow counts each group's dead letters within the selection, and says where the group leads.
func (l *letters) narrow(q *ask, f holdfast.Filter) error {
	known, err := q.taxonomy()
	if err != nil {
		return err
	}
	within, counts := l.Pick, []func() error{}
	within.Fingerprint, within.Code = "", ""
	f.Limit, f.Cursor, f.Look = 0, "", troubleLooked
	for n := range l.Groups {
		one := &l.Groups[n]
		counts = append(counts, func() (err error) {
			if within.Empty() {
				return nil
			}
			f := f
			f.Fingerprint = one.Fingerprint
			one.Dead, err = q.desk.Count(q.ctx, f)
			one.Many = one.Dead >= troubleLooked
			return err
		})
		code, _ := known.Code(one.Code)
		one.Remedy = code.Remedy
		of := l.Pick
		of.Fingerprint = one.Fingerprint
		one.Link, one.Redrive = q.pathTo("/dead-letters", of.values()), q.pathTo("/redrives/new", of.values())
	}
	err = atOnce(counts...)
	l.Groups = slices.DeleteFunc(l.Groups, func(one letterGroup) bool { return one.Dead == 0 })
	return err
}

// rest says how many dead letters are of none of the groups that are shown, where that is known.
func (l *letters) rest() {
	exact, sum := !l.Least && l.Total < ops.MostCounted, 0
	for _, one := range l.Groups {
		exact, sum = exact && !one.Many, sum+one.Dead
	}
	if exact && sum > 0 {
		l.Rest = max(0, l.Total-sum)
	}
}
