package rule

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// NoJob is the error for a job that does not exist or belongs to another owner.
func NoJob(id holdfast.ID) error { return notFound("there is no job %v: check the id", id) }

// NoGroup is the error for a group that does not exist or belongs to another owner.
func NoGroup(id holdfast.ID) error { return notFound("there is no group %v: check the id", id) }

// NoErrorGroup is the error for an unknown fingerprint.
func NoErrorGroup(fingerprint string) error {
	return notFound("there is no error group %.80q: check the fingerprint", fingerprint)
}

// NoState is the error for a job that has facts but no state row: the store is damaged.
func NoState(id holdfast.ID) error {
	return conflict(id, "has no state row: run holdfast doctor")
}

// LeaseLost is the error for a worker that does not hold the lease it names.
func LeaseLost(job holdfast.ID) error {
	return &holdfast.Error{Err: holdfast.ErrLeaseLost, Job: job,
		Message: fmt.Sprintf("the lease on job %v is no longer held: stop working on it; the result is not applied", job)}
}

// NotCommitted answers a settlement that only asks whether it was applied, while its lease is still held.
func NotCommitted(job holdfast.ID) error {
	return conflict(job, "was not completed: the transaction in which it was completed has not committed")
}

// CheckCompletion refuses a settlement that cannot be applied in a transaction of the caller.
func CheckCompletion(s *store.Settlement) error {
	if err := s.Check(); err != nil {
		return err
	}
	if s.To != holdfast.Complete || s.Confirm {
		return invalid("a settlement to %q in a transaction of the caller: only complete is possible; settle other ends outside the transaction", s.To)
	}
	return nil
}

// RefusedDrafts refuses a settlement because one of the jobs that it enqueues was refused. The lease is still held.
func RefusedDrafts(job holdfast.ID, refusal error) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Job: job,
		Message: fmt.Sprintf("job %v was not completed, because a job that it enqueues was refused: %v", job, refusal)}
}

// IsRefusal reports whether an error says that drafts cannot be enqueued, and not that the store failed.
func IsRefusal(err error) bool {
	return errors.Is(err, holdfast.ErrInvalid) || errors.Is(err, holdfast.ErrConflict) || errors.Is(err, holdfast.ErrNotFound)
}

// HasDrafts reports whether any of the settlements enqueues jobs.
func HasDrafts(settlements []store.Settlement) bool {
	for i := range settlements {
		if len(settlements[i].Enqueue) > 0 {
			return true
		}
	}
	return false
}

// KeyHeld refuses to start a new generation of a job while another job has its unique key.
func KeyHeld(holder, job holdfast.ID) error {
	return &holdfast.Error{Err: holdfast.ErrConflict, Job: holder,
		Message: fmt.Sprintf("job %v holds the unique key of job %v: wait until it ends, or cancel it", holder, job)}
}

// KeyUsed refuses a draft whose idempotency key was used for a different draft.
func KeyUsed(key string, job holdfast.ID) error {
	return &holdfast.Error{Err: holdfast.ErrConflict, Job: job,
		Message: fmt.Sprintf("the idempotency key %q was used for another draft, job %v: send that draft again, or use a new key", key, job)}
}

// JobExists refuses a draft with the id of an existing job.
func JobExists(id holdfast.ID) error {
	return conflict(id, "exists already: leave the id out, or use a new one")
}

// GroupExists refuses a group with the id of an existing one.
func GroupExists(id holdfast.ID) error {
	return &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("group %v exists already: leave the id out, or use a new one", id)}
}

// RecordChanged refuses to write a record that has changed since the caller read it.
func RecordChanged(namespace, name string) error {
	return &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("record %s/%s has changed since it was read: read it again and decide again", namespace, name)}
}

// Drafts validates drafts and sets their defaults, all of them before a store writes the first. The error names every problem.
func Drafts(drafts []holdfast.Draft) error { return prepare(drafts, (*holdfast.Draft).Prepare) }

// Deliveries does the same for the deliveries of a change.
func Deliveries(drafts []holdfast.Draft) error {
	return prepare(drafts, (*holdfast.Draft).PrepareDelivery)
}

func prepare(drafts []holdfast.Draft, one func(*holdfast.Draft) error) error {
	var problems []error
	var texts []string
	for i := range drafts {
		err := one(&drafts[i])
		if err == nil {
			continue
		}
		text := strings.ReplaceAll(err.Error(), "\n", "; ")
		if len(drafts) > 1 {
			text = fmt.Sprintf("draft %d of %d: %s", i+1, len(drafts), text)
		}
		problems, texts = append(problems, err), append(texts, text)
	}
	if len(problems) == 0 {
		return nil
	}
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: strings.Join(texts, "; "), Cause: errors.Join(problems...)}
}
