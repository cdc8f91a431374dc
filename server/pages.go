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
)

// Know finds out whose key a text is, as the gate does, for pages that let their visitors in themselves: one that is revoked is refused within a second,
// and an address that comes with too many bad ones is told to wait.
func (s *Server) Know(ctx context.Context, remote, text string) (Caller, error) {
	k, err := s.keys.open(ctx, strings.TrimSpace(text), func() error {
		if s.strangers.again(remote) {
			return nil
		}
		return &holdfast.Error{Kind: holdfast.ErrThrottled, Message: "too many bad keys from this address: see which key is used, and ask again later", RetryAfter: strangerEach}
	})
	if err != nil {
		return Caller{}, err
	}
	return Caller{Key: k.ID, Name: k.Name, Scope: k.Scope, Owner: k.Owner}, nil
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
	if s.streams.Add(1) > int64(s.cfg.Limits.Streams) {
		s.streams.Add(-1)
		s.refuse(w, r, busy())
		return
	}
	a.leave = func() { s.streams.Add(-1) }
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
