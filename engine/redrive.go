package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
)

const (
	roomRedrive = "redrive"
	redriveBeat = time.Second
	redrivePage = 200 // dead letters that are looked up at a time
)

// redrives takes every redrive under way a step further. Any process may do it and compare-and-set decides which one does;
// what was planned is done by whoever comes next if that one is killed.
func (e *Engine) redrives(context.Context) error {
	records, err := e.records(roomRedrive)
	if err != nil {
		return err
	}
	var all []error
	for _, r := range records {
		var p redrive.Progress
		if json.Unmarshal(r.Body, &p) != nil || p.State != redrive.Running {
			continue
		}
		if len(p.Pending) == 0 && e.clock.now().Sub(p.StepAt) < redriveBeat*4/5 && p.StepAt.After(p.StartedAt) {
			continue // somebody else has just been here
		}
		if err := e.redriveStep(r, p); err != nil && !errors.Is(err, holdfast.ErrConflict) {
			all = append(all, fmt.Errorf("redrive %s: %w", p.ID, err))
		}
	}
	return errors.Join(all...)
}

// redriveStep does what was planned, plans what comes next, and does that. The plan is kept first.
func (e *Engine) redriveStep(r holdfast.Record, p redrive.Progress) error {
	ctx, done := e.call(e.cfg.Lease)
	defer done()
	if len(p.Pending) > 0 {
		refused, err := e.redriveJobs(ctx, p)
		if err != nil {
			return err
		}
		p = p.Stepped(refused)
	}
	tally, err := e.store.Redriven(ctx, p.ID)
	if err != nil {
		return err
	}
	take, next, _ := redrive.Next(p, tally, e.clock.now())
	if take > 0 {
		if next, err = e.redrivePlan(ctx, next, take); err != nil {
			return err
		}
	}
	if r, err = e.keepRedrive(r, p.State, next); err != nil || len(next.Pending) == 0 {
		return err
	}
	refused, err := e.redriveJobs(ctx, next)
	if err != nil {
		return err
	}
	nudge(e.wakes)
	_, err = e.keepRedrive(r, next.State, next.Stepped(refused))
	return err
}

// redrivePlan picks the next dead letters.
func (e *Engine) redrivePlan(ctx context.Context, p redrive.Progress, take int) (redrive.Progress, error) {
	var picked []holdfast.ID
	for take > 0 {
		filter := p.Filter(e.clock.now())
		filter.Limit = min(take, redrivePage)
		jobs, cursor, err := e.store.Jobs(ctx, filter)
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

// redriveJobs takes what is pending. Taking it twice is taking it once.
func (e *Engine) redriveJobs(ctx context.Context, p redrive.Progress) (refused []redrive.Refusal, err error) {
	answers, err := e.store.Redrive(ctx, p.Step(p.Pending))
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

// keepRedrive keeps where a redrive stands, with a line in its story when its state has changed.
func (e *Engine) keepRedrive(r holdfast.Record, was redrive.State, p redrive.Progress) (holdfast.Record, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return r, err
	}
	r.Body = body
	c := holdfast.Change{Records: []holdfast.Record{r}}
	if p.State != was {
		c.Events = []holdfast.Event{{Subject: "redrive/" + p.ID.String(), Name: string(p.State), Actor: actorSystem, Reason: clip(p.Why, 1000)}}
	}
	if err := e.keepChange(c); err != nil {
		return r, err
	}
	r.Version++
	return r, nil
}
