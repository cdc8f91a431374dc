package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
)

const (
	roomArtifact  = "artifact"
	artifactSweep = "sweep"
	artifactBeat  = 10 * time.Second
	maxArtifacts  = 50 // marked in one go
)

// A sweeper is who lets artifacts expire now: one process, until its time is up.
type sweeper struct {
	Worker string    `json:"worker"`
	Until  time.Time `json:"until"`
}

// artifacts lets those expire whose time is up: each is deleted, then marked, with a line in the story of its job. Whoever is killed
// in between, or loses its place, leaves it to the next one, who deletes it again.
func (e *Engine) artifacts(ctx context.Context) error {
	if due, err := e.dueArtifacts(); err != nil || len(due) == 0 {
		return err
	}
	place, mine, err := e.takeSweep()
	if err != nil || !mine {
		return err
	}
	due, err := e.dueArtifacts() // what somebody else has marked before the place was taken is not among them
	if err != nil {
		return err
	}
	var all []error
	for some := range slices.Chunk(due, maxArtifacts) {
		gone, err := e.expireArtifacts(ctx, some)
		all = append(all, err)
		if len(gone) == 0 {
			continue
		}
		if err := e.keepGone(&place, gone); errors.Is(err, holdfast.ErrConflict) {
			break // the place is somebody else's by now
		} else if err != nil {
			return errors.Join(append(all, err)...)
		}
	}
	return errors.Join(all...)
}

func (e *Engine) dueArtifacts() ([]holdfast.Artifact, error) {
	ctx, done := e.call(e.cfg.Lease)
	defer done()
	return e.store.Artifacts(ctx, holdfast.ArtifactFilter{Due: true, Limit: 1000})
}

// takeSweep takes the place of the one who sweeps, unless somebody else has it.
func (e *Engine) takeSweep() (place holdfast.Record, mine bool, err error) {
	records, err := e.records(roomArtifact)
	if err != nil {
		return place, false, err
	}
	place = holdfast.Record{Room: roomArtifact, Name: artifactSweep}
	for _, r := range records {
		if r.Name == artifactSweep {
			place = r
		}
	}
	var who sweeper
	now := e.clock.now()
	if len(place.Body) > 0 && json.Unmarshal(place.Body, &who) == nil && who.Worker != e.worker && now.Before(who.Until) {
		return place, false, nil
	}
	place.Body = e.sweeping()
	switch err := e.keepChange(holdfast.Change{Records: []holdfast.Record{place}}); {
	case errors.Is(err, holdfast.ErrConflict):
		return place, false, nil
	case err != nil:
		return place, false, err
	}
	place.Version++
	return place, true, nil
}

// sweeping says that the place is this process's for a while.
func (e *Engine) sweeping() json.RawMessage {
	body, _ := json.Marshal(sweeper{Worker: e.worker, Until: e.clock.now().Add(2 * e.cfg.Lease)}) // these always marshal
	return body
}

// expireArtifacts deletes some, in the time that the place is this process's. One that cannot be deleted does not keep the others.
func (e *Engine) expireArtifacts(ctx context.Context, some []holdfast.Artifact) (gone []holdfast.Artifact, err error) {
	within, enough := context.WithTimeout(ctx, e.cfg.Lease)
	defer enough()
	var all []error
	for _, a := range some {
		if within.Err() != nil {
			break
		}
		if err := e.expireArtifact(within, a); err != nil {
			all = append(all, fmt.Errorf("artifact %s of job %s could not be deleted: %w", a.Name, a.Job, err))
			continue
		}
		a.Expired = true
		gone = append(gone, a)
	}
	return gone, errors.Join(all...)
}

func (e *Engine) expireArtifact(ctx context.Context, a holdfast.Artifact) (err error) {
	if e.cfg.Expire == nil {
		return nil
	}
	defer recovered(&err)
	return e.cfg.Expire(ctx, a)
}

// keepGone marks what was deleted, if the place is still this process's: so each is said to have expired once.
func (e *Engine) keepGone(place *holdfast.Record, gone []holdfast.Artifact) error {
	place.Body = e.sweeping()
	c := holdfast.Change{Records: []holdfast.Record{*place}, Artifacts: gone}
	for _, a := range gone {
		c.Events = append(c.Events, holdfast.Event{Job: a.Job, Name: holdfast.EventExpired, Actor: actorSystem, Reason: "artifact " + a.Name})
	}
	if err := e.keepChange(c); err != nil {
		return err
	}
	place.Version++
	nudge(e.happened)
	return nil
}
