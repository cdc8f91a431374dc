package sqlite

import (
	"errors"
	"strconv"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// An enqueuer is what the drafts of one enqueue share.
type enqueuer struct {
	executor
	now     int64
	member  holdfast.ID // the job with whose settlement the drafts are enqueued; zero: none
	lenient bool        // a draft whose idempotency key was used is left out, even if the drafts differ

	openGroups map[holdfast.ID]bool        // groups that were found open
	became     map[holdfast.ID]holdfast.ID // earlier drafts of this call that are members, and the ids of their jobs
	steps      map[stepName]holdfast.ID    // new jobs of this call that have a step name
	flagged    map[holdfast.ID]bool        // groups that were flagged because a draft waits for an ended member
}

// A stepName is the name of a member within its group.
type stepName struct {
	group holdfast.ID
	name  string
}

// A waitList is what a draft waits for.
type waitList struct {
	edges      []rule.Edge // each with its upstream
	conditions int         // how many of them are on a failure or a cancellation
}

// checkGroup refuses a draft whose group takes no members, and returns what it waits for.
func (e *enqueuer) checkGroup(d *holdfast.Draft) (w waitList, err error) {
	if d.Group.IsZero() {
		return w, nil
	}
	if !e.openGroups[d.Group] {
		if err := checkOpen(e, d.Group); err != nil && !e.member.IsZero() && errors.Is(err, holdfast.ErrConflict) {
			if err := e.joinSealed(d, err); err != nil {
				return w, err
			}
			return e.waitsOf(d)
		} else if err != nil {
			return w, err
		}
		if e.openGroups == nil {
			e.openGroups = map[holdfast.ID]bool{}
		}
		e.openGroups[d.Group] = true
	}
	return e.waitsOf(d)
}

// waitsOf returns what a draft waits for, and refuses a step name that is taken.
func (e *enqueuer) waitsOf(d *holdfast.Draft) (w waitList, err error) {
	if d.Step != "" {
		if taken, found, err := e.step(d.Group, d.Step); err != nil {
			return w, err
		} else if found {
			return w, rule.StepTaken(d.Step, taken)
		}
	}
	edges := rule.Edges(d)
	for i := range edges {
		edge := &edges[i]
		if edge.Step != "" {
			found := false
			if edge.Upstream, found, err = e.step(d.Group, edge.Step); err == nil && !found {
				err = rule.NoStep(edge.Step)
			}
		}
		if err == nil {
			edge.Upstream, err = e.upstream(d, edge.Upstream)
		}
		if err != nil {
			return w, err
		}
	}
	w.edges, w.conditions, err = rule.MergeEdges(edges)
	return w, err
}

// step returns the member that has a step name: a job of this call, whose row may not be written yet, or a stored job.
func (e *enqueuer) step(group holdfast.ID, name string) (job holdfast.ID, found bool, err error) {
	if job, found = e.steps[stepName{group, name}]; !found {
		found, err = e.one("find_step", []any{group, name}, &job)
	}
	return job, found, err
}

// addStep writes the step name of a job.
func (e *enqueuer) addStep(d *holdfast.Draft) error {
	if e.steps == nil {
		e.steps = map[stepName]holdfast.ID{}
	}
	e.steps[stepName{d.Group, d.Step}] = d.ID
	_, err := e.add("step_add", &d.Group, &d.Step, &d.ID)
	return err
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

// insertWaiting writes for which members a job waits, and the row with which it waits. A job with conditions on a failure or a cancellation also waits for itself,
// which keeps programs that do not know conditions from starting it.
func (e *enqueuer) insertWaiting(d *holdfast.Draft, w waitList, due any) error {
	for _, edge := range w.edges {
		if _, err := e.add("after_add", edge.Upstream, d.ID, edge.Regardless(), nullIfEmpty(edge.Outcome())); err != nil {
			return err
		}
	}
	if w.conditions > 0 {
		if _, err := e.add("after_add", d.ID, d.ID, true, strconv.Itoa(w.conditions)); err != nil {
			return err
		}
	}
	if due == nil {
		due = e.now
	}
	_, err := e.add("wait_for_members", due, d.ID, 0, 1)
	return err
}

// readUpstreams reads how the members ended for which a job waits, and decides what becomes of it.
func (s *session) readUpstreams(job holdfast.ID) (rule.Follower, error) {
	var upstreams []rule.Upstream
	conditions := 0
	err := s.rows("find_upstream_states", []any{job}, func(st *sqlite.Stmt) error {
		id, outcome := columnID(st, 0), st.ColumnText(2)
		if id == job {
			conditions, _ = strconv.Atoi(outcome) // written by insertWaiting
			return nil
		}
		upstreams = append(upstreams, rule.Upstream{
			ID: id, On: rule.OutcomeOf(st.ColumnInt(1) != 0, outcome), State: holdfast.State(st.ColumnText(3)), Skipped: st.ColumnInt(4) != 0,
		})
		return nil
	})
	return rule.Follow(upstreams, conditions), err
}

// resolveFollower starts or cancels a member that waits for others, if their ends decide that. done is false if it has
// to go on waiting or no longer waits.
func (t *tx) resolveFollower(id holdfast.ID) (done, cancelled bool, err error) {
	f, err := t.readUpstreams(id)
	if err != nil || !f.Start && !f.End {
		return false, false, err
	}
	job, err := t.findJob(store.Intervention{Job: id})
	if err != nil || !job.waiting {
		return false, false, err
	}
	if f.End {
		return true, true, t.cancelFollower(job, &f)
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

// cancelFollower ends a member that never runs because of how a member ended for which it waited.
func (t *tx) cancelFollower(job jobState, f *rule.Follower) error {
	if _, err := t.exec("delete_later", job.job); err != nil {
		return err
	}
	var cause any
	if !f.Cause.ID.IsZero() {
		cause = f.Cause.ID
	}
	if _, err := t.exec("after_cancel", job.job, job.token, job.failures, job.crashes, job.releases, job.generation, t.now, cause, f.Skipped); err != nil {
		return err
	}
	if _, err := t.exec("unique_free", job.job, false); err != nil {
		return err
	}
	t.emit(store.EventCancelled, &job.job, job.token)
	i := store.Intervention{Job: job.job, Actor: rule.Machine, Reason: f.Reason()}
	return t.addJobEvent(i, "cancel", job.token, job.generation) // the feed calls the end itself cancelled
}
