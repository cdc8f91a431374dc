package client_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// both measures something on the store and through a server.
func both(b *testing.B, measure func(b *testing.B, near, to store.Store)) {
	for _, place := range []string{"near", "far"} {
		b.Run(place, func(b *testing.B) {
			near, err := sqlite.Open(b.Context(), sqlite.Config{Path: filepath.Join(b.TempDir(), "jobs.db")})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = near.Close() })
			to := store.Store(near)
			if place == "far" {
				to = far(b, near)
			}
			measure(b, near, to)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

func fill(b *testing.B, to store.Store, size int) {
	drafts := make([]holdfast.Draft, 0, size)
	for left := b.N; left > 0; left -= len(drafts) {
		drafts = drafts[:0]
		for i := range min(left, size) {
			drafts = append(drafts, holdfast.Draft{Kind: "note", Args: fmt.Appendf(nil, `{"text":"%d","to":"somebody@example.com","count":12345}`, i)})
		}
		if _, err := to.Enqueue(b.Context(), drafts); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBulk(b *testing.B) {
	both(b, func(b *testing.B, _, to store.Store) { fill(b, to, 1000) })
}

func BenchmarkSingle(b *testing.B) {
	both(b, func(b *testing.B, _, to store.Store) { fill(b, to, 1) })
}

// BenchmarkDrain is jobs whose handler does nothing, from a store that holds them all to all of them complete.
func BenchmarkDrain(b *testing.B) {
	both(b, func(b *testing.B, near, to store.Store) {
		fill(b, near, 5000)
		e, err := engine.New(to, engine.Config{Slots: 100, Log: silent})
		if err != nil {
			b.Fatal(err)
		}
		var ran atomic.Int64
		all := make(chan struct{})
		engine.HandleRaw(e, "note", func(context.Context, *engine.Raw) error {
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
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
	})
}

// BenchmarkStream is a stream of lines of any length, against the same jobs in process.
func BenchmarkStream(b *testing.B) {
	p := newTestServer(b)
	from, to := io.Pipe()
	go func() {
		out := bufio.NewWriterSize(to, 64<<10)
		for i := range b.N {
			fmt.Fprintf(out, `{"kind":"note","args":{"text":"%d","to":"somebody@example.com","count":12345}}`+"\n", i)
		}
		_ = out.Flush()
		_ = to.Close()
	}()
	request, err := http.NewRequestWithContext(b.Context(), "POST", p.web.URL+"/v1/jobs/bulk", from)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-ndjson")
	b.ResetTimer()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		b.Fatal(err)
	}
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	b.ReportMetric(float64(now.HeapSys)/(1<<20), "MiB")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
