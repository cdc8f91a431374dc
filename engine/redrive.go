package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/store"
)

const (
	namespaceRedrive = "redrive"
	redriveInterval  = time.Second
	redrivePage      = 200 // dead letters in one query
)

// A redriver carries out redrives: it queues the dead letters that a person selected, step by step.
type redriver struct{ *core }

// run advances every running redrive by one step. Every process may do it; compare-and-set decides which one does. If that process is killed in the middle of a
// step, the next one carries out what was planned.
func (d *redriver) run(context.Context) error {
	records, err := d.records(namespaceRedrive)
	if err != nil {
		return err
	}
	var all []error
	for _, r := range records {
		var p redrive.Progress
		if json.Unmarshal(r.Body, &p) != nil || p.State != redrive.Running {
			continue
		}
		if len(p.Pending) == 0 && d.clock.now().Sub(p.StepAt) < redriveInterval*4/5 && p.StepAt.After(p.StartedAt) {
			continue // another process has just made a step
		}
		if err := d.step(r, p); err != nil && !errors.Is(err, holdfast.ErrConflict) {
			all = append(all, fmt.Errorf("redrive %s: %w", p.ID, err))
		}
	}
	return errors.Join(all...)
}

// step carries out what was planned before, then plans the next jobs and carries that out. The plan is saved before it is carried out, and carrying it out is
// idempotent, so each dead letter is redriven once, whichever process is killed when.
func (d *redriver) step(r store.Record, p redrive.Progress) error {
	ctx, done := d.storeContext(d.cfg.Lease)
	defer done()
	if len(p.Pending) > 0 {
		refused, err := d.redriveJobs(ctx, p)
		if err != nil {
			return err
		}
		p = p.AfterStep(refused)
	}
	counts, err := d.store.Redriven(ctx, p.ID)
	if err != nil {
		return err
	}
	take, next, _ := redrive.Next(p, counts, d.clock.now())
	if take > 0 {
		if next, err = d.plan(ctx, next, take); err != nil {
			return err
		}
	}
	if r, err = d.keep(r, p.State, next); err != nil || len(next.Pending) == 0 {
		return err
	}
	refused, err := d.redriveJobs(ctx, next)
	if err != nil {
		return err
	}
	signal(d.signals.claim)
	_, err = d.keep(r, next.State, next.AfterStep(refused))
	return err
}

// plan selects the next dead letters.
func (d *redriver) plan(ctx context.Context, p redrive.Progress, take int) (redrive.Progress, error) {
	var picked []holdfast.ID
	for take > 0 {
		filter := p.Filter(d.clock.now())
		filter.Limit = min(take, redrivePage)
		jobs, cursor, err := d.store.Jobs(ctx, filter)
		if err != nil {
			return p, err
		}
		for i := range jobs {
			picked = append(picked, jobs[i].ID)
		}
		take -= len(jobs)
		p = p.Plan(picked, cursor, cursor == "")
		if cursor == "" {
			break
		}
	}
	return p, nil
}

// redriveJobs redrives the planned jobs. It may be repeated: the store redrives each job once for one redrive. It returns the jobs that the store refused.
func (d *redriver) redriveJobs(ctx context.Context, p redrive.Progress) (refused []redrive.Refusal, err error) {
	answers, err := d.store.Redrive(ctx, p.Step(p.Pending))
	if err != nil {
		return nil, err
	}
	for i, answer := range answers {
		if answer != nil && i < len(p.Pending) {
			refused = append(refused, redrive.Refusal{Job: p.Pending[i], Why: answer.Error()})
		}
	}
	return refused, nil
}

// keep saves the progress of a redrive, with an event if its state has changed.
func (d *redriver) keep(r store.Record, was redrive.State, p redrive.Progress) (store.Record, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return r, err
	}
	r.Body = body
	c := store.Change{Records: []store.Record{r}}
	if p.State != was {
		c.Events = []store.Event{{Subject: "redrive/" + p.ID.String(), Name: string(p.State), Actor: actorSystem, Reason: clip(p.Why, 1000)}}
	}
	if err := d.keepChange(c); err != nil {
		return r, err
	}
	r.Version++
	return r, nil
}
