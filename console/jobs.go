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
	"github.com/holdfastdev/holdfast/store"
)

// maxPageScan bounds the jobs that one page of a search examines. A page that is not full links to where the scan stopped.
const maxPageScan = 5000

// maxCountScan bounds the jobs that a count examines if no index has exactly the jobs of the search.
const maxCountScan = 5000

// mountJobs mounts the job list and the bulk actions.
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
	c.handlePage("/jobs/bulk", many.show)
	c.handleAction("/jobs/bulk", apikey.Operator, many.act)
}

// A jobsScreen renders job lists. It caches the holds for a second.
type jobsScreen struct{ holds holdCache }

// A jobList is the data of the jobs page.
type jobList struct {
	Query        string
	Problem      string
	Suggestion   string // the search that the visitor probably meant
	Qualifiers   []qualifierHelp
	Tabs         []jobTab
	Columns      []columnChoice
	Has          map[string]bool // visible columns
	Chosen       string          // the columns parameter of the URL; empty for the default columns
	Limit        int
	Limits       []int
	DefaultLimit bool // the limit was not chosen
	Rows         []jobRow
	Found        string // the number of matches, in words
	Short        bool   // the scan stopped before the page was full
	Looked       int    // jobs examined
	First        string
	Next         string
	Parts        []jobPart // terms of the search, each with the search without it
	NoJobs       bool      // the store has no jobs
	Matching     string    // number of matches for "Select all …"; empty if they fit on this page
	Count        string    // the same as a number only
	Redrive      string    // URL of a redrive of the matches, if there can be one
}

// A jobTab narrows the list to one state and keeps the rest of the search.
type jobTab struct {
	Title, Query, Count string
	Here                bool
}

// A jobPart is a term of the search, and the search without it.
type jobPart struct{ Text, Without string }

// A qualifierHelp explains a qualifier.
type qualifierHelp struct{ Name, Example, About string }

