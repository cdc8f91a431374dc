package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

const (
	namespaceArtifact = "artifact"
	artifactSweep     = "sweep"
	artifactInterval  = 10 * time.Second
	maxArtifacts      = 50 // marked in one store call
)

// A sweepLock is the body of the record that names the worker which expires artifacts at present. It expires, so a worker that dies is replaced.
type sweepLock struct {
	Worker string    `json:"worker"`
	Until  time.Time `json:"until"`
}

// An artifactSweeper expires artifacts whose time is up.
type artifactSweeper struct{ *core }

// run expires the artifacts that are due: each is deleted by Config.DeleteArtifact and then marked, with an event in the story of its job. If the process is killed in
// between, or loses the lock, the artifact is not marked, and the next process deletes it again.
func (s *artifactSweeper) run(ctx context.Context) error {
	if due, err := s.due(); err != nil || len(due) == 0 {
		return err
	}
	lock, acquired, err := s.acquireLock()
	if err != nil || !acquired {
		return err
	}
	due, err := s.due() // read again: another process may have marked some before this one got the lock
	if err != nil {
		return err
	}
	var all []error
	for chunk := range slices.Chunk(due, maxArtifacts) {
		expired, err := s.expireAll(ctx, chunk)
		all = append(all, err)
		if len(expired) == 0 {
			continue
		}
		if err := s.markExpired(&lock, expired); errors.Is(err, holdfast.ErrConflict) {
			break // another process has the lock now
		} else if err != nil {
			return errors.Join(append(all, err)...)
		}
	}
	return errors.Join(all...)
}

func (s *artifactSweeper) due() ([]store.Artifact, error) {
	ctx, done := s.storeContext(s.cfg.Lease)
	defer done()
	return s.store.Artifacts(ctx, store.ArtifactFilter{Due: true, Limit: 1000})
}

// acquireLock takes or extends the lock, unless another worker holds it.
func (s *artifactSweeper) acquireLock() (lock store.Record, acquired bool, err error) {
	records, err := s.records(namespaceArtifact)
	if err != nil {
		return lock, false, err
	}
	lock = store.Record{Namespace: namespaceArtifact, Name: artifactSweep}
	for _, r := range records {
		if r.Name == artifactSweep {
			lock = r
		}
	}
	var holder sweepLock
	now := s.clock.now()
	if len(lock.Body) > 0 && json.Unmarshal(lock.Body, &holder) == nil && holder.Worker != s.worker && now.Before(holder.Until) {
		return lock, false, nil
	}
	lock.Body = s.lockBody()
	switch err := s.keepChange(store.Change{Records: []store.Record{lock}}); {
	case errors.Is(err, holdfast.ErrConflict):
		return lock, false, nil
	case err != nil:
		return lock, false, err
	}
	lock.Version++
	return lock, true, nil
}

// lockBody returns the lock of this worker, valid for two leases from now.
func (s *artifactSweeper) lockBody() json.RawMessage {
	body, _ := json.Marshal(sweepLock{Worker: s.worker, Until: s.clock.now().Add(2 * s.cfg.Lease)}) // this cannot fail
	return body
}

// expireAll deletes artifacts for at most a lease, half the time for which the lock is held. It returns those that were deleted; an artifact that cannot be
// deleted does not prevent the others.
func (s *artifactSweeper) expireAll(ctx context.Context, chunk []store.Artifact) (expired []store.Artifact, err error) {
	within, cancel := context.WithTimeout(ctx, s.cfg.Lease)
	defer cancel()
	var all []error
	for _, a := range chunk {
		if within.Err() != nil {
			break
		}
		if err := s.expire(within, a); err != nil {
			all = append(all, fmt.Errorf("artifact %s of job %s could not be deleted: %w", a.Name, a.Job, err))
			continue
		}
		a.Expired = true
		expired = append(expired, a)
	}
	return expired, errors.Join(all...)
}

func (s *artifactSweeper) expire(ctx context.Context, a store.Artifact) (err error) {
	if s.cfg.DeleteArtifact == nil {
		return nil
	}
	defer recoverTo(&err)
	return s.cfg.DeleteArtifact(ctx, a)
}

// markExpired marks deleted artifacts in the same change that extends the lock. If another process has the lock, the change fails with ErrConflict: so each artifact
// is marked, and its event written, once.
func (s *artifactSweeper) markExpired(lock *store.Record, expired []store.Artifact) error {
	lock.Body = s.lockBody()
	c := store.Change{Records: []store.Record{*lock}, Artifacts: expired}
	for _, a := range expired {
		c.Events = append(c.Events, store.Event{Job: a.Job, Name: store.EventExpired, Actor: actorSystem, Reason: "artifact " + a.Name})
	}
	if err := s.keepChange(c); err != nil {
		return err
	}
	lock.Version++
	signal(s.signals.feed)
	return nil
}
