package main

import (
	"context"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/web"
)

// The page (C11) is rendered completely on the server and works without JavaScript. A script then keeps it up to date. The page shows only what the API returns.

//go:embed page
var pageFiles embed.FS

var pageTemplates = template.Must(template.ParseFS(pageFiles, "page/*.html"))

// A pageHandler serves the page and its assets.
type pageHandler struct {
	*webHandler
	assets *web.Assets
}

// page returns the handler of the queue page, its assets and its two forms.
func (f *webHandler) page() http.Handler {
	s := &pageHandler{webHandler: f}
	s.assets = web.NewAssets(pageFiles, "page", s.missing)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.index)
	mux.Handle("GET /assets/{version}/{name}", s.assets)
	mux.HandleFunc("POST /upload", s.uploadForm)
	mux.HandleFunc("POST /jobs/{id}/retry", s.retryForm)
	mux.HandleFunc("GET /upload", redirectHome)
	mux.HandleFunc("GET /jobs/{id}/retry", redirectHome)
	mux.HandleFunc("/", s.missing)
	return mux
}

// redirectHome leads a browser that reloads the address of a form back to the page.
func redirectHome(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s *pageHandler) missing(w http.ResponseWriter, r *http.Request) {
	s.render(w, http.StatusNotFound, "missing.html", pageData{Assets: s.assets.Path()})
}

// notices are the messages after a form. The address contains only their names, so that a link cannot put a text of its choice on the page.
var notices = map[string]string{
	"uploaded":  "Your file was uploaded. Reload this page to see its progress.",
	"duplicate": "You have already uploaded this file with this mapping, so it was not converted again.",
	"retried":   "Your file is queued for conversion again. Reload this page to see its progress.",
}

// index serves the page.
func (s *pageHandler) index(w http.ResponseWriter, r *http.Request) {
	owner, err := s.owner(w, r)
	if err != nil {
		s.handleError(w, r, err)
		return
	}
	s.show(w, r, owner, notice{status: http.StatusOK, text: notices[r.URL.Query().Get("said")]})
}

// A notice is a message on the page, with the HTTP status of the page.
type notice struct {
	status int
	text   string
}

// show renders the page with a notice.
func (s *pageHandler) show(w http.ResponseWriter, r *http.Request, owner string, message notice) {
	to, err := s.fill(r.Context(), owner, r.URL.Query())
	if err != nil {
		s.handleError(w, r, err)
		return
	}
	to.Notice = message.text
	s.render(w, message.status, "index.html", to)
}

// pageData is the data of the page's template.
type pageData struct {
	Assets, Expired, Limit string
	KeepSource, KeepResult string
	Busy, Held, Notice     string
	Mappings               []Mapping
	Rows                   []row
	Blank                  row // the template from which the script makes new rows
	Sum, Next              string
}

func (s *pageHandler) fill(ctx context.Context, owner string, query url.Values) (pageData, error) {
	to := pageData{
		Assets: s.assets.Path(), Expired: s.set.code(codeExpired).Message, Limit: formatBytes(s.set.MaxUpload),
		KeepSource: formatPeriod(s.set.KeepSource), KeepResult: formatPeriod(s.set.KeepResult), Mappings: s.availableMappings(ctx), Blank: row{State: string(holdfast.Queued)},
	}
	list, next, err := s.ownJobs(ctx, owner, listQuery{Cursor: query.Get("cursor")})
	if err != nil {
		return to, err
	}
	now := time.Now()
	for i := range list {
		to.Rows = append(to.Rows, rowOf(&list[i], to.Expired, now))
	}
	to.Next, to.Sum = next, summary(to.Rows, next != "")
	gateway, err := s.gatewayState(ctx)
	if err == nil && gateway.Message != nil {
		to.Busy = *gateway.Message
		if gateway.Held > 0 {
			to.Held = plural(gateway.Held, "file is waiting.", "files are waiting.")
		}
	}
	return to, err
}

// render writes a whole page, or an error if the template fails.
func (s *pageHandler) render(w http.ResponseWriter, status int, name string, to pageData) {
	if err := web.WritePage(w, status, pageTemplates, name, to); err != nil {
		s.log.Error("cannot render the page", "event", "page_broken", "error", err.Error())
		s.writeError(w, apiErrorOf(err))
	}
}

// uploadForm accepts an upload from a browser without JavaScript.
func (s *pageHandler) uploadForm(w http.ResponseWriter, r *http.Request) {
	s.form(w, r, func(owner string) (string, error) {
		got, err := s.receive(w, r, owner)
		name := "uploaded"
		if got.Duplicate {
			name = "duplicate"
		}
		return "/?said=" + name + "#job-" + got.ID.String(), err
	})
}

