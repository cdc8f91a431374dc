package console

import (
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A bulkScreen acts on many jobs at once, and remembers for a while what became of them.
type bulkScreen struct {
	mu   sync.Mutex
	last []*bulkOutcome // the newest at the end
}

// mostOutcomes is how many are remembered. Jobs tell their own story besides.
const mostOutcomes = 50

// A bulkOutcome is what one press of a button did.
type bulkOutcome struct {
	*bulkLook
	ID      holdfast.ID
	Verb    bulkVerb
	Query   string
	All     bool
	Reason  string
	Back    string
	At      time.Time
	Did     int
	Asked   int           // jobs that are processed, and were asked to stop
	Left    []holdfast.ID // not reached
	Trouble string        // why it stopped before its time
}

// over reports whether everything was done, to all of them.
func (o *bulkOutcome) over() bool { return o.reasons.sum() == 0 && len(o.Left) == 0 && !o.more }

// Summary is what became of them, once and in full.
func (o *bulkOutcome) Summary() string {
	text := "Nothing was " + o.Verb.Did
	switch {
	case o.Did > 0:
		text = plural(o.Did, "job") + " " + o.Verb.Did
	case o.Asked > 0:
		text = ""
	}
	if o.Asked > 0 {
		if text != "" {
			text += ", "
		}
		text += plural(o.Asked, "job") + " asked to stop"
	}
	if n := o.reasons.sum(); n > 0 {
		text += ", " + num(n) + " could not be: " + o.reasons.Text()
	}
	text += "."
	if o.Trouble != "" {
		text += " " + o.Trouble
	}
	switch {
	case o.more:
		text += " There are more that match: go on."
	case len(o.Left) > 0:
		text += " " + plural(len(o.Left), "job") + " not reached yet: go on."
	}
	return text
}

// kept are the jobs that stay selected.
func (o *bulkOutcome) kept() (ids []holdfast.ID) {
	for _, one := range o.spared {
		if one.Kept {
			ids = append(ids, one.Job.ID)
		}
	}
	return ids
}

// remember keeps an outcome for the page that shows it.
func (s *bulkScreen) remember(o *bulkOutcome) {
	o.can, o.from, o.states = nil, nil, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last = append(s.last, o); len(s.last) > mostOutcomes {
		s.last = s.last[1:]
	}
}

// A bulkResult is what the page about an outcome shows.
type bulkResult struct {
	*bulkOutcome
	Summary string
	Spared  []bulkSpared
	Listed  bool // more were spared than are listed
	Kept    int  // still selected
	More    bool
	Cursor  string
	Verbs   []bulkVerb
}

// show is a preview of what is selected, or what became of it.
func (s *bulkScreen) show(q *ask) (page, error) {
	if of := q.text("outcome"); of != "" {
		return s.result(of)
	}
	return s.preview(q)
}

// result shows what became of many jobs, and those that were left as they were.
func (s *bulkScreen) result(of string) (page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.last {
		if one.ID.String() == of {
			data := bulkResult{bulkOutcome: one, Summary: one.Summary(), Spared: one.spared, Kept: len(one.kept()), Listed: one.reasons.sum() > len(one.spared), More: one.more, Cursor: one.cursor, Verbs: bulkVerbs}
			return page{name: "jobs_outcome", title: one.Verb.Title + " jobs", here: "jobs", data: data}, nil
		}
	}
	return page{}, &holdfast.Error{Kind: holdfast.ErrNotFound, Message: "what became of these jobs is not remembered any more: look at the jobs, or at the audit"}
}
