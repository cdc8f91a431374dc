package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/store"
)

// A ScheduleStatus is a schedule with its next runs.
type ScheduleStatus struct {
	schedule.Schedule
	Words string      `json:"words"`     // when it runs, as text
	Next  []time.Time `json:"next_runs"` // its next slots, by the store's clock; slots within a pause are left out
}

// maxNextRuns limits the number of slots that a caller can ask for.
const maxNextRuns = 1000

// Schedules returns the schedules by name, each with its next runs. Records that cannot be decoded are left out and
// reported in the error.
func (s *Service) Schedules(ctx context.Context, next int) ([]ScheduleStatus, error) {
	records, err := s.store.Records(ctx, schedule.Namespace)
	if err != nil {
		return nil, err
	}
	list := make([]ScheduleStatus, 0, len(records))
	var problems []error
	for _, r := range records {
		plan, err := decodeSchedule(r)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		list = append(list, withNextRuns(plan, r.AsOf, next))
	}
	return list, errors.Join(problems...)
}

// Schedule returns one schedule with its next runs.
func (s *Service) Schedule(ctx context.Context, name string, next int) (ScheduleStatus, error) {
	r, err := s.readRecord(ctx, schedule.Namespace, name)
	if err != nil {
		return ScheduleStatus{}, err
	}
	plan, err := decodeSchedule(r)
	if err != nil {
		return ScheduleStatus{}, err
	}
	return withNextRuns(plan, r.AsOf, next), nil
}

func withNextRuns(plan schedule.Schedule, now time.Time, next int) ScheduleStatus {
	from := now
	if plan.PausedAt(now) && plan.PausedUntil.After(now) {
		from = plan.PausedUntil
	}
	list := ScheduleStatus{Schedule: plan, Words: plan.Describe(), Next: []time.Time{}}
	if !plan.PausedAt(now) || !plan.PausedUntil.IsZero() {
		list.Next = append(list.Next, plan.Next(from, min(max(next, 0), maxNextRuns))...)
	}
	return list
}

// decodeSchedule reads a schedule's record.
func decodeSchedule(r store.Record) (plan schedule.Schedule, err error) {
	if r.Version == 0 {
		return plan, &holdfast.Error{Err: holdfast.ErrNotFound, Message: fmt.Sprintf("there is no schedule %q: list them with 'holdfast schedules'", r.Name)}
	}
	if err := json.Unmarshal(r.Body, &plan); err != nil {
		return plan, &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("the record of schedule %s cannot be read: remove it and add it again", r.Name), Cause: err}
	}
	return plan, nil
}

// SetSchedule adds a schedule, or replaces the one with the same name. A replaced schedule keeps its pause, and as long as
// its times stay the same no slot is missed or made twice. With other times it starts from now. Setting an identical
// schedule changes nothing and writes nothing to the audit log.
func (s *Service) SetSchedule(ctx context.Context, plan schedule.Schedule, by Actor) (ScheduleStatus, error) {
	if err := by.check(); err != nil {
		return ScheduleStatus{}, err
	}
	now, err := s.now(ctx)
	if err != nil {
		return ScheduleStatus{}, err
	}
	plan.CreatedAt = time.Time{}
	if s.cfg.Prepare != nil {
		if err := s.cfg.Prepare(&plan.Draft); err != nil {
			return ScheduleStatus{}, err
		}
	}
	if err := plan.Prepare(now); err != nil {
		return ScheduleStatus{}, err
	}
	err = s.updateRecord(ctx, schedule.Namespace, plan.Name, func(r store.Record) (store.Change, error) {
		name := "added"
		if was, err := decodeSchedule(r); err == nil {
			name, plan = "replaced", inherit(was, plan)
			if sameJSON(was, plan) {
				return store.Change{}, nil
			}
		}
		return scheduleChange(r, plan, by.event(schedule.Namespace+"/"+plan.Name, name))
	})
	return withNextRuns(plan, now, 1), err
}

