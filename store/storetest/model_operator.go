package storetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Interventions in the model.

// find returns the job of an intervention, if it exists and belongs to the caller.
func (m *model) find(i store.Intervention) (*record, error) {
	if err := i.Check(); err != nil {
		return nil, err
	}
	r, ok := m.jobs[i.Job]
	if !ok || i.Owner != "" && r.Owner != i.Owner {
		return nil, refuse(holdfast.ErrNotFound, holdfast.ID{}, textNoJob, i.Job)
	}
	return r, nil
}

func (m *model) retry(i store.Intervention) (ahead int, err error) {
	r, err := m.find(i)
	if err != nil {
		return 0, err
	}
	switch {
	case r.place == finished && r.state != holdfast.Failed:
		return 0, refuseJob(r.ID, textNotFailed, r.state)
	case r.place == waiting:
		return 0, refuseJob(r.ID, textWaits)
	case r.place == ready || r.place == later && r.Failures+r.Crashes+r.Releases == 0:
		return 0, refuseJob(r.ID, textQueued)
	case r.place == leased && !m.stuck(r, i):
		return 0, refuseJob(r.ID, textRunning)
	case m.expired(r):
		return 0, refuseJob(r.ID, textExpired)
	}
	if r.place == finished {
		if err := m.claimKey(r); err != nil {
			return 0, err
		}
	}
	if r.place == leased {
		r.Token++
		r.cancel = false
		m.endWithoutWorker(r, "taken from its worker by a manual retry")
	}
	m.startGeneration(r, i)
	m.tell(r, "manual retry", i)
	return m.ahead(r), nil
}

// startGeneration makes a job claimable in a new generation, and reopens its group if that had settled.
func (m *model) startGeneration(r *record, i store.Intervention) {
	m.reopen(r.Group, i)
	r.place, r.due, r.since, r.discarded, r.aside = ready, m.now, m.now, false, false
	r.Failures, r.Crashes, r.Releases = 0, 0, 0
	r.Generation++
	if r.Order != "" {
		r.place = waiting
		m.joinLine(r)
	}
}

// claimKey takes a job's unique key again, unless another job holds it.
func (m *model) claimKey(r *record) error {
	if r.UniqueKey == "" {
		return nil
	}
	key := uniqueKey{r.Owner, r.Kind, r.UniqueKey}
	if holder, taken := m.unique[key]; taken && holder != r.ID {
		return refuse(holdfast.ErrConflict, holder, textKeyHeld, holder, r.ID)
	}
	m.unique[key] = r.ID
	return nil
}

func (m *model) expired(r *record) bool { return !r.ExpireAt.IsZero() && !r.ExpireAt.After(m.now) }

func (m *model) stuck(r *record, i store.Intervention) bool {
	s := m.leases[r.batch]
	return !s.expires.After(m.now) || i.StuckAfter > 0 && !s.claimedAt.After(m.now.Add(-i.StuckAfter))
}

// ahead counts the jobs that are claimed before a job. A store may leave out those that may have been set aside.
func (m *model) ahead(r *record) int {
	return len(m.where(ready, func(o *record) bool { return o.Queue == r.Queue && inOrder(o, r) < 0 }))
}

func (m *model) tell(r *record, name string, i store.Intervention) {
	r.events = append(r.events, store.Event{
		Job: r.ID, At: m.now, Name: name, Actor: i.Actor, Reason: i.Reason, Token: r.Token, Generation: r.Generation,
	})
}

func (m *model) cancel(i store.Intervention) (holdfast.State, error) {
	r, err := m.find(i)
	if err != nil {
		return "", err
	}
	switch r.place {
	case finished:
		return "", refuseJob(r.ID, textEnded, r.state)
	case leased:
		if !r.cancel {
			r.cancel = true
			m.tell(r, "cancel", i)
		}
		return holdfast.Processing, nil
	}
	m.tell(r, "cancel", i)
	r.startedAt, r.endedBy, r.result = time.Time{}, "", nil
	m.end(r, holdfast.Cancelled)
	return holdfast.Cancelled, nil
}

