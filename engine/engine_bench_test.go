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
	"github.com/holdfastdev/holdfast/store"
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

func (s *endlessStore) Claim(_ context.Context, c store.Claim) ([]store.Lease, error) {
	n := min(int64(c.Limit), max(0, s.left.Load()))
	s.left.Add(-n)
	leases := make([]store.Lease, n)
	batch := holdfast.NewID()
	for i := range leases {
		leases[i].ID, leases[i].Batch, leases[i].Token = holdfast.NewID(), batch, 1
		leases[i].Kind, leases[i].Args = "note", json.RawMessage(`{"text":"x"}`)
	}
	return leases, nil
}

func (s *endlessStore) In(any) store.Tx { return nil }

func (s *endlessStore) Settle(_ context.Context, all []store.Settlement) ([]error, error) {
	if s.settled.Add(int64(len(all))) == s.want {
		close(s.all)
	}
	return make([]error, len(all)), nil
}

func (s *endlessStore) Renew(context.Context, []store.Renewal, time.Duration) (store.RenewResult, error) {
	return store.RenewResult{}, nil
}
func (s *endlessStore) Note(_ context.Context, n []store.Note) ([]error, error) {
	return make([]error, len(n)), nil
}
func (s *endlessStore) Upstreams(context.Context, store.UpstreamFilter) ([]store.Upstream, string, error) {
	return nil, "", nil
}
func (s *endlessStore) ReportWorker(context.Context, store.WorkerInfo) error { return nil }
func (s *endlessStore) Await(ctx context.Context, _ []string, patience time.Duration) (store.Wake, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return store.Wake{}, ctx.Err()
	case <-timer.C:
		return store.Wake{}, nil
	}
}
func (s *endlessStore) Promote(context.Context, int) (int, error) { return 0, nil }
func (s *endlessStore) Reclaim(context.Context, store.Claim) ([]store.Lease, error) {
	return nil, nil
}
func (s *endlessStore) Expire(context.Context, store.Claim) ([]store.Lease, error) {
	return nil, nil
}
func (s *endlessStore) MissedDeadlines(context.Context, int) ([]holdfast.ID, error) { return nil, nil }
func (s *endlessStore) Records(context.Context, string) ([]store.Record, error)     { return nil, nil }
func (s *endlessStore) Apply(context.Context, store.Change) error                   { return nil }
func (s *endlessStore) Redrive(context.Context, store.Redrive) ([]error, error)     { return nil, nil }
func (s *endlessStore) Redriven(context.Context, holdfast.ID) (store.RedriveCounts, error) {
	return store.RedriveCounts{}, nil
}
func (s *endlessStore) Jobs(context.Context, store.Filter) ([]holdfast.Job, string, error) {
	return nil, "", nil
}
func (s *endlessStore) Holds(context.Context) ([]store.Hold, error)         { return nil, nil }
func (s *endlessStore) Workers(context.Context) ([]store.WorkerInfo, error) { return nil, nil }
func (s *endlessStore) RetryStats(context.Context, time.Duration) ([]store.RetryStats, error) {
	return nil, nil
}

func (s *endlessStore) AdvanceGroups(context.Context, int) (int, error) { return 0, nil }
func (s *endlessStore) Sequence(context.Context, int) (int, error)      { return 0, nil }
func (s *endlessStore) Purge(context.Context, store.Purge) (store.PurgeResult, error) {
	return store.PurgeResult{}, nil
}
func (s *endlessStore) DeleteHistory(context.Context, string, time.Duration, int) (int, error) {
	return 0, nil
}
func (s *endlessStore) Artifacts(context.Context, store.ArtifactFilter) ([]store.Artifact, error) {
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
	engine.Handle(e, func(context.Context, *engine.Job[Note]) error { return nil })
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