// sameJSON reports whether two values marshal to the same JSON.
func sameJSON(a, b any) bool {
	one, err := json.Marshal(a)
	other, failed := json.Marshal(b)
	return err == nil && failed == nil && bytes.Equal(one, other)
}

// inherit returns the new schedule with the pause and the progress of the one that it replaces.
func inherit(was, plan schedule.Schedule) schedule.Schedule {
	if was.Cron == plan.Cron && was.Every == plan.Every && was.Zone == plan.Zone {
		plan.CreatedAt = was.CreatedAt
	}
	plan.Paused, plan.PausedUntil, plan.Actor, plan.Reason = was.Paused, was.PausedUntil, was.Actor, was.Reason
	plan.Last, plan.RunNow, plan.Ran, plan.Runs, plan.Skipped = was.Last, was.RunNow, was.Ran, was.Runs, was.Skipped
	return plan
}

func scheduleChange(r store.Record, plan schedule.Schedule, event store.Event) (c store.Change, err error) {
	if r.Body, err = json.Marshal(plan); err != nil {
		return c, err
	}
	return store.Change{Records: []store.Record{r}, Events: []store.Event{event}}, nil
}

// RemoveSchedule deletes a schedule. Jobs that it has made continue.
func (s *Service) RemoveSchedule(ctx context.Context, name string, by Actor) error {
	if err := by.check(); err != nil {
		return err
	}
	return s.updateRecord(ctx, schedule.Namespace, name, func(r store.Record) (store.Change, error) {
		if _, err := decodeSchedule(r); errors.Is(err, holdfast.ErrNotFound) {
			return store.Change{}, err
		}
		r.Body = nil
		return store.Change{Records: []store.Record{r}, Events: []store.Event{by.event(schedule.Namespace+"/"+name, "removed")}}, nil
	})
}

// PauseSchedule skips the slots of a schedule for a time, or until it is resumed if lasting is zero. Pausing again replaces
// the pause.
func (s *Service) PauseSchedule(ctx context.Context, name string, lasting time.Duration, by Actor) error {
	if err := checkPause(lasting); err != nil {
		return err
	}
	return s.changeSchedule(ctx, name, by, "paused", func(plan *schedule.Schedule, now time.Time) error {
		plan.Paused, plan.PausedUntil, plan.Actor, plan.Reason = true, time.Time{}, by.Name, by.Reason
		if lasting > 0 {
			plan.PausedUntil = now.Add(lasting)
		}
		return nil
	})
}

func checkPause(lasting time.Duration) error {
	if lasting < 0 || lasting > check.MaxDelay {
		return invalid("a pause of %v: give a duration up to 100 years, or 0 until it is resumed", lasting)
	}
	return nil
}

// ResumeSchedule ends a pause. Slots within the pause are not made up for.
func (s *Service) ResumeSchedule(ctx context.Context, name string, by Actor) error {
	return s.changeSchedule(ctx, name, by, "resumed", func(plan *schedule.Schedule, now time.Time) error {
		if !plan.PausedAt(now) {
			return &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("schedule %s is not paused", name)}
		}
		*plan = plan.Resume(now)
		return nil
	})
}

// RunSchedule makes a schedule enqueue a job now, even while it is paused. A worker does it within a second or two.
func (s *Service) RunSchedule(ctx context.Context, name string, by Actor) error {
	return s.changeSchedule(ctx, name, by, "run now", func(plan *schedule.Schedule, _ time.Time) error {
		plan.RunNow++
		return nil
	})
}

// changeSchedule applies a person's command to a schedule.
func (s *Service) changeSchedule(ctx context.Context, name string, by Actor, event string, move func(plan *schedule.Schedule, now time.Time) error) error {
	if err := by.check(); err != nil {
		return err
	}
	return s.updateRecord(ctx, schedule.Namespace, name, func(r store.Record) (store.Change, error) {
		plan, err := decodeSchedule(r)
		if err != nil {
			return store.Change{}, err
		}
		if err := move(&plan, r.AsOf); err != nil {
			return store.Change{}, err
		}
		return scheduleChange(r, plan, by.event(schedule.Namespace+"/"+name, event))
	})
}
