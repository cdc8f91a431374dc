package api

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
)

// Schedules lists schedules by name, each with its next slots. Records that cannot be read are left out and reported in the error.
func (d *Desk) Schedules(ctx context.Context, next int) ([]ops.Scheduled, error) {
	out, err := call(ctx, d.c, ListSchedules, SchedulesIn{next})
	if err == nil {
		err = out.err()
	}
	return out.Schedules, err
}

// Schedule returns one schedule with its next slots.
func (d *Desk) Schedule(ctx context.Context, name string, next int) (ops.Scheduled, error) {
	return call(ctx, d.c, GetSchedule, ScheduleIn{ByName{name}, next})
}

// SetSchedule creates a schedule, or replaces the one with that name.
func (d *Desk) SetSchedule(ctx context.Context, plan schedule.Schedule, by ops.By) (ops.Scheduled, error) {
	return act(ctx, d, SetSchedule, by.Actor, SetScheduleIn{ByName{plan.Name}, Asked{by.Request}, scheduleBody(plan, Word{by.Actor, by.Reason})})
}

// RemoveSchedule deletes a schedule.
func (d *Desk) RemoveSchedule(ctx context.Context, name string, by ops.By) error {
	_, err := act(ctx, d, RemoveSchedule, by.Actor, DropNamed{ByName{name}, Asked{by.Request}, droppedBy(by)})
	return err
}

// PauseSchedule pauses a schedule: its slots pass without a job.
func (d *Desk) PauseSchedule(ctx context.Context, name string, lasting time.Duration, by ops.By) error {
	return d.pause(ctx, PauseSchedule, name, lasting, by)
}

// ResumeSchedule ends a pause.
func (d *Desk) ResumeSchedule(ctx context.Context, name string, by ops.By) error {
	_, err := act(ctx, d, ResumeSchedule, by.Actor, onNamed(name, by))
	return err
}

// RunSchedule makes one job of a schedule out of turn.
func (d *Desk) RunSchedule(ctx context.Context, name string, by ops.By) error {
	_, err := act(ctx, d, RunSchedule, by.Actor, onNamed(name, by))
	return err
}

func (d *Desk) pause(ctx context.Context, r Route[PauseNamed, Nothing], name string, lasting time.Duration, by ops.By) error {
	_, err := act(ctx, d, r, by.Actor, PauseNamed{ByName{name}, Asked{by.Request}, PauseBody{Word{by.Actor, by.Reason}, lasting}})
	return err
}

// Retention returns the retention rules and what they have purged.
func (d *Desk) Retention(ctx context.Context) (ops.Retention, error) {
	return call(ctx, d.c, GetRetention, struct{}{})
}

// ApplyRetention applies retention rules; nil returns to the rules of the workers.
func (d *Desk) ApplyRetention(ctx context.Context, rules []holdfast.Retain, by ops.By) error {
	if rules == nil {
		_, err := act(ctx, d, ResetRetention, by.Actor, DropRetention{Asked{by.Request}, droppedBy(by)})
		return err
	}
	_, err := act(ctx, d, ApplyRetention, by.Actor, RetentionIn{Asked{by.Request}, RetentionBody{Word{by.Actor, by.Reason}, rules}})
	return err
}

// Tombstones lists tombstones of purged jobs, last purged first.
func (d *Desk) Tombstones(ctx context.Context, f holdfast.TombstoneFilter) (stones []holdfast.Tombstone, cursor string, err error) {
	out, err := call(ctx, d.c, ListTombstones, TombstonesIn(f))
	return out.Tombstones, out.Cursor, err
}

// Duties lists the duties.
func (d *Desk) Duties(ctx context.Context) ([]duty.Standing, error) {
	out, err := call(ctx, d.c, ListDuties, struct{}{})
	return out.Duties, err
}

// PauseDuty pauses a duty in all workers.
func (d *Desk) PauseDuty(ctx context.Context, name string, lasting time.Duration, by ops.By) error {
	return d.pause(ctx, PauseDuty, name, lasting, by)
}

// ResumeDuty ends a pause.
func (d *Desk) ResumeDuty(ctx context.Context, name string, by ops.By) error {
	_, err := act(ctx, d, ResumeDuty, by.Actor, onNamed(name, by))
	return err
}

// RunDuty lets every worker perform a duty once.
func (d *Desk) RunDuty(ctx context.Context, name string, by ops.By) error {
	_, err := act(ctx, d, RunDuty, by.Actor, onNamed(name, by))
	return err
}
