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
	mostPerPress  = 2000            // jobs that one press of a button acts on
	mostPassed    = 10_000          // matching jobs that it looks at to find them
	mostSampled   = 400             // matching jobs that a preview looks at
	mostListed    = 200             // jobs that are listed with their reasons
	mostPreviewed = 20              // of them before anything is done
	pressWithin   = 8 * time.Second // then it says how far it came
)

// A bulkChoice is what somebody selected: jobs by their ids, or all that match a search.
type bulkChoice struct {
	verb   bulkVerb
	all    bool
	search jobQuery
	cursor string // with all: where to go on
	ids    []holdfast.ID
}

// bulkChoiceOf reads a selection.
func bulkChoiceOf(q *ask) (c bulkChoice, err error) {
	if c.verb, err = verbOf(q.text("verb")); err != nil {
		return c, err
	}
	c.all, c.cursor, c.search = q.text("all") == "1", q.text("cursor"), parseJobs(q.FormValue("q"))
	if c.all && c.search.problem != "" {
		return c, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: c.search.problem}
	}
	if c.all {
		return c, nil
	}
	c.cursor = ""
	met := map[holdfast.ID]bool{}
	for _, text := range q.Form["job"] {
		id, err := holdfast.ParseID(text)
		if err != nil {
			return c, err
		}
		if !met[id] {
			met[id] = true
			c.ids = append(c.ids, id)
		}
	}
	switch {
	case len(c.ids) == 0:
		err = &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "nothing is selected: go back and choose jobs, or all that match"}
	case len(c.ids) > mostPerPress:
		err = &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "more than " + num(mostPerPress) + " jobs are selected: choose fewer, or all that match"}
	}
	return c, err
}

// A bulkLook is a selection, looked at.
type bulkLook struct {
	can     []holdfast.ID
	spared  []bulkSpared
	reasons reasonTally
	states  map[string]int
	looked  int
	cursor  string // with all: where to go on when there is more
	more    bool
	from    map[holdfast.ID]string // with all: the cursor of the page that a job was on
}

func (g *bulkLook) add(v bulkVerb, job holdfast.Job) {
	g.looked++
	g.states[string(job.State)]++
	why := v.cannot(job)
	if why == nil {
		g.can = append(g.can, job.ID)
		return
	}
	g.leave(bulkSpared{Job: holdfast.Job{ID: job.ID, Kind: job.Kind, State: job.State, Discarded: job.Discarded}, Text: why.It(), why: *why})
}

// leave counts a job that is left as it is. The first of them are listed.
func (g *bulkLook) leave(one bulkSpared) {
	g.reasons.add(one.why)
	if len(g.spared) < mostListed {
		g.spared = append(g.spared, one)
	}
}

// gather looks at what is selected before anything is done, so that nothing depends on what moves meanwhile.
func (c bulkChoice) gather(q *ask, jobs, looks int) (*bulkLook, error) {
	g := &bulkLook{states: map[string]int{}, from: map[holdfast.ID]string{}}
	if !c.all {
		for _, id := range c.ids {
			job, err := q.desk.Job(q.ctx, id)
			switch {
			case errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged):
				g.looked++
				g.leave(bulkSpared{Job: holdfast.Job{ID: id}, Text: sentence(err), why: isGone})
			case err != nil:
				return g, err
			default:
				g.add(c.verb, job)
			}
		}
		return g, nil
	}
	for at, begun, pages := c.cursor, time.Now(), 1; ; pages++ {
		page, next, _, err := c.search.page(q, mostListed, at)
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
		if len(g.can) >= jobs || g.looked >= looks || pages*mostListed >= looks || time.Since(begun) > pressWithin/2 {
			g.more, g.cursor = true, at
			return g, nil
		}
	}
}

// A bulkPreview is what the page shows before anything is done.
type bulkPreview struct {
	Verb    bulkVerb
	All     bool
	Query   string
	Jobs    []holdfast.ID
	Count   int // that it will be done to, as far as was looked
	Looked  int
	More    bool // there is more than was looked at
	Button  string
	States  []bulkState
	Reasons reasonTally
	Spared  []bulkSpared
	Listed  bool // more would be left than are listed
	Back    string
	Redrive string
	Most    int
}

