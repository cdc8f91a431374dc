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

// endless is a store that costs nothing: it has as many jobs as it is asked for, up to a number, and forgets them.
type endless struct {
	left    atomic.Int64
	settled atomic.Int64
	want    int64
	all     chan struct{}
}

func (s *endless) Claim(_ context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
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

func (s *endless) Settle(_ context.Context, all []holdfast.Settlement) ([]error, error) {
	if s.settled.Add(int64(len(all))) == s.want {
		close(s.all)
	}
	return make([]error, len(all)), nil
}

func (s *endless) Renew(context.Context, []holdfast.Renewal, time.Duration) (holdfast.Renewed, error) {
	return holdfast.Renewed{}, nil
}
func (s *endless) Note(_ context.Context, n []holdfast.Note) ([]error, error) {
	return make([]error, len(n)), nil
}
func (s *endless) Present(context.Context, holdfast.Presence) error { return nil }
func (s *endless) Await(ctx context.Context, _ []string, patience time.Duration) (holdfast.Wake, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return holdfast.Wake{}, ctx.Err()
	case <-timer.C:
		return holdfast.Wake{}, nil
	}
}
func (s *endless) Promote(context.Context, int) (int, error) { return 0, nil }
func (s *endless) Reclaim(context.Context, holdfast.Claim) ([]holdfast.Lease, error) {
	return nil, nil
}
func (s *endless) Expire(context.Context, holdfast.Claim) ([]holdfast.Lease, error) { return nil, nil }
func (s *endless) Breach(context.Context, int) ([]holdfast.ID, error)               { return nil, nil }
func (s *endless) Records(context.Context, string) ([]holdfast.Record, error)       { return nil, nil }
func (s *endless) Keep(context.Context, holdfast.Change) error                      { return nil }
func (s *endless) Redrive(context.Context, holdfast.Redrive) ([]error, error)       { return nil, nil }
func (s *endless) Redriven(context.Context, holdfast.ID) (holdfast.Tally, error) {
	return holdfast.Tally{}, nil
}
func (s *endless) Jobs(context.Context, holdfast.Filter) ([]holdfast.Job, string, error) {
	return nil, "", nil
}
func (s *endless) Holds(context.Context) ([]holdfast.Hold, error)       { return nil, nil }
func (s *endless) Workers(context.Context) ([]holdfast.Presence, error) { return nil, nil }
func (s *endless) Experience(context.Context, time.Duration) ([]holdfast.Experience, error) {
	return nil, nil
}

func (s *endless) Conclude(context.Context, int) (int, error) { return 0, nil }
func (s *endless) Sequence(context.Context, int) (int, error) { return 0, nil }
func (s *endless) Purge(context.Context, holdfast.Purge) (holdfast.Purged, error) {
	return holdfast.Purged{}, nil
}
func (s *endless) Forget(context.Context, string, time.Duration, int) (int, error) { return 0, nil }
func (s *endless) Artifacts(context.Context, holdfast.ArtifactFilter) ([]holdfast.Artifact, error) {
	return nil, nil
}

// BenchmarkEngineAlone is what the engine itself costs for a job whose handler does nothing, on a store that does nothing.
func BenchmarkEngineAlone(b *testing.B) {
	s := &endless{want: int64(b.N), all: make(chan struct{})}
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
