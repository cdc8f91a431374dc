package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
)

// refuse answers an error as a problem. Internal errors are logged with their cause.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	a := replyOf(w)
	if gone := r.Context().Err(); gone != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "the client ended the request before it was answered", Cause: err}
	}
	p := api.ProblemOf(err)
	p.Request = a.id
	if p.Status == http.StatusInternalServerError {
		s.cfg.Log.Error("request failed", "event", "request_failed", "request_id", a.id, "method", r.Method, "path", pathOf(r), "error", err.Error())
	}
	if a.status != 0 { // an answer has begun: break it off, so that the client does not take it for complete
		panic(http.ErrAbortHandler)
	}
	text, err := api.Marshal(p)
	if err != nil {
		text = []byte(`{"code":"internal","status":500}`)
	}
	header := w.Header()
	if seconds := p.RetryAfter(); seconds > 0 {
		header.Set("Retry-After", strconv.Itoa(seconds))
	}
	if p.Status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="holdfast"`)
	}
	header.Set("Content-Type", "application/problem+json")
	header.Set("Content-Length", strconv.Itoa(len(text)))
	limitUnreadBody(w, r)
	w.WriteHeader(p.Status)
	_, _ = w.Write(text)
}

// limitUnreadBody bounds what an unread body costs: a small one is read and dropped, with a short deadline; a large one ends the connection.
func limitUnreadBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength < 0 || r.ContentLength > 1<<16 {
		w.Header().Set("Connection", "close")
	}
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(2 * time.Second)) // the recorder of a test has no deadlines
	}
}

// notFound answers requests at unknown paths, and at known paths with another method.
func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "" && pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		s.refuse(w, r, &holdfast.Error{Err: holdfast.ErrNotFound, Message: "there is nothing at this path: the API is below /v1; /v1/openapi.json describes it"})
		return
	}
	for _, method := range allowed {
		w.Header().Add("Allow", method)
	}
	s.refuse(w, r, &holdfast.Error{Err: api.ErrMethod, Message: "this path does not support the method: use one of those in the header Allow"})
}
