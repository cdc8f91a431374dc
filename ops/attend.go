package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

// An Unattended is a kind with claimable jobs that no live worker handles in their queue. The jobs wait at no cost.
type Unattended struct {
	Queue string    `json:"queue"`
	Kind  string    `json:"kind"`
	Since time.Time `json:"since,omitzero"` // when Attend first found it
	Told  bool      `json:"told,omitempty"` // the event was written
}

// FindUnattended returns the kinds of claimable jobs that none of the workers handles, by queue and kind.
func FindUnattended(depths []store.Depth, workers []store.WorkerInfo) []Unattended {
	all := []Unattended{}
	for _, d := range depths {
		for _, kind := range d.Kinds {
			if !slices.ContainsFunc(workers, func(w store.WorkerInfo) bool { return worksOn(w, d.Queue) && slices.Contains(w.Kinds, kind) }) {
				all = append(all, Unattended{Queue: d.Queue, Kind: kind})
			}
		}
	}
	return all
}

// worksOn reports whether a worker claims from a queue.
func worksOn(w store.WorkerInfo, queue string) bool {
	return slices.Contains(w.Queues, queue) || slices.Equal(w.Queues, []string{"*"})
}

const (
	namespaceAttendance = "attendance"
	recordUnattended    = "unattended"
	// unattendedFor is how long a kind is without a worker before that is an event, because workers stop for a moment
	// during a deployment.
	unattendedFor = time.Minute
	// maxUnattended limits how many kinds are recorded, because callers can invent any number of kinds.
	maxUnattended = 1000
)

// Attend finds kinds with claimable jobs and no live worker. It writes one event when a kind has had no worker for a minute
// (kind.unattended) and one when that ends (kind.attended). It is a duty: any number of processes may call it every half
// minute, and each event is written once.
func (s *Service) Attend(ctx context.Context) error {
	depths, err := s.store.Depths(ctx)
	if err != nil {
		return err
	}
	workers, err := s.store.Workers(ctx)
	if err != nil {
		return err
	}
	records, err := s.store.Records(ctx, namespaceAttendance)
	if err != nil {
		return err
	}
	r := store.Record{Namespace: namespaceAttendance, Name: recordUnattended}
	var known []Unattended
	for _, one := range records {
		if one.Name == recordUnattended {
			r = one
			_ = json.Unmarshal(one.Body, &known) // a record that cannot be decoded is replaced
		}
	}
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	found, events := attendance(known, FindUnattended(depths, workers), now)
	if slices.Equal(found, known) {
		return nil
	}
	if r.Body, err = json.Marshal(found); err != nil {
		return err
	}
	err = s.store.Apply(ctx, store.Change{Records: []store.Record{r}, Events: events})
	if errors.Is(err, holdfast.ErrConflict) { // another process wrote it first
		return nil
	}
	return err
}

// attendance returns the new record, and the events for the changes.
func attendance(known, seen []Unattended, now time.Time) (found []Unattended, events []store.Event) {
	name := func(u Unattended) string { return u.Queue + "\n" + u.Kind }
	before := map[string]Unattended{}
	for _, u := range known {
		before[name(u)] = u
	}
	for _, u := range seen[:min(len(seen), maxUnattended)] {
		if was, there := before[name(u)]; there {
			u = was
		} else {
			u.Since = now.UTC().Truncate(time.Millisecond)
		}
		delete(before, name(u))
		if !u.Told && now.Sub(u.Since) >= unattendedFor {
			u.Told = true
			events = append(events, attendanceEvent(u, "unattended", fmt.Sprintf("jobs of kind %s have waited in queue %s since %s, and no live worker handles the kind there: start one", u.Kind, u.Queue, u.Since.Format(time.RFC3339))))
		}
		found = append(found, u)
	}
	for _, gone := range slices.Sorted(maps.Keys(before)) {
		if u := before[gone]; u.Told {
			events = append(events, attendanceEvent(u, "attended", fmt.Sprintf("a worker handles kind %s in queue %s again, or none of its jobs waits there any more", u.Kind, u.Queue)))
		}
	}
	return found, events
}

func attendanceEvent(u Unattended, what, reason string) store.Event {
	return store.Event{Subject: "kind/" + u.Kind, Name: what, Actor: breaker.System, Reason: reason}
}
