package client

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/store"
)

// Schedules lists schedules by name, each with its next slots. Records that cannot be read are left out and reported in the error.
func (d *Operator) Schedules(ctx context.Context, next int) ([]ops.ScheduleStatus, error) {
	out, err := call(ctx, d.c, api.ListSchedules, api.SchedulesIn{Next: next})
	if err == nil {
		err = out.Err()
	}
	return out.Schedules, err
}

// Schedule returns one schedule with its next slots.
func (d *Operator) Schedule(ctx context.Context, name string, next int) (ops.ScheduleStatus, error) {
	return call(ctx, d.c, api.GetSchedule, api.ScheduleIn{ByName: api.ByName{Name: name}, Next: next})
}

// SetSchedule creates a schedule, or replaces the one with that name.
func (d *Operator) SetSchedule(ctx context.Context, plan schedule.Schedule, by ops.Actor) (ops.ScheduleStatus, error) {
	return act(ctx, d, api.SetSchedule, by.Name, api.SetScheduleIn{ByName: api.ByName{Name: plan.Name}, Asked: api.Asked{Request: by.Request}, Body: api.ScheduleBodyOf(plan, api.Word{Actor: by.Name, Reason: by.Reason})})
}

// RemoveSchedule deletes a schedule.
func (d *Operator) RemoveSchedule(ctx context.Context, name string, by ops.Actor) error {
	_, err := act(ctx, d, api.RemoveSchedule, by.Name, api.DropNamed{ByName: api.ByName{Name: name}, Asked: api.Asked{Request: by.Request}, Dropped: droppedBy(by)})
	return err
}

// PauseSchedule pauses a schedule: its slots pass without a job.
func (d *Operator) PauseSchedule(ctx context.Context, name string, lasting time.Duration, by ops.Actor) error {
	return d.pause(ctx, api.PauseSchedule, name, lasting, by)
}

// ResumeSchedule ends a pause.
func (d *Operator) ResumeSchedule(ctx context.Context, name string, by ops.Actor) error {
	_, err := act(ctx, d, api.ResumeSchedule, by.Name, onNamed(name, by))
	return err
}

// RunSchedule makes one job of a schedule out of turn.
func (d *Operator) RunSchedule(ctx context.Context, name string, by ops.Actor) error {
	_, err := act(ctx, d, api.RunSchedule, by.Name, onNamed(name, by))
	return err
}

func (d *Operator) pause(ctx context.Context, r api.Route[api.PauseNamed, api.Nothing], name string, lasting time.Duration, by ops.Actor) error {
	_, err := act(ctx, d, r, by.Name, api.PauseNamed{ByName: api.ByName{Name: name}, Asked: api.Asked{Request: by.Request}, Body: api.PauseBody{Word: api.Word{Actor: by.Name, Reason: by.Reason}, For: lasting}})
	return err
}

// Retention returns the retention rules and what they have purged.
func (d *Operator) Retention(ctx context.Context) (ops.Retention, error) {
	return call(ctx, d.c, api.GetRetention, struct{}{})
}

// ApplyRetention applies retention rules; nil returns to the rules of the workers.
func (d *Operator) ApplyRetention(ctx context.Context, rules []store.RetentionRule, by ops.Actor) error {
	if rules == nil {
		_, err := act(ctx, d, api.ResetRetention, by.Name, api.DropRetention{Asked: api.Asked{Request: by.Request}, Dropped: droppedBy(by)})
		return err
	}
	_, err := act(ctx, d, api.ApplyRetention, by.Name, api.RetentionIn{Asked: api.Asked{Request: by.Request}, Body: api.RetentionBody{Word: api.Word{Actor: by.Name, Reason: by.Reason}, Rules: rules}})
	return err
}

// Tombstones lists tombstones of purged jobs, last purged first.
func (d *Operator) Tombstones(ctx context.Context, f store.TombstoneFilter) (stones []store.Tombstone, cursor string, err error) {
	out, err := call(ctx, d.c, api.ListTombstones, api.TombstonesIn(f))
	return out.Tombstones, out.Cursor, err
}

// Duties lists the duties.
func (d *Operator) Duties(ctx context.Context) ([]duty.Status, error) {
	out, err := call(ctx, d.c, api.ListDuties, struct{}{})
	return out.Duties, err
}

// PauseDuty pauses a duty in all workers.
func (d *Operator) PauseDuty(ctx context.Context, name string, lasting time.Duration, by ops.Actor) error {
	return d.pause(ctx, api.PauseDuty, name, lasting, by)
}

// ResumeDuty ends a pause.
func (d *Operator) ResumeDuty(ctx context.Context, name string, by ops.Actor) error {
	_, err := act(ctx, d, api.ResumeDuty, by.Name, onNamed(name, by))
	return err
}

// RunDuty lets every worker perform a duty once.
func (d *Operator) RunDuty(ctx context.Context, name string, by ops.Actor) error {
	_, err := act(ctx, d, api.RunDuty, by.Name, onNamed(name, by))
	return err
}
