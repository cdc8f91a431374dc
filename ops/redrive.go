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
	"github.com/holdfastdev/holdfast/store"
)

const (
	namespaceRedrive = "redrive"
	// namespaceStart keeps what was known at the start of a redrive. The redrive's own record belongs to the engine from then on.
	namespaceStart = "redrive-start"
)

// A Redrive is the progress of a redrive, and the state of its jobs.
type Redrive struct {
	redrive.Progress
	Eligible    int            `json:"eligible"`      // at the start, up to 10,000
	FailedAgain []holdfast.Job `json:"failed_again"`  // the newest jobs that failed again, at most a page
	Workers     int            `json:"workers"`       // live workers: without one the redrive does not proceed
	Story       []store.Event  `json:"story"`         // events of the redrive, the newest first
	Left        time.Duration  `json:"left,omitzero"` // estimated remaining time at its rate; 0 if it is not known
}

// start is the body of a record in namespaceStart.
type start struct {
	Eligible int `json:"eligible"`
}

// StartRedrive starts a redrive of dead letters, or their discarding, and returns its id. Workers carry it out at the order's
// rate. An order that selects no job is ErrConflict.
func (s *Service) StartRedrive(ctx context.Context, o redrive.Spec) (holdfast.ID, error) {
	o.Filter.MaxScan = 0 // it is for previews: a redrive takes all jobs that match
	preview, err := s.previewRedrive(ctx, o, false)
	if err != nil {
		return holdfast.ID{}, err
	}
	if preview.Eligible == 0 && preview.Looked < MaxCounted {
		return holdfast.ID{}, &holdfast.Error{Err: holdfast.ErrConflict, Message: "there is nothing to redrive: no matching dead letter can be taken; see the preview"}
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
	return p.ID, s.store.Apply(ctx, store.Change{
		Records: []store.Record{{Namespace: namespaceRedrive, Name: p.ID.String(), Body: body}, {Namespace: namespaceStart, Name: p.ID.String(), Body: begun}},
		Events:  []store.Event{{Subject: namespaceRedrive + "/" + p.ID.String(), Name: name, Actor: o.Actor, Reason: o.Reason, Request: o.Request}},
	})
}

// PauseRedrive keeps a redrive from taking more jobs. Jobs that it has taken continue.
func (s *Service) PauseRedrive(ctx context.Context, id holdfast.ID, by Actor) error {
	return s.changeRedrive(ctx, id, redriveCommand{"paused", redrive.Pause, by})
}

// ResumeRedrive continues a redrive that was paused, or that stopped because too many jobs failed again. The automatic stop
// counts only jobs that end from now on.
func (s *Service) ResumeRedrive(ctx context.Context, id holdfast.ID, by Actor) error {
	return s.changeRedrive(ctx, id, redriveCommand{"resumed", redrive.Resume, by})
}

// CancelRedrive ends a redrive for good. Jobs that it has taken continue.
func (s *Service) CancelRedrive(ctx context.Context, id holdfast.ID, by Actor) error {
	return s.changeRedrive(ctx, id, redriveCommand{"cancelled", redrive.Cancel, by})
}

// A redriveCommand is a person's command to a redrive.
type redriveCommand struct {
	name string
	do   func(p redrive.Progress, actor, reason string, now time.Time) (redrive.Progress, error)
	by   Actor
}

func (s *Service) changeRedrive(ctx context.Context, id holdfast.ID, m redriveCommand) error {
	if err := m.by.check(); err != nil {
		return err
	}
	return s.updateRecord(ctx, namespaceRedrive, id.String(), func(r store.Record) (store.Change, error) {
		p, err := decodeProgress(r, id)
		if err != nil {
			return store.Change{}, err
		}
		if p, err = m.do(p, m.by.Name, m.by.Reason, r.AsOf); err != nil {
			return store.Change{}, err
		}
		if r.Body, err = json.Marshal(p); err != nil {
			return store.Change{}, err
		}
		return store.Change{
			Records: []store.Record{r},
			Events:  []store.Event{m.by.event(namespaceRedrive+"/"+id.String(), m.name)},
		}, nil
	})
}

// decodeProgress reads a redrive's record.
func decodeProgress(r store.Record, id holdfast.ID) (p redrive.Progress, err error) {
	if r.Version == 0 {
		return p, &holdfast.Error{Err: holdfast.ErrNotFound, Message: fmt.Sprintf("there is no redrive %s: list them with 'holdfast redrive'", id)}
	}
	if err := json.Unmarshal(r.Body, &p); err != nil {
		return p, &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("the record of redrive %s cannot be read: start another", r.Name), Cause: err}
	}
	return p, nil
}

// Redrives returns redrives, the newest first, with the counts of their last step. Records that cannot be decoded are left out
// and reported in the error.
func (s *Service) Redrives(ctx context.Context) ([]redrive.Progress, error) {
	records, err := s.store.Records(ctx, namespaceRedrive)
	if err != nil {
		return nil, err
	}
	list := make([]redrive.Progress, 0, len(records))
	var problems []error
	for _, r := range records {
		p, err := decodeProgress(r, holdfast.ID{})
		if err != nil {
			problems = append(problems, err)
			continue
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b redrive.Progress) int { return slices.Compare(b.ID[:], a.ID[:]) })
	return list, errors.Join(problems...)
}

// Redrive returns one redrive with its current counts.
func (s *Service) Redrive(ctx context.Context, id holdfast.ID) (Redrive, error) {
	r, err := s.readRecord(ctx, namespaceRedrive, id.String())
	if err != nil {
		return Redrive{}, err
	}
	p, err := decodeProgress(r, id)
	if err != nil {
		return Redrive{}, err
	}
	answer := Redrive{Progress: p}
	if answer.Counts, err = s.store.Redriven(ctx, id); err != nil {
		return Redrive{}, err
	}
	begun, err := s.readRecord(ctx, namespaceStart, id.String())
	if err != nil {
		return Redrive{}, err
	}
	var first start
	if begun.Version > 0 && json.Unmarshal(begun.Body, &first) == nil {
		answer.Eligible = first.Eligible
	}
	if answer.FailedAgain, _, err = s.store.Jobs(ctx, store.Filter{Redrive: id, State: holdfast.Failed, Limit: maxPage}); err != nil {
		return Redrive{}, err
	}
	if p.Spec.Discard {
		answer.FailedAgain = nil
	}
	workers, err := s.store.Workers(ctx)
	if err != nil {
		return Redrive{}, err
	}
	answer.Workers = len(workers)
	answer.Left = timeLeft(answer)
	answer.Story, err = s.store.Events(ctx, namespaceRedrive+"/"+id.String(), 50)
	return answer, err
}

// timeLeft estimates how long a running redrive takes at its rate, if jobs end as fast as they are taken.
func timeLeft(r Redrive) time.Duration {
	total := r.Eligible
	if r.Spec.Limit > 0 {
		total = min(total, r.Spec.Limit)
	}
	if r.State != redrive.Running || r.Exhausted || total >= MaxCounted {
		return 0
	}
	return timeFor(r.Spec, total-r.Counts.Taken-r.RefusedJobs)
}

// timeFor returns how long a number of jobs takes at an order's rate.
func timeFor(o redrive.Spec, jobs int) time.Duration {
	rate := o.PerSecond
	if rate <= 0 {
		rate = redrive.DefaultPerSecond
	}
	return time.Duration(float64(max(jobs, 0)) / rate * float64(time.Second)).Round(time.Second)
}
