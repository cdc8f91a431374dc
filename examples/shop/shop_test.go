package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/holdfasttest"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// A fakeBank answers with its errors, one for each call, and then charges.
type fakeBank struct {
	errors  []error // of the next calls, which charge nothing
	lost    int     // how many answers are lost after the charge
	charged map[string]int
}

func (b *fakeBank) Charge(_ context.Context, key string, cents int) error {
	if len(b.errors) > 0 {
		err := b.errors[0]
		b.errors = b.errors[1:]
		return err
	}
	if b.charged == nil {
		b.charged = map[string]int{}
	}
	b.charged[key] = cents
	if b.lost > 0 {
		b.lost--
		return errors.New("connection reset by peer")
	}
	return nil
}

// newShop makes a shop on a store of the test, without its worker.
func newShop(t *testing.T, jobs *holdfasttest.Store, bank Bank) *Shop {
	t.Helper()
	db, err := sql.Open("sqlite", sqlite.DSN(jobs.Path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	return &Shop{jobs: jobs, db: db, bank: bank}
}

func (s *Shop) state(t *testing.T, order int64) (state string) {
	t.Helper()
	if err := s.db.QueryRow("SELECT state FROM orders WHERE id = ?", order).Scan(&state); err != nil {
		t.Fatal(err)
	}
	return state
}

func TestAnOrderAndItsChargeAreStoredTogether(t *testing.T) {
	jobs := holdfasttest.Open(t)
	shop := newShop(t, jobs, &fakeBank{})
	order, job, err := shop.PlaceOrder(t.Context(), "teapot", 1250)
	if err != nil {
		t.Fatal(err)
	}
	found := holdfasttest.RequireEnqueued(t, jobs, Charge{Order: order, Cents: 1250}, func(d *holdfast.Draft) { d.Queue = "payments" })
	var stored holdfast.ID
	if err := shop.db.QueryRow("SELECT job FROM orders WHERE id = ?", order).Scan(&stored); err != nil || stored != job || found.ID != job {
		t.Errorf("the order names job %v, Enqueue returned %v, the store has %v: %v", stored, job, found.ID, err)
	}
}

func TestADeclinedCardIsFinalAndABusyBankIsNot(t *testing.T) {
	taxonomy, err := failure.NewTaxonomy(codes...)
	if err != nil {
		t.Fatal(err)
	}
	with := func(s *holdfasttest.Setup) { s.Options, s.Config.Taxonomy = chargeOptions, taxonomy }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "666") {
			w.WriteHeader(http.StatusPaymentRequired)
			return
		}
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	shop := newShop(t, holdfasttest.Open(t), HTTPBank{URL: server.URL})

	holdfasttest.Work(t, shop.charge, Charge{Order: 1, Cents: 666}, with).RequireFailed(t, "CARD_DECLINED")
	busy := holdfasttest.Work(t, shop.charge, Charge{Order: 1, Cents: 1250}, with)
	busy.RequireRetry(t, "DEPENDENCY_DOWN")
	if busy.Delay < time.Minute {
		t.Errorf("the next attempt is in %v, and the bank asked for a minute", busy.Delay)
	}
}

func TestAChargeCompletesInTheTransactionThatPaysTheOrder(t *testing.T) {
	shop := newShop(t, holdfasttest.Open(t), &fakeBank{})
	order, _, err := shop.PlaceOrder(t.Context(), "teapot", 1250)
	if err != nil {
		t.Fatal(err)
	}
	attempt := holdfasttest.Work(t, shop.charge, Charge{Order: order, Cents: 1250})
	attempt.RequireComplete(t)
	if _, ok := attempt.CompletedIn.(*sql.Tx); !ok || shop.state(t, order) != "paid" {
		t.Errorf("the job was completed in %T, and the order is %s", attempt.CompletedIn, shop.state(t, order))
	}
}

func TestAnOrderIsShippedAlthoughTheBankWasAway(t *testing.T) {
	jobs := holdfasttest.Open(t)
	away := &failure.HTTPError{Status: http.StatusServiceUnavailable}
	bank := &fakeBank{errors: []error{away, errors.New("connection reset by peer")}}
	shop := newShop(t, jobs, bank)
	order, job, err := shop.PlaceOrder(t.Context(), "teapot", 1250)
	if err != nil {
		t.Fatal(err)
	}
	fast := chargeOptions
	fast.Policy.Backoff = failure.Fixed(10 * time.Millisecond)
	stories := holdfasttest.Drain(t, jobs, func(e *engine.Engine) {
		engine.Handle(e, shop.charge, fast)
		engine.Handle(e, shop.ship)
	})
	stories.RequireComplete(t)
	if shop.state(t, order) != "shipped" || bank.charged[job.String()] != 1250 || len(stories.Of("ship")) != 1 {
		t.Errorf("state %s, charged %v\n%v", shop.state(t, order), bank.charged, stories)
	}
}

func TestAChargeWhoseAnswerWasLostIsRepeatedWithItsKeyAndShipsOnce(t *testing.T) {
	jobs, bank := holdfasttest.Open(t), &fakeBank{lost: 2}
	shop := newShop(t, jobs, bank)
	order, job, err := shop.PlaceOrder(t.Context(), "teapot", 1250)
	if err != nil {
		t.Fatal(err)
	}
	fast := chargeOptions
	fast.Policy.Backoff = failure.Fixed(10 * time.Millisecond)
	stories := holdfasttest.Drain(t, jobs, func(e *engine.Engine) {
		engine.Handle(e, shop.charge, fast)
		engine.Handle(e, shop.ship)
	})
	stories.RequireComplete(t)
	if len(bank.charged) != 1 || bank.charged[job.String()] != 1250 || len(stories.Of("ship")) != 1 || shop.state(t, order) != "shipped" {
		t.Errorf("state %s, charged %v\n%v", shop.state(t, order), bank.charged, stories)
	}
}

// TestTheWholeShop runs the application as main does, with a bank that is down at first.
func TestTheWholeShop(t *testing.T) {
	var calls atomic.Int32
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer bank.Close()
	shop, err := OpenShop(t.Context(), filepath.Join(t.TempDir(), "shop.db"), HTTPBank{URL: bank.URL})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := shop.Handler()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- shop.Worker.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		web.Close()
		shop.Close()
	}()

	if status, _ := send(t, "POST", web.URL+"/orders", `{"item": ""}`); status != http.StatusBadRequest {
		t.Errorf("an order without an item: %d", status)
	}
	status, body := send(t, "POST", web.URL+"/orders", `{"item": "teapot", "cents": 1250}`)
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	var placed order
	if err := json.Unmarshal([]byte(body), &placed); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); placed.State != "shipped"; <-time.After(20 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatalf("the order is %s after a minute", placed.State)
		}
		_, body = send(t, "GET", fmt.Sprintf("%s/orders/%d", web.URL, placed.ID), "")
		if err := json.Unmarshal([]byte(body), &placed); err != nil {
			t.Fatal(err)
		}
	}
	for path, says := range map[string]string{
		"/console/jobs/" + placed.Job: "charge", "/console/schedules": "daily-report", "/metrics": `holdfast_jobs_completed_total{kind="ship"`,
	} {
		if status, body := send(t, "GET", web.URL+path, ""); status != http.StatusOK || !strings.Contains(body, says) {
			t.Errorf("%s: %d, and no %q in\n%.2000s", path, status, says, body)
		}
	}
}

func send(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}
