// Package rule holds the decisions that every store makes the same way: whether a job or a group may be changed as an
// operator asks, what an edit changes, when the status of an error group changes, and the exact text of every refusal. A
// store reads the facts under its own locks, calls this package, and writes the result. All functions are pure: they read
// no clock and no database.
package rule

import (
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// Machine is the actor of changes that a store makes by itself.
const Machine = "holdfast"

// A Job is what a store has read of a job when an operator intervenes.
type Job struct {
	ID        holdfast.ID
	State     holdfast.State
	Ready     bool      // queued: claimable now
	Waits     bool      // queued: waits for other members of its group, or for others of its line, to end
	Tried     bool      // an attempt of this generation has ended
	Discarded bool      // failed: no longer a dead letter
	ExpireAt  time.Time // no attempt starts after this time; zero: no limit
	Claimed   time.Time // processing: when its batch was claimed
	Until     time.Time // processing: when its lease expires
}

// DeadLetter reports whether the job failed and was not discarded.
func (j *Job) DeadLetter() bool { return j.State == holdfast.Failed && !j.Discarded }

func (j *Job) expired(now time.Time) bool { return !j.ExpireAt.IsZero() && !j.ExpireAt.After(now) }

// Retry refuses a manual retry of a job that is not failed, not waiting for an automatic retry and not stuck. A processing
// job is stuck past its lease, or when it was claimed stuckAfter ago (0: only past its lease). A failed job also needs its
// unique key, see [KeyHeld].
func Retry(j Job, stuckAfter time.Duration, now time.Time) error {
	switch {
	case j.State == holdfast.Failed:
	case j.State == holdfast.Processing:
		if j.Until.After(now) && (stuckAfter <= 0 || j.Claimed.After(now.Add(-stuckAfter))) {
			return conflict(j.ID, "is being processed: cancel it, or retry it once its lease has expired")
		}
	case j.State.Terminal():
		return conflict(j.ID, "is %s: only a failed job can be retried", j.State)
	case j.Waits:
		return conflict(j.ID, "waits for other jobs: it starts when they have ended")
	case j.Ready || !j.Tried:
		return conflict(j.ID, "is already waiting to run")
	}
	return InTime(j, now)
}

// InTime refuses a new generation of a job whose expiry has passed.
func InTime(j Job, now time.Time) error {
	if j.expired(now) {
		return conflict(j.ID, "has passed its expiry, so no attempt could start: enqueue it again")
	}
	return nil
}

// Cancel returns the state of a job right after it is cancelled: cancelled if it was queued, processing if its worker is
// asked to stop.
func Cancel(j Job) (holdfast.State, error) {
	switch {
	case j.State.Terminal():
		return "", conflict(j.ID, "is %s already: there is nothing to cancel", j.State)
	case j.State == holdfast.Processing:
		return holdfast.Processing, nil
	}
	return holdfast.Cancelled, nil
}

// CheckDiscard refuses a discard without a reason, before a store reads the job.
func CheckDiscard(i *store.Intervention) error {
	if err := i.Check(); err != nil {
		return err
	}
	if i.Reason == "" {
		return invalid("a discard without a reason: say why the job is no longer needed")
	}
	return nil
}

// Discard refuses to discard a job that is not a dead letter.
func Discard(j Job) error {
	switch {
	case j.State != holdfast.Failed:
		return conflict(j.ID, "is %s: only a failed job can be discarded", j.State)
	case j.Discarded:
		return conflict(j.ID, "is already discarded")
	}
	return nil
}

// Hold refuses a hold that an operator cannot place or lift.
func Hold(h *store.Hold) error {
	if err := h.Check(); err != nil {
		return err
	}
	i := store.Intervention{Actor: h.Actor, Reason: h.Reason}
	return i.Check()
}

// Batch refuses a limit that is not positive.
func Batch(call string, limit int) error {
	if limit <= 0 {
		return invalid("%s with a limit of %d: give a positive limit", call, limit)
	}
	return nil
}

// DeleteHistory refuses an unknown history, a negative age, a limit that is not positive, and audit-log entries that are too young
// to be deleted.
func DeleteHistory(history string, older time.Duration, limit int) error {
	switch history {
	case store.HistoryFeed, store.HistoryStories, store.HistoryCounts, store.HistoryTombstones:
	default:
		return invalid("there is no history %.40q: use feed, story, counts or tombstones", history)
	}
	if older < 0 {
		return invalid("older than %v: give a duration that is not negative", older)
	}
	if history == store.HistoryStories && older < MinStory {
		return invalid("story entries older than %v: they are the audit log and are kept for at least %v", older, MinStory)
	}
	return Batch("delete history", limit)
}

// Lease refuses a lease duration that no store supports.
func Lease(d time.Duration) error {
	if d < time.Microsecond || d > check.MaxDelay {
		return invalid("a lease of %v: give a duration between 1µs and 100 years", d)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrNotFound, Message: fmt.Sprintf(format, args...)}
}

func conflict(job holdfast.ID, format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrConflict, Job: job, Message: fmt.Sprintf("job %v ", job) + fmt.Sprintf(format, args...)}
}