func (m *model) discard(i store.Intervention) error {
	if err := i.Check(); err != nil {
		return err
	}
	if i.Reason == "" {
		return refuse(holdfast.ErrInvalid, holdfast.ID{}, textNoReason)
	}
	r, err := m.find(i)
	switch {
	case err != nil:
		return err
	case r.place != finished || r.state != holdfast.Failed:
		return refuseJob(r.ID, textUndiscarded, m.view(r).State)
	case r.discarded:
		return refuseJob(r.ID, textDiscarded)
	}
	r.discarded = true
	m.leaveLine(r)
	m.tell(r, "discard", i)
	return nil
}

// edit changes a queued job, or the arguments, priority and attempts of a dead letter. A job that was set aside is certainly claimable again.
func (m *model) edit(e store.Edit) (*record, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	r, err := m.find(e.Intervention)
	if err != nil {
		return nil, err
	}
	was := m.view(r)
	switch {
	case was.State == holdfast.Failed && (e.Queue != nil || e.Tags != nil || e.Delay != nil):
		return nil, refuseJob(r.ID, textDeadEdit)
	case was.State != holdfast.Failed && was.State != holdfast.Queued:
		return nil, refuseJob(r.ID, textUneditable, was.State)
	case e.IfDigest != "" && e.IfDigest != was.Digest():
		return nil, refuseJob(r.ID, textStale)
	}
	if e.Patch != nil {
		r.Args, _ = json.Marshal(patched(decode(r.Args), decode(e.Patch)))
	}
	if e.Args != nil {
		r.Args = e.Args
	}
	if e.Queue != nil {
		r.Queue = *e.Queue
	}
	if e.Priority != nil {
		r.Priority = *e.Priority
	}
	if e.Tags != nil {
		r.Tags = *e.Tags
	}
	if e.MaxAttempts != nil {
		r.MaxAttempts = *e.MaxAttempts
	}
	if e.Delay != nil {
		m.reschedule(r, *e.Delay)
	}
	r.aside = false
	e.Reason = editReason(was, e)
	m.tell(r, "edit", e.Intervention)
	m.replaced(r, was, e.Delay != nil)
	return r, nil
}

// replaced adds the replaced values to the newest event of a job.
func (m *model) replaced(r *record, was holdfast.Job, rescheduled bool) {
	former := map[string]any{}
	put := func(name string, before, after any) {
		if !reflect.DeepEqual(before, after) {
			former[name] = before
		}
	}
	put("args", decode(was.Args), decode(r.Args))
	put("queue", was.Queue, r.Queue)
	put("priority", was.Priority, r.Priority)
	put("tags", slices.Concat([]string{}, was.Tags), slices.Concat([]string{}, r.Tags))
	put("max_attempts", was.MaxAttempts, r.MaxAttempts)
	if rescheduled {
		former["due_at"] = was.DueAt.UTC()
	}
	if len(former) > 0 {
		r.events[len(r.events)-1].Was, _ = json.Marshal(former)
	}
}

// editReason is the reason of an edit's event: the given one, and what changed.
func editReason(was holdfast.Job, e store.Edit) string {
	var said []string
	add := func(changed bool, text string, args ...any) {
		if changed {
			said = append(said, fmt.Sprintf(text, args...))
		}
	}
	add(e.Reason != "", "%s", e.Reason)
	add(e.Args != nil, "arguments replaced")
	add(e.Patch != nil, "arguments patched")
	if e.Queue != nil {
		add(*e.Queue != was.Queue, "moved from queue %s to %s", was.Queue, *e.Queue)
	}
	if e.Priority != nil {
		add(*e.Priority != was.Priority, "priority %d to %d", was.Priority, *e.Priority)
	}
	if e.Tags != nil {
		add(true, "%d tags instead of %d", len(*e.Tags), len(was.Tags))
	}
	if e.MaxAttempts != nil {
		add(*e.MaxAttempts != was.MaxAttempts, "max attempts %d to %d", was.MaxAttempts, *e.MaxAttempts)
	}
	if e.Delay != nil {
		add(true, "due in %v", *e.Delay)
	}
	return strings.Join(said, "; ")
}

// reschedule changes the due time of a queued job. A job that waits for others keeps waiting.
func (m *model) reschedule(r *record, delay time.Duration) {
	run := time.Time{}
	if delay > 0 {
		run = m.now.Add(delay)
	}
	if r.Token == 0 {
		r.RunAt = run
	}
	switch {
	case r.place == waiting:
		r.due = run
	case delay > 0:
		r.place, r.due = later, run
	default:
		r.place, r.due = ready, m.now
	}
}
