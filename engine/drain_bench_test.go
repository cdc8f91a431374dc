package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// BenchmarkSQLiteDrain measures how long an engine takes to complete all jobs of a file, with a handler that does nothing.
func BenchmarkSQLiteDrain(b *testing.B) {
	store, err := sqlite.Open(b.Context(), sqlite.Config{Path: filepath.Join(b.TempDir(), "jobs.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	for left := b.N; left > 0; left -= 5000 {
		drafts := make([]holdfast.Draft, min(left, 5000))
		for i := range drafts {
			drafts[i] = holdfast.Draft{Kind: "note", Args: fmt.Appendf(nil, `{"text":"%d"}`, i)}
		}
		if _, err := store.Enqueue(b.Context(), drafts); err != nil {
			b.Fatal(err)
		}
	}
	e, err := engine.New(store, engine.Config{Slots: 100, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	var ran atomic.Int64
	all := make(chan struct{})
	engine.Handle(e, func(context.Context, *engine.Job[Note]) error {
		if ran.Add(1) == int64(b.N) {
			close(all)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	b.ResetTimer()
	go func() { ended <- e.Run(ctx) }()
	<-all
	cancel()
	if err := <-ended; err != nil { // returns after the last settlement is written
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
