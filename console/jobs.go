package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// lookedAt bounds what one page of a search looks at. A page that comes back short leads on from where looking stopped.
const lookedAt = 5000

// countedAt bounds what is looked at to count them, where no index leads to just what is meant.
const countedAt = 5000

// mountJobs mounts the list of jobs and what is done with many of them at once.
func (c *Console) mountJobs() {
	list := &jobsScreen{}
	many := &bulkScreen{}
	show := c.serve(list.show)
	c.mux.HandleFunc("GET /jobs", func(w http.ResponseWriter, r *http.Request) {
		if id, ok := loneID(r.FormValue("q")); ok {
			http.Redirect(w, r, c.cfg.Prefix+"/jobs/"+id.String(), http.StatusSeeOther)
			return
		}
		show(w, r)
	})
	c.mux.HandleFunc("GET /jobs/complete", c.completeJobs)
	c.see("/jobs/bulk", many.show)
	c.do("/jobs/bulk", apikey.Operator, many.act)
}

// A jobsScreen shows lists of jobs. It remembers for a moment what is held.
type jobsScreen struct{ held heldNow }

// A jobList is what the page shows.
type jobList struct {
	Query      string
	Problem    string
	Instead    string // the search that was probably meant
	Qualifiers []qualifierHelp
	Tabs       []jobTab
	Columns    []columnChoice
	Has        map[string]bool // columns that are shown
	Chosen     string          // columns as they are in the address, empty when nobody chose
	Limit      int
	Limits     []int
	Usual      bool // the limit nobody chose
	Rows       []jobRow
	Found      string // how many there are, in words
	Short      bool   // looking stopped before the page was full
	Looked     int
	First      string
	Next       string
	Parts      []jobPart // of the query, each with the way to do without it
	Nothing    bool      // there are no jobs at all
	Matching   string    // how many match, for "select all …"; empty: no more than this page
	Count      string    // the same as a number
	Redrive    string    // where what matches is redriven, when it can be
}

// A jobTab narrows the list to one standing, and leaves the rest of the search as it is.
type jobTab struct {
	Title, Query, Count string
	Here                bool
}

// A jobPart is a part of the search and the search without it.
type jobPart struct{ Text, Without string }

// A qualifierHelp explains a qualifier.
type qualifierHelp struct{ Name, Example, About string }

// show lists jobs.
func (s *jobsScreen) show(q *ask) (page, error) {
	search := parseJobs(q.FormValue("q"))
	list := &jobList{Query: search.text, Problem: search.problem, Instead: search.instead, Limits: jobPageSizes}
	for _, one := range qualifiers {
		list.Qualifiers = append(list.Qualifiers, qualifierHelp{one.name, one.example, one.about})
	}
	for _, part := range search.parts {
		list.Parts = append(list.Parts, jobPart{part.String(), search.less(part)})
	}
	list.choose(q, search.filter)
	shown := page{name: "jobs", title: "Jobs", topics: []string{"jobs", "holds"}, data: list}
	if list.Problem != "" {
		return shown, nil
	}
	err := s.fill(q, list, search)
	if errors.Is(err, holdfast.ErrInvalid) {
		list.Problem, list.Rows, err = sentence(err), nil, nil
	}
	return shown, err
}

// jobPageSizes are what can be chosen.
var jobPageSizes = []int{25, 50, 100, 200}

const usualJobs = 50

// choose reads how the visitor wants the list.
func (l *jobList) choose(q *ask, f holdfast.Filter) {
	l.Limit = usualJobs
	if n, err := strconv.Atoi(q.text("limit")); err == nil && slices.Contains(jobPageSizes, n) {
		l.Limit = n
	}
	l.Usual = l.Limit == usualJobs
	l.Has, l.Chosen = chosenColumns(q.Form["columns"], usualColumns(f))
	for _, one := range jobColumns {
		l.Columns = append(l.Columns, columnChoice{one.name, one.title, l.Has[one.name]})
	}
}

// fill asks for the page.
func (s *jobsScreen) fill(q *ask, list *jobList, search jobQuery) error {
	cursor := q.text("cursor")
	jobs, next, looked, err := search.page(q, list.Limit, cursor)
	if err != nil {
		return err
	}
	held, err := s.held.over(q, jobs)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		list.Rows = append(list.Rows, rowOf(job, held, q.now))
	}
	if cursor != "" {
		list.First = list.address(q, search.text, "")
	}
	if next != "" {
		list.Next = list.address(q, search.text, next)
		list.Short, list.Looked = len(jobs) < list.Limit, looked
	}
	if to := search.redrive(); to != "" && (search.filter.DeadLetters || search.filter.State == holdfast.Failed) {
		list.Redrive = q.link(to)
	}
	list.Nothing = len(jobs) == 0 && search.text == "" && cursor == ""
	if err := list.count(q, search, cursor == "" && next == ""); err != nil {
		return err
	}
	return list.tabs(q, search)
}

