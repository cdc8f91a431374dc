package sqlite

import (
	"encoding/json"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// replace gives the content of a draft to the job that has its unique key. If that job was claimed before, the draft takes over the key if it asks to; existing is
// zero then, and the draft is to be inserted.
func (e *enqueuer) replace(d *holdfast.Draft, existing holdfast.ID) (job holdfast.ID, replaced bool, err error) {
	old := replaceable{Job: holdfast.Job{ID: existing}}
	found, err := old.read(e)
	if err != nil {
		return existing, false, err
	}
	if found {
		return existing, true, e.rewrite(&old, d)
	}
	if !d.Replace.Follow {
		return existing, false, nil
	}
	passed, err := e.exec("unique_pass", d.Owner, d.Kind, d.UniqueKey, existing, d.ID)
	if err != nil || passed == 0 { // it is complete, and keeps its key
		return existing, false, err
	}
	if _, err := e.exec("unique_lose", existing); err != nil {
		return existing, false, err
	}
	event := jobEvent{job: existing, name: rule.KeyPassedEvent, reason: rule.KeyPassed(d.ID)}
	if _, err := e.one("find_token", []any{existing}, &event.token, &event.generation); err != nil {
		return existing, false, err
	}
	return holdfast.ID{}, false, e.tell(e.now, event)
}

// A replaceable is a queued job that was never claimed, and how it waits.
type replaceable struct {
	holdfast.Job // its content, and when it was created, expires and is due
	ready        bool
	waits        bool // for members of its group
	aside        bool // behind a held tag: it was ready before
	expire       int64
}

// read reads the job. It reports false if the job is not queued, or was claimed before.
func (r *replaceable) read(from executor) (found bool, err error) {
	var args, tags string
	var priority int
	var created, due int64
	found, err = from.one("find_replaceable", []any{r.ID}, &args, &r.Queue, &priority, &tags, &r.MaxAttempts, &r.Dependency, &created, &r.expire,
		&r.ready, &r.waits, &r.aside, &due)
	r.Args, r.Priority, r.CreatedAt, r.DueAt = json.RawMessage(args), int16(priority), instant(created), instant(due)
	if tags != "" {
		_ = json.Unmarshal([]byte(tags), &r.Tags) // damaged tags read as none, and are replaced
	}
	return found, err
}

// rewrite gives the content of a draft to a job. The row with which the job waits is deleted and inserted again, and the edit counter grows, so that a claim which
// has read the old content plans again.
func (e *enqueuer) rewrite(old *replaceable, d *holdfast.Draft) error {
	r := rule.Replace(&old.Job, d, instant(e.now))
	lane, err := e.lane(laneKey{d.Queue, d.Kind, d.Owner, d.Dependency})
	if err != nil {
		return err
	}
	var tags, within, expire, run any
	if len(d.Tags) > 0 {
		text, _ := json.Marshal(d.Tags) // strings always marshal
		tags = string(text)
	}
	if d.RetryWithin > 0 {
		within = d.RetryWithin.Microseconds()
	}
	if !r.ExpireAt.IsZero() {
		expire = r.ExpireAt.UnixMicro()
	}
	due, ready := old.DueAt.UnixMicro(), old.ready || old.aside
	if r.Moved {
		if due, ready = r.Due.UnixMicro(), !r.Due.After(instant(e.now)); ready {
			due = e.now
		} else {
			run = due
		}
	}
	place, row := "return_to_later", []any{old.ID, 0, 0, 0, 0, 1, due}
	switch {
	case old.waits && r.Moved && ready: // it no longer has a time of its own
		place, row = "wait_for_members", []any{old.CreatedAt.UnixMicro(), old.ID, 0, 1}
	case old.waits:
		place, row = "wait_for_members", []any{due, old.ID, 0, 1}
	case ready:
		place, row[6] = "return_to_ready", dueUnlessCreated(due, old.CreatedAt.UnixMicro())
	}
	steps := []struct {
		name string
		args []any
	}{
		{"delete_ready", []any{old.ID}}, {"delete_later", []any{old.ID}},
		{"replace_job", []any{old.ID, lane, d.Queue, int64(d.Priority), d.MaxAttempts, expire, tags, d.UniqueDone, d.Args, nullIfEmpty(d.Dependency), within, nullIfEmpty(d.Trace)}},
		{place, row}, {"count_edit", nil},
	}
	if r.Moved {
		steps = append(steps, struct {
			name string
			args []any
		}{"edit_time", []any{old.ID, run}})
	}
	for _, step := range steps {
		if _, err := e.exec(step.name, step.args...); err != nil {
			return err
		}
	}
	if err := e.moveExpiry(old, expire); err != nil || r.Was == nil {
		return err
	}
	return e.tell(e.now, jobEvent{old.ID, rule.ReplaceEvent, r.Reason, r.Was, 0, 1})
}

// moveExpiry replaces the row by which an expired job is found.
func (e *enqueuer) moveExpiry(old *replaceable, expire any) error {
	if old.expire != 0 {
		if _, err := e.exec("expiry_drop", old.expire, old.ID); err != nil {
			return err
		}
	}
	if expire == nil {
		return nil
	}
	_, err := e.exec("expiry_add", expire, old.ID)
	return err
}

// A jobEvent is an event that the store itself adds to the story of a job.
type jobEvent struct {
	job               holdfast.ID
	name, reason      string
	was               json.RawMessage
	token, generation int
}

func (t *tx) tell(_ int64, e jobEvent) error {
	return t.addJobChange(store.Intervention{Job: e.job, Actor: rule.Machine, Reason: e.reason}, e.name, e.token, e.generation, e.was)
}

// tell writes the page of the event at once.
func (f *callerTx) tell(now int64, e jobEvent) error {
	row := []any{e.job, now, e.name, rule.Machine, clean(e.reason), e.token, e.generation, nil, nullIfEmpty(string(e.was))}
	result, err := f.tx.ExecContext(f.ctx, statements["job_event_add"], driverArgs(row)...)
	if err != nil {
		return err
	}
	line, err := result.LastInsertId()
	if err != nil {
		return err
	}
	return writePages(f, []page{{name: story, at: now, lines: []int64{line}}})
}
