package rule

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
)

// Group validates a group and sets its defaults.
func Group(g *holdfast.Group) error {
	if err := g.Prepare(); err != nil {
		return &holdfast.Error{Err: holdfast.ErrInvalid, Message: strings.ReplaceAll(err.Error(), "\n", "; "), Cause: err}
	}
	return nil
}

// Sealed refuses a new member of a sealed group.
func Sealed(group holdfast.ID) error {
	return &holdfast.Error{Err: holdfast.ErrConflict,
		Message: fmt.Sprintf("group %v is sealed: it takes no more members; seal it later, or make another group", group)}
}

// NotMember refuses a draft that waits for a job outside its group.
func NotMember(upstream holdfast.ID) error {
	return invalid("job %v is not a member of the same group: name existing members, or earlier drafts of the call", upstream)
}

// StepTaken refuses a draft whose step name another member of its group has.
func StepTaken(step string, job holdfast.ID) error {
	return &holdfast.Error{Err: holdfast.ErrConflict, Job: job, Message: fmt.Sprintf("step %q of the group is job %v: use another name", step, job)}
}

// NoUpstream is the error for a step for which a job did not wait.
func NoUpstream(job holdfast.ID, step string) error {
	return notFound("job %v did not wait for a step %q: name it in the draft's After, or check the name", job, step)
}

// CancelGroup refuses to cancel a group that has settled.
func CancelGroup(group holdfast.ID, state holdfast.GroupState) error {
	if !state.Settled() {
		return nil
	}
	return &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("group %v is %s already: there is nothing to cancel", group, state)}
}

// NothingToRetry refuses to retry a group of which no member can be retried: expired members have passed their expiry, and
// other jobs have the unique keys of keyed members.
func NothingToRetry(group holdfast.ID, expired, keyed int) error {
	if expired+keyed == 0 {
		return &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("group %v has no failed members: there is nothing to retry", group)}
	}
	return &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf(
		"no failed member of group %v can be retried: %d passed their expiry, and other jobs hold the unique keys of %d", group, expired, keyed)}
}

// EndedWith returns the reason with which an unfinished member is cancelled when its group ends as cancelled or expired.
func EndedWith(state holdfast.GroupState) string {
	if state == holdfast.GroupExpired {
		return "its group expired"
	}
	return "its group was cancelled"
}

// Outcome describes how the members of a group ended, and which continuations could not be enqueued.
func Outcome(m holdfast.Members, refused error) string {
	parts := []string{fmt.Sprintf("%d of %d complete", m.Complete, m.Total)}
	if m.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", m.Failed))
	}
	if m.Cancelled > 0 {
		parts = append(parts, fmt.Sprintf("%d cancelled", m.Cancelled))
	}
	if m.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped", m.Skipped))
	}
	text := strings.Join(parts, ", ")
	if refused != nil {
		text += fmt.Sprintf("; continuations were not enqueued: %.400s", strings.ReplaceAll(refused.Error(), "\n", "; "))
	}
	return text
}

// ErrThenUnreadable says that the stored continuations of a group are damaged.
var ErrThenUnreadable = errors.New("they cannot be read: run holdfast doctor")

// Continuations returns the drafts to enqueue after the outcome of a group. Invalid ones are left out and named by the
// error: they do not keep the group from settling.
func Continuations(g *holdfast.Group) (drafts []holdfast.Draft, refused error) {
	var problems []error
	for _, draft := range g.Continuations() {
		if err := draft.Prepare(); err != nil {
			problems = append(problems, err)
			continue
		}
		drafts = append(drafts, draft)
	}
	return drafts, errors.Join(problems...)
}
