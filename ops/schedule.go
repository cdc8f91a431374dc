package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/schedule"
)

// A Scheduled is a schedule, and when it is due next.
type Scheduled struct {
	schedule.Schedule
	Words string      `json:"words"`     // when it is due, for people
	Next  []time.Time `json:"next_runs"` // its next slots, by the store's clock; a pause lets those within it pass by
}

// mostNext is how many slots ahead somebody may ask for.
const mostNext = 1000

// Schedules lists them by name, each with its next runs. Records that cannot be read are left out and complained about.
func (s *Service) Schedules(ctx context.Context, next int) ([]Scheduled, error) {
	records, err := s.store.Records(ctx, schedule.Room)
	if err != nil {
		return nil, err
	}
	list := make([]Scheduled, 0, len(records))
	var problems []error
	for _, r := range records {
		plan, err := scheduled(r)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		list = append(list, coming(plan, r.AsOf, next))
	}
	return list, errors.Join(problems...)
}

// Schedule tells about one, with its next runs.
func (s *Service) Schedule(ctx context.Context, name string, next int) (Scheduled, error) {
	r, err := s.record(ctx, schedule.Room, name)
	if err != nil {
		return Scheduled{}, err
	}
	plan, err := scheduled(r)
	if err != nil {
		return Scheduled{}, err
	}
	return coming(plan, r.AsOf, next), nil
}

func coming(plan schedule.Schedule, now time.Time, next int) Scheduled {
	from := now
	if plan.Halted(now) && plan.PausedUntil.After(now) {
		from = plan.PausedUntil
	}
	list := Scheduled{Schedule: plan, Words: plan.Words(), Next: []time.Time{}}
	if !plan.Halted(now) || !plan.PausedUntil.IsZero() {
		list.Next = append(list.Next, plan.Next(from, min(max(next, 0), mostNext))...)
	}
	return list
}

// scheduled reads a schedule's record.
func scheduled(r holdfast.Record) (plan schedule.Schedule, err error) {
	if r.Version == 0 {
		return plan, &holdfast.Error{Kind: holdfast.ErrNotFound, Message: fmt.Sprintf("there is no schedule %q: see those that are there with 'holdfast schedules'", r.Name)}
	}
	if err := json.Unmarshal(r.Body, &plan); err != nil {
		return plan, &holdfast.Error{Kind: holdfast.ErrConflict, Message: fmt.Sprintf("the record of schedule %s cannot be read: remove it and add it anew", r.Name), Cause: err}
	}
	return plan, nil
}

// SetSchedule adds a schedule, or replaces the one of that name. A replaced one goes on where it is: a pause stays, and as long as its
// times stay the same no slot is missed or made twice. With other times it begins anew. One that is the same already is left as it is, and nothing is
// written to the audit log.
func (s *Service) SetSchedule(ctx context.Context, plan schedule.Schedule, by By) (Scheduled, error) {
	if err := by.check(); err != nil {
		return Scheduled{}, err
	}
	now, err := s.now(ctx)
	if err != nil {
		return Scheduled{}, err
	}
	plan.CreatedAt = time.Time{}
	if s.cfg.Prepare != nil {
		if err := s.cfg.Prepare(&plan.Draft); err != nil {
			return Scheduled{}, err
		}
	}
	if err := plan.Prepare(now); err != nil {
		return Scheduled{}, err
	}
	err = s.keep(ctx, schedule.Room, plan.Name, func(r holdfast.Record) (holdfast.Change, error) {
		name := "added"
		if was, err := scheduled(r); err == nil {
			name, plan = "replaced", succeed(was, plan)
			if same(was, plan) {
				return holdfast.Change{}, nil
			}
		}
		return keepSchedule(r, plan, by.says(schedule.Room+"/"+plan.Name, name))
	})
	return coming(plan, now, 1), err
}

// same reports whether two values are kept as the same JSON.
func same(a, b any) bool {
	one, err := json.Marshal(a)
	other, failed := json.Marshal(b)
	return err == nil && failed == nil && bytes.Equal(one, other)
}