// A bulkState is how many of the selected jobs stand in a state.
type bulkState struct {
	State string
	N     int
}

// preview shows what would happen. It is for those who may do it.
func (s *bulkScreen) preview(q *ask) (page, error) {
	if !q.may(apikey.Operator) {
		return page{}, &forbidden{text: "You may look, and not do this: it needs the scope " + string(apikey.Operator) + "."}
	}
	chosen, err := bulkChoiceOf(q)
	if err != nil {
		return page{}, err
	}
	g, err := chosen.gather(q, mostSampled, mostSampled)
	if err != nil {
		return page{}, err
	}
	p := bulkPreview{
		Verb: chosen.verb, All: chosen.all, Query: chosen.search.text, Jobs: g.can, Count: len(g.can), Looked: g.looked, More: g.more,
		Reasons: g.reasons, Spared: g.spared[:min(len(g.spared), mostPreviewed)], Listed: g.reasons.sum() > mostPreviewed, Back: s.backTo(q), Most: mostPerPress,
	}
	p.Button = p.Verb.Jobs(p.Count)
	if p.All {
		p.Jobs = nil
	}
	if p.More {
		p.Button = p.Verb.Title + " up to " + num(mostPerPress) + " jobs"
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

// backTo is the list that the visitor came from.
func (s *bulkScreen) backTo(q *ask) string {
	if q.FormValue("back") == "" {
		return q.link("/jobs")
	}
	return q.back()
}

// act does it, to one job after the other, and says once what became of them.
func (s *bulkScreen) act(q *ask) (done, error) {
	chosen, err := bulkChoiceOf(q)
	if err != nil {
		return done{to: "/jobs"}, err
	}
	o := &bulkOutcome{ID: holdfast.NewID(), Verb: chosen.verb, Query: chosen.search.text, All: chosen.all, Reason: q.text("reason"), Back: s.backTo(q), At: q.now}
	if chosen.verb.Reason == "required" && o.Reason == "" {
		again := url.Values{"verb": {chosen.verb.Name}, "back": {o.Back}, "q": {chosen.search.text}, "job": q.Form["job"]}
		if chosen.all {
			again["all"] = []string{"1"}
		}
		return done{to: "/jobs/bulk?" + again.Encode()}, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "nothing was done: say why nobody needs these jobs any more"}
	}
	begun := time.Now()
	g := &bulkLook{can: chosen.ids, states: map[string]int{}}
	if chosen.all {
		if g, err = chosen.gather(q, mostPerPress, mostPassed); err != nil {
			return done{to: strings.TrimPrefix(o.Back, q.c.cfg.Prefix)}, err
		}
	}
	o.bulkLook = g
	o.work(q, g.can[:min(len(g.can), mostPerPress)], begun)
	if o.over() {
		return done{text: o.Summary(), to: strings.TrimPrefix(o.Back, q.c.cfg.Prefix)}, nil
	}
	s.remember(o)
	return done{text: o.Summary(), to: "/jobs/bulk?outcome=" + o.ID.String(), bad: o.Did == 0, kept: o.kept()}, nil
}

// work goes through the jobs until they are done, or the time is up, or the store does not answer.
func (o *bulkOutcome) work(q *ask, ids []holdfast.ID, begun time.Time) {
	for n, id := range ids {
		var asked bool
		err := context.Cause(q.ctx)
		if err == nil && time.Since(begun) < pressWithin {
			asked, err = o.Verb.do(q, id)
		} else if err == nil {
			err = errTime
		}
		switch {
		case err == nil && asked:
			o.Asked++
		case err == nil:
			o.Did++
		case errors.Is(err, holdfast.ErrConflict) || errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged):
			o.leave(o.Verb.spare(q, id, err))
		default:
			o.stopped(ids[n:], err)
			return
		}
	}
	if rest := o.can[len(ids):]; len(rest) > 0 {
		o.stopped(rest, errTime)
	}
}

// errTime: so much is enough for one press.
var errTime = errors.New("the time is up")

// stopped says that some jobs were not reached, and where to go on.
func (o *bulkOutcome) stopped(left []holdfast.ID, why error) {
	o.Left = left
	if !errors.Is(why, errTime) {
		o.Trouble = sentence(why)
	}
	if o.All {
		o.cursor, o.more = o.from[left[0]], true
	}
}
