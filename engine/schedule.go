package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/schedule"
)

const scheduleBeat = time.Second

// A calm is a schedule that need not be looked at until then, unless it was changed.
type calm struct {
	version int
	keptAt  time.Time
	until   time.Time
}

// schedules makes the jobs of slots that have come. Any process may do it: what a slot makes and that it was dealt with are kept
// together, by compare-and-set, so whoever is too late makes nothing.
func (e *Engine) schedules(context.Context) error {
	records, err := e.records(schedule.Room)
	if err != nil {
		return err
	}
	now, calms := e.clock.now(), make(map[string]calm, len(records))
	for _, r := range records {
		was := e.calms[r.Name]
		if was.version == r.Version && was.keptAt.Equal(r.KeptAt) && now.Before(was.until) {
			calms[r.Name] = was
			continue
		}
		until, err := e.scheduleStep(r, now)
		switch {
		case err == nil && now.Before(until):
			calms[r.Name] = calm{r.Version, r.KeptAt, until}
		case err != nil && !errors.Is(err, holdfast.ErrConflict):
			e.trouble("schedule", fmt.Errorf("schedule %s: %w", r.Name, err))
		}
	}
	e.calms = calms
	return nil
}

// scheduleStep deals with the slots of one schedule that have come. If there are none it answers until when it can be left alone.
func (e *Engine) scheduleStep(r holdfast.Record, now time.Time) (until time.Time, err error) {
	var s schedule.Schedule
	if err := json.Unmarshal(r.Body, &s); err != nil {
		return until, fmt.Errorf("it cannot be read: %w", err)
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
		return calmUntil(s, now), nil
	}
	if r.Body, err = json.Marshal(after); err != nil {
		return until, err
	}
	c := holdfast.Change{Records: []holdfast.Record{r}, Events: scheduleEvents(s, after, skipped, now)}
	for _, slot := range slots {
		c.Enqueue = append(c.Enqueue, s.Job(slot))
	}
	if err := e.keepChange(c); err != nil {
		return until, err
	}
	if len(slots) > 0 {
		nudge(e.wakes)
		nudge(e.happened)
	}
	return until, nil
}

// calmUntil is when a schedule has to be looked at again if nobody changes it.
func calmUntil(s schedule.Schedule, now time.Time) time.Time {
	next := s.Next(now, 1)
	if len(next) == 0 {
		return now.Add(time.Hour)
	}
	if s.Paused && !s.PausedUntil.IsZero() && s.PausedUntil.Before(next[0]) {
		return s.PausedUntil
	}
	return next[0]
}

// scheduleEvents tells what no job tells: slots that were missed, and that a pause has ended.
func scheduleEvents(s, after schedule.Schedule, skipped int, now time.Time) []holdfast.Event {
	line := holdfast.Event{Subject: "schedule/" + s.Name, Actor: actorSystem}
	switch {
	case s.Paused && !after.Paused:
		line.Name, line.Reason = "resumed", "the pause was until "+s.PausedUntil.UTC().Format(time.RFC3339)
	case skipped > 0 && !s.Halted(now):
		line.Name = "skipped"
		line.Reason = fmt.Sprintf("%d slots up to %s were missed and make no job (missed slots: %s)", skipped, after.Last.UTC().Format(time.RFC3339), s.Missed)
		if skipped == 1 {
			line.Reason = fmt.Sprintf("a slot before %s was missed and makes no job (missed slots: %s)", now.UTC().Format(time.RFC3339), s.Missed)
		}
	default:
		return nil
	}
	return []holdfast.Event{line}
}