// show renders a job list.
func (s *jobsScreen) show(q *request) (page, error) {
	search := parseJobs(q.FormValue("q"))
	list := &jobList{Query: search.text, Problem: search.problem, Suggestion: search.suggestion, Limits: jobPageSizes}
	for _, one := range qualifiers {
		list.Qualifiers = append(list.Qualifiers, qualifierHelp{one.name, one.example, one.about})
	}
	for _, part := range search.parts {
		list.Parts = append(list.Parts, jobPart{part.String(), search.withoutPart(part)})
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

// jobPageSizes are the page sizes to choose from.
var jobPageSizes = []int{25, 50, 100, 200}

const defaultPageSize = 50

// choose reads the page size and the columns.
func (l *jobList) choose(q *request, f store.Filter) {
	l.Limit = defaultPageSize
	if n, err := strconv.Atoi(q.text("limit")); err == nil && slices.Contains(jobPageSizes, n) {
		l.Limit = n
	}
	l.DefaultLimit = l.Limit == defaultPageSize
	l.Has, l.Chosen = chosenColumns(q.Form["columns"], defaultColumns(f))
	for _, one := range jobColumns {
		l.Columns = append(l.Columns, columnChoice{one.name, one.title, l.Has[one.name]})
	}
}

// fill reads the page.
func (s *jobsScreen) fill(q *request, list *jobList, search jobQuery) error {
	cursor := q.text("cursor")
	jobs, next, looked, err := search.page(q, list.Limit, cursor)
	if err != nil {
		return err
	}
	held, err := s.holds.forJobs(q, jobs)
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
	list.NoJobs = len(jobs) == 0 && search.text == "" && cursor == ""
	if err := list.count(q, search, cursor == "" && next == ""); err != nil {
		return err
	}
	return list.tabs(q, search)
}

// page reads one page of matches. The page is short if the scan stopped before it was full. A category is not known to the store, so its jobs are filtered here.
func (s jobQuery) page(q *request, limit int, cursor string) (jobs []holdfast.Job, next string, looked int, err error) {
	f := s.filter
	f.MaxScan, f.Limit, f.Cursor = maxPageScan, limit, cursor
	if s.category == "" {
		jobs, next, err = q.operator.Jobs(q.ctx, f)
		return jobs, next, maxPageScan, err
	}
	for range maxPageScan / limit / 5 {
		f.Limit = limit - len(jobs) // never read more than fit, so that the next cursor skips no job
		some, after, err := q.operator.Jobs(q.ctx, f)
		if err != nil {
			return nil, "", looked, err
		}
		looked += len(some)
		for _, job := range some {
			if s.matches(job) {
				jobs = append(jobs, job)
			}
		}
		if f.Cursor, next = after, after; after == "" || len(jobs) == limit {
			break
		}
	}
	return jobs, next, looked, nil
}

// count sets the number of matches. It is exact if the page shows all of them; otherwise the count is bounded.
func (l *jobList) count(q *request, search jobQuery, whole bool) error {
	if whole {
		l.Found = plural(len(l.Rows), "job")
		return nil
	}
	if search.category != "" {
		l.Found, l.Matching, l.Count = "More than one page", "that match", "All"
		return nil
	}
	n, err := countBounded(q, search.filter)
	if err != nil {
		return err
	}
	n = max(n, len(l.Rows))
	exact, err := search.countIsExact(q)
	if err != nil {
		return err
	}
	l.Found, l.Count = plural(n, "job"), capped(n)
	if !exact && n < ops.MaxCounted {
		l.Found, l.Count = "At least "+l.Found, l.Count+"+"
	}
	l.Matching = strings.ToLower(l.Found[:1]) + l.Found[1:] + " that match"
	return nil
}

// countBounded counts jobs and examines at most maxCountScan of them, so the result may be too small.
func countBounded(q *request, f store.Filter) (int, error) {
	f.MaxScan = maxCountScan
	return q.operator.Count(q.ctx, f)
}

// fewJobs is a number of jobs below which a bounded count has examined all of them.
const fewJobs = maxCountScan / 5

// countIsExact reports whether a bounded count of the search is exact: an index has exactly the jobs of the search, or the store has few jobs.
func (s jobQuery) countIsExact(q *request) (bool, error) {
	f := s.filter
	indexed := f.DeadLetters || f.State == "" || f.State == holdfast.Queued || f.State == holdfast.Processing
	if indexed && !f.Retrying && !s.narrows() {
		return true, nil
	}
	n, err := countBounded(q, store.Filter{})
	return n < fewJobs, err
}

// tabStates are the tabs, each with its term. Tabs that are cheap to count have a count.
var tabStates = []struct {
	title   string
	part    queryPart
	counted bool
}{
	{"All", queryPart{}, false}, {"Queued", queryPart{"state", "queued"}, true}, {"Processing", queryPart{"state", "processing"}, true}, {"Retrying", queryPart{"is", "retrying"}, true},
	{"Failed", queryPart{"state", "failed"}, false}, {"Dead letters", queryPart{"is", "dead"}, true}, {"Complete", queryPart{"state", "complete"}, false}, {"Cancelled", queryPart{"state", "cancelled"}, false},
}

// tabs builds the tabs. They have counts only if the search has no other terms than a state.
func (l *jobList) tabs(q *request, search jobQuery) error {
	state, queued := "", 0
	for _, part := range search.parts {
		if part.name == "state" || part.name == "is" {
			state += " " + part.String()
		}
	}
	for _, one := range tabStates {
		tab := jobTab{Title: one.title, Query: search.without("state is"), Here: state == ""}
		if one.part.name != "" {
			tab.Query, tab.Here = search.without("state is", one.part), state == " "+one.part.String()
		}
		if one.counted && !search.narrows() {
			n, err := countBounded(q, parseJobs(one.part.String()).filter)
			if err != nil {
				return err
			}
			tab.Count = capped(n)
			if one.title == "Queued" {
				queued = n
			}
			if one.title == "Retrying" && queued >= fewJobs && n < ops.MaxCounted {
				tab.Count += "+" // counted among the first queued jobs only
			}
		}
		l.Tabs = append(l.Tabs, tab)
	}
	return nil
}

// address returns the URL of a list with the visitor's columns and page size.
func (l *jobList) address(q *request, text, cursor string) string {
	query := url.Values{}
	limit := ""
	if !l.DefaultLimit {
		limit = strconv.Itoa(l.Limit)
	}
	for name, value := range map[string]string{"q": text, "cursor": cursor, "columns": l.Chosen, "limit": limit} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if len(query) == 0 {
		return q.link("/jobs")
	}
	return q.link("/jobs?" + query.Encode())
}
