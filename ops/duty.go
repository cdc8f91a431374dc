package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/store"
)

// builtinDuties are the duties that every worker performs. They are known even when no worker is alive to report them.
var builtinDuties = []string{"promote", "reclaim", "expire", "sequence", "group", "schedule", "retention", "artifacts", "redrive", "budget", "learn", "policy", "deadline", "probes"}

// Duties returns the state of all duties: the last run, the next, how late it is, the last error, and whether it is paused.
func (s *Service) Duties(ctx context.Context) ([]duty.Status, error) {
	records, err := s.store.Records(ctx, duty.NamespaceControl)
	if err != nil {
		return nil, err
	}
	var now time.Time
	orders := map[string]duty.Control{}
	for _, r := range records {
		var o duty.Control
		if now = r.AsOf; json.Unmarshal(r.Body, &o) == nil {
			orders[r.Name] = o
		}
	}
	if records, err = s.store.Records(ctx, duty.NamespaceReport); err != nil {
		return nil, err
	}
	var reports []duty.Reports
	for _, r := range records {
		var report duty.Reports
		if now = r.AsOf; json.Unmarshal(r.Body, &report) == nil {
			reports = append(reports, report)
		}
	}
	return duty.Statuses(orders, reports, now), nil
}

// PauseDuty stops a duty in all workers for a time, or until it is resumed if lasting is zero. Pausing again replaces the pause.
func (s *Service) PauseDuty(ctx context.Context, name string, lasting time.Duration, by Actor) error {
	if err := checkPause(lasting); err != nil {
		return err
	}
	return s.changeDuty(ctx, name, by, "paused", func(o *duty.Control, now time.Time) error {
		o.Paused, o.Until, o.Since, o.Actor, o.Reason = true, time.Time{}, now, by.Name, by.Reason
		if lasting > 0 {
			o.Until = now.Add(lasting)
		}
		return nil
	})
}

// ResumeDuty ends a pause.
func (s *Service) ResumeDuty(ctx context.Context, name string, by Actor) error {
	return s.changeDuty(ctx, name, by, "resumed", func(o *duty.Control, now time.Time) error {
		if !o.Halts(now) {
			return &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("duty %s is not paused", name)}
		}
		*o = o.Resumed()
		return nil
	})
}

// RunDuty makes every worker perform a duty once now, even while it is paused.
func (s *Service) RunDuty(ctx context.Context, name string, by Actor) error {
	return s.changeDuty(ctx, name, by, "run now", func(o *duty.Control, _ time.Time) error {
		o.Run++
		return nil
	})
}

// changeDuty saves a person's command for a duty.
func (s *Service) changeDuty(ctx context.Context, name string, by Actor, event string, give func(o *duty.Control, now time.Time) error) error {
	if err := by.check(); err != nil {
		return err
	}
	if err := s.knownDuty(ctx, name); err != nil {
		return err
	}
	return s.updateRecord(ctx, duty.NamespaceControl, name, func(r store.Record) (c store.Change, err error) {
		now := r.AsOf
		if r.Version == 0 {
			if now, err = s.now(ctx); err != nil {
				return c, err
			}
		}
		var o duty.Control
		_ = json.Unmarshal(r.Body, &o) // a record that cannot be decoded counts as empty
		if err := give(&o, now); err != nil {
			return c, err
		}
		if r.Body, err = json.Marshal(o); err != nil {
			return c, err
		}
		return store.Change{Records: []store.Record{r}, Events: []store.Event{by.event(duty.NamespaceControl+"/"+name, event)}}, nil
	})
}

// knownDuty refuses an unknown duty, which is probably misspelled, and duties that workers cannot do without.
func (s *Service) knownDuty(ctx context.Context, name string) error {
	if !duty.Pausable(name) {
		return invalid("duty %s cannot be paused or run by hand: a worker needs it for the jobs that it runs; stop the worker, or pause a queue", name)
	}
	if slices.Contains(builtinDuties, name) {
		return nil
	}
	known, err := s.Duties(ctx)
	if err != nil {
		return err
	}
	names := slices.Clone(builtinDuties)
	for _, d := range known {
		if d.Name == name {
			return nil
		}
		if duty.Pausable(d.Name) && !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
	}
	return &holdfast.Error{Err: holdfast.ErrNotFound, Message: fmt.Sprintf("there is no duty %q: the duties are %s", name, strings.Join(names, ", "))}
}
