package console

import (
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A bulkScreen runs actions on many jobs and keeps the last outcomes in memory.
type bulkScreen struct {
	mu   sync.Mutex
	last []*bulkOutcome // the newest at the end
}

// maxOutcomes is the number of outcomes that are kept. The story of each job has its change, too.
const maxOutcomes = 50

// A bulkOutcome is the result of one bulk request.
type bulkOutcome struct {
	*bulkScan
	ID      holdfast.ID
	Verb    bulkVerb
	Query   string
	All     bool
	Reason  string
	Back    string
	At      time.Time
	Did     int
	Asked   int           // processing jobs that were asked to stop
	Left    []holdfast.ID // not reached
	Problem string        // the error that stopped it
}

// finished reports whether all selected jobs were changed.
func (o *bulkOutcome) finished() bool { return o.reasons.sum() == 0 && len(o.Left) == 0 && !o.more }

// Summary returns the result in a sentence.
func (o *bulkOutcome) Summary() string {
	text := "No job was " + o.Verb.Did
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
		text += ", " + num(n) + " skipped: " + o.reasons.Text()
	}
	text += "."
	if o.Problem != "" {
		text += " " + o.Problem
	}
	switch {
	case o.more:
		text += " More jobs match: continue to include them."
	case len(o.Left) > 0:
		text += " " + plural(len(o.Left), "job") + " left: continue to include them."
	}
	return text
}

// kept returns the jobs that stay selected.
func (o *bulkOutcome) kept() (ids []holdfast.ID) {
	for _, one := range o.skipped {
		if one.Kept {
			ids = append(ids, one.Job.ID)
		}
	}
	return ids
}

// remember stores an outcome for its page.
func (s *bulkScreen) remember(o *bulkOutcome) {
	o.can, o.from, o.states = nil, nil, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last = append(s.last, o); len(s.last) > maxOutcomes {
		s.last = s.last[1:]
	}
}

// A bulkResult is the data of the page of an outcome.
type bulkResult struct {
	*bulkOutcome
	Summary string
	Skipped []bulkSkipped
	Listed  bool // more were skipped than are listed
	Kept    int  // still selected
	More    bool
	Cursor  string
	Verbs   []bulkVerb
}

// show renders the preview of a selection, or an outcome.
func (s *bulkScreen) show(q *request) (page, error) {
	if of := q.text("outcome"); of != "" {
		return s.result(of)
	}
	return s.preview(q)
}

// result renders an outcome with the skipped jobs.
func (s *bulkScreen) result(of string) (page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.last {
		if one.ID.String() == of {
			data := bulkResult{bulkOutcome: one, Summary: one.Summary(), Skipped: one.skipped, Kept: len(one.kept()), Listed: one.reasons.sum() > len(one.skipped), More: one.more, Cursor: one.cursor, Verbs: bulkVerbs}
			return page{name: "jobs_bulk_outcome", title: one.Verb.Title + " jobs", here: "jobs", data: data}, nil
		}
	}
	return page{}, &holdfast.Error{Err: holdfast.ErrNotFound, Message: "the result of this action is no longer available: see the jobs, or the audit log"}
}
