package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// RetryGroup retries the failed members of a group and of its child groups, and makes the members wait again that were cancelled because of them. It
// returns how many jobs that were. The number of statements does not depend on the number of members.
func (s *Store) RetryGroup(ctx context.Context, i store.Intervention) (n int, err error) {
	if err := i.Check(); err != nil {
		return 0, err
	}
	ctx, cancel := withDeadline(ctx, manyDeadline)
	defer cancel()
	var back readyPlaces
	var jobs []holdfast.ID
	err = s.withRetries(ctx, "retry the group", false, func(ctx context.Context) error {
		back = readyPlaces{}
		return s.transact(ctx, s.work, func(p *pipeline) error {
			r := &groupRetry{s: s, p: p, i: i}
			if err := r.lockAndRead(ctx); err != nil {
				return err
			}
			if err := r.retakeKeys(ctx); err != nil {
				return err
			}
			if len(r.failed) == 0 {
				return rule.NothingToRetry(i.Group, r.expired, r.keyed)
			}
			jobs = r.jobs()
			return r.write(ctx, &back)
		})
	})
	if err != nil {
		return 0, err
	}
	s.planner.noteJobs(jobs...)
	s.announce(&back)
	return len(jobs), nil
}

// A groupRetry is one call of RetryGroup in progress.
type groupRetry struct {
	s      *Store
	p      *pipeline
	i      store.Intervention
	now    time.Time
	failed []*failedMember

	expired, keyed int // members that are not retried: past their expiry, or another job holds their unique key
}

// A failedMember failed, or never ran because of another member.
type failedMember struct {
	member
	key
	waits bool // it waits for other members again
}

// lockAndRead finds the members and locks their finished rows. Members past their expiry are left as they are.
func (r *groupRetry) lockAndRead(ctx context.Context) error {
	owner, there := "", false
	r.p.queueRows(r.s.sql["group_owner"], []any{r.i.Group.String()}, []any{&owner}, func() error { there = true; return nil })
	var b failedMember
	var of rule.Retryable
	var cause pgtype.UUID
	var late bool
	var all []rule.Retryable
	var members []*failedMember // in the order of all; nil: past its expiry
	into := []any{(*[16]byte)(&b.job), &b.token, &b.generation, &cause, &of.Skipped, &of.Conditional, &b.owner, &b.kind, &b.key.key, &late}
	r.p.queueRows(r.s.sql["find_failed_members"], []any{r.i.Group.String()}, into, func() error {
		of.Job, of.Cause = b.job, cause.Bytes
		one := b
		one.waits = of.Waits()
		all = append(all, of)
		if members = append(members, &one); late {
			members[len(members)-1] = nil
		}
		return nil
	})
	r.p.queueRow(r.s.sql["now"], nil, &r.now)
	if err := r.p.flush(ctx); err != nil {
		return err
	}
	if !there || r.i.Owner != "" && r.i.Owner != owner {
		return rule.NoGroup(r.i.Group)
	}
	for i, retried := range rule.Retried(all) {
		switch {
		case !retried:
		case members[i] == nil:
			r.expired++
		default:
			r.failed = append(r.failed, members[i])
		}
	}
	return nil
}

// retakeKeys takes the unique keys again. A member whose key is held by another job is left as it is.
func (r *groupRetry) retakeKeys(ctx context.Context) error {
	var owner, kind, name, job column
	for _, b := range r.failed {
		if b.key.key != "" {
			owner.quote(b.owner)
			kind.quote(b.kind)
			name.quote(b.key.key)
			job.id(b.job)
		}
	}
	if len(job.text) == 0 {
		return nil
	}
	var k key
	var text string
	holders := map[key]string{}
	names := arrayArgs([]column{owner, kind, name})
	r.p.Queue(r.s.sql["unique_take"], append(names[:3:3], job.String())...)
	r.p.queueRows(r.s.sql["unique_find"], names, append(k.fields("unique"), &text), func() error { holders[k] = text; return nil })
	if err := r.p.flush(ctx); err != nil {
		return err
	}
	var retaken []*failedMember
	for _, b := range r.failed {
		if b.key.key == "" || holders[b.key] == b.job.String() {
			retaken = append(retaken, b)
		} else {
			r.keyed++
		}
	}
	r.failed = retaken
	return nil
}

func (r *groupRetry) jobs() []holdfast.ID {
	jobs := make([]holdfast.ID, len(r.failed))
	for i, b := range r.failed {
		jobs[i] = b.job
	}
	return jobs
}

// write moves the members, reopens the groups, and records the events.
func (r *groupRetry) write(ctx context.Context, back *readyPlaces) error {
	var all, ready, waiting moveRows
	for _, b := range r.failed {
		b.generation++
		all.add(&b.member)
		if b.waits {
			waiting.add(&b.member)
		} else {
			ready.add(&b.member)
		}
	}
	p, sql, now := r.p, r.s.sql, timestamp(r.now)
	p.Queue(sql["delete_finished_jobs"], all.job)
	if len(ready.job) > 0 {
		ready.queue(p, sql["ready_add gently"], now, back)
	}
	if len(waiting.job) > 0 {
		p.Queue(sql["return_to_waiting"], append([]any{now}, waiting.args()...)...)
	}
	p.Queue(sql["redrive_begin"], all.job, now)
	args := all.args()
	p.Queue(sql["events_add"], now, "manual retry", r.i.Actor, r.i.Reason, r.i.Request, all.job, args[1], args[5])
	if err := r.s.reopen(ctx, p, all.job, r.now, r.i); err != nil {
		return err
	}
	var owner string
	var state string
	var ending bool
	var generation int
	p.queueRow(sql["lock_group"], []any{r.i.Group.String()}, &owner, &state, &ending, &generation)
	if err := p.flush(ctx); err != nil {
		return err
	}
	r.s.queueEvent(p.Batch, groupEvent("manual retry", r.i, generation), r.now)
	return nil
}
