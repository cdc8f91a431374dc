package api

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Promote makes queued jobs claimable whose time has come.
func (s *Store) Promote(ctx context.Context, limit int) (int, error) {
	out, err := ask(ctx, s, StorePromote, Few{limit}, again)
	return out.Count, err
}

// Reclaim takes over batches that have expired.
func (s *Store) Reclaim(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	out, err := ask(ctx, s, StoreReclaim, Take(c), once)
	return leases(out, err, nil)
}

// Expire hands over queued jobs whose expiry has passed.
func (s *Store) Expire(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	out, err := ask(ctx, s, StoreExpire, Take(c), once)
	return leases(out, err, nil)
}

// Breach finds broken promises of a next attempt.
func (s *Store) Breach(ctx context.Context, limit int) ([]holdfast.ID, error) {
	return ask(ctx, s, StoreBreach, Few{limit}, once)
}

// Records reads a room.
func (s *Store) Records(ctx context.Context, room string) ([]holdfast.Record, error) {
	return ask(ctx, s, StoreRecords, ARoom{room}, again)
}

// Keep makes a change durable.
func (s *Store) Keep(ctx context.Context, c holdfast.Change) error {
	return order(ctx, s, StoreKeep, changeOf(c), once)
}

// Redrive takes dead letters on their way.
func (s *Store) Redrive(ctx context.Context, r holdfast.Redrive) ([]error, error) {
	out, err := ask(ctx, s, StoreRedrive, Step(r), again)
	if err != nil {
		return nil, err
	}
	return Errs(out.Answers), nil
}

// Redriven counts what has become of the jobs a redrive took.
func (s *Store) Redriven(ctx context.Context, redrive holdfast.ID) (holdfast.Tally, error) {
	return ask(ctx, s, StoreRedriven, Which{redrive}, again)
}

// Retry sends a job round again.
func (s *Store) Retry(ctx context.Context, i holdfast.Intervention) (int, error) {
	out, err := ask(ctx, s, StoreRetry, Deed(i), once)
	return out.Count, err
}

// Cancel ends a job, or asks it to stop.
func (s *Store) Cancel(ctx context.Context, i holdfast.Intervention) (holdfast.State, error) {
	return ask(ctx, s, StoreCancel, Deed(i), once)
}

// Discard takes a failed job off the dead letters.
func (s *Store) Discard(ctx context.Context, i holdfast.Intervention) error {
	return order(ctx, s, StoreDiscard, Deed(i), once)
}

// Edit changes a queued job.
func (s *Store) Edit(ctx context.Context, e holdfast.Edit) (holdfast.Job, error) {
	return ask(ctx, s, StoreEdit, alterationOf(e), once)
}

// Pause places a hold.
func (s *Store) Pause(ctx context.Context, h holdfast.Hold) error {
	return order(ctx, s, StorePause, PlacedOf(h), once)
}

// Resume lifts a hold.
func (s *Store) Resume(ctx context.Context, h holdfast.Hold) error {
	return order(ctx, s, StoreResume, PlacedOf(h), once)
}

// Triage keeps a person's word on an error group.
func (s *Store) Triage(ctx context.Context, t holdfast.Triage) error {
	return order(ctx, s, StoreTriage, Judgement(t), once)
}

// RetryGroup sends round what failed in a group.
func (s *Store) RetryGroup(ctx context.Context, i holdfast.Intervention) (int, error) {
	out, err := ask(ctx, s, StoreRetryGroup, Deed(i), once)
	return out.Count, err
}

// CancelGroup seals a group and has its members cancelled.
func (s *Store) CancelGroup(ctx context.Context, i holdfast.Intervention) error {
	return order(ctx, s, StoreCancelGroup, Deed(i), once)
}

// Conclude does what the end of members brings with it.
func (s *Store) Conclude(ctx context.Context, limit int) (int, error) {
	out, err := ask(ctx, s, StoreConclude, Few{limit}, again)
	return out.Count, err
}

// Sequence numbers what happened.
func (s *Store) Sequence(ctx context.Context, limit int) (int, error) {
	out, err := ask(ctx, s, StoreSequence, Few{limit}, again)
	return out.Count, err
}

// Purge deletes ended jobs whose time is up.
func (s *Store) Purge(ctx context.Context, p holdfast.Purge) (holdfast.Purged, error) {
	return ask(ctx, s, StorePurge, Sweep(p), again)
}

// Forget deletes things of a shelf.
func (s *Store) Forget(ctx context.Context, shelf string, older time.Duration, limit int) (int, error) {
	out, err := ask(ctx, s, StoreForget, Aged{shelf, older, limit}, again)
	return out.Count, err
}
