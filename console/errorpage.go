package console

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
)

// forbidden means that the visitor may not do this, or that Config.Who refused the visitor.
type forbidden struct {
	text  string
	cause error // the error of Config.Who; nil if the visitor was let in
}

func (f *forbidden) Error() string { return f.text }

var (
	// errNoPage means that the page does not exist.
	errNoPage = &holdfast.Error{Err: holdfast.ErrNotFound, Message: "there is no such page"}
	// errNotSignedIn means that the visitor must sign in first.
	errNotSignedIn = errors.New("sign in first")
)

// An errorPage is the data of the page that is shown instead of the requested one.
type errorPage struct {
	Status int
	Title  string
	Text   string
	Again  bool // a later request may succeed
}

// errorPages maps each kind of error to its page. The first match applies.
var errorPages = []struct {
	kind error
	errorPage
}{
	{holdfast.ErrPurged, errorPage{Status: http.StatusGone, Title: "Purged"}},
	{holdfast.ErrNotFound, errorPage{Status: http.StatusNotFound, Title: "Not found"}},
	{holdfast.ErrInvalid, errorPage{Status: http.StatusBadRequest, Title: "Invalid request"}},
	{holdfast.ErrConflict, errorPage{Status: http.StatusConflict, Title: "Conflict"}},
	{holdfast.ErrThrottled, errorPage{Status: http.StatusTooManyRequests, Title: "Too many requests", Again: true}},
	{holdfast.ErrUnavailable, errorPage{Status: http.StatusServiceUnavailable, Title: "Store unavailable", Again: true}},
}

// renderError shows why a request failed. A visitor who is not signed in is redirected to the sign-in page.
func (c *Console) renderError(w http.ResponseWriter, r *http.Request, err error) {
	var not *forbidden
	shown := errorPage{Status: http.StatusInternalServerError, Title: "Internal error", Text: "The page could not be shown. The server log has the error.", Again: true}
	switch {
	case errors.Is(err, errNotSignedIn):
		if r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/live") {
			http.Redirect(w, r, c.cfg.Prefix+"/sign-in?back="+url.QueryEscape(c.cfg.Prefix+r.URL.RequestURI()), http.StatusSeeOther)
			return
		}
		shown = errorPage{Status: http.StatusUnauthorized, Title: "Sign in", Text: "Your session has ended and nothing was changed. Sign in and try again."}
	case errors.As(err, &not):
		shown = errorPage{Status: http.StatusForbidden, Title: "Not allowed", Text: not.text}
		if not.cause != nil {
			shown.Title = "Access denied"
			c.cfg.Log.Info("visitor refused", "event", "visitor_refused", "path", r.URL.Path, "error", not.cause)
		}
	case r.Context().Err() != nil:
		return // the visitor has closed the connection
	default:
		for _, known := range errorPages {
			if errors.Is(err, known.kind) {
				shown = known.errorPage
				shown.Text = sentence(err)
				break
			}
		}
	}
	var ours *holdfast.Error
	if errors.As(err, &ours) && ours.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(ours.RetryAfter.Seconds()))))
	}
	if shown.Status >= 500 {
		c.cfg.Log.Error("page not shown", "event", "page_failed", "path", r.URL.Path, "error", err)
	}
	q := &request{Request: r, ctx: r.Context(), c: c, operator: c.cfg.Operator}
	visitor, unknown := c.visitorOf(r)
	if q.prefs = prefsOf(r, unknown == nil); unknown == nil {
		q.visitor = visitor
	}
	c.render(w, q, page{name: "error", title: shown.Title, data: shown, status: shown.Status})
}

// sentence returns an error as a sentence. Only errors of package holdfast and of this package are shown; other errors may contain internals.
func sentence(err error) string {
	var ours *holdfast.Error
	var not *forbidden
	text := "The request failed. The server log has the error."
	switch {
	case errors.As(err, &ours):
		text = ours.Message
		if text == "" {
			text = err.Error()
		}
	case errors.As(err, &not):
		text = not.text
	default:
		for _, known := range errorPages {
			if errors.Is(err, known.kind) {
				text = err.Error()
			}
		}
	}
	return asSentence(text)
}

// asSentence returns a text with a capital letter and a full stop.
func asSentence(text string) string {
	if text == "" {
		return "No reason was given."
	}
	first, size := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[size:]
	if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "?") {
		text += "."
	}
	return text
}
