package telemetry_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
	"github.com/holdfastdev/holdfast/telemetry"
)

// A mail is a job whose arguments tell its handler what to do.
type mail struct {
	Do string `json:"do"`
}

func (mail) Kind() string { return "mail" }

// work fails in the ways of the world: once, for good, or because of the gateway.
func work(_ context.Context, job *engine.Job[mail]) error {
	time.Sleep(20 * time.Millisecond)
	switch {
	case job.Args.Do == "fail once" && job.Attempt() == 1:
		return errors.New("some error")
	case job.Args.Do == "fail for good":
		return failure.WithCode(errors.New("there is nothing there"), "NOT_FOUND")
	case job.Args.Do == "call":
		return failure.WithCode(errors.New("502"), "GW_5XX")
	}
	return nil
}

// A run is an engine at work on a real file, in a bubble of its own time, with metrics and tracing.
type run struct {
	*testing.T
	store    store.Store
	operator *ops.Service
	metrics  *telemetry.Metrics
	reader   *sdkmetric.ManualReader // of OpenTelemetry
	ctx      context.Context
}

func play(t *testing.T, cfg engine.Config, story func(r *run)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "jobs.db")})
		if err != nil {
			t.Fatal(err)
		}
		r := &run{T: t, store: db, operator: ops.New(db, ops.Config{}), ctx: context.Background()}
		r.reader = sdkmetric.NewManualReader()
		r.metrics = telemetry.New(telemetry.Config{Source: r.operator, Version: "1.2.3", MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))})
		cfg.OnAttemptEnd, cfg.Log = r.metrics.ObserveAttempt, slog.New(slog.NewTextHandler(io.Discard, nil))
		e, err := engine.New(db, cfg)
		if err != nil {
			t.Fatal(err)
		}
		engine.Handle(e, work, engine.KindOptions{Policy: failure.Policy{MaxAttempts: 3, Backoff: failure.Fixed(2 * time.Second)}})
		ran := make(chan error, 1)
		go func() { ran <- e.Run(r.ctx) }()
		defer func() {
			_ = e.Stop(r.ctx)
			if err := errors.Join(<-ran, db.Close()); err != nil {
				t.Error(err)
			}
		}()
		story(r)
	})
}

func (r *run) enqueue(do string, options ...func(*holdfast.Draft)) holdfast.ID {
	r.Helper()
	draft, err := holdfast.NewDraft(mail{do})
	r.must(err)
	for _, option := range options {
		option(&draft)
	}
	receipts, err := r.store.Enqueue(r.ctx, []holdfast.Draft{draft})
	if err != nil {
		r.Fatal(err)
	}
	r.metrics.ObserveEnqueue([]holdfast.Draft{draft})
	return receipts[0].ID
}

func (r *run) becomes(id holdfast.ID, state holdfast.State) {
	r.Helper()
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		job, err := r.store.Job(r.ctx, id)
		if err != nil {
			r.Fatal(err)
		}
		if job.State == state {
			synctest.Wait()
			return
		}
		if time.Since(start) > 10*time.Minute {
			r.Fatalf("the job is %s, want %s", job.State, state)
		}
	}
}

func (r *run) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// page reads what Prometheus would.
func page(t testing.TB, m *telemetry.Metrics) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("the page answered %d: %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

func wants(t testing.TB, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(page, "\n"+line+"\n") {
			start, _, _ := strings.Cut(line, "{")
			start, _, _ = strings.Cut(start, " ")
			var alike []string
			for each := range strings.Lines(page) {
				if strings.HasPrefix(each, start) {
					alike = append(alike, each)
				}
			}
			t.Errorf("not on the page: %s\nbut:\n%s", line, strings.Join(alike, ""))
		}
	}
}

// everything plays a story in which all that is counted happens, and answers with the page at its end.
func everything(t *testing.T) (text string) {
	t.Helper()
	playEverything(t, func(r *run) { text = page(t, r.metrics) })
	return text
}

// playEverything plays a story in which all that is counted happens, and calls look at its end.
func playEverything(t *testing.T, look func(*run)) {
	t.Helper()
	play(t, engine.Config{Dependencies: map[string]engine.Dependency{"gateway": {}}}, func(r *run) {
		owned := func(d *holdfast.Draft) { d.Owner = "ada-lovelace" }
		r.becomes(r.enqueue("well", owned), holdfast.Complete)
		r.becomes(r.enqueue("fail once"), holdfast.Complete)
		letter := r.enqueue("fail for good")
		r.becomes(letter, holdfast.Failed)
		_, err := r.operator.Retry(r.ctx, store.Intervention{Job: letter, Actor: "ada"})
		r.must(err)
		time.Sleep(5 * time.Second)
		r.becomes(letter, holdfast.Failed)
		for range 20 {
			r.enqueue("call", func(d *holdfast.Draft) { d.Dependency = "gateway" })
		}
		lost := r.enqueue("well", func(d *holdfast.Draft) { d.Queue = "elsewhere" })
		_, err = r.store.Claim(r.ctx, store.Claim{Worker: "gone", Queues: []string{"elsewhere"}, Limit: 1, Start: 1, Lease: time.Second})
		r.must(err)
		time.Sleep(10 * time.Second)
		r.becomes(lost, holdfast.Queued)
		r.must(r.operator.Pause(r.ctx, store.Hold{Queue: "elsewhere", Actor: "ada", Reason: "a test"}))
		_, err = r.operator.Subscribe(r.ctx, subscription.Subscription{Sink: "webhook", Target: "https://ada.example/secret-path", Events: []string{"failed"}}, ops.Actor{Name: "ada"})
		r.must(err)
		_, err = r.operator.StartRedrive(r.ctx, redrive.Spec{Filter: store.Filter{Code: "NOT_FOUND"}, Actor: "ada"})
		r.must(err)
		stopped := r.enqueue("well", func(d *holdfast.Draft) { d.Queue = "elsewhere" })
		_, err = r.operator.Cancel(r.ctx, store.Intervention{Job: stopped, Actor: "ada"})
		r.must(err)
		r.metrics.ObserveRequest("enqueue", 201, 3*time.Millisecond)
		r.metrics.ObserveAttempt(engine.AttemptEnd{Lease: &store.Lease{Job: holdfast.Job{Queue: "default", Kind: "mail"}}, To: holdfast.Cancelled, Took: time.Second})
		time.Sleep(300 * time.Millisecond)
		look(r)
	})
}
