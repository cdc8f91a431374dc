package server

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strconv"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/api"
)

// A mounted route, as authorisation and the tests of routes and document see it.
type mounted struct {
	name, method, path string
	scope, also        apikey.Scope
	about, tag         string
	status             int
	in, out            any // pointers to zero values of the request and answer types
	long, waits        bool
}

// Operations describes the mounted routes. The OpenAPI document is written from them.
func (s *Server) Operations() (all []api.Operation) {
	for _, m := range s.routes {
		all = append(all, api.Operation{
			Name: m.name, Method: m.method, Path: m.path, Scope: m.scope, Also: m.also, About: m.about, Tag: m.tag, Status: m.status,
			In: reflect.TypeOf(m.in).Elem(), Out: reflect.TypeOf(m.out).Elem(), Bound: Caller{Scope: apikey.Admin, Owner: "any"}.may(m) == nil,
		})
	}
	return all
}

// mount mounts a route on the mux, behind authentication and limits.
func mount[In, Out any](s *Server, r api.Route[In, Out], do func(ctx context.Context, c Caller, in *In) (Out, error)) {
	to := mountedOf(r)
	s.handle(api.Prefix, to, func(w http.ResponseWriter, request *http.Request, c Caller) error {
		in := new(In)
		body, free, err := s.bodyOf(w, request, r.Limit)
		defer free()
		if err == nil {
			err = s.recheckKey(w, request, to)
		}
		if err != nil {
			return err
		}
		out, err := running(s, w, request, func(ctx context.Context) (out Out, err error) { // a request that is refused for overload has cost no decoding
			if err = api.Decode(request, body, in); err == nil {
				err = s.checkOwner(ctx, c, in)
			}
			if err == nil {
				out, err = do(ctx, c, in)
			}
			return out, err
		})
		if err != nil {
			return err
		}
		s.answer(w, request, statusOf[Out](r.Status), out)
		return nil
	})
}

// mountRaw mounts a route that reads its body, or writes its answer, itself: as a stream, or in another form than JSON. The caller is authorised and the
// parameters are decoded before do is called. An error is answered as a problem, unless do has begun an answer.
func mountRaw[In, Out any](s *Server, r api.Route[In, Out], do func(w http.ResponseWriter, request *http.Request, c Caller, in *In) error) {
	s.handle(api.Prefix, mountedOf(r), func(w http.ResponseWriter, request *http.Request, c Caller) error {
		in := new(In)
		if err := api.Decode(request, nil, in); err != nil {
			return err
		}
		_, err := running(s, w, request, func(ctx context.Context) (none struct{}, err error) {
			if err = s.checkOwner(ctx, c, in); err == nil {
				err = do(w, request, c, in)
			}
			return none, err
		})
		return err
	})
}

func mountedOf[In, Out any](r api.Route[In, Out]) mounted {
	return mounted{
		name: r.Name, method: r.Method, path: r.Path, scope: r.Scope, also: r.Also,
		about: r.About, tag: r.Tag, status: statusOf[Out](r.Status), in: new(In), out: new(Out), long: r.Long, waits: r.Waits,
	}
}

// handle mounts a route behind authentication and limits.
func (s *Server) handle(prefix string, to mounted, do func(w http.ResponseWriter, r *http.Request, c Caller) error) {
	s.routes = append(s.routes, to)
	s.mux.HandleFunc(to.method+" "+prefix+to.path, func(w http.ResponseWriter, r *http.Request) {
		to := to
		to.long = to.long || to.waits && r.URL.Query().Has("wait")
		caller, err := s.admit(w, r, to)
		if err == nil && to.long {
			ctx, over := s.untilKeyEnds(r.Context(), caller)
			defer over()
			r = r.WithContext(ctx)
		}
		if err == nil {
			err = do(w, r, caller)
		}
		if ended := (*keyEnded)(nil); err != nil && errors.As(context.Cause(r.Context()), &ended) {
			err = ended.error
		}
		if err != nil {
			s.refuse(w, r, err)
			s.pauseRejected(w, r, err)
		}
	})
}

func statusOf[Out any](status int) int {
	var out Out
	if _, nothing := any(out).(api.Nothing); nothing {
		return http.StatusNoContent
	}
	if status != 0 {
		return status
	}
	return http.StatusOK
}

// answer writes a successful answer.
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
	text = append(text, '\n') // for terminals
	a := replyOf(w)
	if !s.takeAnswer(a, int64(len(text)), r.Method == http.MethodGet) {
		s.refuse(w, r, busy())
		return
	}
	defer s.giveAnswer(a, int64(len(text)))
	header := w.Header()
	if own, ok := out.(interface{ StatusCode() int }); ok {
		status = own.StatusCode()
	}
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
