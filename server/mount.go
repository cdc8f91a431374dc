package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/key"
)

// A mounted route, as the gate and its test see it.
type mounted struct {
	name, method, path string
	scope, also        key.Scope
	in                 any // a pointer to a request of its type
}

// mount puts a route on the mux, into the document and into the table of the gate.
func mount[In, Out any](s *Server, r api.Route[In, Out], do func(ctx context.Context, c Caller, in *In) (Out, error)) {
	s.describe(r.Name, r.Method, r.Path, r.About, r.Tag, statusOf[Out](r.Status), new(In), new(Out))
	s.routes = append(s.routes, mounted{r.Name, r.Method, r.Path, r.Scope, r.Also, new(In)})
	at, limit := len(s.routes)-1, r.Limit
	if limit == 0 {
		limit = api.DefaultLimit
	}
	s.mux.HandleFunc(r.Method+" "+api.Prefix+r.Path, func(w http.ResponseWriter, request *http.Request) {
		caller, err := s.admit(w, request, s.routes[at])
		if err != nil {
			s.refuse(w, request, err)
			return
		}
		in := new(In)
		body, err := bodyOf(w, request, limit)
		if err == nil {
			err = api.Decode(request, body, in)
		}
		if err == nil {
			err = s.own(request.Context(), caller, in)
		}
		var out Out
		if err == nil {
			out, err = do(request.Context(), caller, in)
		}
		if err != nil {
			s.refuse(w, request, err)
			return
		}
		s.answer(w, request, statusOf[Out](r.Status), out)
	})
}

func statusOf[Out any](said int) int {
	var out Out
	if _, nothing := any(out).(api.Nothing); nothing {
		return http.StatusNoContent
	}
	if said != 0 {
		return said
	}
	return http.StatusOK
}

// bodyOf reads a JSON body, so far and no further.
func bodyOf(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &holdfast.Error{Kind: api.ErrTooLarge, Message: "the body is larger than " + strconv.FormatInt(limit, 10) + " bytes: send less at a time"}
	}
	if err != nil {
		return nil, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "the body ends before it was all there", Cause: err}
	}
	if kind := r.Header.Get("Content-Type"); len(body) > 0 && kind != "" && !strings.HasPrefix(kind, "application/json") && !strings.HasPrefix(kind, "application/merge-patch+json") {
		return nil, &holdfast.Error{Kind: api.ErrUnsupported, Message: "send the body as application/json"}
	}
	return body, nil
}

// answer writes what comes back.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, status int, out any) {
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	text, err := api.Marshal(out)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	header := w.Header()
	if announcer, ok := out.(api.Announcer); ok {
		announcer.Announce(header)
	}
	if job, ok := out.(interface{ Digest() string }); ok {
		header.Set("ETag", strconv.Quote(job.Digest()))
	}
	if page, ok := out.(api.Pager); ok && page.NextCursor() != "" {
		next := *r.URL
		query := next.Query()
		query.Set("cursor", page.NextCursor())
		next.RawQuery = query.Encode()
		header.Set("Link", "<"+next.RequestURI()+`>; rel="next"`)
	}
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// refuse writes what went wrong. What is our fault goes to the log, whole.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := api.ProblemOf(err)
	p.Request = w.Header().Get("X-Request-Id")
	if p.Status == http.StatusInternalServerError {
		s.cfg.Log.Error("a request failed", "event", "request_failed", "request_id", p.Request, "method", r.Method, "path", r.URL.Path, "error", err.Error())
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
	w.WriteHeader(p.Status)
	_, _ = w.Write(text)
}
