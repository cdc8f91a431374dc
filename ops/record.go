package ops

import (
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// maxTries limits how often a decision is repeated after a version conflict.
const maxTries = 8

// readRecord returns a record of a namespace. A record that does not exist has version 0.
func (s *Service) readRecord(ctx context.Context, namespace, name string) (store.Record, error) {
	records, err := s.store.Records(ctx, namespace)
	if err != nil {
		return store.Record{}, err
	}
	for _, r := range records {
		if r.Name == name {
			return r, nil
		}
	}
	return store.Record{Namespace: namespace, Name: name}, nil
}

// updateRecord reads a record, calls decide for the change to make, and applies it unless it is empty. On a version
// conflict it reads the record again and decides again, up to maxTries times.
func (s *Service) updateRecord(ctx context.Context, namespace, name string, decide func(store.Record) (store.Change, error)) error {
	for try := 1; ; try++ {
		r, err := s.readRecord(ctx, namespace, name)
		if err != nil {
			return err
		}
		change, err := decide(r)
		if err != nil || len(change.Records)+len(change.Events) == 0 {
			return err
		}
		if err = s.store.Apply(ctx, change); !errors.Is(err, holdfast.ErrConflict) || try == maxTries {
			return err
		}
	}
}

// now returns the store's clock as of the newest job. The process's clock is used if the store has no job.
func (s *Service) now(ctx context.Context) (time.Time, error) {
	jobs, _, err := s.store.Jobs(ctx, store.Filter{Limit: 1})
	if err != nil || len(jobs) == 0 {
		return time.Now(), err
	}
	return jobs[0].AsOf, nil
}
