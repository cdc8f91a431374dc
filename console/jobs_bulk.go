package console

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

const (
	maxPerAction   = 2000            // jobs that one request changes
	maxActionScan  = 10_000          // matching jobs that one request examines to find them
	maxPreviewScan = 400             // matching jobs that a preview examines
	maxListed      = 200             // skipped jobs that are listed with their reasons
	maxPreviewed   = 20              // skipped jobs that a preview lists
	actionTimeout  = 8 * time.Second // then the request stops and reports how far it came
)

// A bulkSelection is a selection of jobs: by id, or all that match a search.
type bulkSelection struct {
	verb   bulkVerb
	all    bool
	search jobQuery
	cursor string // with all: where to continue
	ids    []holdfast.ID
}

// bulkSelectionOf reads a selection from a form.
func bulkSelectionOf(q *request) (c bulkSelection, err error) {
	if c.verb, err = verbOf(q.text("verb")); err != nil {
		return c, err
	}
	c.all, c.cursor, c.search = q.text("all") == "1", q.text("cursor"), parseJobs(q.FormValue("q"))
	if c.all && c.search.problem != "" {
		return c, &holdfast.Error{Err: holdfast.ErrInvalid, Message: c.search.problem}
	}
	if c.all {
		return c, nil
	}
	c.cursor = ""
	seen := map[holdfast.ID]bool{}
	for _, text := range q.Form["job"] {
		id, err := holdfast.ParseID(text)
		if err != nil {
			return c, err
		}
		if !seen[id] {
			seen[id] = true
			c.ids = append(c.ids, id)
		}
	}
	switch {
	case len(c.ids) == 0:
		err = &holdfast.Error{Err: holdfast.ErrInvalid, Message: "no job is selected: go back and select jobs, or all that match"}
	case len(c.ids) > maxPerAction:
		err = &holdfast.Error{Err: holdfast.ErrInvalid, Message: "more than " + num(maxPerAction) + " jobs are selected: select fewer, or all that match"}
	}
	return c, err
}

// A bulkScan is the result of examining a selection.
type bulkScan struct {
	can     []holdfast.ID
	skipped []bulkSkipped
	reasons reasonCounts
	states  map[string]int
	looked  int    // jobs examined
	cursor  string // with all: where to continue when there is more
	more    bool
	from    map[holdfast.ID]string // with all: the cursor of the page of each job
}

func (g *bulkScan) add(v bulkVerb, job holdfast.Job) {
	g.looked++
	g.states[string(job.State)]++
	why := v.cannot(job)
	if why == nil {
		g.can = append(g.can, job.ID)
		return
	}
	g.skip(bulkSkipped{Job: holdfast.Job{ID: job.ID, Kind: job.Kind, State: job.State, Discarded: job.Discarded}, Text: why.It(), why: *why})
}

// skip counts a job that is not changed, and lists the first maxListed of them.
func (g *bulkScan) skip(one bulkSkipped) {
	g.reasons.add(one.why)
	if len(g.skipped) < maxListed {
		g.skipped = append(g.skipped, one)
	}
}

// scan examines the selection before anything is changed. With all it stops at limits of jobs, of examined jobs and of time.
func (c bulkSelection) scan(q *request, jobs, maxLooked int) (*bulkScan, error) {
	g := &bulkScan{states: map[string]int{}, from: map[holdfast.ID]string{}}
	if !c.all {
		for _, id := range c.ids {
			job, err := q.operator.Job(q.ctx, id)
			switch {
			case errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged):
				g.looked++
				g.skip(bulkSkipped{Job: holdfast.Job{ID: id}, Text: sentence(err), why: isGone})
			case err != nil:
				return g, err
			default:
				g.add(c.verb, job)
			}
		}
		return g, nil
	}
	for at, begun, pages := c.cursor, time.Now(), 1; ; pages++ {
		page, next, _, err := c.search.page(q, maxListed, at)
		if err != nil {
			return g, err
		}
		for _, job := range page {
			g.from[job.ID] = at
			g.add(c.verb, job)
		}
		if at = next; at == "" {
			return g, nil
		}
		if len(g.can) >= jobs || g.looked >= maxLooked || pages*maxListed >= maxLooked || time.Since(begun) > actionTimeout/2 {
			g.more, g.cursor = true, at
			return g, nil
		}
	}
}

// A bulkPreview is the data of the preview page.
type bulkPreview struct {
	Verb    bulkVerb
	All     bool
	Query   string
	Jobs    []holdfast.ID
	Count   int // jobs that would be changed, among those examined
	Looked  int
	More    bool // there are more than were examined
	Button  string
	States  []bulkState
	Reasons reasonCounts
	Skipped []bulkSkipped
	Listed  bool // more would be skipped than are listed
	Back    string
	Redrive string
	Most    int
}

// A bulkState is the number of selected jobs in a state.
type bulkState struct {
	State string
	N     int
}

