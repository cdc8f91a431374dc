package server

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
)

// A slowOperator delays the answer about a job until let is closed.
type slowOperator struct {
	ops.Operator
	waiting atomic.Int64
	slow    atomic.Bool
	let     chan struct{}
}

func (d *slowOperator) Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	if d.slow.Load() {
		d.waiting.Add(1)
		defer d.waiting.Add(-1)
		select {
		case <-d.let:
		case <-ctx.Done():
			return holdfast.Job{}, ctx.Err()
		}
	}
	return d.Operator.Job(ctx, id)
}

func TestAKeyWithTooManyRequestsGetsRetryAfter(t *testing.T) {
	s := newGateScene(t, func(c *Config) { c.Limits = Limits{PerSecond: 0.01, Burst: 3} })
	for i := range 6 {
		a := s.ask("viewer", "GET", "/v1/jobs", "")
		if i < 3 && a.status != http.StatusOK || i >= 3 && (a.status != http.StatusTooManyRequests || a.code() != "throttled" || a.header.Get("Retry-After") == "") {
			t.Errorf("request %d: %d %s", i+1, a.status, a.body)
		}
	}
	if a := s.ask("operator", "GET", "/v1/jobs", ""); a.status != http.StatusOK {
		t.Error("another key:", a.status, a.body)
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if a := s.ask("viewer", "GET", path, ""); a.status != http.StatusOK {
			t.Error(path, a.status, a.body)
		}
	}
}

func TestAKeyWithTooManyConcurrentRequestsBlocksNoOther(t *testing.T) {
	operator := &slowOperator{let: make(chan struct{})}
	s := newGateScene(t, func(c *Config) {
		operator.Operator, c.Operator = c.Operator, operator
		c.Limits = Limits{InFlight: 2}
	})
	job := s.job("bob").String()
	operator.slow.Store(true)
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() { s.ask("viewer", "GET", "/v1/jobs/"+job, "") })
	}
	eventually(t, "both are under way", func() bool { return operator.waiting.Load() == 2 })
	if a := s.ask("viewer", "GET", "/v1/jobs", ""); a.status != http.StatusTooManyRequests {
		t.Error(a.status, a.body)
	}
	if a := s.ask("operator", "GET", "/v1/jobs", ""); a.status != http.StatusOK {
		t.Error(a.status, a.body)
	}
	close(operator.let)
	asking.Wait()
	if a := s.ask("viewer", "GET", "/v1/jobs", ""); a.status != http.StatusOK {
		t.Error("after the others were answered:", a.status, a.body)
	}
}

func TestOverloadRejectsRequestsButNotHealthChecks(t *testing.T) {
	operator := &slowOperator{let: make(chan struct{})}
	s := newGateScene(t, func(c *Config) {
		operator.Operator, c.Operator = c.Operator, operator
		c.Limits = Limits{Running: 4}
	})
	job := s.job("bob").String()
	operator.slow.Store(true)
	var asking sync.WaitGroup
	var away atomic.Int64
	for range 30 {
		asking.Go(func() {
			if a := s.ask("viewer", "GET", "/v1/jobs/"+job, ""); a.status == http.StatusServiceUnavailable && a.code() == "unavailable" && a.header.Get("Retry-After") != "" {
				away.Add(1)
			}
		})
	}
	eventually(t, "those for whom there is no room are sent away", func() bool { return away.Load() == 27 })
	for _, path := range []string{"/livez", "/readyz"} {
		if a := s.ask("viewer", "GET", path, ""); a.status != http.StatusOK {
			t.Error(path, a.status, a.body)
		}
	}
	close(operator.let)
	asking.Wait()
	if s.srv.admission.running != 0 || s.srv.admission.ordinary != 0 {
		t.Error("places were not given back:", s.srv.admission.running, s.srv.admission.ordinary)
	}
}

func TestVitalRequestsRunHoweverManyOthersWait(t *testing.T) {
	c := newAdmission(8)
	for range 6 {
		if err := c.enter(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		if err := c.enter(t.Context(), false); err == nil {
			t.Error("an ordinary one got a place that is reserved")
		}
		for range 2 {
			if err := c.enter(t.Context(), true); err != nil {
				t.Error("a vital one got none:", err)
			}
		}
	})
}

func TestRequestsWaitForAShorterTimeUnderLastingOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newAdmission(4)
		for range 3 {
			_ = c.enter(t.Context(), false)
		}
		wait := func() time.Duration {
			begun := time.Now()
			if err := c.enter(t.Context(), false); err == nil {
				t.Error("there was a place")
			}
			return time.Since(begun)
		}
		if took := wait(); took != normalWait {
			t.Errorf("the first waited %v", took)
		}
		var waiting sync.WaitGroup
		waiting.Go(func() { _ = c.enter(t.Context(), false) })
		synctest.Wait()
		time.Sleep(normalWait - time.Millisecond)
		waiting.Go(func() { _ = c.enter(t.Context(), false) }) // arrives before the first gives up, so that waiting has no break
		synctest.Wait()
		time.Sleep(2 * time.Millisecond)
		if took := wait(); took != overloadWait {
			t.Errorf("once waiting was the rule one waited %v", took)
		}
		c.leave(false)
		waiting.Wait()
	})
}

func TestACancelledWaiterDoesNotBlockTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newAdmission(4)
		for range 3 {
			_ = c.enter(t.Context(), false)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var first, second error
		var waiting sync.WaitGroup
		waiting.Go(func() { first = c.enter(ctx, false) })
		synctest.Wait()
		waiting.Go(func() { second = c.enter(t.Context(), false) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		c.leave(false)
		waiting.Wait()
		if first == nil || second != nil || c.running != 3 || len(c.lines[1].waiting) != 0 {
			t.Error(first, second, c.running, c.lines)
		}
	})
}

func TestBodiesStayWithinTheMemoryLimit(t *testing.T) {
	s := newGateScene(t, func(c *Config) { c.Limits = Limits{Bytes: 1 << 20} })
	mount(s.srv, api.Route[struct{ Body map[string]string }, api.Nothing]{Name: "take", Method: "POST", Path: "/test/take", Tag: "test"},
		func(context.Context, Caller, *struct{ Body map[string]string }) (api.Nothing, error) {
			return api.Nothing{}, nil
		})
	large := `{"a":"` + strings.Repeat("x", 700<<10) + `"}`
	if a := s.ask("admin", "POST", "/v1/test/take", large); a.status != http.StatusNoContent && a.status != http.StatusServiceUnavailable {
		t.Error(a.status, a.body)
	}
	if a := s.ask("admin", "POST", "/v1/test/take", `{"a":"`+strings.Repeat("x", 1500<<10)+`"}`); a.status != http.StatusServiceUnavailable {
		t.Error(a.status, a.body)
	}
	if a := s.ask("admin", "POST", "/v1/test/take", `{"a":"`+strings.Repeat("x", 5<<20)+`"}`); a.status != http.StatusRequestEntityTooLarge || a.code() != "too_large" {
		t.Error(a.status, a.body)
	}
	if a := s.ask("admin", "POST", "/v1/test/take", `{}`); a.status != http.StatusNoContent || s.srv.bodies.held.Load() != 0 {
		t.Error(a.status, a.body, s.srv.bodies.held.Load())
	}
}
