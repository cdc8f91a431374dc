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

// forbidden: the visitor may not do this, or is kept out altogether by the application.
type forbidden struct {
	text string
	kept error // what Config.Who said
}

func (f *forbidden) Error() string { return f.text }

var (
	// errNowhere: there is no such page.
	errNowhere = &holdfast.Error{Kind: holdfast.ErrNotFound, Message: "there is no such page"}
	// errStranger: nobody is signed in.
	errStranger = errors.New("sign in first")
)

// A refusal is what stands on a page that shows why there is none.
type refusal struct {
	Status int
	Title  string
	Text   string
	Again  bool // asking again later may help
}

// refusals say what each kind of error is to a visitor. The first that matches counts.
var refusals = []struct {
	kind error
	refusal
}{
	{holdfast.ErrPurged, refusal{Status: http.StatusGone, Title: "Purged"}},
	{holdfast.ErrNotFound, refusal{Status: http.StatusNotFound, Title: "Not found"}},
	{holdfast.ErrInvalid, refusal{Status: http.StatusBadRequest, Title: "That cannot be"}},
	{holdfast.ErrConflict, refusal{Status: http.StatusConflict, Title: "Not as it stands"}},
	{holdfast.ErrThrottled, refusal{Status: http.StatusTooManyRequests, Title: "Too often", Again: true}},
	{holdfast.ErrUnavailable, refusal{Status: http.StatusServiceUnavailable, Title: "The store does not answer", Again: true}},
}

// refuse shows why there is no page. Strangers are sent to sign in.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var not *forbidden
	shown := refusal{Status: http.StatusInternalServerError, Title: "This did not work", Text: "The server had trouble with this page. Its log says more.", Again: true}
	switch {
	case errors.Is(err, errStranger):
		if r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/live") {
			http.Redirect(w, r, c.cfg.Prefix+"/sign-in?back="+url.QueryEscape(c.cfg.Prefix+r.URL.RequestURI()), http.StatusSeeOther)
			return
		}
		shown = refusal{Status: http.StatusUnauthorized, Title: "Sign in", Text: "You are not signed in any more. Sign in and do it again: nothing was done."}
	case errors.As(err, &not):
		shown = refusal{Status: http.StatusForbidden, Title: "Not yours to do", Text: not.text}
		if not.kept != nil {
			shown.Title = "Not let in"
			c.cfg.Log.Info("a visitor was kept out", "event", "visitor_refused", "path", r.URL.Path, "error", not.kept)
		}
	case r.Context().Err() != nil:
		return // nobody is there to read it
	default:
		for _, known := range refusals {
			if errors.Is(err, known.kind) {
				shown = known.refusal
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
		c.cfg.Log.Error("a page could not be shown", "event", "page_failed", "path", r.URL.Path, "error", err)
	}
	q := &ask{Request: r, ctx: r.Context(), c: c, desk: c.cfg.Desk}
	visitor, stranger := c.who(r)
	if q.prefs = prefsOf(r, stranger == nil); stranger == nil {
		q.visitor = visitor
	}
	c.show(w, q, page{name: "refusal", title: shown.Title, data: shown, status: shown.Status})
}

// sentence is an error as people read it: a capital letter, a full stop. What is no error of ours is not told to visitors.
func sentence(err error) string {
	var ours *holdfast.Error
	var not *forbidden
	text := "The server had trouble with this. Its log says more."
	switch {
	case errors.As(err, &ours):
		text = ours.Message
		if text == "" {
			text = err.Error()
		}
	case errors.As(err, &not):
		text = not.text
	default:
		for _, known := range refusals {
			if errors.Is(err, known.kind) {
				text = err.Error()
			}
		}
	}
	return asSentence(text)
}

// asSentence is a text with a capital letter and a full stop.
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
