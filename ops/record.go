package ops

import (
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
)

// patience is how often a decision is made anew because somebody else was faster.
const patience = 8

// record finds one record of a room. One that is not there has version 0.
func (s *Service) record(ctx context.Context, room, name string) (holdfast.Record, error) {
	records, err := s.store.Records(ctx, room)
	if err != nil {
		return holdfast.Record{}, err
	}
	for _, r := range records {
		if r.Name == name {
			return r, nil
		}
	}
	return holdfast.Record{Room: room, Name: name}, nil
}

// keep reads a record, lets somebody decide what is to become of it, and keeps that, unless it is nothing. When somebody else
// changed the record in between, it is read again and decided anew.
func (s *Service) keep(ctx context.Context, room, name string, decide func(holdfast.Record) (holdfast.Change, error)) error {
	for try := 1; ; try++ {
		r, err := s.record(ctx, room, name)
		if err != nil {
			return err
		}
		change, err := decide(r)
		if err != nil || len(change.Records)+len(change.Events) == 0 {
			return err
		}
		if err = s.store.Keep(ctx, change); !errors.Is(err, holdfast.ErrConflict) || try == patience {
			return err
		}
	}
}

// now is the store's clock, as far as somebody who only asks can tell: a store without a job has not said what time it is.
func (s *Service) now(ctx context.Context) (time.Time, error) {
	jobs, _, err := s.store.Jobs(ctx, holdfast.Filter{Limit: 1})
	if err != nil || len(jobs) == 0 {
		return time.Now(), err
	}
	return jobs[0].AsOf, nil
}
