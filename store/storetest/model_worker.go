package storetest

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Workers and duties in the model.

// holds reports whether this lease is held.
func (r *record) holds(batch holdfast.ID, token int) bool {
	return r.place == leased && r.batch == batch && r.Token == token
}

func (m *model) renew(renewals []store.Renewal, lease time.Duration) store.RenewResult {
	var answer store.RenewResult
	for _, n := range renewals {
		if s, ok := m.leases[n.Batch]; ok {
			s.expires = m.now.Add(lease)
		}
		for _, id := range append(append([]holdfast.ID{}, n.Running...), n.Waiting...) {
			if r, ok := m.jobs[id]; !ok || r.place != leased || r.batch != n.Batch {
				answer.Lost = append(answer.Lost, id)
			}
		}
		for _, id := range n.Running {
			if r, ok := m.jobs[id]; ok && r.place == leased && r.batch == n.Batch {
				r.started = true
			}
		}
		for id, r := range m.jobs {
			if r.place == leased && r.batch == n.Batch && r.cancel {
				answer.Cancelling = append(answer.Cancelling, id)
			}
		}
	}
	return answer
}

func (m *model) note(n store.Note) error {
	if err := n.Check(); err != nil {
		return err
	}
	r, ok := m.jobs[n.Job]
	if !ok || !r.holds(n.Batch, n.Token) {
		return refuse(holdfast.ErrLeaseLost, n.Job, textLost, n.Job)
	}
	if n.Progress != nil {
		r.progress = &holdfast.Progress{Percent: n.Progress.Percent, Note: n.Progress.Note, At: m.now}
	}
	if n.Checkpoint != nil {
		r.checkpoint = n.Checkpoint
	}
	return nil
}

func (m *model) settle(s store.Settlement) error {
	if err := s.Check(); err != nil {
		return err
	}
	r, ok := m.jobs[s.Job]
	switch {
	case !ok:
		return refuse(holdfast.ErrLeaseLost, s.Job, textLost, s.Job)
	case r.holds(s.Batch, s.Token) && s.Confirm:
		return refuse(holdfast.ErrConflict, s.Job, textNotCommitted, s.Job)
	case r.holds(s.Batch, s.Token):
		return m.settleHeld(r, s)
	case r.alreadyApplied(s.Token, s.To):
		return nil
	}
	if s.Confirm {
		return refuse(holdfast.ErrLeaseLost, s.Job, textLost, s.Job)
	}
	for _, known := range r.late {
		if known.Token == s.Token && known.To == s.To {
			return refuse(holdfast.ErrLeaseLost, s.Job, textLost, s.Job)
		}
	}
	r.late = append(r.late, store.Attempt{Job: r.ID, Token: s.Token, To: s.To})
	return refuse(holdfast.ErrLeaseLost, s.Job, textLost, s.Job)
}

// alreadyApplied reports whether a settlement with this token has already led to the requested state.
func (r *record) alreadyApplied(token int, to holdfast.State) bool {
	for _, a := range r.attempts {
		if a.Token == token && (a.Said == to || a.Said == "" && a.To == to) {
			return true
		}
	}
	return r.place == finished && r.Token == token && r.state == holdfast.Complete && r.state == to
}

