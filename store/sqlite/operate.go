package sqlite

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
)

// Cancel ends a queued job at once, and asks a processing one to stop.
func (s *Store) Cancel(ctx context.Context, i holdfast.Intervention) (state holdfast.State, err error) {
	if err := checkIntervention(i); err != nil {
		return "", err
	}
	err = s.writer.write(ctx, func(t *tx) error {
		job, err := t.standing(i)
		if err != nil {
			return err
		}
		switch job.place {
		case "leased":
			state = holdfast.Processing
			return t.askToStop(i, job)
		case "finished":
			return conflict(i.Job, "job %s is %s already: there is nothing to cancel", i.Job, job.state)
		}
		state = holdfast.Cancelled
		return t.cancelQueued(i, job)
	})
	if err != nil {
		return "", err
	}
	return state, nil
}

// askToStop leaves a request that the job's settlement obeys. The first one stands.
func (t *tx) askToStop(i holdfast.Intervention, job standing) error {
	first, err := t.exec("operate-cancel", i.Job, t.now, i.Actor, orNull(i.Reason))
	if err != nil || first == 0 {
		return err
	}
	t.news.cancel = true
	return t.event(i, "cancel", job.token, job.generation)
}

func (t *tx) cancelQueued(i holdfast.Intervention, job standing) error {
	if err := t.leaveQueue(i.Job); err != nil {
		return err
	}
	_, err := t.exec("settle-finish", i.Job, job.token, job.failures, job.crashes, job.interrupts, job.generation, nil, t.now, holdfast.Cancelled, nil, nil, nil)
	if err != nil {
		return err
	}
	t.happened(holdfast.EventCancelled, &i.Job, job.token)
	if _, err := t.exec("unique-free", i.Job, false); err != nil {
		return err
	}
	return t.event(i, "cancel", job.token, job.generation)
}

// Discard takes a failed job off the dead letters.
func (s *Store) Discard(ctx context.Context, i holdfast.Intervention) error {
	if err := checkIntervention(i); err != nil {
		return err
	}
	if i.Reason == "" {
		return invalid("discarding a job without a reason: say why nobody needs it any more")
	}
	return s.writer.write(ctx, func(t *tx) error {
		job, err := t.standing(i)
		if err != nil {
			return err
		}
		if job.state != holdfast.Failed {
			return conflict(i.Job, "job %s is %s: only a failed job can be discarded", i.Job, job.state)
		}
		if job.discarded {
			return conflict(i.Job, "job %s was discarded already", i.Job)
		}
		return t.discard(i, job)
	})
}

func (t *tx) discard(i holdfast.Intervention, job standing) error {
	if _, err := t.exec("operate-discard", i.Job, t.now); err != nil {
		return err
	}
	return t.event(i, "discard", job.token, job.generation)
}

// A standing is what a person's word is judged by: the job's facts that matter, and where it is.
type standing struct {
	member
	owner, kind, queue    string
	dependency, uniqueKey string
	lane                  int64
	group                 holdfast.ID
	priority              int

	created   int64
	expireAt  int64  // 0: never
	place     string // ready, later, leased, finished
	state     holdfast.State
	discarded bool
	waiting   bool   // for members of its group
	due       int64  // while it is in later
	lease     *lease // while it is processed
}

// standing finds the job. One that is not there and one that is somebody else's get the same answer.
func (t *tx) standing(i holdfast.Intervention) (job standing, err error) {
	job.job = i.Job
	found, err := t.one("operate-job", []any{i.Job}, &job.owner, &job.kind, &job.queue, &job.lane, &job.priority, &job.uniqueKey, &job.expireAt, &job.dependency,
		&job.group, &job.created)
	if err != nil {
		return job, err
	}
	if !found || i.Owner != "" && i.Owner != job.owner {
		return job, &holdfast.Error{Kind: holdfast.ErrNotFound, Message: fmt.Sprintf("there is no job %s: check the id", i.Job)}
	}
	var state string
	_, err = t.one("operate-place", []any{i.Job, job.lane, job.priority}, &job.place, &job.token, &job.failures, &job.crashes, &job.interrupts,
		&job.generation, &state, &job.discarded, &job.waiting, &job.due)
	if job.state = holdfast.State(state); err != nil || job.state == holdfast.Queued {
		return job, err
	}
	leases, err := t.readLeases("lease-of", i.Job)
	for _, l := range leases {
		if m := l.find(i.Job); m != nil {
			job.member, job.lease, job.place, job.state = *m, l, "leased", holdfast.Processing
		}
	}
	if err == nil && job.place == "" {
		err = conflict(i.Job, "job %s stands nowhere: run the doctor", i.Job)
	}
	return job, err
}

func (t *tx) event(i holdfast.Intervention, name string, token, generation int) error {
	if _, err := t.exec("operate-event", i.Job, t.now, name, i.Actor, orNull(clean(i.Reason)), token, generation, orNull(i.Request)); err != nil {
		return err
	}
	t.line()
	return nil
}

// ahead counts the claimable jobs of a queue that are claimed before a key, up to a thousand.
func (t *tx) ahead(queue string, k key) (total int, err error) {
	v := &view{session: t.session, now: t.now, lanes: t.known, queues: []string{queue}, writes: true}
	if _, err := v.survey(0); err != nil {
		return 0, err
	}
	for i := 0; i < len(v.lines) && total < 1000; i++ {
		var n int
		if _, err := t.one("operate-ahead", []any{v.lines[i].number, k.priority, k.job}, &n); err != nil {
			return 0, err
		}
		total += n
	}
	return min(total, 1000), nil
}

func checkIntervention(i holdfast.Intervention) error {
	if err := checkActor(i.Actor, i.Reason); err != nil {
		return err
	}
	if !plainText(i.Owner, holdfast.MaxKey) {
		return invalid("the owner: use at most %d bytes of UTF-8 without control characters", holdfast.MaxKey)
	}
	if !plainText(i.Request, holdfast.MaxKey) {
		return invalid("the id of the request: use at most %d bytes of UTF-8 without control characters", holdfast.MaxKey)
	}
	if i.StuckAfter < 0 {
		return invalid("stuck after %v: give a duration that is not negative", i.StuckAfter)
	}
	return nil
}

func checkActor(actor, reason string) error {
	if actor == "" {
		return invalid("nobody is named as the actor: say who intervenes")
	}
	if !plainText(actor, 255) {
		return invalid("the actor: use at most 255 bytes of UTF-8 without control characters")
	}
	if !plainText(reason, 1000) {
		return invalid("the reason: use at most 1000 bytes of UTF-8 without control characters")
	}
	return nil
}

func plainText(text string, limit int) bool {
	if len(text) > limit || !utf8.ValidString(text) {
		return false
	}
	for _, c := range []byte(text) {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}
