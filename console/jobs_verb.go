package console

import (
	"errors"
	"strings"

	"github.com/holdfastdev/holdfast"
)

// A bulkVerb is what can be done with many jobs at once.
type bulkVerb struct {
	Name, Title string
	Did         string // what was done to a job then
	About       string // what it means
	Danger      bool
	Reason      string // required or optional
	cannot      func(job holdfast.Job) *whyNot
	do          func(q *ask, id holdfast.ID) (asked bool, err error)
}

// A whyNot is a reason that several jobs may share.
type whyNot struct{ one, many string }

// of says it of so many jobs.
func (w whyNot) of(n int) string {
	if n == 1 {
		return "1 " + w.one
	}
	return num(n) + " " + w.many
}

// It says it of one job.
func (w whyNot) It() string { return "It " + w.one + "." }

var (
	isGone      = whyNot{"is not there any more", "are not there any more"}
	isTaken     = whyNot{"has a unique key that another job has taken", "have a unique key that another job has taken"}
	isRefused   = whyNot{"was refused", "were refused"}
	isDiscarded = whyNot{"is discarded already", "are discarded already"}
	isBusy      = whyNot{"is being processed", "are being processed"}
	isReady     = whyNot{"is waiting to run already", "are waiting to run already"}
	isMember    = whyNot{"waits for members of its group", "wait for members of their groups"}
)

func isState(s holdfast.State) *whyNot { return &whyNot{"is " + string(s), "are " + string(s)} }

var bulkVerbs = []bulkVerb{
	{Name: "retry", Title: "Retry", Did: "retried", Reason: "optional", cannot: cannotRetry,
		About: "Each job starts again at once, as a new generation with fresh counts.",
		do: func(q *ask, id holdfast.ID) (bool, error) {
			_, err := q.desk.Retry(q.ctx, q.on(id))
			return false, err
		}},
	{Name: "cancel", Title: "Cancel", Did: "cancelled", Reason: "optional", Danger: true, cannot: cannotCancel,
		About: "Queued jobs end at once. Jobs that are processed are asked to stop, and end as soon as their worker has let go.",
		do: func(q *ask, id holdfast.ID) (bool, error) {
			state, err := q.desk.Cancel(q.ctx, q.on(id))
			return state == holdfast.Processing, err
		}},
	{Name: "discard", Title: "Discard", Did: "discarded", Reason: "required", Danger: true, cannot: cannotDiscard,
		About: "They leave the dead letters. They can still be found, and retried, until retention deletes them.",
		do:    func(q *ask, id holdfast.ID) (bool, error) { return false, q.desk.Discard(q.ctx, q.on(id)) }},
}

// verbOf finds a verb by its name.
func verbOf(name string) (bulkVerb, error) {
	for _, one := range bulkVerbs {
		if one.Name == name {
			return one, nil
		}
	}
	return bulkVerb{}, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "choose what to do with the jobs: retry, cancel or discard"}
}

// Jobs is the verb with so many jobs, for a button.
func (v bulkVerb) Jobs(n int) string { return v.Title + " " + plural(n, "job") }

func cannotRetry(job holdfast.Job) *whyNot {
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
		if !job.DueAt.After(job.AsOf) || job.Failures+job.Crashes+job.Interrupts == 0 {
			return &isReady
		}
		return nil
	}
	return isState(job.State)
}

func cannotCancel(job holdfast.Job) *whyNot {
	if job.State.Terminal() {
		return isState(job.State)
	}
	return nil
}

func cannotDiscard(job holdfast.Job) *whyNot {
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

// A bulkSpared is a job that was left as it was, and why.
type bulkSpared struct {
	Job  holdfast.Job // its id and what is known of it
	Text string       // what was said about it
	Kept bool         // it was asked for by its id, or tried: it stays selected
	why  whyNot
}

// spare finds out why a job was refused: from how it stands now, or else from what was said.
func (v bulkVerb) spare(q *ask, id holdfast.ID, said error) bulkSpared {
	s := bulkSpared{Job: holdfast.Job{ID: id}, Text: sentence(said), Kept: true, why: isRefused}
	var ours *holdfast.Error
	job, err := q.desk.Job(q.ctx, id)
	if err == nil {
		s.Job = holdfast.Job{ID: id, Kind: job.Kind, State: job.State, Discarded: job.Discarded}
	}
	switch {
	case errors.Is(said, holdfast.ErrNotFound) || errors.Is(said, holdfast.ErrPurged):
		s.why = isGone
	case err == nil && v.cannot(job) != nil:
		s.why = *v.cannot(job)
	case errors.As(said, &ours) && !ours.Job.IsZero() && ours.Job != id:
		s.why = isTaken
	}
	return s
}

// A reasonCount is how many jobs share a reason.
type reasonCount struct {
	why whyNot
	n   int
}

// Text is the reason in words.
func (r reasonCount) Text() string { return r.why.of(r.n) }

// A reasonTally counts reasons, in the order in which they came.
type reasonTally []reasonCount

func (t *reasonTally) add(why whyNot) {
	for i := range *t {
		if (*t)[i].why == why {
			(*t)[i].n++
			return
		}
	}
	*t = append(*t, reasonCount{why, 1})
}

// sum is how many there are in all.
func (t reasonTally) sum() (n int) {
	for _, one := range t {
		n += one.n
	}
	return n
}

// Text lists them.
func (t reasonTally) Text() string {
	texts := make([]string, len(t))
	for i, one := range t {
		texts[i] = one.Text()
	}
	return strings.Join(texts, ", ")
}