// preview shows the effect of an action. It needs the scope operator.
func (s *bulkScreen) preview(q *request) (page, error) {
	if !q.may(apikey.Operator) {
		return page{}, &forbidden{text: "This needs the scope " + string(apikey.Operator) + "."}
	}
	chosen, err := bulkSelectionOf(q)
	if err != nil {
		return page{}, err
	}
	g, err := chosen.scan(q, maxPreviewScan, maxPreviewScan)
	if err != nil {
		return page{}, err
	}
	p := bulkPreview{
		Verb: chosen.verb, All: chosen.all, Query: chosen.search.text, Jobs: g.can, Count: len(g.can), Looked: g.looked, More: g.more,
		Reasons: g.reasons, Skipped: g.skipped[:min(len(g.skipped), maxPreviewed)], Listed: g.reasons.sum() > maxPreviewed, Back: s.backTo(q), Most: maxPerAction,
	}
	p.Button = p.Verb.Jobs(p.Count)
	if p.All {
		p.Jobs = nil
	}
	if p.More {
		p.Button = p.Verb.Title + " up to " + num(maxPerAction) + " jobs"
	}
	for _, one := range []holdfast.State{holdfast.Queued, holdfast.Processing, holdfast.Complete, holdfast.Failed, holdfast.Cancelled} {
		if n := g.states[string(one)]; n > 0 {
			p.States = append(p.States, bulkState{string(one), n})
		}
	}
	if to := chosen.search.redrive(); p.All && to != "" && chosen.verb.Name == "retry" && g.states[string(holdfast.Failed)] > 0 {
		p.Redrive = q.link(to)
	}
	return page{name: "jobs_bulk", title: p.Verb.Title + " jobs", here: "jobs", data: p}, nil
}

// backTo returns the list that the visitor came from.
func (s *bulkScreen) backTo(q *request) string {
	if q.FormValue("back") == "" {
		return q.link("/jobs")
	}
	return q.back()
}

// act changes the selected jobs one after the other and returns one summary.
func (s *bulkScreen) act(q *request) (actionResult, error) {
	chosen, err := bulkSelectionOf(q)
	if err != nil {
		return actionResult{to: "/jobs"}, err
	}
	o := &bulkOutcome{ID: holdfast.NewID(), Verb: chosen.verb, Query: chosen.search.text, All: chosen.all, Reason: q.text("reason"), Back: s.backTo(q), At: q.now}
	if chosen.verb.Reason == "required" && o.Reason == "" {
		again := url.Values{"verb": {chosen.verb.Name}, "back": {o.Back}, "q": {chosen.search.text}, "job": q.Form["job"]}
		if chosen.all {
			again["all"] = []string{"1"}
		}
		return actionResult{to: "/jobs/bulk?" + again.Encode()}, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "nothing was changed: give a reason for discarding these jobs"}
	}
	begun := time.Now()
	g := &bulkScan{can: chosen.ids, states: map[string]int{}}
	if chosen.all {
		if g, err = chosen.scan(q, maxPerAction, maxActionScan); err != nil {
			return actionResult{to: strings.TrimPrefix(o.Back, q.c.cfg.Prefix)}, err
		}
	}
	o.bulkScan = g
	o.run(q, g.can[:min(len(g.can), maxPerAction)], begun)
	if o.finished() {
		return actionResult{text: o.Summary(), to: strings.TrimPrefix(o.Back, q.c.cfg.Prefix)}, nil
	}
	s.remember(o)
	return actionResult{text: o.Summary(), to: "/jobs/bulk?outcome=" + o.ID.String(), bad: o.Did == 0, kept: o.kept()}, nil
}

// run changes the jobs until all are done, the time is up, or the store fails.
func (o *bulkOutcome) run(q *request, ids []holdfast.ID, begun time.Time) {
	for n, id := range ids {
		var asked bool
		err := context.Cause(q.ctx)
		if err == nil && time.Since(begun) < actionTimeout {
			asked, err = o.Verb.do(q, id)
		} else if err == nil {
			err = errTimeUp
		}
		switch {
		case err == nil && asked:
			o.Asked++
		case err == nil:
			o.Did++
		case errors.Is(err, holdfast.ErrConflict) || errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged):
			o.skip(o.Verb.skip(q, id, err))
		default:
			o.stopped(ids[n:], err)
			return
		}
	}
	if rest := o.can[len(ids):]; len(rest) > 0 {
		o.stopped(rest, errTimeUp)
	}
}

// errTimeUp means that the time limit of one request was reached.
var errTimeUp = errors.New("the time is up")

// stopped records the jobs that were not reached, and where to continue.
func (o *bulkOutcome) stopped(left []holdfast.ID, why error) {
	o.Left = left
	if !errors.Is(why, errTimeUp) {
		o.Problem = sentence(why)
	}
	if o.All {
		o.cursor, o.more = o.from[left[0]], true
	}
}
