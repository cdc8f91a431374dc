package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
)

const (
	redriveRoom = "redrive"
	// startRoom remembers what a redrive set out to do; the redrive's own record is the engine's from then on.
	startRoom = "redrive-start"
)

// A Redrive is one that was ordered: how far it is, and what became of the jobs it took.
type Redrive struct {
	redrive.Progress
	Eligible    int              `json:"eligible"`      // when it was started, up to MostCounted
	FailedAgain []holdfast.Job   `json:"failed_again"`  // the newest of them, at most a page
	Workers     int              `json:"workers"`       // alive: without one nothing moves
	Story       []holdfast.Event `json:"story"`         // what was said of it, the newest first
	Left        time.Duration    `json:"left,omitzero"` // at its pace, about; 0 when it cannot be told
}

// start is what startRoom remembers.
type start struct {
	Eligible int `json:"eligible"`
}

// StartRedrive orders dead letters to be sent round again, or to be discarded, and answers with the name of the redrive. The
// workers do it, in their own time and at the order's pace. An order that selects nothing is ErrConflict.
func (s *Service) StartRedrive(ctx context.Context, o redrive.Order) (holdfast.ID, error) {
	o.Filter.Look = 0 // that is for previews: what matches is taken, wherever it is
	preview, err := s.previewRedrive(ctx, o, false)
	if err != nil {
		return holdfast.ID{}, err
	}
	if preview.Eligible == 0 && preview.Looked < MostCounted {
		return holdfast.ID{}, &holdfast.Error{Kind: holdfast.ErrConflict, Message: "there is nothing to redrive: no dead letter matches that could be taken; see the preview"}
	}
	p := redrive.Start(holdfast.NewID(), o, preview.AsOf)
	body, err := json.Marshal(p)
	if err != nil {
		return holdfast.ID{}, err
	}
	begun, err := json.Marshal(start{Eligible: preview.Eligible})
	if err != nil {
		return holdfast.ID{}, err
	}
	name := "started"
	if o.Discard {
		name = "started to discard"
	}
	return p.ID, s.store.Keep(ctx, holdfast.Change{
		Records: []holdfast.Record{{Room: redriveRoom, Name: p.ID.String(), Body: body}, {Room: startRoom, Name: p.ID.String(), Body: begun}},
		Events:  []holdfast.Event{{Subject: redriveRoom + "/" + p.ID.String(), Name: name, Actor: o.Actor, Reason: o.Reason, Request: o.Request}},
	})
}

// PauseRedrive keeps a redrive from taking more. What it has taken goes on.
func (s *Service) PauseRedrive(ctx context.Context, id holdfast.ID, by By) error {
	return s.moveRedrive(ctx, id, move{"paused", redrive.Pause, by})
}

// ResumeRedrive lets a redrive go on that was paused, or that stopped because too many failed again: it is judged anew.
func (s *Service) ResumeRedrive(ctx context.Context, id holdfast.ID, by By) error {
	return s.moveRedrive(ctx, id, move{"resumed", redrive.Resume, by})
}

// CancelRedrive ends a redrive for good. What it has taken goes on.
func (s *Service) CancelRedrive(ctx context.Context, id holdfast.ID, by By) error {
	return s.moveRedrive(ctx, id, move{"cancelled", redrive.Cancel, by})
}

// A move is a person's word on a redrive.
type move struct {
	name string
	do   func(p redrive.Progress, actor, reason string, now time.Time) (redrive.Progress, error)
	by   By
}

func (s *Service) moveRedrive(ctx context.Context, id holdfast.ID, m move) error {
	if err := m.by.check(); err != nil {
		return err
	}
	return s.keep(ctx, redriveRoom, id.String(), func(r holdfast.Record) (holdfast.Change, error) {
		p, err := progress(r, id)
		if err != nil {
			return holdfast.Change{}, err
		}
		if p, err = m.do(p, m.by.Actor, m.by.Reason, r.AsOf); err != nil {
			return holdfast.Change{}, err
		}
		if r.Body, err = json.Marshal(p); err != nil {
			return holdfast.Change{}, err
		}
		return holdfast.Change{
			Records: []holdfast.Record{r},
			Events:  []holdfast.Event{m.by.says(redriveRoom+"/"+id.String(), m.name)},
		}, nil
	})
}

// progress reads a redrive's record.
func progress(r holdfast.Record, id holdfast.ID) (p redrive.Progress, err error) {
	if r.Version == 0 {
		return p, &holdfast.Error{Kind: holdfast.ErrNotFound, Message: fmt.Sprintf("there is no redrive %s", id)}
	}
	if err := json.Unmarshal(r.Body, &p); err != nil {
		return p, &holdfast.Error{Kind: holdfast.ErrConflict, Message: fmt.Sprintf("the record of redrive %s cannot be read: start another", r.Name), Cause: err}
	}
	return p, nil
}

// Redrives lists redrives, the newest first. Their tally is what their last step saw. Records that cannot be read are left out
// and complained about.
func (s *Service) Redrives(ctx context.Context) ([]redrive.Progress, error) {
	records, err := s.store.Records(ctx, redriveRoom)
	if err != nil {
		return nil, err
	}
	list := make([]redrive.Progress, 0, len(records))
	var problems []error
	for _, r := range records {
		p, err := progress(r, holdfast.ID{})
		if err != nil {
			problems = append(problems, err)
			continue
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b redrive.Progress) int { return slices.Compare(b.ID[:], a.ID[:]) })
	return list, errors.Join(problems...)
}

// Redrive tells all about one redrive, as of now.
func (s *Service) Redrive(ctx context.Context, id holdfast.ID) (Redrive, error) {
	r, err := s.record(ctx, redriveRoom, id.String())
	if err != nil {
		return Redrive{}, err
	}
	p, err := progress(r, id)
	if err != nil {
		return Redrive{}, err
	}
	answer := Redrive{Progress: p}
	if answer.Tally, err = s.store.Redriven(ctx, id); err != nil {
		return Redrive{}, err
	}
	begun, err := s.record(ctx, startRoom, id.String())
	if err != nil {
		return Redrive{}, err
	}
	var first start
	if begun.Version > 0 && json.Unmarshal(begun.Body, &first) == nil {
		answer.Eligible = first.Eligible
	}
	if answer.FailedAgain, _, err = s.store.Jobs(ctx, holdfast.Filter{Redrive: id, State: holdfast.Failed, Limit: mostListed}); err != nil {
		return Redrive{}, err
	}
	if p.Order.Discard {
		answer.FailedAgain = nil
	}
	workers, err := s.store.Workers(ctx)
	if err != nil {
		return Redrive{}, err
	}
	answer.Workers = len(workers)
	answer.Left = left(answer)
	answer.Story, err = s.store.Events(ctx, redriveRoom+"/"+id.String(), 50)
	return answer, err
}

// left is how long a running redrive will still take at its pace, if jobs end as fast as they are taken.
func left(r Redrive) time.Duration {
	total := r.Eligible
	if r.Order.Limit > 0 {
		total = min(total, r.Order.Limit)
	}
	if r.State != redrive.Running || r.Exhausted || total >= MostCounted {
		return 0
	}
	return pace(r.Order, total-r.Tally.Taken-r.RefusedJobs)
}

// pace is how long so many jobs take at an order's rate.
func pace(o redrive.Order, jobs int) time.Duration {
	rate := o.PerSecond
	if rate <= 0 {
		rate = redrive.DefaultPerSecond
	}
	return time.Duration(float64(max(jobs, 0)) / rate * float64(time.Second)).Round(time.Second)
}