// page asks for one page of what the search means. It is short when looking stopped before it was full.
func (s jobQuery) page(q *ask, limit int, cursor string) (jobs []holdfast.Job, next string, looked int, err error) {
	f := s.filter
	f.Look, f.Limit, f.Cursor = lookedAt, limit, cursor
	if s.category == "" {
		jobs, next, err = q.desk.Jobs(q.ctx, f)
		return jobs, next, lookedAt, err
	}
	for range lookedAt / limit / 5 {
		f.Limit = limit - len(jobs) // never more than fit, so that the cursor leaves nothing out
		some, on, err := q.desk.Jobs(q.ctx, f)
		if err != nil {
			return nil, "", looked, err
		}
		looked += len(some)
		for _, job := range some {
			if s.keeps(job) {
				jobs = append(jobs, job)
			}
		}
		if f.Cursor, next = on, on; on == "" || len(jobs) == limit {
			break
		}
	}
	return jobs, next, looked, nil
}

// count says how many there are. Where the page shows all of them it is known; or else counting stops somewhere.
func (l *jobList) count(q *ask, search jobQuery, whole bool) error {
	if whole {
		l.Found = plural(len(l.Rows), "job")
		return nil
	}
	if search.category != "" {
		l.Found, l.Matching, l.Count = "More jobs than fit on a page", "that match", "All"
		return nil
	}
	n, err := bounded(q, search.filter)
	if err != nil {
		return err
	}
	n = max(n, len(l.Rows))
	sure, err := search.sure(q)
	if err != nil {
		return err
	}
	l.Found, l.Count = plural(n, "job"), most(n)
	if !sure && n < ops.MostCounted {
		l.Found, l.Count = "At least "+l.Found, l.Count+"+"
	}
	l.Matching = strings.ToLower(l.Found[:1]) + l.Found[1:] + " that match"
	return nil
}

// bounded counts without looking far. In a large store it may have seen only a part.
func bounded(q *ask, f holdfast.Filter) (int, error) {
	f.Look = countedAt
	return q.desk.Count(q.ctx, f)
}

// fewJobs are so few that whoever counts has looked at all of them.
const fewJobs = countedAt / 5

// sure reports whether a bounded count of the search is the whole truth: an index leads to just what is meant, or there are few jobs in all.
func (s jobQuery) sure(q *ask) (bool, error) {
	f := s.filter
	led := f.DeadLetters || f.State == "" || f.State == holdfast.Queued || f.State == holdfast.Processing
	if led && !f.Retrying && !s.narrows() {
		return true, nil
	}
	n, err := bounded(q, holdfast.Filter{})
	return n < fewJobs, err
}

// tabStates are the tabs, each with what it narrows the search to. What is cheap to count is counted.
var tabStates = []struct {
	title   string
	part    queryPart
	counted bool
}{
	{"All", queryPart{}, false}, {"Queued", queryPart{"state", "queued"}, true}, {"Processing", queryPart{"state", "processing"}, true}, {"Retrying", queryPart{"is", "retrying"}, true},
	{"Failed", queryPart{"state", "failed"}, false}, {"Dead letters", queryPart{"is", "dead"}, true}, {"Complete", queryPart{"state", "complete"}, false}, {"Cancelled", queryPart{"state", "cancelled"}, false},
}

// tabs makes the tabs. Those that need somebody are counted, unless the search asks for more than a standing.
func (l *jobList) tabs(q *ask, search jobQuery) error {
	standing, queued := "", 0
	for _, part := range search.parts {
		if part.name == "state" || part.name == "is" {
			standing += " " + part.String()
		}
	}
	for _, one := range tabStates {
		tab := jobTab{Title: one.title, Query: search.without("state is"), Here: standing == ""}
		if one.part.name != "" {
			tab.Query, tab.Here = search.without("state is", one.part), standing == " "+one.part.String()
		}
		if one.counted && !search.narrows() {
			n, err := bounded(q, parseJobs(one.part.String()).filter)
			if err != nil {
				return err
			}
			tab.Count = most(n)
			if one.title == "Queued" {
				queued = n
			}
			if one.title == "Retrying" && queued >= fewJobs && n < ops.MostCounted {
				tab.Count += "+" // those among the first that wait
			}
		}
		l.Tabs = append(l.Tabs, tab)
	}
	return nil
}

// address is that of a list, with what the visitor chose.
func (l *jobList) address(q *ask, text, cursor string) string {
	said := url.Values{}
	limit := ""
	if !l.Usual {
		limit = strconv.Itoa(l.Limit)
	}
	for name, value := range map[string]string{"q": text, "cursor": cursor, "columns": l.Chosen, "limit": limit} {
		if value != "" {
			said.Set(name, value)
		}
	}
	if len(said) == 0 {
		return q.link("/jobs")
	}
	return q.link("/jobs?" + said.Encode())
}
