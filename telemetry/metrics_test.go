package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/testprograms"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
	"github.com/holdfastdev/holdfast/telemetry"
)

func TestWhatAnEngineDoesAndWhatTheStoreHoldsIsOnThePage(t *testing.T) {
	text := everything(t)
	wants(t, text,
		`holdfast_jobs_enqueued_total{kind="mail",queue="default"} 23`,
		`holdfast_jobs_completed_total{kind="mail",queue="default"} 2`,
		`holdfast_success_attempts_total{attempt="1"} 1`,
		`holdfast_success_attempts_total{attempt="2"} 1`,
		`holdfast_jobs_failed_total{code="NOT_FOUND",kind="mail",queue="default"} 2`,
		`holdfast_jobs_nonretryable_total{code="NOT_FOUND",kind="mail"} 2`,
		`holdfast_manual_retries_total{kind="mail",queue="default"} 1`,
		`holdfast_retries_scheduled_total{code="UNKNOWN",kind="mail"} 1`,
		`holdfast_jobs_reclaimed_total{kind="mail",queue="elsewhere"} 1`,
		`holdfast_attempts_total{kind="mail",outcome="crashed",queue="elsewhere"} 1`,
		`holdfast_breaker_state{dependency="gateway",state="open"} 1`,
		`holdfast_breaker_state{dependency="gateway",state="closed"} 0`,
		`holdfast_dead_letters{queue="default"} 1`,
		`holdfast_queue_held{queue="elsewhere"} 1`,
		`holdfast_queue_held{queue="default"} 0`,
		`holdfast_subscriptions{sink="webhook",state="told"} 1`,
		`holdfast_redrives{state="running"} 1`,
		`holdfast_http_requests_total{route="enqueue",status="201"} 1`,
		`holdfast_workers 1`,
		`holdfast_store_up 1`,
	)
	for _, private := range []string{"ada-lovelace", "secret-path"} {
		if strings.Contains(text, private) {
			t.Errorf("%s is on the page", private)
		}
	}
}

func TestPrometheusFindsNoFaultWithThePage(t *testing.T) {
	promtool, err := testprograms.Promtool.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(everything(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestThePageStaysSmallWithAnyNumberOfNames(t *testing.T) {
	m := telemetry.New(telemetry.Config{})
	for i := range 5000 {
		name := fmt.Sprintf("name-%d", i)
		lease := &store.Lease{Job: holdfast.Job{Queue: "default", Kind: name, Dependency: name}}
		m.ObserveAttempt(engine.AttemptEnd{Lease: lease, To: holdfast.Failed, Failure: &holdfast.Failure{Code: name}, Attempt: i, Took: time.Second})
		m.ObserveRequest(name, i, time.Second)
	}
	m.ObserveAttempt(engine.AttemptEnd{Lease: &store.Lease{Job: holdfast.Job{Queue: "bad \xff queue", Kind: strings.Repeat("x", 5000)}}, To: holdfast.Complete})
	m.ObserveAttempt(engine.AttemptEnd{Lease: &store.Lease{Job: holdfast.Job{Queue: "default", Kind: "name-1"}}, To: holdfast.Queued, Charge: store.ChargeRelease, Throttled: true, Failure: &holdfast.Failure{Code: "name-2"}})
	m.ObserveAttempt(engine.AttemptEnd{Lease: &store.Lease{Job: holdfast.Job{Queue: "default", Kind: "name-1"}}, To: holdfast.Failed, Charge: store.ChargeFailure, Left: 2, Failure: &holdfast.Failure{Code: "name-3", Benign: true}})
	text := page(t, m)
	if n := strings.Count(text, "\n"); n > 20_000 {
		t.Errorf("a page of %d lines", n)
	}
	wants(t, text, `holdfast_attempts_total{kind="other",outcome="failed",queue="default"} 4900`, `holdfast_jobs_failed_total{code="other",kind="other",queue="default"} 4800`,
		`holdfast_jobs_benign_total{code="name-3",kind="name-1",queue="default"} 1`, `holdfast_attempts_total{kind="name-1",outcome="benign",queue="default"} 1`,
		`holdfast_throttled_total{code="name-2",kind="name-1",queue="default"} 1`, `holdfast_attempts_total{kind="name-1",outcome="throttled",queue="default"} 1`)
	if strings.Contains(text, "holdfast_retries_scheduled_total{") {
		t.Error("a throttle is counted as a retry")
	}
}

// away is an operator whose store does not answer.
type away struct {
	telemetry.Source
	asked atomic.Int64
	hang  chan struct{} // until it is closed; nil: it refuses at once
	err   atomic.Pointer[error]
}

func (a *away) Stats(ctx context.Context) (ops.Stats, error) {
	a.asked.Add(1)
	if a.hang != nil {
		<-a.hang
	}
	if err := a.err.Load(); err != nil {
		return ops.Stats{}, *err
	}
	return a.Source.Stats(ctx)
}

// beside opens an operator on an empty store.
func beside(t *testing.T) *away {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: t.TempDir() + "/jobs.db"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &away{Source: ops.New(db, ops.Config{})}
}

func TestThePageReportsAnUnavailableStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		operator := beside(t)
		m := telemetry.New(telemetry.Config{Source: operator})
		m.ObserveRequest("enqueue", 200, time.Second)
		wants(t, page(t, m), "holdfast_store_up 1", "holdfast_workers 0")
		gone := errors.New("connection refused")
		operator.err.Store(&gone)
		time.Sleep(6 * time.Second)
		text := page(t, m)
		wants(t, text, "holdfast_store_up 0", `holdfast_read_errors_total{question="stats"} 1`, `holdfast_http_requests_total{route="enqueue",status="200"} 1`)
		if strings.Contains(text, "\nholdfast_workers ") {
			t.Error("values from before the outage are reported as current")
		}
		operator.err.Store(nil)
		time.Sleep(6 * time.Second)
		wants(t, page(t, m), "holdfast_store_up 1", "holdfast_workers 0")
	})
}

func TestAHangingStoreDelaysThePageOnlyBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		operator := beside(t)
		operator.hang = make(chan struct{})
		m := telemetry.New(telemetry.Config{Source: operator})
		for range 5 {
			began := time.Now()
			wants(t, page(t, m), "holdfast_store_up 0")
			if took := time.Since(began); took > 1100*time.Millisecond {
				t.Errorf("the page took %v", took)
			}
		}
		if n := operator.asked.Load(); n != 1 {
			t.Errorf("asked %d times although the first question is not answered", n)
		}
		close(operator.hang)
		synctest.Wait()
		time.Sleep(time.Minute)
		wants(t, page(t, m), "holdfast_store_up 1")
	})
}

func TestTheStoreIsAskedOnceForManyPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		operator := beside(t)
		m := telemetry.New(telemetry.Config{Source: operator})
		for range 100 {
			page(t, m)
		}
		if n := operator.asked.Load(); n != 1 {
			t.Errorf("a hundred pages at once asked the store %d times", n)
		}
	})
}

func TestMetricsCanBeRegisteredBesideThoseOfTheApplication(t *testing.T) {
	m := telemetry.New(telemetry.Config{Version: "1.2.3"})
	m.ObserveEnqueue([]holdfast.Draft{{Kind: "mail"}})
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range families {
		found[f.GetName()] = true
	}
	if !found["holdfast_jobs_enqueued_total"] || !found["holdfast_build_info"] || !found["go_goroutines"] || found["process_start_time_seconds"] {
		t.Errorf("families: %v", found)
	}
}
