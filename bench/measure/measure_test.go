package measure

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// plain is a contender that only counts jobs.
type plain struct{ added, complete atomic.Int64 }

func (p *plain) Add(_ context.Context, jobs int) error {
	p.added.Add(int64(jobs))
	return nil
}

func (p *plain) AddOne(ctx context.Context) error { return p.Add(ctx, 1) }

func (p *plain) Work(ctx context.Context, do func(attempt int) error) error {
	for again := time.NewTicker(time.Millisecond); ; <-again.C {
		for ; p.added.Load() > 0; p.added.Add(-1) {
			if err := do(1); err != nil {
				return err
			}
			p.complete.Add(1)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

func (p *plain) Complete(context.Context) (int, error) { return int(p.complete.Load()), nil }
func (p *plain) Settings() string                      { return "plain" }
func (p *plain) Close() error                          { return nil }

func measured(t *testing.T, r run) (Result, *plain, error) {
	t.Helper()
	p := &plain{}
	result, err := (&session{run: r, c: p}).measure(t.Context())
	return result, p, err
}

func TestJobsAreAddedOnceByHoweverManyGoroutines(t *testing.T) {
	result, p, err := measured(t, run{workload: "enqueue", jobs: 1000, goroutines: 16})
	if err != nil || result.Jobs != 1000 || p.added.Load() != 1000 {
		t.Fatalf("%d of 1000 jobs were added: %+v, %v", p.added.Load(), result, err)
	}
}

func TestPickUpInOneProcessMeasuresEveryJob(t *testing.T) {
	result, p, err := measured(t, run{workload: "pickup", jobs: 5, same: true})
	if err != nil || p.complete.Load() != 5+warmup {
		t.Fatalf("%d handlers started: %v", p.complete.Load(), err)
	}
	if result.P50 <= 0 || result.P50 > result.P95 || result.P95 > result.P99 {
		t.Fatalf("these are no percentiles: %+v", result)
	}
}

func TestWhatAContenderCannotDoIsRefused(t *testing.T) {
	for _, r := range []run{{workload: "prepare", scheduled: 1}, {workload: "prepare", held: 1}, {workload: "prepare", broken: 1}, {workload: "prepare", retained: 1}, {workload: "drain", snapshot: true}} {
		if _, _, err := measured(t, r); err == nil || !strings.Contains(err.Error(), "does not support") {
			t.Errorf("%+v is answered with %v", r, err)
		}
	}
	if _, _, err := measured(t, run{workload: "dance"}); err == nil {
		t.Error("an unknown workload is measured")
	}
}

func TestAPercentileIsAMeasuredValue(t *testing.T) {
	list := []float64{1, 2, 3, 4}
	for percent, want := range map[int]float64{50: 2, 75: 3, 99: 4, 1: 1} {
		if got := percentile(list, percent); got != want {
			t.Errorf("p%d is %v, not %v", percent, got, want)
		}
	}
	if percentile(nil, 50) != 0 {
		t.Error("nothing has a percentile")
	}
}

func TestChunksAddUp(t *testing.T) {
	sum := 0
	if err := Chunks(2*Chunk+1, func(n int) error { sum += n; return nil }); err != nil || sum != 2*Chunk+1 {
		t.Fatalf("%d were added: %v", sum, err)
	}
	broken := errors.New("broken")
	if err := Chunks(1, func(int) error { return broken }); err != broken {
		t.Fatalf("the error became %v", err)
	}
}
