package inspect

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// expiredCode is the code of a job that could not start in time.
const expiredCode = "JOB_EXPIRED"

// readFacts fills in the events of jobs from rows that do not change: whose job it is, and what happened to it under
// that token.
func (i *Inspector) readFacts(ctx context.Context, events []feedEvent) error {
	var named idList
	for n := range events {
		if t := &events[n]; !t.Job.IsZero() {
			named.add(n, t.Job, t.Token)
		}
	}
	return i.queryByID(ctx, "inspect_event_details", &named, func(n int, r Row) {
		t := &events[n]
		t.Kind, t.Queue, t.Owner, t.Group = r.Text(1), r.Text(2), r.Text(3), r.ID(4)
		if t.line == 0 {
			t.fillDetails(r)
		}
	})
}

// fillDetails fills in an event of a job from a row of the statement inspect_event_details.
func (t *feedEvent) fillDetails(r Row) {
	if !r.Null(6) {
		t.Generation = r.Int(6) // also for an attempt that is still running
	}
	switch t.Name {
	case store.EventQueued:
		t.Generation = 1
		if !r.Null(5) {
			t.At = r.Time(5)
		}
	case store.EventRetry, store.EventReleased:
		t.fillAttempt(r, holdfast.Queued)
	case store.EventComplete, store.EventFailed, store.EventCancelled:
		t.fillEnd(r)
		t.fillAttempt(r, holdfast.State(t.Name))
		switch {
		case t.Name == store.EventFailed && t.Code == expiredCode:
			t.Name = store.EventExpired
		case t.Name == store.EventFailed && !r.Null(24) && r.Bool(24) && holdfast.State(r.Text(7)) == holdfast.Failed:
			t.Name = store.EventBenign
		}
	}
}

// fillAttempt fills in the attempt under the event's token, if that attempt led to the state of the event. A job that
// is cancelled while it is queued has the token of an earlier attempt.
func (t *feedEvent) fillAttempt(r Row, to holdfast.State) {
	if holdfast.State(r.Text(7)) != to {
		return
	}
	t.Generation, t.At, t.Took, t.Attempt, t.DueAt = r.Int(6), r.Time(9), max(0, r.Time(9).Sub(r.Time(8))), r.Int(10), r.Time(11)
	t.Code, t.Message = r.Text(12), r.Text(13)
	if context := r.Text(14); context != "" {
		// A context that cannot be read is left out: it must not cause another failure.
		_ = json.Unmarshal([]byte(context), &t.Context)
	}
}

// fillEnd fills in the job's end, or what its tombstone says of it. A retried job may have ended once more under the
// same token: that is a later end than the one of this event.
func (t *feedEvent) fillEnd(r Row) {
	if finished := r.Time(18); r.Text(16) == t.Name && (t.Name != store.EventCancelled || !finished.After(t.At)) {
		t.Generation, t.At, t.Code = r.Int(15), finished, r.Text(20)
		if t.Name == store.EventComplete {
			t.Attempt = r.Int(19) + 1
			if !r.Null(17) {
				t.Took = max(0, finished.Sub(r.Time(17)))
			}
		}
	}
	if finished := r.Time(22); r.Text(21) == t.Name && !finished.After(t.At) {
		t.At, t.Code = finished, r.Text(23)
	}
}

// groupOf returns the group that a subject names.
func groupOf(subject string) (holdfast.ID, bool) {
	text, is := strings.CutPrefix(subject, "group/")
	if !is {
		return holdfast.ID{}, false
	}
	group, err := holdfast.ParseID(text)
	return group, err == nil
}
