package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast/internal/api"
)

func TestARejectedConnectionIsPausedAfterItsAnswer(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		vital bool
		rests time.Duration
	}{
		{"overloaded", busy(), false, rejectPause},
		{"what workers need", busy(), true, 0},
		{"another refusal", errors.New("no"), false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Server{}
				s.closing, s.close = context.WithCancel(t.Context())
				defer s.close()
				left, answer := 0, httptest.NewRecorder()
				a := &reply{ResponseWriter: answer, begun: time.Now(), vital: c.vital, leave: func() { left++ }}
				begun := time.Now()
				s.pauseRejected(a, httptest.NewRequest(http.MethodPost, "/v1/jobs", nil), c.err)
				if took := time.Since(begun); took != c.rests || took > 0 && (left != 1 || a.leave != nil || !answer.Flushed || time.Since(a.begun) > 0) {
					t.Errorf("it rested for %v, gave back %d times, flushed %v", took, left, answer.Flushed)
				}
			})
		})
	}
}

func TestAnArrayOfDraftsIsRejectedUnreadUnderOverload(t *testing.T) {
	s := newGateScene(t, func(c *Config) { c.Limits = Limits{Running: 4} })
	l := s.srv.admission.waiters(false)
	s.srv.admission.mu.Lock()
	l.rejectedAt, l.waiting = time.Now().Add(time.Hour), []chan struct{}{make(chan struct{}), make(chan struct{})} // it counts as overloaded, however long this test takes
	s.srv.admission.mu.Unlock()
	for _, path := range []string{api.EnqueueBulk.Path, api.EnqueueJob.Path} {
		if a := s.ask("worker", "POST", api.Prefix+path, `nonsense`); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
			t.Error(path, a.status, a.body)
		}
	}
	if a := s.ask("worker", "POST", api.Prefix+api.ClaimJobs.Path, `nonsense`); a.status != http.StatusBadRequest {
		t.Error("what workers need is read:", a.status, a.body)
	}
}
