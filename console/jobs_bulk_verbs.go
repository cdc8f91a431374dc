package console

import (
	"errors"
	"strings"

	"github.com/holdfastdev/holdfast"
)

// A bulkVerb is an action on many jobs.
type bulkVerb struct {
	Name, Title string
	Did         string // past participle, for messages
	About       string // explanation for the preview
	Danger      bool
	Reason      string // required or optional
	cannot      func(job holdfast.Job) *skipReason
	do          func(q *request, id holdfast.ID) (asked bool, err error)
}

// A skipReason is a reason why jobs are not changed, in singular and plural.
type skipReason struct{ one, many string }

// of returns the reason for n jobs.
func (w skipReason) of(n int) string {
	if n == 1 {
		return "1 " + w.one
	}
	return num(n) + " " + w.many
}

// It returns the reason as a sentence about one job.
func (w skipReason) It() string { return "It " + w.one + "." }

var (
	isGone      = skipReason{"no longer exists", "no longer exist"}
	isTaken     = skipReason{"has a unique key that another job holds", "have a unique key that another job holds"}
	isRefused   = skipReason{"was refused", "were refused"}
	isDiscarded = skipReason{"is already discarded", "are already discarded"}
	isBusy      = skipReason{"is processing", "are processing"}
	isReady     = skipReason{"is already queued", "are already queued"}
	isMember    = skipReason{"waits for other jobs", "wait for other jobs"}
)

func isState(s holdfast.State) *skipReason { return &skipReason{"is " + string(s), "are " + string(s)} }

var bulkVerbs = []bulkVerb{
	{Name: "retry", Title: "Retry", Did: "retried", Reason: "optional", cannot: cannotRetry,
		About: "Each job is queued now, as a new generation. Its counters start at zero.",
		do: func(q *request, id holdfast.ID) (bool, error) {
			_, err := q.operator.Retry(q.ctx, q.on(id))
			return false, err
		}},
	{Name: "cancel", Title: "Cancel", Did: "cancelled", Reason: "optional", Danger: true, cannot: cannotCancel,
		About: "Queued jobs end now. Processing jobs are asked to stop and end when their worker stops them.",
		do: func(q *request, id holdfast.ID) (bool, error) {
			state, err := q.operator.Cancel(q.ctx, q.on(id))
			return state == holdfast.Processing, err
		}},
	{Name: "discard", Title: "Discard", Did: "discarded", Reason: "required", Danger: true, cannot: cannotDiscard,
		About: "The jobs are removed from the dead letters. They can be retried until retention deletes them.",
		do:    func(q *request, id holdfast.ID) (bool, error) { return false, q.operator.Discard(q.ctx, q.on(id)) }},
}

// verbOf returns a verb by its name.
func verbOf(name string) (bulkVerb, error) {
	for _, one := range bulkVerbs {
		if one.Name == name {
			return one, nil
		}
	}
	return bulkVerb{}, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "choose an action: retry, cancel or discard"}
}

// Jobs returns the label of a button for n jobs.
func (v bulkVerb) Jobs(n int) string { return v.Title + " " + plural(n, "job") }

func cannotRetry(job holdfast.Job) *skipReason {
	switch job.State {
	case holdfast.Failed:
		return nil
	case holdfast.Processing:
		if !job.LeaseUntil.IsZero() && job.LeaseUntil.Before(job.AsOf) {
			return nil
		}
		return &isBusy
	case holdfast.Queued:
		if job.Waiting {
			return &isMember
		}
		if !job.DueAt.After(job.AsOf) || job.Failures+job.Crashes+job.Releases == 0 {
			return &isReady
		}
		return nil
	}
	return isState(job.State)
}

func cannotCancel(job holdfast.Job) *skipReason {
	if job.State.Terminal() {
		return isState(job.State)
	}
	return nil
}

func cannotDiscard(job holdfast.Job) *skipReason {
	switch {
	case job.State == holdfast.Processing:
		return &isBusy
	case job.State != holdfast.Failed:
		return isState(job.State)
	case job.Discarded:
		return &isDiscarded
	}
	return nil
}

// A bulkSkipped is a job that was not changed, and why.
type bulkSkipped struct {
	Job  holdfast.Job // only id, kind, state and discarded are set
	Text string       // the reason, as a sentence
	Kept bool         // it stays selected
	why  skipReason
}

// skip returns why a job was refused: from its current state, or else from the error.
func (v bulkVerb) skip(q *request, id holdfast.ID, refused error) bulkSkipped {
	s := bulkSkipped{Job: holdfast.Job{ID: id}, Text: sentence(refused), Kept: true, why: isRefused}
	var ours *holdfast.Error
	job, err := q.operator.Job(q.ctx, id)
	if err == nil {
		s.Job = holdfast.Job{ID: id, Kind: job.Kind, State: job.State, Discarded: job.Discarded}
	}
	switch {
	case errors.Is(refused, holdfast.ErrNotFound) || errors.Is(refused, holdfast.ErrPurged):
		s.why = isGone
	case err == nil && v.cannot(job) != nil:
		s.why = *v.cannot(job)
	case errors.As(refused, &ours) && !ours.Job.IsZero() && ours.Job != id:
		s.why = isTaken
	}
	return s
}

// A reasonCount is the number of jobs with a reason.
type reasonCount struct {
	why skipReason
	n   int
}

// Text returns the reason with its count.
func (r reasonCount) Text() string { return r.why.of(r.n) }

// reasonCounts counts reasons, in the order of their first occurrence.
type reasonCounts []reasonCount

func (t *reasonCounts) add(why skipReason) {
	for i := range *t {
		if (*t)[i].why == why {
			(*t)[i].n++
			return
		}
	}
	*t = append(*t, reasonCount{why, 1})
}

// sum returns the number of jobs.
func (t reasonCounts) sum() (n int) {
	for _, one := range t {
		n += one.n
	}
	return n
}

// Text returns all reasons as a list.
func (t reasonCounts) Text() string {
	texts := make([]string, len(t))
	for i, one := range t {
		texts[i] = one.Text()
	}
	return strings.Join(texts, ", ")
}
