package api

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Promote makes queued jobs claimable whose start time has come.
func (s *Store) Promote(ctx context.Context, limit int) (int, error) {
	out, err := callVerb(ctx, s, StorePromote, Few{limit}, mayRepeat)
	return out.Count, err
}

// Reclaim takes over jobs of batches whose leases have expired. It is sent once.
func (s *Store) Reclaim(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	out, err := callVerb(ctx, s, StoreReclaim, Take(c), sendOnce)
	return leases(out, err, nil)
}

// Expire claims queued jobs whose expiry has passed. It is sent once.
func (s *Store) Expire(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	out, err := callVerb(ctx, s, StoreExpire, Take(c), sendOnce)
	return leases(out, err, nil)
}

// Breach finds jobs whose promised next attempt is late. It is sent once.
func (s *Store) Breach(ctx context.Context, limit int) ([]holdfast.ID, error) {
	return callVerb(ctx, s, StoreBreach, Few{limit}, sendOnce)
}

// Records reads the records of a room.
func (s *Store) Records(ctx context.Context, room string) ([]holdfast.Record, error) {
	return callVerb(ctx, s, StoreRecords, ARoom{room}, mayRepeat)
}

// Keep stores a change. It is sent once.
func (s *Store) Keep(ctx context.Context, c holdfast.Change) error {
	return callAction(ctx, s, StoreKeep, changeOf(c), sendOnce)
}

// Redrive takes dead letters for a redrive.
func (s *Store) Redrive(ctx context.Context, r holdfast.Redrive) ([]error, error) {
	out, err := callVerb(ctx, s, StoreRedrive, Step(r), mayRepeat)
	if err != nil {
		return nil, err
	}
	return Errs(out.Answers), nil
}

// Redriven counts the jobs of a redrive by their current state.
func (s *Store) Redriven(ctx context.Context, redrive holdfast.ID) (holdfast.Tally, error) {
	return callVerb(ctx, s, StoreRedriven, Which{redrive}, mayRepeat)
}

// Retry queues a job again.
func (s *Store) Retry(ctx context.Context, i holdfast.Intervention) (int, error) {
	out, err := callVerb(ctx, s, StoreRetry, Deed(i), sendOnce)
	return out.Count, err
}

// Cancel cancels a job, or asks its worker to stop it.
func (s *Store) Cancel(ctx context.Context, i holdfast.Intervention) (holdfast.State, error) {
	return callVerb(ctx, s, StoreCancel, Deed(i), sendOnce)
}

// Discard removes a failed job from the dead letters.
func (s *Store) Discard(ctx context.Context, i holdfast.Intervention) error {
	return callAction(ctx, s, StoreDiscard, Deed(i), sendOnce)
}

// Edit changes a queued job.
func (s *Store) Edit(ctx context.Context, e holdfast.Edit) (holdfast.Job, error) {
	return callVerb(ctx, s, StoreEdit, alterationOf(e), sendOnce)
}

// Pause places a hold.
func (s *Store) Pause(ctx context.Context, h holdfast.Hold) error {
	return callAction(ctx, s, StorePause, PlacedOf(h), sendOnce)
}

// Resume lifts a hold.
func (s *Store) Resume(ctx context.Context, h holdfast.Hold) error {
	return callAction(ctx, s, StoreResume, PlacedOf(h), sendOnce)
}

// Triage sets the status of an error group, or adds a note to it.
func (s *Store) Triage(ctx context.Context, t holdfast.Triage) error {
	return callAction(ctx, s, StoreTriage, Judgement(t), sendOnce)
}

// RetryGroup retries the failed members of a group.
func (s *Store) RetryGroup(ctx context.Context, i holdfast.Intervention) (int, error) {
	out, err := callVerb(ctx, s, StoreRetryGroup, Deed(i), sendOnce)
	return out.Count, err
}

// CancelGroup seals a group and cancels its members.
func (s *Store) CancelGroup(ctx context.Context, i holdfast.Intervention) error {
	return callAction(ctx, s, StoreCancelGroup, Deed(i), sendOnce)
}

// Conclude settles groups and starts or cancels waiting members after other members have ended.
func (s *Store) Conclude(ctx context.Context, limit int) (int, error) {
	out, err := callVerb(ctx, s, StoreConclude, Few{limit}, mayRepeat)
	return out.Count, err
}

// Sequence numbers new events for the feed.
func (s *Store) Sequence(ctx context.Context, limit int) (int, error) {
	out, err := callVerb(ctx, s, StoreSequence, Few{limit}, mayRepeat)
	return out.Count, err
}

// Purge deletes ended jobs whose retention time is over.
func (s *Store) Purge(ctx context.Context, p holdfast.Purge) (holdfast.Purged, error) {
	return callVerb(ctx, s, StorePurge, Sweep(p), mayRepeat)
}

// Forget deletes old entries of a shelf.
func (s *Store) Forget(ctx context.Context, shelf string, older time.Duration, limit int) (int, error) {
	out, err := callVerb(ctx, s, StoreForget, Aged{shelf, older, limit}, mayRepeat)
	return out.Count, err
}
