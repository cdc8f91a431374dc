package client

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/store"
)

// Promote makes queued jobs claimable whose start time has come.
func (s *Store) Promote(ctx context.Context, limit int) (int, error) {
	out, err := callVerb(ctx, s, api.StorePromote, api.Few{Limit: limit}, mayRepeat)
	return out.Count, err
}

// Reclaim takes over jobs of batches whose leases have expired. It is sent once.
func (s *Store) Reclaim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	out, err := callVerb(ctx, s, api.StoreReclaim, api.Take(c), sendOnce)
	return leases(out, err, nil)
}

// Expire claims queued jobs whose expiry has passed. It is sent once.
func (s *Store) Expire(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	out, err := callVerb(ctx, s, api.StoreExpire, api.Take(c), sendOnce)
	return leases(out, err, nil)
}

// MissedDeadlines finds jobs whose promised next attempt is late. It is sent once.
func (s *Store) MissedDeadlines(ctx context.Context, limit int) ([]holdfast.ID, error) {
	return callVerb(ctx, s, api.StoreMissedDeadlines, api.Few{Limit: limit}, sendOnce)
}

// Records reads the records of a namespace.
func (s *Store) Records(ctx context.Context, namespace string) ([]store.Record, error) {
	return callVerb(ctx, s, api.StoreRecords, api.InNamespace{Namespace: namespace}, mayRepeat)
}

// Apply stores a change. It is sent once.
func (s *Store) Apply(ctx context.Context, c store.Change) error {
	return callAction(ctx, s, api.StoreApply, api.ChangeOf(c), sendOnce)
}

// Redrive takes dead letters for a redrive.
func (s *Store) Redrive(ctx context.Context, r store.Redrive) ([]error, error) {
	out, err := callVerb(ctx, s, api.StoreRedrive, api.Step(r), mayRepeat)
	if err != nil {
		return nil, err
	}
	return api.Errs(out.Answers), nil
}

// Redriven counts the jobs of a redrive by their current state.
func (s *Store) Redriven(ctx context.Context, redrive holdfast.ID) (store.RedriveCounts, error) {
	return callVerb(ctx, s, api.StoreRedriven, api.Which{ID: redrive}, mayRepeat)
}

// Retry queues a job again.
func (s *Store) Retry(ctx context.Context, i store.Intervention) (int, error) {
	out, err := callVerb(ctx, s, api.StoreRetry, api.Deed(i), sendOnce)
	return out.Count, err
}

// Cancel cancels a job, or asks its worker to stop it.
func (s *Store) Cancel(ctx context.Context, i store.Intervention) (holdfast.State, error) {
	return callVerb(ctx, s, api.StoreCancel, api.Deed(i), sendOnce)
}

// Discard removes a failed job from the dead letters.
func (s *Store) Discard(ctx context.Context, i store.Intervention) error {
	return callAction(ctx, s, api.StoreDiscard, api.Deed(i), sendOnce)
}

// Edit changes a queued job.
func (s *Store) Edit(ctx context.Context, e store.Edit) (holdfast.Job, error) {
	return callVerb(ctx, s, api.StoreEdit, api.AlterationOf(e), sendOnce)
}

// Pause places a hold.
func (s *Store) Pause(ctx context.Context, h store.Hold) error {
	return callAction(ctx, s, api.StorePause, api.PlacedOf(h), sendOnce)
}

// Resume lifts a hold.
func (s *Store) Resume(ctx context.Context, h store.Hold) error {
	return callAction(ctx, s, api.StoreResume, api.PlacedOf(h), sendOnce)
}

// Triage sets the status of an error group, or adds a note to it.
func (s *Store) Triage(ctx context.Context, t store.Triage) error {
	return callAction(ctx, s, api.StoreTriage, api.Judgement(t), sendOnce)
}

// RetryGroup retries the failed members of a group.
func (s *Store) RetryGroup(ctx context.Context, i store.Intervention) (int, error) {
	out, err := callVerb(ctx, s, api.StoreRetryGroup, api.Deed(i), sendOnce)
	return out.Count, err
}

// CancelGroup seals a group and cancels its members.
func (s *Store) CancelGroup(ctx context.Context, i store.Intervention) error {
	return callAction(ctx, s, api.StoreCancelGroup, api.Deed(i), sendOnce)
}

// AdvanceGroups settles groups and starts or cancels waiting members after other members have ended.
func (s *Store) AdvanceGroups(ctx context.Context, limit int) (int, error) {
	out, err := callVerb(ctx, s, api.StoreAdvanceGroups, api.Few{Limit: limit}, mayRepeat)
	return out.Count, err
}

// Sequence numbers new events for the feed.
func (s *Store) Sequence(ctx context.Context, limit int) (int, error) {
	out, err := callVerb(ctx, s, api.StoreSequence, api.Few{Limit: limit}, mayRepeat)
	return out.Count, err
}

// Purge deletes ended jobs whose retention time is over.
func (s *Store) Purge(ctx context.Context, p store.Purge) (store.PurgeResult, error) {
	return callVerb(ctx, s, api.StorePurge, api.Sweep(p), mayRepeat)
}

// DeleteHistory deletes old history: the feed, stories, counts or tombstones.
func (s *Store) DeleteHistory(ctx context.Context, history string, older time.Duration, limit int) (int, error) {
	out, err := callVerb(ctx, s, api.StoreDeleteHistory, api.Aged{History: history, Older: older, Limit: limit}, mayRepeat)
	return out.Count, err
}
