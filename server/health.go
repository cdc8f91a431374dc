package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/store"
)

// Health is the body of /readyz. Without a key of scope viewer only the status is shown.
type Health struct {
	Status string        `json:"status"` // "ok" or "not ready"
	Checks []CheckResult `json:"checks,omitempty"`
	Duties []duty.Status `json:"duties,omitempty"`
	Queues []QueueHealth `json:"queues,omitempty"`
	Stuck  *int          `json:"stuck,omitempty"` // processing jobs past their lease, counted up to 200
	// FailedAttempts is the share of the attempts ended within the last hour that failed.
	FailedAttempts *float64 `json:"failed_attempts,omitempty"`
}

// CheckResult is the result of one check.
type CheckResult struct {
	Name   string `json:"name"`
	Well   bool   `json:"well"`
	Error  string `json:"error,omitempty"`
	Detail any    `json:"detail,omitempty"`
}

// QueueHealth is the number of waiting jobs of a queue.
type QueueHealth struct {
	Queue string        `json:"queue"`
	Ready int           `json:"ready"`
	Later int           `json:"later"`
	Age   time.Duration `json:"age,omitempty"` // age of the oldest job that could run
	// AtLeast names the counts at which the store stopped counting.
	AtLeast []string `json:"at_least,omitempty"`
}

// A healthCache caches the results of checks for a short time, so that frequent requests cost little.
type healthCache struct {
	mu        sync.Mutex
	checkedAt time.Time
	checks    []CheckResult
	well      bool
	detail    Health
	detailAt  time.Time
}

const (
	checkFresh  = 500 * time.Millisecond
	detailFresh = 5 * time.Second
	checkWithin = 2 * time.Second
)

// mountHealth mounts /livez, /readyz and /metrics. They take no part in load shedding: an overloaded server still answers them.
func (s *Server) mountHealth() {
	s.mux.HandleFunc("GET /livez", func(w http.ResponseWriter, r *http.Request) {
		replyOf(w).route = "livez"
		s.answer(w, r, http.StatusOK, Health{Status: "ok"})
	})
	s.mux.HandleFunc("GET /readyz", s.ready)
	if s.cfg.Metrics != nil {
		s.mux.HandleFunc("GET /metrics", s.metrics)
	}
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	replyOf(w).route = "metrics"
	caller, err := s.identify(r)
	if err == nil {
		err = caller.may(mounted{scope: apikey.Viewer})
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.cfg.Metrics.ServeHTTP(w, r)
}

// ready answers whether this server can serve. A caller with the scope viewer also gets the details.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	replyOf(w).route = "readyz"
	checks, well := s.check(r.Context())
	health, status := Health{Status: "ok"}, http.StatusOK
	if !well {
		health.Status, status = "not ready", http.StatusServiceUnavailable
	}
	if len(r.Header["Authorization"]) > 0 || s.acceptsNoKey() {
		caller, err := s.identify(r)
		if err == nil && caller.may(mounted{scope: apikey.Viewer}) == nil {
			health = s.detail(r.Context(), health, well)
			health.Checks = checks
		}
	}
	s.answer(w, r, status, health)
}

// check runs all checks, unless they ran within the last 500 ms.
func (s *Server) check(ctx context.Context) ([]CheckResult, bool) {
	if s.draining.Load() {
		return []CheckResult{{Name: "serving", Error: "the server is shutting down"}}, false
	}
	p := &s.healthCache
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.checkedAt) < checkFresh {
		return p.checks, p.well
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkWithin)
	defer cancel()
	all := append([]Check{{Name: "store", Ask: func(ctx context.Context) (any, error) {
		_, err := s.cfg.Store.Records(ctx, apikey.Namespace)
		return nil, err
	}}}, s.cfg.Checks...)
	p.checks, p.well = nil, true
	for _, c := range all {
		detail, err := c.Ask(ctx)
		result := CheckResult{Name: c.Name, Well: err == nil, Detail: detail}
		if err != nil {
			result.Error, p.well = publicMessage(err), false
			s.cfg.Log.Warn("health check failed", "event", "not_ready", "check", c.Name, "error", err.Error())
		}
		p.checks = append(p.checks, result)
	}
	p.checkedAt = time.Now()
	return p.checks, p.well
}