// apply settles an attempt.
func (m *model) apply(r *record, s store.Settlement) {
	count := 0
	switch s.Charge {
	case store.ChargeFailure:
		r.Failures++
		count = r.Failures
	case store.ChargeCrash:
		r.Crashes++
		count = r.Crashes
	case store.ChargeRelease:
		r.Releases++
	}
	to, said := s.To, holdfast.State("")
	if r.cancel {
		to, said, r.cancel = holdfast.Cancelled, s.To, false
	}
	from := m.leases[r.batch]
	began := m.now
	if s.Took > 0 {
		began = latest(m.now.Add(-s.Took), from.claimedAt)
	}
	if to != holdfast.Complete {
		attempt := store.Attempt{
			Job: r.ID, Token: r.Token, Generation: r.Generation, Worker: from.attemptWorker(), StartedAt: began, EndedAt: m.now, Said: said,
			To: to, Charge: s.Charge, Failure: s.Failure, Why: s.Why, Limit: s.Limit, Count: count,
		}
		if to == holdfast.Queued {
			attempt.DueAt = m.now.Add(s.Delay)
		}
		r.attempts = append(r.attempts, attempt)
	}
	var startedAt time.Time
	if s.Took > 0 || r.started {
		startedAt = began
	}
	m.leave(r)
	m.countFailure(r, s, to)
	m.countTrend(s, to)
	if to == holdfast.Queued {
		if s.StartWithin > 0 {
			m.deadlines[deadline{m.now.Add(s.StartWithin), r.ID}] = r.Token
		}
		r.place, r.due = ready, m.now.Add(s.Delay)
		if s.Delay > 0 {
			r.place = later
		}
		return
	}
	r.startedAt, r.endedBy, r.result = startedAt, from.worker, nil
	if to == holdfast.Complete {
		r.result = s.Result
	}
	m.end(r, to)
	r.discarded = to == holdfast.Failed && s.Failure.Benign // not a dead letter
	m.leaveLine(r)
}

// end ends a job and frees its unique key.
func (m *model) end(r *record, to holdfast.State) {
	r.place, r.state, r.finishedAt, r.discarded, r.aside = finished, to, m.now, false, false
	key := uniqueKey{r.Owner, r.Kind, r.UniqueKey}
	if m.unique[key] == r.ID && !(to == holdfast.Complete && r.uniqueDone) {
		delete(m.unique, key)
	}
	if to != holdfast.Failed {
		m.leaveLine(r)
	}
}

// promote moves due jobs. Jobs that may have been set aside are certainly ready again once their tags are not held; whether the store counts them is
// unknown, so the answer is the minimum and the maximum.
func (m *model) promote(limit int) (least, most int) {
	for _, r := range m.where(later, func(r *record) bool { return !r.due.After(m.now) }) {
		r.place = ready
		least++
	}
	most = least
	for _, r := range m.where(ready, func(r *record) bool { return r.aside }) {
		most++
		r.aside = m.tagHeld(r)
	}
	if most > limit {
		panic("the model promotes without a limit: ask for more")
	}
	return least, most
}

// expiredMembers returns the members of expired batches: those that return to their queue, and those that move to a new batch.
func (m *model) expiredMembers() (back, over []*record) {
	for _, r := range m.jobs {
		if r.place != leased || m.leases[r.batch].expires.After(m.now) {
			continue
		}
		if r.started || r.cancel {
			over = append(over, r)
		} else {
			back = append(back, r)
		}
	}
	return back, over
}

// release returns a job that its worker never started to its queue.
func (m *model) release(r *record) {
	r.Token++
	r.Releases++
	m.endWithoutWorker(r, "its worker went silent before it started")
}

// endWithoutWorker ends an attempt without a settlement of its worker. The token was increased before.
func (m *model) endWithoutWorker(r *record, why string) {
	from := m.leases[r.batch]
	began := m.now // the duration of an attempt that never started is 0
	if r.started {
		began = from.claimedAt
	}
	r.attempts = append(r.attempts, store.Attempt{
		Job: r.ID, Token: r.Token, Generation: r.Generation, Worker: from.attemptWorker(), StartedAt: began, EndedAt: m.now,
		To: holdfast.Queued, Charge: store.ChargeRelease, DueAt: m.now, Why: why,
	})
	m.leave(r)
	r.place, r.due = ready, m.now
}

// takeOver moves a job of an expired batch into the batch that replaces it.
func (m *model) takeOver(r *record, c store.Claim, batch holdfast.ID) {
	from := m.leases[r.batch]
	if _, ok := m.leases[batch]; !ok {
		m.leases[batch] = &batchLease{worker: c.Worker, lost: from.attemptWorker(), claimedAt: from.claimedAt, expires: m.now.Add(c.Lease)}
	}
	started := r.started
	m.leave(r)
	r.batch, r.started = batch, started
	r.Token++
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
