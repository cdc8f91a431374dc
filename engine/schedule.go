package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/store"
)

const scheduleInterval = time.Second

// An idleSchedule is a schedule without a due slot before until. It need not be evaluated before then unless its record changes.
type idleSchedule struct {
	version int
	keptAt  time.Time
	until   time.Time
}

// A scheduler enqueues the jobs of schedules.
type scheduler struct {
	*core
	duties *dutyRunner
	idle   map[string]idleSchedule // as of the last run
}

// run enqueues the jobs of slots that are due. Every process may do it: the jobs of a slot and the record that the slot is done are written
// together, by compare-and-set, so a process that comes later gets a conflict and enqueues nothing.
func (d *scheduler) run(context.Context) error {
	records, err := d.records(schedule.Namespace)
	if err != nil {
		return err
	}
	now, idle := d.clock.now(), make(map[string]idleSchedule, len(records))
	for _, r := range records {
		was := d.idle[r.Name]
		if was.version == r.Version && was.keptAt.Equal(r.KeptAt) && now.Before(was.until) {
			idle[r.Name] = was
			continue
		}
		until, err := d.step(r, now)
		switch {
		case err == nil && now.Before(until):
			idle[r.Name] = idleSchedule{r.Version, r.KeptAt, until}
		case err != nil && !errors.Is(err, holdfast.ErrConflict):
			d.duties.problem("schedule", fmt.Errorf("schedule %s: %w", r.Name, err))
		}
	}
	d.idle = idle
	return nil
}

// step enqueues the jobs of the due slots of one schedule. If there are none, it returns when the schedule must be evaluated again.
func (d *scheduler) step(r store.Record, now time.Time) (until time.Time, err error) {
	var s schedule.Schedule
	if err := json.Unmarshal(r.Body, &s); err != nil {
		return until, fmt.Errorf("the record cannot be read: %w", err)
	}
	s.Name = r.Name
	if s.CreatedAt.IsZero() {
		s.CreatedAt = r.KeptAt
	}
	if err := s.Prepare(now); err != nil {
		return until, err
	}
	slots, skipped, after := s.Due(now)
	if after.Last.Equal(s.Last) && after.Paused == s.Paused && after.Ran == s.Ran {
		return idleUntil(s, now), nil
	}
	if r.Body, err = json.Marshal(after); err != nil {
		return until, err
	}
	c := store.Change{Records: []store.Record{r}, Events: scheduleEvents(s, after, skipped, now)}
	for _, slot := range slots {
		c.Enqueue = append(c.Enqueue, s.Job(slot))
	}
	if err := d.keepChange(c); err != nil {
		return until, err
	}
	if len(slots) > 0 {
		signal(d.signals.claim)
		signal(d.signals.feed)
	}
	return until, nil
}

// idleUntil returns when a schedule must be evaluated again if it is not changed.
func idleUntil(s schedule.Schedule, now time.Time) time.Time {
	next := s.Next(now, 1)
	if len(next) == 0 {
		return now.Add(time.Hour)
	}
	if s.Paused && !s.PausedUntil.IsZero() && s.PausedUntil.Before(next[0]) {
		return s.PausedUntil
	}
	return next[0]
}

// scheduleEvents returns the events that no job shows: missed slots, and the end of a pause.
func scheduleEvents(s, after schedule.Schedule, skipped int, now time.Time) []store.Event {
	line := store.Event{Subject: "schedule/" + s.Name, Actor: actorSystem}
	switch {
	case s.Paused && !after.Paused:
		line.Name, line.Reason = "resumed", "the pause was until "+s.PausedUntil.UTC().Format(time.RFC3339)
	case skipped > 0 && !s.PausedAt(now):
		line.Name = "skipped"
		line.Reason = fmt.Sprintf("%d slots up to %s were missed and make no job (missed slots: %s)", skipped, after.Last.UTC().Format(time.RFC3339), s.Missed)
		if skipped == 1 {
			line.Reason = fmt.Sprintf("a slot before %s was missed and makes no job (missed slots: %s)", now.UTC().Format(time.RFC3339), s.Missed)
		}
	default:
		return nil
	}
	return []store.Event{line}
}
