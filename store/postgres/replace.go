package postgres

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// maxReplaceRounds bounds how often a draft looks again for a job that moves between its looks.
const maxReplaceRounds = 50

// replacing reports whether an entry may replace the job with its key.
func replacing(entries []entry) bool {
	return slices.ContainsFunc(entries, func(e entry) bool { return e.Replace != nil })
}

// lockReplaced lets this call and others that replace jobs with the same keys take turns.
func (a *admission) lockReplaced(ctx context.Context, keyed map[int]key) error {
	var names column
	for i, k := range keyed {
		if a.entries[i].Replace != nil {
			names.quote(k.owner + "\x01" + k.kind + "\x01" + k.key)
		}
	}
	if len(names.text) == 0 {
		return nil
	}
	return a.q.query(ctx, a.s.sql["replace_lock"], []any{names.String()}, func(func(...any) error) error { return nil })
}

// replaceHolders lets the entries that ask for it replace the jobs that hold their keys, in the order of the call. keyed has the key of each entry. An entry that
// meets a job of this call waits until that job is written (see replaceFresh).
func (a *admission) replaceHolders(ctx context.Context, keyed map[int]key) error {
	made, holders := map[holdfast.ID]bool{}, map[key]holdfast.ID{}
	for i := range a.entries {
		k, ok := keyed[i]
		if !ok {
			continue
		}
		e, r := a.entries[i], &a.receipts[i]
		if !r.Existing {
			made[e.ID], holders[k] = true, e.ID
			continue
		}
		if holder, ok := holders[k]; ok {
			r.ID = holder
		}
		if holders[k] = r.ID; e.Replace == nil {
			continue
		}
		if made[r.ID] {
			r.Replaced, a.deferred = true, append(a.deferred, i)
			continue
		}
		if err := a.replaceHolder(ctx, i, k); err != nil {
			return err
		}
		if !r.Existing {
			made[e.ID] = true
		}
		holders[k] = r.ID
	}
	return nil
}

// replaceHolder lets an entry replace the stored job that its receipt names. The entry becomes a new job if the job was claimed before and the entry takes over
// its key, or if the job has ended meanwhile.
func (a *admission) replaceHolder(ctx context.Context, i int, k key) error {
	e, r := a.entries[i], &a.receipts[i]
	for range maxReplaceRounds {
		locked, err := a.lockReplaceable(ctx, r.ID)
		if err != nil {
			return err
		}
		if locked {
			r.Replaced = true
			return a.rewrite(ctx, r.ID, &e)
		}
		var ended, claimed bool
		err = a.q.query(ctx, a.s.sql["find_claimed"], []any{r.ID.String()}, func(scan func(...any) error) error { return scan(&ended, &claimed) })
		if err != nil {
			return err
		}
		switch {
		case ended: // its key is free, unless it keeps the key
			holder := holdfast.ID{}
			err := a.take(ctx, "unique", map[key]int{k: i}, nil, func(_ int, _ string, job holdfast.ID) { holder = job })
			if err != nil {
				return err
			}
			if holder.IsZero() {
				*r = holdfast.Receipt{ID: e.ID}
				return nil
			}
			if holder == r.ID {
				return nil
			}
			r.ID = holder
		case claimed && !e.Replace.Follow:
			return nil
		case claimed:
			if passed, err := a.passKey(ctx, r.ID, &e); err != nil || passed {
				*r = holdfast.Receipt{ID: e.ID}
				return err
			}
		}
	}
	return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "could not enqueue: the job with the draft's unique key keeps changing; try again"}
}

// lockReplaceable locks a queued job that was never claimed. It reports false if the job is not there.
func (a *admission) lockReplaceable(ctx context.Context, job holdfast.ID) (locked bool, err error) {
	err = a.q.query(ctx, a.s.sql["lock_replaceable"], []any{job.String()}, func(scan func(...any) error) error {
		locked = true
		return scan(new(string))
	})
	return locked, err
}

// passKey gives the unique key of a job to an entry. It reports false if the job has ended meanwhile.
func (a *admission) passKey(ctx context.Context, from holdfast.ID, e *entry) (passed bool, err error) {
	err = a.q.query(ctx, a.s.sql["unique_pass"], []any{from.String(), e.ID.String()}, func(scan func(...any) error) error {
		passed = true
		return scan(new(string))
	})
	if err != nil || !passed {
		return false, err
	}
	if err := a.q.exec(ctx, a.s.sql["unique_lose"], from.String()); err != nil {
		return false, err
	}
	var now time.Time
	if err := a.q.query(ctx, a.s.sql["now"], nil, func(scan func(...any) error) error { return scan(&now) }); err != nil {
		return false, err
	}
	return true, a.q.exec(ctx, a.s.sql["job_event_add"], from.String(), timestamp(now), rule.KeyPassedEvent, rule.Machine, rule.KeyPassed(e.ID), "")
}