// retryForm retries a job for a browser without JavaScript.
func (s *pageHandler) retryForm(w http.ResponseWriter, r *http.Request) {
	s.form(w, r, func(owner string) (string, error) {
		v, err := s.retryJob(r.Context(), owner, r.PathValue("id"), web.ReplyOf(w).ID)
		return "/?said=retried#job-" + v.ID, err
	})
}

// form answers a form: on success it redirects to the job on the page, otherwise it shows the page with the error.
func (s *pageHandler) form(w http.ResponseWriter, r *http.Request, do func(owner string) (next string, err error)) {
	owner, err := s.owner(w, r)
	if err != nil {
		s.handleError(w, r, err)
		return
	}
	next, err := do(owner)
	if err == nil {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	failed := apiErrorOf(err)
	if failed.line == "" {
		failed.line = s.set.code(failed.code).Message
	}
	s.show(w, r, owner, notice{status: failed.status, text: withoutRetryPromise(failed.line)})
}

// A row is a job as the page shows it. The script builds the same rows with the same texts (page/row.js, page/format.js).
type row struct {
	ID, Name, Mapping, Size string
	State, Word             string
	Line, Attempts          string
	Created, Age            string
	Download, Hint          string
	Gone, Offer, CanRetry   bool
}

func rowOf(v *view, expired string, now time.Time) row {
	r := row{ID: v.ID, Name: v.Filename, Mapping: v.Mapping, Size: formatBytes(v.Bytes), State: v.Status, CanRetry: v.CanRetry, Created: v.CreatedAt.Format(time.RFC3339Nano), Age: formatAge(v.CreatedAt, now)}
	message := ""
	if v.ErrorMessage != nil {
		message = *v.ErrorMessage
	}
	failed := v.Status == string(holdfast.Failed)
	switch {
	case v.Status == string(holdfast.Complete) && gone(v.Result):
		r.State, r.Line = "expired", expired
	case failed && v.CanRetry:
		r.Line = withoutRetryPromise(message) + " Choose Retry to try again."
	case failed:
		r.Line = withoutRetryPromise(message)
	case v.Status == string(holdfast.Queued) && v.Held && message == "":
		r.Line = "Waiting until the converter is available again."
	case v.Status == string(holdfast.Queued):
		r.Line = message
	}
	r.Word = strings.ToUpper(r.State[:1]) + r.State[1:]
	r.Attempts = attemptsOf(v, now)
	if v.Status == string(holdfast.Complete) && v.Result == fileAvailable && v.DownloadURL != nil {
		r.Download = *v.DownloadURL
	}
	r.Gone = failed && gone(v.Source)
	r.Offer = failed && (v.CanRetry || v.Source != fileNone)
	if r.Offer && !v.CanRetry && v.RetryHint != nil {
		r.Hint = *v.RetryHint
	}
	return r
}

// gone reports whether a file existed and was deleted.
func gone(state string) bool { return state == fileExpired || state == fileMissing }

// attemptsOf describes the attempts so far and when the next one is.
func attemptsOf(v *view, now time.Time) string {
	made, state := v.AttemptCount, holdfast.State(v.Status)
	tried := fmt.Sprintf("Tried %d of %d times", made, v.MaxAttempts)
	switch {
	case made == 0:
		return ""
	case state == holdfast.Failed && made == 1:
		return "Tried once."
	case state == holdfast.Failed:
		return fmt.Sprintf("Tried %d times.", made)
	case state == holdfast.Processing && made > 1:
		return fmt.Sprintf("Attempt %d of %d", made, v.MaxAttempts)
	case state != holdfast.Queued:
		return ""
	case v.Held || v.RetryAfter == nil:
		return tried
	}
	switch wait := v.RetryAfter.Sub(now); {
	case wait <= 0:
		return tried + ", next attempt any moment"
	case wait <= 119*time.Second:
		return fmt.Sprintf("%s, next attempt in %d s", tried, (wait+time.Second-1)/time.Second)
	default:
		return fmt.Sprintf("%s, next attempt in %d min", tried, (wait+time.Minute-1)/time.Minute)
	}
}

// summary counts rows by state.
func summary(rows []row, more bool) string {
	var parts []string
	for _, state := range []string{"processing", "queued", "complete", "failed", "expired", "cancelled"} {
		n := 0
		for _, r := range rows {
			if r.State == state {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if more {
		parts = append(parts, "and older ones")
	}
	return strings.Join(parts, ", ")
}
