package storetest

import (
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
)

// What people do to the model.

// find answers with the job of an intervention, if it is there and the asker's.
func (m *model) find(i holdfast.Intervention) (*record, error) {
	if i.Actor == "" {
		return nil, holdfast.ErrInvalid
	}
	r, ok := m.jobs[i.Job]
	if !ok || i.Owner != "" && r.Owner != i.Owner {
		return nil, holdfast.ErrNotFound
	}
	return r, nil
}

func (m *model) retry(i holdfast.Intervention) (ahead int, err error) {
	r, err := m.find(i)
	if err != nil {
		return 0, err
	}
	switch {
	case !r.ExpireAt.IsZero() && !r.ExpireAt.After(m.now):
		return 0, holdfast.ErrConflict
	case r.place == finished && r.state == holdfast.Failed:
		if err := m.claimKey(r); err != nil {
			return 0, err
		}
	case r.place == later && r.Failures+r.Crashes+r.Interrupts > 0:
	case r.place == leased && m.stuck(r, i):
		r.Token++
		r.cancel = false
		m.stray(r, "taken from its worker by a manual retry")
	default:
		return 0, holdfast.ErrConflict
	}
	m.again(r, i.Actor)
	m.tell(r, "manual retry", i)
	return m.ahead(r), nil
}

// again makes a job claimable in a new generation, and opens its group if that had settled.
func (m *model) again(r *record, actor string) {
	m.reopen(r.Group, actor)
	r.place, r.due, r.since, r.discarded, r.aside = ready, m.now, m.now, false, false
	r.Failures, r.Crashes, r.Interrupts = 0, 0, 0
	r.Generation++
}

// claimKey takes a job's unique key again, unless another has it.
func (m *model) claimKey(r *record) error {
	if r.UniqueKey == "" {
		return nil
	}
	key := uniqueKey{r.Owner, r.Kind, r.UniqueKey}
	if holder, taken := m.unique[key]; taken && holder != r.ID {
		return conflict(holder)
	}
	m.unique[key] = r.ID
	return nil
}

func (m *model) stuck(r *record, i holdfast.Intervention) bool {
	s := m.leases[r.batch]
	return !s.expires.After(m.now) || i.StuckAfter > 0 && !s.claimedAt.After(m.now.Add(-i.StuckAfter))
}

// ahead counts what is claimed before a job. Those that may have been set aside may be missing from a store's count.
func (m *model) ahead(r *record) int {
	return len(m.where(ready, func(o *record) bool { return o.Queue == r.Queue && inOrder(o, r) < 0 }))
}

func (m *model) tell(r *record, name string, i holdfast.Intervention) {
	r.events = append(r.events, holdfast.Event{
		Job: r.ID, At: m.now, Name: name, Actor: i.Actor, Reason: i.Reason, Token: r.Token, Generation: r.Generation,
	})
}

func (m *model) cancel(i holdfast.Intervention) (holdfast.State, error) {
	r, err := m.find(i)
	if err != nil {
		return "", err
	}
	switch r.place {
	case finished:
		return "", holdfast.ErrConflict
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

func (m *model) discard(i holdfast.Intervention) error {
	if i.Reason == "" {
		return holdfast.ErrInvalid
	}
	r, err := m.find(i)
	switch {
	case err != nil:
		return err
	case r.place != finished || r.state != holdfast.Failed || r.discarded:
		return holdfast.ErrConflict
	}
	r.discarded = true
	m.tell(r, "discard", i)
	return nil
}

// edit changes a queued job, or a dead letter's arguments, priority and attempts. What was set aside is claimable again for certain.
func (m *model) edit(e holdfast.Edit) (*record, error) {
	if e.Check() != nil {
		return nil, holdfast.ErrInvalid
	}
	r, err := m.find(e.Intervention)
	if err != nil {
		return nil, err
	}
	dead := r.place == finished && r.state == holdfast.Failed && e.Queue == nil && e.Tags == nil && e.Delay == nil
	if r.place == leased || r.place == finished && !dead || e.Seen != "" && e.Seen != m.view(r).Digest() {
		return nil, conflict(r.ID)
	}
	if e.Patch != nil {
		r.Args, _ = json.Marshal(patched(decode(r.Args), decode(e.Patch)))
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
	e.Reason = loose + e.Reason
	m.tell(r, "edit", e.Intervention)
	return r, nil
}

// reschedule gives a queued job another time. Whoever waits for others waits on.
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