// replaceFresh lets entries replace jobs that this call has written.
func (a *admission) replaceFresh(ctx context.Context) error {
	for _, i := range a.deferred {
		if err := a.rewrite(ctx, a.receipts[i].ID, &a.entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// A replaceable is a locked job that an entry may replace, and how it waits.
type replaceable struct {
	holdfast.Job // its content, and when it was created and is due
	ready        bool
	waits        bool // for members of its group
	now          time.Time
}

// readReplaceable reads a locked job. A job that was set aside behind a held tag counts as ready: the next claim checks its tags.
func (a *admission) readReplaceable(ctx context.Context, job holdfast.ID) (old replaceable, err error) {
	var args, tags string
	var aside bool
	var created, due, clock int64
	err = a.q.query(ctx, a.s.sql["read_replaceable"], []any{job.String()}, func(scan func(...any) error) error {
		return scan(&args, &old.Queue, &old.Priority, &tags, &old.MaxAttempts, &old.Dependency, &created, &old.ready, &old.waits, &aside, &due, &clock)
	})
	old.ID, old.Args, old.ready, old.now = job, json.RawMessage(args), old.ready || aside, time.UnixMicro(clock)
	old.CreatedAt, old.DueAt = time.UnixMicro(created), time.UnixMicro(due)
	if err == nil && tags != "" {
		err = json.Unmarshal([]byte(tags), &old.Tags)
	}
	return old, err
}

// waiting returns the statement that inserts the row with which the job waits after a replacement, its parameters, and the start time of the job if that is in the
// future.
func (o *replaceable) waiting(r rule.Replacement) (place string, row []any, run *string) {
	at, ready := o.DueAt, o.ready
	if r.Moved {
		if at, ready = r.Due, !r.Due.After(o.now); !ready {
			run = new(timestamp(at))
		} else if at = o.now; o.waits { // it no longer has a time of its own
			at = o.CreatedAt
		}
	}
	member := []any{"{" + o.ID.String() + "}", "{0}", "{0}", "{0}", "{0}", "{1}"} // array literals, which every driver takes
	if !ready || o.waits {
		return "edit_later", append([]any{timestamp(at), o.waits}, member...), run
	}
	var since *string // nil: due since its creation
	if !at.Equal(o.CreatedAt) {
		since = new(timestamp(at))
	}
	return "ready_add", append([]any{since}, member...), run
}

// rewrite gives the content of an entry to a locked job. The row with which the job waits is deleted and inserted again, so that a claim which has read the old
// content does not find it.
func (a *admission) rewrite(ctx context.Context, job holdfast.ID, e *entry) error {
	old, err := a.readReplaceable(ctx, job)
	if err != nil {
		return err
	}
	r := rule.Replace(&old.Job, e.Draft, old.now)
	place, row, run := old.waiting(r)
	var expire, tags *string
	var within *int64
	if !r.ExpireAt.IsZero() {
		expire = new(timestamp(r.ExpireAt))
	}
	if len(e.Tags) > 0 {
		tags = new(textArray(e.Tags))
	}
	if e.RetryWithin > 0 {
		within = new(e.RetryWithin.Microseconds())
	}
	id := job.String()
	content := []any{id, e.lane, e.Queue, e.Priority, e.MaxAttempts, expire, tags, e.UniqueDone, r.Moved, run, string(e.Args), e.Dependency, within, e.Trace}
	for _, step := range []struct {
		name string
		args []any
	}{{"delete_later", []any{id}}, {"delete_ready", []any{id}}, {"expiry_drop", []any{id}}, {"replace_job", content}, {place, row}} {
		if err := a.q.exec(ctx, a.s.sql[step.name], step.args...); err != nil {
			return err
		}
	}
	if r.Was == nil {
		return nil
	}
	return a.q.exec(ctx, a.s.sql["event_add"], id, timestamp(old.now), rule.ReplaceEvent, rule.Machine, r.Reason, "", 0, 1, string(r.Was))
}

// changed returns the entries that are new jobs or the new content of jobs.
func (a *admission) changed() []entry {
	if !replacing(a.entries) {
		return a.fresh
	}
	var changed []entry
	for i, e := range a.entries {
		if r := a.receipts[i]; !r.Existing || r.Replaced {
			changed = append(changed, e)
		}
	}
	return changed
}
