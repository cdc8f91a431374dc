package engine_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
)

// Note is a job for tests.
type Note struct {
	Text string `json:"text"`
}

func (Note) Kind() string { return "note" }

var quiet = slog.New(slog.DiscardHandler)

// endlessStore is a store without any cost: it returns as many jobs as are claimed, up to a number, and stores nothing.
type endlessStore struct {
	left    atomic.Int64
	settled atomic.Int64
	want    int64
	all     chan struct{}
}

func (s *endlessStore) Claim(_ context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	n := min(int64(c.Limit), max(0, s.left.Load()))
	s.left.Add(-n)
	leases := make([]holdfast.Lease, n)
	batch := holdfast.NewID()
	for i := range leases {
		leases[i].ID, leases[i].Batch, leases[i].Token = holdfast.NewID(), batch, 1
		leases[i].Kind, leases[i].Args = "note", json.RawMessage(`{"text":"x"}`)
	}
	return leases, nil
}

func (s *endlessStore) Settle(_ context.Context, all []holdfast.Settlement) ([]error, error) {
	if s.settled.Add(int64(len(all))) == s.want {
		close(s.all)
	}
	return make([]error, len(all)), nil
}

func (s *endlessStore) Renew(context.Context, []holdfast.Renewal, time.Duration) (holdfast.Renewed, error) {
	return holdfast.Renewed{}, nil
}
func (s *endlessStore) Note(_ context.Context, n []holdfast.Note) ([]error, error) {
	return make([]error, len(n)), nil
}
func (s *endlessStore) Present(context.Context, holdfast.Presence) error { return nil }
func (s *endlessStore) Await(ctx context.Context, _ []string, patience time.Duration) (holdfast.Wake, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return holdfast.Wake{}, ctx.Err()
	case <-timer.C:
		return holdfast.Wake{}, nil
	}
}
func (s *endlessStore) Promote(context.Context, int) (int, error) { return 0, nil }
func (s *endlessStore) Reclaim(context.Context, holdfast.Claim) ([]holdfast.Lease, error) {
	return nil, nil
}
func (s *endlessStore) Expire(context.Context, holdfast.Claim) ([]holdfast.Lease, error) {
	return nil, nil
}
func (s *endlessStore) Breach(context.Context, int) ([]holdfast.ID, error)         { return nil, nil }
func (s *endlessStore) Records(context.Context, string) ([]holdfast.Record, error) { return nil, nil }
func (s *endlessStore) Keep(context.Context, holdfast.Change) error                { return nil }
func (s *endlessStore) Redrive(context.Context, holdfast.Redrive) ([]error, error) { return nil, nil }
func (s *endlessStore) Redriven(context.Context, holdfast.ID) (holdfast.Tally, error) {
	return holdfast.Tally{}, nil
}
func (s *endlessStore) Jobs(context.Context, holdfast.Filter) ([]holdfast.Job, string, error) {
	return nil, "", nil
}
func (s *endlessStore) Holds(context.Context) ([]holdfast.Hold, error)       { return nil, nil }
func (s *endlessStore) Workers(context.Context) ([]holdfast.Presence, error) { return nil, nil }
func (s *endlessStore) Experience(context.Context, time.Duration) ([]holdfast.Experience, error) {
	return nil, nil
}

func (s *endlessStore) Conclude(context.Context, int) (int, error) { return 0, nil }
func (s *endlessStore) Sequence(context.Context, int) (int, error) { return 0, nil }
func (s *endlessStore) Purge(context.Context, holdfast.Purge) (holdfast.Purged, error) {
	return holdfast.Purged{}, nil
}
func (s *endlessStore) Forget(context.Context, string, time.Duration, int) (int, error) {
	return 0, nil
}
func (s *endlessStore) Artifacts(context.Context, holdfast.ArtifactFilter) ([]holdfast.Artifact, error) {
	return nil, nil
}

// BenchmarkEngineAlone measures the cost of the engine itself, with a handler and a store that do nothing.
func BenchmarkEngineAlone(b *testing.B) {
	s := &endlessStore{want: int64(b.N), all: make(chan struct{})}
	s.left.Store(int64(b.N))
	e, err := engine.New(s, engine.Config{Slots: 100, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	_ = engine.Handle(e, func(context.Context, *engine.Job[Note]) error { return nil })
	ctx, cancel := context.WithCancel(b.Context())
	stopped := make(chan error, 1)
	b.ReportAllocs()
	b.ResetTimer()
	go func() { stopped <- e.Run(ctx) }()
	<-s.all
	b.StopTimer()
	cancel()
	if err := <-stopped; err != nil {
		b.Fatal(err)
	}
}
