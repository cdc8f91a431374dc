package sqlite

import (
	"fmt"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// An enqueuer is what the drafts of one enqueue share.
type enqueuer struct {
	executor
	now     int64
	lenient bool // a draft whose idempotency key was used is left out, even if the drafts differ

	openGroups map[holdfast.ID]bool        // groups that were found open
	became     map[holdfast.ID]holdfast.ID // earlier drafts of this call that are members, and the ids of their jobs
	flagged    map[holdfast.ID]bool        // groups that were flagged because a draft waits for an ended member
}

// checkGroup refuses a draft whose group takes no members, and returns the members for which it waits.
func (e *enqueuer) checkGroup(d *holdfast.Draft) (after []holdfast.ID, err error) {
	if d.Group.IsZero() {
		return nil, nil
	}
	if !e.openGroups[d.Group] {
		if err := checkOpen(e, d.Group); err != nil {
			return nil, err
		}
		if e.openGroups == nil {
			e.openGroups = map[holdfast.ID]bool{}
		}
		e.openGroups[d.Group] = true
	}
	if d.Step != "" {
		var taken holdfast.ID
		if found, err := e.one("find_step", []any{d.Group, d.Step}, &taken); err != nil {
			return nil, err
		} else if found {
			return nil, rule.StepTaken(d.Step, taken)
		}
	}
	for _, id := range d.After {
		upstream, err := e.upstream(d, id)
		if err != nil {
			return nil, err
		}
		after = append(after, upstream)
	}
	return after, nil
}

// upstream returns the member for which a draft waits: an earlier draft of the same call (or the existing job that it
// met), or a stored job.
func (e *enqueuer) upstream(d *holdfast.Draft, id holdfast.ID) (holdfast.ID, error) {
	if became, ok := e.became[id]; ok {
		id = became
	}
	if e.became[id] == id { // made by this call: it is live, and its row may not be written yet
		return id, nil
	}
	var group holdfast.ID
	var ended bool
	found, err := e.one("find_upstream", []any{id}, &group, &ended)
	if err != nil {
		return id, err
	}
	if !found || group != d.Group {
		return id, rule.NotMember(id)
	}
	if ended && !e.flagged[d.Group] { // its end was handled before, so the group must be evaluated again
		if e.flagged == nil {
			e.flagged = map[holdfast.ID]bool{}
		}
		e.flagged[d.Group] = true
		_, err = e.exec("flag_group", d.Group)
	}
	return id, err
}

// rememberID keeps the job of a draft for later drafts that wait for it.
func (e *enqueuer) rememberID(d *holdfast.Draft, became holdfast.ID, existing bool) {
	if d.Group.IsZero() {
		return
	}
	if e.became == nil {
		e.became = map[holdfast.ID]holdfast.ID{}
	}
	if existing && became == d.ID {
		return // it existed before this call, so it is looked up like any other job
	}
	e.became[d.ID] = became
}

// insertWaiting writes for which members a job waits, each once, and the row with which it waits.
func (e *enqueuer) insertWaiting(d *holdfast.Draft, after []holdfast.ID, due any) error {
	for i, id := range after {
		if slices.Contains(after[:i], id) {
			continue // two drafts that became the same job
		}
		if _, err := e.add("after_add", id, d.ID, d.AfterAll); err != nil {
			return err
		}
	}
	if due == nil {
		due = e.now
	}
	_, err := e.add("wait_for_members", due, d.ID, 0, 1)
	return err
}

// An upstreamState is what the members for which a job waits have done.
type upstreamState struct {
	allEnded    bool        // all have ended, so the job may start
	failedID    holdfast.ID // the first that did not complete, although it has to; zero: none
	failedState string      // the state in which that one ended
}

// readUpstreams reads how the members ended for which a job waits.
func (s *session) readUpstreams(job holdfast.ID) (j upstreamState, err error) {
	j.allEnded = true
	err = s.rows("find_upstream_states", []any{job}, func(st *sqlite.Stmt) error {
		switch state := holdfast.State(st.ColumnText(2)); {
		case state == "":
			j.allEnded = false
		case state != holdfast.Complete && st.ColumnInt(1) == 0 && j.failedID.IsZero():
			j.failedID, j.failedState = columnID(st, 0), string(state)
		}
		return nil
	})
	return j, err
}

// undecided reports whether the job has to go on waiting.
func (j upstreamState) undecided() bool { return !j.allEnded && j.failedID.IsZero() }

// resolveFollower starts or cancels a member that waits for others, if their ends decide that. done is false if it has
// to go on waiting or no longer waits.
func (t *tx) resolveFollower(id holdfast.ID) (done, cancelled bool, err error) {
	j, err := t.readUpstreams(id)
	if err != nil || j.undecided() {
		return false, false, err
	}
	job, err := t.findJob(store.Intervention{Job: id})
	if err != nil || !job.waiting {
		return false, false, err
	}
	if !j.failedID.IsZero() {
		return true, true, t.cancelFollower(job, j)
	}
	return true, false, t.startFollower(job)
}

// startFollower makes a member claimable whose upstreams have ended, once its own time has come. A member without a
// time of its own starts at once, even if the clock was set back since it was enqueued.
func (t *tx) startFollower(job jobState) error {
	if job.due > t.now && job.due != job.created {
		_, err := t.exec("clear_group_wait", job.job)
		return err
	}
	if _, err := t.exec("delete_later", job.job); err != nil {
		return err
	}
	t.wake(job.queue)
	_, err := t.exec("return_to_ready", job.job, job.token, job.failures, job.crashes, job.releases, job.generation, job.due)
	return err
}

// cancelFollower ends a member that never ran, because a member for which it waited did not complete.
func (t *tx) cancelFollower(job jobState, j upstreamState) error {
	if _, err := t.exec("delete_later", job.job); err != nil {
		return err
	}
	if _, err := t.exec("after_cancel", job.job, job.token, job.failures, job.crashes, job.releases, job.generation, t.now, j.failedID); err != nil {
		return err
	}
	if _, err := t.exec("unique_free", job.job, false); err != nil {
		return err
	}
	t.emit(store.EventCancelled, &job.job, job.token)
	how := "failed"
	if j.failedState == string(holdfast.Cancelled) {
		how = "was cancelled"
	}
	i := store.Intervention{Job: job.job, Actor: rule.Machine, Reason: fmt.Sprintf("member %s, for which it waited, %s", j.failedID, how)}
	return t.addJobEvent(i, "cancel", job.token, job.generation) // the feed calls the end itself cancelled
}