// succeed takes over from the schedule of the same name what it has done so far.
func succeed(was, plan schedule.Schedule) schedule.Schedule {
	if was.Cron == plan.Cron && was.Every == plan.Every && was.Zone == plan.Zone {
		plan.CreatedAt = was.CreatedAt
	}
	plan.Paused, plan.PausedUntil, plan.Actor, plan.Reason = was.Paused, was.PausedUntil, was.Actor, was.Reason
	plan.Last, plan.RunNow, plan.Ran, plan.Runs, plan.Skipped = was.Last, was.RunNow, was.Ran, was.Runs, was.Skipped
	return plan
}

func keepSchedule(r holdfast.Record, plan schedule.Schedule, said holdfast.Event) (c holdfast.Change, err error) {
	if r.Body, err = json.Marshal(plan); err != nil {
		return c, err
	}
	return holdfast.Change{Records: []holdfast.Record{r}, Events: []holdfast.Event{said}}, nil
}

// RemoveSchedule forgets a schedule. Jobs it has made go on.
func (s *Service) RemoveSchedule(ctx context.Context, name string, by By) error {
	if err := by.check(); err != nil {
		return err
	}
	return s.keep(ctx, schedule.Room, name, func(r holdfast.Record) (holdfast.Change, error) {
		if _, err := scheduled(r); errors.Is(err, holdfast.ErrNotFound) {
			return holdfast.Change{}, err
		}
		r.Body = nil
		return holdfast.Change{Records: []holdfast.Record{r}, Events: []holdfast.Event{by.says(schedule.Room+"/"+name, "removed")}}, nil
	})
}

// PauseSchedule lets the slots of a schedule pass by for a while, or until it is resumed when that is zero. Pausing again replaces the pause.
func (s *Service) PauseSchedule(ctx context.Context, name string, lasting time.Duration, by By) error {
	if err := checkPause(lasting); err != nil {
		return err
	}
	return s.moveSchedule(ctx, name, by, "paused", func(plan *schedule.Schedule, now time.Time) error {
		plan.Paused, plan.PausedUntil, plan.Actor, plan.Reason = true, time.Time{}, by.Actor, by.Reason
		if lasting > 0 {
			plan.PausedUntil = now.Add(lasting)
		}
		return nil
	})
}

func checkPause(lasting time.Duration) error {
	if lasting < 0 || lasting > holdfast.MaxDelay {
		return invalid("a pause of %v: give a duration up to 100 years, or 0 until it is resumed", lasting)
	}
	return nil
}

// ResumeSchedule ends a pause. The slots of the pause are not made up for.
func (s *Service) ResumeSchedule(ctx context.Context, name string, by By) error {
	return s.moveSchedule(ctx, name, by, "resumed", func(plan *schedule.Schedule, now time.Time) error {
		if !plan.Halted(now) {
			return &holdfast.Error{Kind: holdfast.ErrConflict, Message: fmt.Sprintf("schedule %s is not paused", name)}
		}
		*plan = plan.Resume(now)
		return nil
	})
}

// RunSchedule has a schedule make a job out of turn, also while it is paused. A worker does it within a second or two.
func (s *Service) RunSchedule(ctx context.Context, name string, by By) error {
	return s.moveSchedule(ctx, name, by, "run now", func(plan *schedule.Schedule, _ time.Time) error {
		plan.RunNow++
		return nil
	})
}

// moveSchedule keeps a person's word on a schedule.
func (s *Service) moveSchedule(ctx context.Context, name string, by By, said string, move func(plan *schedule.Schedule, now time.Time) error) error {
	if err := by.check(); err != nil {
		return err
	}
	return s.keep(ctx, schedule.Room, name, func(r holdfast.Record) (holdfast.Change, error) {
		plan, err := scheduled(r)
		if err != nil {
			return holdfast.Change{}, err
		}
		if err := move(&plan, r.AsOf); err != nil {
			return holdfast.Change{}, err
		}
		return keepSchedule(r, plan, by.says(schedule.Room+"/"+name, said))
	})
}
