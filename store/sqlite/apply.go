package sqlite

import (
	"context"
	"slices"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// Apply applies a change, all or nothing. A record that was changed since its version was read refuses the whole change.
func (s *Store) Apply(ctx context.Context, c store.Change) error {
	c.Place, c.Lift, c.Deposits = slices.Clone(c.Place), slices.Clone(c.Lift), slices.Clone(c.Deposits) // CheckChange fills in their sources
	if err := sqltext.CheckChange(&c); err != nil {
		return err
	}
	if err := s.checkDrafts(&c); err != nil {
		return err
	}
	err := s.writer.write(ctx, func(t *tx) error {
		for i := range c.Listen { // first, so that the events of this change are heard
			if err := t.setListener(&c.Listen[i]); err != nil {
				return err
			}
		}
		for i := range c.Records {
			if err := t.writeRecord(&c.Records[i]); err != nil {
				return err
			}
		}
		if err := t.applyHolds(&c); err != nil {
			return err
		}
		for i := range c.Events {
			if err := t.addChangeEvent(&c.Events[i]); err != nil {
				return err
			}
		}
		for i := range c.Artifacts {
			if err := t.artifact(&c.Artifacts[i]); err != nil {
				return err
			}
		}
		if len(c.Enqueue) > 0 {
			return t.enqueueAll(c.Enqueue)
		}
		return nil
	})
	if err == nil && slices.ContainsFunc(c.Records, func(r store.Record) bool { return r.Namespace == lane.NamespaceWeights }) {
		s.planner.weights.Expire()
	}
	return err
}

// checkDrafts refuses drafts that cannot be stored, or for which the disk has no space.
func (s *Store) checkDrafts(c *store.Change) (err error) {
	if len(c.Enqueue)+len(c.Deliver) == 0 {
		return nil
	}
	enqueue, err := prepareAll(c.Enqueue, rule.Drafts)
	if err != nil {
		return err
	}
	deliver, err := prepareAll(c.Deliver, rule.Deliveries)
	if err != nil {
		return err
	}
	c.Enqueue, c.Deliver = append(enqueue, deliver...), nil
	return s.space.check()
}

// writeRecord writes or deletes one record, if its version is still the one that the caller read.
func (t *tx) writeRecord(r *store.Record) (err error) {
	var kept int
	switch {
	case r.Body == nil && r.Version == 0:
		there, err := t.one("find_record", []any{r.Namespace, r.Name})
		if err != nil || !there {
			return err
		}
	case r.Body == nil:
		kept, err = t.exec("delete_record", r.Namespace, r.Name, r.Version)
	case r.Version == 0:
		kept, err = t.exec("insert_record", r.Namespace, r.Name, r.Body, t.now)
	default:
		kept, err = t.exec("update_record", r.Namespace, r.Name, r.Body, t.now, r.Version)
	}
	if err == nil && kept == 0 {
		err = rule.RecordChanged(r.Namespace, r.Name)
	}
	return err
}

// applyHolds lifts holds, places holds and makes deposits, in this order: a hold that one change lifts and places is in
// force after it.
func (t *tx) applyHolds(c *store.Change) error {
	for _, h := range c.Lift {
		if _, err := t.liftHold(h); err != nil {
			return err
		}
	}
	for _, h := range c.Place {
		if err := t.placeHold(h); err != nil {
			return err
		}
	}
	for _, d := range c.Deposits {
		if err := t.deposit(d); err != nil {
			return err
		}
	}
	return nil
}

// addChangeEvent appends an event of a change to the story of a job or of another subject.
func (t *tx) addChangeEvent(e *store.Event) error {
	if e.Job.IsZero() {
		return t.addEvent(e)
	}
	job, err := t.findJob(store.Intervention{Job: e.Job})
	if err != nil {
		return err
	}
	return t.addJobEvent(store.Intervention{Job: e.Job, Actor: e.Actor, Reason: e.Reason, Request: e.Request}, e.Name, job.token, job.generation)
}

// addSubjectEvent appends an event to the story of a subject that is not a job.
func (t *tx) addSubjectEvent(subject, name, actor, reason string) error {
	return t.addEvent(&store.Event{Subject: subject, Name: name, Actor: actor, Reason: reason})
}

func (t *tx) addEvent(e *store.Event) error {
	if _, err := t.exec("subject_event_add", e.Subject, t.now, e.Name, e.Actor, nullIfEmpty(clean(e.Reason)), e.Generation, nullIfEmpty(clean(e.Request))); err != nil {
		return err
	}
	t.emitStoryLine()
	return nil
}
