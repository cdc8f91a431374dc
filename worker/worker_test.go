package worker_test

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/holdfasttest"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/notify/webhook"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/worker"
)

type note struct{ Text string }

func (note) Kind() string { return "note" }

// mailbox is a sink that collects what it is given.
type mailbox struct {
	mu     sync.Mutex
	events []string
}

func (m *mailbox) deliver(_ context.Context, d notify.Delivery) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range d.Events {
		m.events = append(m.events, subscription.Type(e))
	}
	return nil
}

func (m *mailbox) count(event string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		if e == event {
			n++
		}
	}
	return n
}

// runUntil runs a worker until the condition holds.
func runUntil(t *testing.T, w *worker.Worker, holds func() bool) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	for start := time.Now(); !holds(); <-time.After(50 * time.Millisecond) {
		if time.Since(start) > 3*time.Hour {
			t.Error("timed out")
			break
		}
	}
	stop()
	if err := <-ran; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// auditLines returns the lines of the audit log about schedules and subscriptions.
func auditLines(t *testing.T, w *worker.Worker) (lines []string) {
	t.Helper()
	log, err := w.Operator.AuditLog(t.Context(), ops.AuditFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range log.Events {
		lines = append(lines, e.Actor+" "+e.Name)
	}
	slices.Sort(lines)
	return lines
}

func TestAWorkerRunsJobsSchedulesAndNotifications(t *testing.T) {
	holdfasttest.Run(t, func(t *testing.T, jobs *holdfasttest.Store) {
		var box mailbox
		var attempts int
		start := func() *worker.Worker {
			w, err := worker.New(jobs, worker.Config{
				Notify:        notify.Config{Sinks: map[string]notify.Sink{"box": notify.Func(box.deliver)}},
				Schedules:     []schedule.Schedule{{Name: "hourly", Every: time.Hour, Draft: holdfast.Draft{Kind: "note", Args: []byte(`{"Text":"hourly"}`)}}},
				Subscriptions: []subscription.Subscription{{Name: "ends", Sink: "box", Target: "here", Events: []string{"job.complete"}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			engine.Handle(w.Engine, func(context.Context, *engine.Job[note]) error { return nil })
			w.Observe(func(end engine.AttemptEnd) {
				if end.Lease.Kind == "note" {
					attempts++
				}
			})
			return w
		}
		first := start()
		runUntil(t, first, func() bool { return box.count("job.complete") >= 1 })
		second := start() // a restart changes nothing
		if _, err := holdfast.Enqueue(t.Context(), jobs, note{"by hand"}); err != nil {
			t.Fatal(err)
		}
		runUntil(t, second, func() bool { return box.count("job.complete") >= 2 })
		if attempts < 2 {
			t.Errorf("%d attempts were observed, want 2 or more", attempts)
		}
		if lines := auditLines(t, second); !slices.Equal(lines, []string{"worker added", "worker subscribed"}) {
			t.Errorf("audit log: %q", lines)
		}
	})
}

func TestCodesAndPoliciesReachTheOperations(t *testing.T) {
	holdfasttest.Run(t, func(t *testing.T, jobs *holdfasttest.Store) {
		codes, err := failure.NewTaxonomy(failure.Code{Name: "OUT_OF_PAPER", Category: "system", Blame: failure.BlameUs, HTTPStatus: 503, Message: "The printer has no paper.", Remedy: "Refill it."})
		if err != nil {
			t.Fatal(err)
		}
		policies, err := policy.ParseFor([]byte("kinds: {note: {max_attempts: 1}}"), codes)
		if err != nil {
			t.Fatal(err)
		}
		w, err := worker.New(jobs, worker.Config{Engine: engine.Config{Taxonomy: codes, Policies: policies, Version: "1.2.3"}})
		if err != nil {
			t.Fatal(err)
		}
		if w.Notifier != nil {
			t.Error("there is a notifier although there are no sinks")
		}
		engine.Handle(w.Engine, func(context.Context, *engine.Job[note]) error {
			return failure.WithCode(errors.New("tray 1"), "OUT_OF_PAPER")
		})
		receipt, err := holdfast.Enqueue(t.Context(), jobs, note{"a"})
		if err != nil {
			t.Fatal(err)
		}
		runUntil(t, w, func() bool {
			job, err := jobs.Job(t.Context(), receipt.ID)
			return err == nil && job.State == holdfast.Failed
		})
		explanation, err := w.Operator.Explain(t.Context(), receipt.ID)
		if err != nil || len(explanation.Reasons) == 0 || !strings.Contains(explanation.Reasons[0].Remedy, "Refill it;") {
			t.Errorf("explanation: %+v %v", explanation.Reasons, err)
		}
		pages, err := w.Console(console.Config{Who: func(*http.Request) (console.Visitor, error) {
			return console.Visitor{Name: "ada", Scope: "viewer"}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer pages.Close()
		answer := httptest.NewRecorder()
		pages.ServeHTTP(answer, httptest.NewRequest("GET", "http://localhost/jobs?state=failed", nil))
		if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "OUT_OF_PAPER") {
			t.Errorf("the console answers %d", answer.Code)
		}
	})
}

func TestAWorkerThatCannotWorkIsRefusedWithEveryProblem(t *testing.T) {
	jobs := holdfasttest.Open(t)
	_, err := worker.New(jobs, worker.Config{
		Engine:        engine.Config{Slots: -1},
		Notify:        notify.Config{Sinks: map[string]notify.Sink{"box": nil}},
		Subscriptions: []subscription.Subscription{{Sink: "box"}},
		Schedules:     []schedule.Schedule{{Name: "twice"}, {Name: "twice"}},
	})
	for _, part := range []string{"Slots is -1", `Sinks["box"] is nil`, "Subscriptions[0] has no name", `two Schedules have the name "twice"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
}

func TestAWorkerThatSetsSubscriptionsAndDeliversNoneSaysSo(t *testing.T) {
	jobs := holdfasttest.Open(t)
	var lines strings.Builder
	w, err := worker.New(jobs, worker.Config{
		Engine:        engine.Config{Log: slog.New(slog.NewTextHandler(&lines, nil))},
		Subscriptions: []subscription.Subscription{{Name: "ends", Sink: "webhook", Target: "https://example.com/hook"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = w.Run(ctx)
	if !strings.Contains(lines.String(), "Notify.Sinks") {
		t.Errorf("the log says nothing of it:\n%s", lines.String())
	}
}

func TestRunReturnsWhenAPartCannotRun(t *testing.T) {
	jobs := holdfasttest.Open(t)
	var box mailbox
	w, err := worker.New(jobs, worker.Config{Notify: notify.Config{Sinks: map[string]notify.Sink{"box": notify.Func(box.deliver)}}})
	if err != nil {
		t.Fatal(err)
	}
	engine.Handle[note](w.Engine, nil)
	if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "its handler is nil") {
		t.Errorf("Run: %v", err)
	}
}

func TestASubscriptionWithASecretThatCannotSignIsRefused(t *testing.T) {
	jobs := holdfasttest.Open(t)
	hook, err := webhook.New(webhook.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer hook.Close()
	secrets := map[string]string{"good": "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32)), "plain": "hunter2"}
	for name, says := range map[string]string{"plain": "does not begin with whsec_", "none": "no such secret", "good": ""} {
		w, err := worker.New(jobs, worker.Config{
			Notify: notify.Config{Sinks: map[string]notify.Sink{"webhook": hook}, Secret: func(name string) (string, error) {
				if secret, ok := secrets[name]; ok {
					return secret, nil
				}
				return "", errors.New("no such secret")
			}},
			Subscriptions: []subscription.Subscription{{Name: name, Sink: "webhook", Target: "https://example.com/hook", Secrets: []string{name}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if says == "" {
			runUntil(t, w, func() bool {
				list, err := w.Operator.Subscriptions(t.Context())
				return err == nil && len(list) == 1
			})
			continue
		}
		if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
}

func TestWorkersThatStartTogetherMakeOneSubscription(t *testing.T) {
	jobs := holdfasttest.Open(t)
	var box mailbox
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	workers := make([]*worker.Worker, 6)
	for i := range workers {
		w, err := worker.New(jobs, worker.Config{
			Notify:        notify.Config{Sinks: map[string]notify.Sink{"box": notify.Func(box.deliver)}},
			Schedules:     []schedule.Schedule{{Name: "hourly", Every: time.Hour, Draft: holdfast.Draft{Kind: "note"}}},
			Subscriptions: []subscription.Subscription{{Name: "ends", Sink: "box", Target: "here"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		workers[i] = w
	}
	placed := make(chan error, len(workers))
	for _, w := range workers {
		running.Go(func() { placed <- w.Run(ctx) })
	}
	for start := time.Now(); len(auditLines(t, workers[0])) < 2 && time.Since(start) < time.Minute; <-time.After(10 * time.Millisecond) {
	}
	stop()
	running.Wait()
	for range workers {
		if err := <-placed; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if lines := auditLines(t, workers[0]); !slices.Equal(lines, []string{"worker added", "worker subscribed"}) {
		t.Errorf("audit log: %q", lines)
	}
	if list, err := workers[0].Operator.Subscriptions(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%d subscriptions, %v", len(list), err)
	}
}
