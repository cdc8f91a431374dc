package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/limit"
)

// Authenticate authenticates a key, as for API requests, for pages that admit visitors themselves: a revoked key is refused within a second, and an address that
// sends too many bad keys is throttled. An empty text means a visitor without a key, who is admitted while the server is open.
func (s *Server) Authenticate(ctx context.Context, remote, text string) (Caller, error) {
	if text = strings.TrimSpace(text); text == "" {
		return s.keyless(ctx)
	}
	k, err := s.keys.authenticate(ctx, text, func() error {
		if s.badKeys.Allow(limit.Network(remote)) {
			return nil
		}
		return &holdfast.Error{Err: holdfast.ErrThrottled, Message: "too many requests with a bad API key from this address: check the key, and try again later", RetryAfter: badKeyEvery}
	})
	if err != nil {
		return Caller{}, err
	}
	return Caller{Key: k.ID, Name: k.Name, Scope: k.Scope, Owner: k.Owner, Queues: k.Queues, Kinds: k.Kinds}, nil
}

// SessionContext returns a context that ends when the caller's key is revoked, expires or is changed, or, for a caller without a key, when the first key is created. The
// cause of the context says why. Streams must end with it.
func (s *Server) SessionContext(c Caller) context.Context {
	if c.Key == "" && s.cfg.IgnoreKeys {
		return context.Background()
	}
	return s.keys.lifetimeOf(apikey.Key{ID: c.Key, Scope: c.Scope, Owner: c.Owner, Queues: c.Queues, Kinds: c.Kinds})
}

// pagesRunning is the number of pages that are made at the same time. It is separate from the limit of API requests, so that operators can still look at an
// overloaded server.
const pagesRunning = 16

// Mount mounts pages for people under a prefix such as /console, and redirects from the root to it. Requests from other origins are refused, and on
// a server without keys also requests that do not come from this machine. The pages authenticate their visitors themselves, with Authenticate. The paths in
// streams, without the prefix, may stream until the server closes. Mount must be called before the server serves.
func (s *Server) Mount(prefix string, pages http.Handler, streams ...string) error {
	if s.pages != "" || len(prefix) < 2 || prefix[0] != '/' || strings.HasSuffix(prefix, "/") || strings.HasPrefix(prefix+"/", "/v1/") {
		return errors.New("the pages cannot be mounted there: mount them once, at a path of their own such as /console")
	}
	s.pages = prefix
	places := newAdmission(pagesRunning)
	s.mux.HandleFunc(prefix+"/", func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(streams, strings.TrimPrefix(r.URL.Path, prefix)) {
			s.listen(w, r, pages)
			return
		}
		replyOf(w).route = "pages"
		readAhead(r)
		if err := places.enter(r.Context(), true); err != nil {
			s.refuse(w, r, err)
			return
		}
		page := &bufferedResponse{header: w.Header()}
		func() {
			defer places.leave(true)
			pages.ServeHTTP(page, r)
		}()
		a, size := replyOf(w), int64(page.body.Len())
		if !s.takeAnswer(a, size, r.Method == http.MethodGet) {
			clear(w.Header())
			s.refuse(w, r, busy())
			return
		}
		defer s.giveAnswer(a, size)
		page.writeTo(w)
	})
	return nil
}

// pagesAhead is how much of a body is read before the request counts as running: all of an ordinary form, so that a slow sender does not block others.
const pagesAhead = 16 << 10

// readAhead reads the beginning of a body. A read error is reported again to the next reader.
func readAhead(r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	var begun bytes.Buffer
	_, _ = io.CopyN(&begun, r.Body, pagesAhead)
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&begun, r.Body), r.Body}
}

// listen serves a page that streams, until the client disconnects or the server closes.
func (s *Server) listen(w http.ResponseWriter, r *http.Request, pages http.Handler) {
	a := replyOf(w)
	a.route = "pages-stream"
	leave, err := s.streams.join(s.cfg.Limits, eventStream, "", r.RemoteAddr) // the pages limit each visitor themselves
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	a.leave = leave
	setDeadlines(w, r, true)
	ctx, enough := context.WithCancel(r.Context())
	defer enough()
	defer context.AfterFunc(s.closing, enough)()
	pages.ServeHTTP(w, r.WithContext(ctx))
}

// homeText is the answer at the root of a server without pages.
const homeText = `This is a Holdfast server.

The API is below /v1.

/docs              describes it for people
/v1/openapi.json   describes it for programs
`

// home redirects from the root to the pages. Without pages it names the paths of the API. Everything else at an unknown path is not found.
func (s *Server) home(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.notFound(w, r)
		return
	}
	replyOf(w).route = "home"
	if s.pages != "" {
		http.Redirect(w, r, s.pages+"/", http.StatusSeeOther)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, homeText)
}

// A bufferedResponse buffers an answer until it is complete, so that a slow reader does not hold a place of those that run.
type bufferedResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the headers of the answer.
func (a *bufferedResponse) Header() http.Header { return a.header }

// WriteHeader records the first status.
func (a *bufferedResponse) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
}

// Write appends to the body.
func (a *bufferedResponse) Write(text []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(text)
}

func (a *bufferedResponse) writeTo(w http.ResponseWriter) {
	a.WriteHeader(http.StatusOK)
	w.WriteHeader(a.status)
	_, _ = a.body.WriteTo(w)
}
