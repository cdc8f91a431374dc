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
	"github.com/holdfastdev/holdfast/store"
)

// A request is one HTTP request of a visitor.
type request struct {
	*http.Request
	ctx       context.Context
	c         *Console
	operator  ops.Operator
	visitor   Visitor
	prefs     prefs
	requestID string // stored with every change
	now       time.Time
	known     []catalog.Entry // the codes, once they were read
}

// codes returns the known failure codes. It asks the operator at most once for each request.
func (q *request) codes() ([]catalog.Entry, error) {
	if q.known != nil {
		return q.known, nil
	}
	known, err := q.operator.Codes(q.ctx)
	q.known = known
	return known, err
}

// taxonomy returns the codes as the policy parser and the simulator need them.
func (q *request) taxonomy() (*failure.Taxonomy, error) {
	known, err := q.codes()
	return catalog.TaxonomyOf(known), err
}

// A pageFunc returns a page and changes nothing.
type pageFunc func(q *request) (page, error)

// An actionFunc changes something and returns the message for the visitor.
type actionFunc func(q *request) (actionResult, error)

// A page is the result of a pageFunc.
type page struct {
	name   string // template: page/<name>.html
	title  string
	here   string   // the current menu item; the name when empty
	topics []string // the page is fetched again when one of them changes
	data   any      // .Data of the template
	status int      // 200 when zero
}

// An actionResult is the result of an action.
type actionResult struct {
	text string        // message for the visitor, shown once on the next page
	to   string        // path under the prefix to redirect to; empty: back to the page of the form
	bad  bool          // the action failed
	kept []holdfast.ID // jobs that stay selected
}

// handlePage mounts a page.
func (c *Console) handlePage(pattern string, do pageFunc) {
	c.mux.HandleFunc("GET "+pattern, c.serve(do))
}

// handleAction mounts an action. A visitor without the scope is refused before the form is read.
func (c *Console) handleAction(pattern string, scope apikey.Scope, act actionFunc) {
	c.actionPatterns = append(c.actionPatterns, pattern)
	c.mux.HandleFunc("POST "+pattern, func(w http.ResponseWriter, r *http.Request) {
		q, err := c.authorize(w, r, scope)
		if err != nil {
			c.renderError(w, r, err)
			return
		}
		result, err := act(q)
		c.snapshots.forget()
		c.groupCache.forget()
		if err != nil {
			result = actionResult{text: sentence(err), bad: true, to: result.to, kept: result.kept}
		}
		c.finishAction(w, q, result)
	})
}

// authorize authenticates a visitor, checks that they have the scope, and reads the form. It checks the key twice, because the body may arrive slowly and the key
// may be revoked meanwhile.
func (c *Console) authorize(w http.ResponseWriter, r *http.Request, scope apikey.Scope) (*request, error) {
	q, err := c.authenticate(w, r)
	switch {
	case err != nil:
		return nil, err
	case c.cfg.ReadOnly && !q.visitor.Scope.Allows(scope):
		return nil, &forbidden{text: "This console is read-only. Use the command line instead."}
	case !q.visitor.Scope.Allows(scope):
		return nil, &forbidden{text: "This needs the scope " + string(scope) + "."}
	}
	r.Body = http.MaxBytesReader(w, r.Body, 4<<20)
	if err := r.ParseForm(); err != nil {
		return nil, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "the form could not be read: send it again", Cause: err}
	}
	if c.cfg.Open != nil { // the body may have arrived slowly: check the key again
		again, err := c.visitorOf(r)
		if err != nil {
			return nil, err
		}
		if !again.Scope.Allows(scope) {
			return nil, &forbidden{text: "This needs the scope " + string(scope) + "."}
		}
	}
	return q, nil
}

// serve returns a handler that renders the page of a pageFunc.
func (c *Console) serve(do pageFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := c.authenticate(w, r)
		if err != nil {
			c.renderError(w, r, err)
			return
		}
		shown, err := do(q)
		if err != nil {
			c.renderError(w, r, err)
			return
		}
		c.render(w, q, shown)
	}
}

// authenticate returns the request with its visitor, or the reason why the visitor is refused.
func (c *Console) authenticate(w http.ResponseWriter, r *http.Request) (*request, error) {
	visitor, err := c.visitorOf(r)
	if err != nil {
		return nil, err
	}
	if visitor.Owner != "" || visitor.Scope == apikey.Worker {
		return nil, &forbidden{text: "The console shows the jobs of all owners. Keys bound to an owner and worker keys cannot open it."}
	}
	if c.cfg.ReadOnly {
		visitor.Scope = apikey.Viewer
	}
	return &request{Request: r, ctx: r.Context(), c: c, operator: c.cfg.Operator, visitor: visitor, prefs: prefsOf(r, true), requestID: requestID(w), now: time.Now()}, nil
}

// requestID returns the id that the surrounding server gave the request, or a new one.
func requestID(w http.ResponseWriter) string {
	if id := w.Header().Get("X-Request-Id"); id != "" {
		return id
	}
	id := holdfast.NewID().String()
	w.Header().Set("X-Request-Id", id)
	return id
}

// by returns the visitor, their reason and the request id, for a change through the operator.
func (q *request) by() ops.Actor {
	return ops.Actor{Name: q.visitor.Name, Reason: q.text("reason"), Request: q.requestID}
}

// on returns an intervention of the visitor on one job.
func (q *request) on(id holdfast.ID) store.Intervention {
	return store.Intervention{Job: id, Actor: q.visitor.Name, Reason: q.text("reason"), Request: q.requestID}
}

// text returns a field of the form or of the query, without surrounding spaces.
func (q *request) text(name string) string { return strings.TrimSpace(q.FormValue(name)) }

// id returns the id in the path, or errNoPage if it is not one.
func (q *request) id() (holdfast.ID, error) {
	id, err := holdfast.ParseID(q.PathValue("id"))
	if err != nil {
		return id, errNoPage
	}
	return id, nil
}

// may reports whether the visitor has a scope. Pages use it to show only the actions that the visitor may do.
func (q *request) may(scope apikey.Scope) bool { return q.visitor.Scope.Allows(scope) }

// back returns the page of the form, which the form names in the field back. It accepts only paths of this console, so that it cannot be used as an open
// redirect; otherwise it returns the start page. A browser resolves dots in a path, also escaped ones, so a path with dots could lead out of the console.
func (q *request) back() string {
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

// link returns the URL of a page of this console.
func (q *request) link(path string) string { return q.c.cfg.Prefix + path }
