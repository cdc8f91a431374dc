package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/ops"
)

// An ask is one request of a visitor who was let in.
type ask struct {
	*http.Request
	ctx     context.Context
	c       *Console
	desk    ops.Desk
	visitor Visitor
	prefs   prefs
	request string // its id: kept with what was done
	now     time.Time
	known   []catalog.Entry // the codes, once they were asked for
}

// codes lists the failure codes that are known. The desk is asked once a request.
func (q *ask) codes() ([]catalog.Entry, error) {
	if q.known != nil {
		return q.known, nil
	}
	known, err := q.desk.Codes(q.ctx)
	q.known = known
	return known, err
}

// taxonomy is codes as the parser and the simulator need them.
func (q *ask) taxonomy() (*failure.Taxonomy, error) {
	known, err := q.codes()
	return catalog.TaxonomyOf(known), err
}

// A screen answers with a page, and changes nothing.
type screen func(q *ask) (page, error)

// A deed changes something, and says what was done.
type deed func(q *ask) (done, error)

// A page is what a screen shows.
type page struct {
	name   string // of its template: page/<name>.html
	title  string
	here   string   // the item of the menu that is lit; the name when empty
	topics []string // what makes it change: it is fetched again when one of them does
	data   any      // what its template is given as .Data
	status int      // 200 when zero
}

// done is what a deed did.
type done struct {
	text string        // one sentence, shown once
	to   string        // where to go on, under the prefix; back to where the visitor was when empty
	bad  bool          // it did not work out
	kept []holdfast.ID // jobs that stay selected
}

// see mounts a screen.
func (c *Console) see(pattern string, do screen) { c.mux.HandleFunc("GET "+pattern, c.serve(do)) }

// do mounts a deed. Who may not do it is refused before anything is looked at.
func (c *Console) do(pattern string, scope apikey.Scope, act deed) {
	c.acts = append(c.acts, pattern)
	c.mux.HandleFunc("POST "+pattern, func(w http.ResponseWriter, r *http.Request) {
		q, err := c.enter(w, r, scope)
		if err != nil {
			c.refuse(w, r, err)
			return
		}
		was, err := act(q)
		c.pulse.forget()
		c.counted.forget()
		if err != nil {
			was = done{text: sentence(err), bad: true, to: was.to, kept: was.kept}
		}
		c.goOn(w, q, was)
	})
}

// enter lets somebody in who wants to do something, if they may, and reads their form.
func (c *Console) enter(w http.ResponseWriter, r *http.Request, scope apikey.Scope) (*ask, error) {
	q, err := c.admit(w, r)
	switch {
	case err != nil:
		return nil, err
	case c.cfg.ReadOnly && !q.visitor.Scope.Allows(scope):
		return nil, &forbidden{text: "This console is read-only. Use the command line, or a console that is not."}
	case !q.visitor.Scope.Allows(scope):
		return nil, &forbidden{text: "You may look, and not do this: it needs the scope " + string(scope) + "."}
	}
	r.Body = http.MaxBytesReader(w, r.Body, 4<<20)
	if err := r.ParseForm(); err != nil {
		return nil, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "the form cannot be read: send it again", Cause: err}
	}
	if c.cfg.Open != nil { // the form may have been long in coming, and the key revoked meanwhile
		again, err := c.who(r)
		if err != nil {
			return nil, err
		}
		if !again.Scope.Allows(scope) {
			return nil, &forbidden{text: "You may look, and not do this: it needs the scope " + string(scope) + "."}
		}
	}
	return q, nil
}

// serve runs a screen and renders what it shows.
func (c *Console) serve(do screen) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := c.admit(w, r)
		if err != nil {
			c.refuse(w, r, err)
			return
		}
		shown, err := do(q)
		if err != nil {
			c.refuse(w, r, err)
			return
		}
		c.show(w, q, shown)
	}
}

// admit finds out who asks.
func (c *Console) admit(w http.ResponseWriter, r *http.Request) (*ask, error) {
	visitor, err := c.who(r)
	if err != nil {
		return nil, err
	}
	if visitor.Owner != "" || visitor.Scope == apikey.Worker {
		return nil, &forbidden{text: "These pages show everybody's jobs. A key that is bound to an owner, or a worker's, does not open them."}
	}
	if c.cfg.ReadOnly {
		visitor.Scope = apikey.Viewer
	}
	return &ask{Request: r, ctx: r.Context(), c: c, desk: c.cfg.Desk, visitor: visitor, prefs: prefsOf(r, true), request: requestID(w), now: time.Now()}, nil
}

// requestID is the one that the server around the console gave the request, or a new one.
func requestID(w http.ResponseWriter) string {
	if id := w.Header().Get("X-Request-Id"); id != "" {
		return id
	}
	id := holdfast.NewID().String()
	w.Header().Set("X-Request-Id", id)
	return id
}

// by is who does something, and the reason that was given.
func (q *ask) by() ops.By {
	return ops.By{Actor: q.visitor.Name, Reason: q.text("reason"), Request: q.request}
}

// on is a visitor's word on one job.
func (q *ask) on(id holdfast.ID) holdfast.Intervention {
	return holdfast.Intervention{Job: id, Actor: q.visitor.Name, Reason: q.text("reason"), Request: q.request}
}

// text is a field of the form or of the query, without blanks around it.
func (q *ask) text(name string) string { return strings.TrimSpace(q.FormValue(name)) }

// id reads the id in the path. One that is none leads nowhere.
func (q *ask) id() (holdfast.ID, error) {
	id, err := holdfast.ParseID(q.PathValue("id"))
	if err != nil {
		return id, errNowhere
	}
	return id, nil
}

// may reports whether the visitor may intervene, so that pages offer what can be done.
func (q *ask) may(scope apikey.Scope) bool { return q.visitor.Scope.Allows(scope) }

// back is where the visitor was: a page of this console, or its beginning. Nothing else is ever followed. A browser resolves dots in a path, escaped ones too, so
// a path with dots could lead out of the console.
func (q *ask) back() string {
	to := q.FormValue("back")
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(to, q.c.cfg.Prefix+"/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return q.c.cfg.Prefix + "/"
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if part == "." || part == ".." {
			return q.c.cfg.Prefix + "/"
		}
	}
	return to
}

// link is the address of a page of this console.
func (q *ask) link(path string) string { return q.c.cfg.Prefix + path }
