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

// Know finds out whose key a text is, as the gate does, for pages that let their visitors in themselves: one that is revoked is refused within a second,
// and an address that comes with too many bad ones is told to wait. An empty text asks for a visitor without a key, who is let in while the server is open.
func (s *Server) Know(ctx context.Context, remote, text string) (Caller, error) {
	if text = strings.TrimSpace(text); text == "" {
		return s.keyless(ctx)
	}
	k, err := s.keys.open(ctx, text, func() error {
		if s.strangers.Allow(limit.Network(remote)) {
			return nil
		}
		return &holdfast.Error{Kind: holdfast.ErrThrottled, Message: "too many bad keys from this address: see which key is used, and ask again later", RetryAfter: strangerEach}
	})
	if err != nil {
		return Caller{}, err
	}
	return Caller{Key: k.ID, Name: k.Name, Scope: k.Scope, Owner: k.Owner, Queues: k.Queues, Kinds: k.Kinds}, nil
}

// Life is a context that ends, with the reason as its cause, when the caller's key is revoked, expires or is changed, or, for a caller without a key, when the
// first key is made. Streams last no longer.
func (s *Server) Life(c Caller) context.Context {
	if c.Key == "" && s.cfg.IgnoreKeys {
		return context.Background()
	}
	return s.keys.lifeOf(apikey.Key{ID: c.Key, Scope: c.Scope, Owner: c.Owner, Queues: c.Queues, Kinds: c.Kinds})
}

// pagesPlaces is how many pages are made at once. They are places of their own: who looks what is the matter is not sent away because there is much to do.
const pagesPlaces = 16

// Mount puts pages for people under a prefix such as /console, and leads browsers there that ask for the root. What comes from another origin, or by a
// strange name where no key is asked for, does not reach them; who their visitors are they find out by themselves, and Know helps. Paths that stream, without
// the prefix, go on until the server closes. It is called before the server serves.
func (s *Server) Mount(prefix string, pages http.Handler, streams ...string) error {
	if s.pages != "" || len(prefix) < 2 || prefix[0] != '/' || strings.HasSuffix(prefix, "/") || strings.HasPrefix(prefix+"/", "/v1/") {
		return errors.New("pages are mounted once, at a path of their own such as /console")
	}
	s.pages = prefix
	places := newCrowd(pagesPlaces)
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
		page := &aside{header: w.Header()}
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

// pagesAhead is how much of a body is read before the request takes a place: all of an ordinary form, so that who sends one slowly holds up nobody.
const pagesAhead = 16 << 10

// readAhead reads the beginning of a body. Whoever reads on meets what went wrong, if anything did.
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

// listen lets a page listen until it goes away, or the server closes.
func (s *Server) listen(w http.ResponseWriter, r *http.Request, pages http.Handler) {
	a := replyOf(w)
	a.route = "pages-stream"
	leave, err := s.streams.join(s.cfg.Limits, listening, "", r.RemoteAddr) // pages limit each visitor by themselves
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	a.leave = leave
	hurry(w, r, true)
	ctx, enough := context.WithCancel(r.Context())
	defer enough()
	defer context.AfterFunc(s.closing, enough)()
	pages.ServeHTTP(w, r.WithContext(ctx))
}

// home leads a browser that asks for the root to the pages, if there are any. To programs, and at any other path, nothing is here.
func (s *Server) home(w http.ResponseWriter, r *http.Request) {
	if s.pages == "" || r.URL.Path != "/" || r.Method != http.MethodGet && r.Method != http.MethodHead || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		s.nowhere(w, r)
		return
	}
	replyOf(w).route = "home"
	w.Header().Set("Vary", "Accept")
	http.Redirect(w, r, s.pages+"/", http.StatusSeeOther)
}

// An aside keeps an answer until all of it is there, so that who reads slowly holds up nobody.
type aside struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header are the headers of the answer.
func (a *aside) Header() http.Header { return a.header }

// WriteHeader keeps the first status that is said.
func (a *aside) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
}

// Write keeps more of the body.
func (a *aside) Write(text []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(text)
}

func (a *aside) writeTo(w http.ResponseWriter) {
	a.WriteHeader(http.StatusOK)
	w.WriteHeader(a.status)
	_, _ = a.body.WriteTo(w)
}