// publicMessage is the part of an error that may be shown without a key: the message of a holdfast.Error.
func publicMessage(err error) string {
	if herr := (*holdfast.Error)(nil); errors.As(err, &herr) {
		return herr.Message
	}
	return "the check failed: see the server's log"
}

// detail adds duties, queues, stuck jobs and failed attempts. What cannot be read is left out. The result is cached for 5 s.
func (s *Server) detail(ctx context.Context, health Health, well bool) Health {
	if !well {
		return health
	}
	p := &s.healthCache
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.detailAt) > detailFresh {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkWithin)
		defer cancel()
		p.detail, p.detailAt = s.readDetail(ctx), time.Now()
	}
	detail := p.detail
	detail.Status = health.Status
	return detail
}

func (s *Server) readDetail(ctx context.Context) (h Health) {
	if duties, err := s.cfg.Operator.Duties(ctx); err == nil {
		h.Duties = duties
	}
	if stats, err := s.cfg.Operator.Stats(ctx); err == nil {
		for _, q := range stats.Queues {
			one := QueueHealth{Queue: q.Queue, Ready: q.Ready, Later: q.Later, AtLeast: q.AtLeast}
			if !q.Oldest.IsZero() {
				one.Age = max(0, time.Since(q.Oldest).Truncate(time.Second))
			}
			h.Queues = append(h.Queues, one)
		}
	}
	if jobs, _, err := s.cfg.Operator.Jobs(ctx, store.Filter{State: holdfast.Processing, Limit: 200}); err == nil {
		stuck := 0
		for _, job := range jobs {
			if job.LeaseUntil.Before(job.AsOf) {
				stuck++
			}
		}
		h.Stuck = &stuck
	}
	if trends, err := s.cfg.Operator.Trends(ctx, time.Hour, time.Hour); err == nil {
		h.FailedAttempts = failedAttempts(trends)
	}
	return h
}

// failedAttempts is the share of attempts that failed; nil if none ended.
func failedAttempts(trends []store.Trend) *float64 {
	failed, ended := 0, 0
	for _, t := range trends {
		failed += t.Failed + t.Retried
		ended += t.Complete + t.Failed + t.Retried
	}
	if ended == 0 {
		return nil
	}
	share := float64(failed) / float64(ended)
	return &share
}

// DutiesRun is a check that some process performs the duties, and that no duty that is not paused is later than late.
func DutiesRun(operator interface {
	Duties(ctx context.Context) ([]duty.Status, error)
}, late time.Duration) Check {
	return Check{Name: "duties", Ask: func(ctx context.Context) (any, error) {
		duties, err := operator.Duties(ctx)
		if err != nil {
			return nil, err
		}
		performed := 0
		for _, d := range duties {
			performed += d.Workers
			if d.Lag > late {
				return nil, &holdfast.Error{Err: holdfast.ErrUnavailable, Message: fmt.Sprintf("duty %s is late by %v: see 'holdfast duties'", d.Name, d.Lag.Round(time.Second))}
			}
		}
		if performed == 0 {
			return nil, &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "no process performs the duties: start a worker, or serve without --no-workers"}
		}
		return nil, nil
	}}
}

// Drain makes /readyz answer "not ready" from now on. The server continues to answer requests.
func (s *Server) Drain() { s.draining.Store(true) }

// Close ends requests that wait or stream, and waits for the server's background work. The server does not use the store after Close.
func (s *Server) Close() error {
	s.draining.Store(true)
	s.close()
	s.keys.close()
	return nil
}
