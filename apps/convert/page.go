package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// The page (C11) is rendered whole, so that it reads and works without a script; a script then keeps it true. It knows no more than the API says.

//go:embed page
var pageFiles embed.FS

var pageTemplates = template.Must(template.ParseFS(pageFiles, "page/*.html"))

// assetTypes are the kinds of files that browsers may ask for. The rest of the folder is ours.
var assetTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// A sheet is the page of a process: its files by name, and the one name for all of them as they are now.
type sheet struct {
	*front
	version string
	files   map[string][]byte
}

// page serves the queue page, what it is made of, and its two forms.
func (f *front) page() http.Handler {
	s := &sheet{front: f, files: map[string][]byte{}}
	entries, err := fs.ReadDir(pageFiles, "page")
	sum := sha256.New()
	for _, entry := range entries {
		text, failed := fs.ReadFile(pageFiles, path.Join("page", entry.Name()))
		if err = failed; err != nil {
			break
		}
		_, _ = sum.Write(text) // it never fails
		if assetTypes[path.Ext(entry.Name())] != "" {
			s.files[entry.Name()] = text
		}
	}
	if err != nil {
		panic(err) // they are part of the program
	}
	s.version = hex.EncodeToString(sum.Sum(nil)[:8])
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.index)
	mux.HandleFunc("GET /assets/{version}/{name}", s.asset)
	mux.HandleFunc("POST /upload", s.uploadForm)
	mux.HandleFunc("POST /jobs/{id}/retry", s.retryForm)
	mux.HandleFunc("GET /upload", home)
	mux.HandleFunc("GET /jobs/{id}/retry", home)
	mux.HandleFunc("/", s.missing)
	return mux
}

// home is where those end up who go again to where a form was sent.
func home(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusSeeOther) }

// asset serves a file of the page. Under its own version it never changes and is kept; under any other it is what there is now, asked for every time: a page
// that was loaded before an update goes on working.
func (s *sheet) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	text, ok := s.files[name]
	if !ok {
		s.missing(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Type", assetTypes[path.Ext(name)])
	header.Set("ETag", `"`+s.version+`"`)
	header.Set("Cache-Control", "no-cache")
	if r.PathValue("version") == s.version {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(text))
}

func (s *sheet) missing(w http.ResponseWriter, r *http.Request) {
	s.render(w, http.StatusNotFound, "missing.html", screen{Assets: "/assets/" + s.version})
}

// said are the notices that a form may end with. Their names stand in an address that anybody can make up, their texts do not.
var said = map[string]string{
	"uploaded":  "Your file was taken. Load this page again to see how far it is.",
	"duplicate": "This file is already here with this mapping, so it was not converted again.",
	"retried":   "Your file was sent round again. Load this page again to see how far it is.",
}

// index serves the page.
func (s *sheet) index(w http.ResponseWriter, r *http.Request) {
	owner, err := s.owner(w, r)
	if err != nil {
		s.refused(w, r, err)
		return
	}
	s.show(w, r, owner, note{status: http.StatusOK, text: said[r.URL.Query().Get("said")]})
}

// A note is what the page is to say besides what it shows.
type note struct {
	status int
	text   string
}

// show renders the page with a notice on it.
func (s *sheet) show(w http.ResponseWriter, r *http.Request, owner string, say note) {
	to, err := s.fill(r.Context(), owner, r.URL.Query())
	if err != nil {
		s.refused(w, r, err)
		return
	}
	to.Notice = say.text
	s.render(w, say.status, "index.html", to)
}

// A screen is what the page shows when it is loaded.
type screen struct {
	Assets, Expired, Limit string
	KeepSource, KeepResult string
	Busy, Held, Notice     string
	Mappings               []Mapping
	Rows                   []row
	Blank                  row // from which the script makes others
	Sum, Next              string
}

func (s *sheet) fill(ctx context.Context, owner string, query url.Values) (screen, error) {
	to := screen{
		Assets: "/assets/" + s.version, Expired: s.set.code(codeExpired).Message, Limit: bulk(s.set.MaxUpload),
		KeepSource: lasting(s.set.KeepSource), KeepResult: lasting(s.set.KeepResult), Mappings: s.choices(ctx), Blank: row{State: string(holdfast.Queued)},
	}
	list, next, err := s.ownJobs(ctx, owner, listing{Cursor: query.Get("cursor")})
	if err != nil {
		return to, err
	}
	now := time.Now()
	for i := range list {
		to.Rows = append(to.Rows, rowOf(&list[i], to.Expired, now))
	}
	to.Next, to.Sum = next, sumOf(to.Rows, next != "")
	gateway, err := s.gatewayState(ctx)
	if err == nil && gateway.Message != nil {
		to.Busy = *gateway.Message
		if gateway.Held > 0 {
			to.Held = counted(gateway.Held, "file waits.", "files wait.")
		}
	}
	return to, err
}

// render writes a page, or nothing of it.
func (s *sheet) render(w http.ResponseWriter, status int, name string, to screen) {
	var text bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&text, name, to); err != nil {
		s.log.Error("the page cannot be rendered", "event", "page_broken", "error", err.Error())
		s.fail(w, faultOf(err))
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(text.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // whoever went away does not miss it
}

// uploadForm takes a file from a browser without script.
func (s *sheet) uploadForm(w http.ResponseWriter, r *http.Request) {
	s.form(w, r, func(owner string) (string, error) {
		got, err := s.receive(w, r, owner)
		notice := "uploaded"
		if got.Duplicate {
			notice = "duplicate"
		}
		return "/?said=" + notice + "#job-" + got.ID.String(), err
	})
}

// retryForm retries for a browser without script.
func (s *sheet) retryForm(w http.ResponseWriter, r *http.Request) {
	s.form(w, r, func(owner string) (string, error) {
		v, err := s.retryJob(r.Context(), owner, r.PathValue("id"), answerOf(w).id)
		return "/?said=retried#job-" + v.ID, err
	})
}

// form leads back to the page after a form: to the job when it went well, and else to what went wrong, said frankly.
func (s *sheet) form(w http.ResponseWriter, r *http.Request, do func(owner string) (next string, err error)) {
	owner, err := s.owner(w, r)
	if err != nil {
		s.refused(w, r, err)
		return
	}
	next, err := do(owner)
	if err == nil {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	told := faultOf(err)
	if told.line == "" {
		told.line = s.set.code(told.code).Message
	}
	s.show(w, r, owner, note{status: told.status, text: frankly(told.line)})
}

// A row is a job as the page shows it. The script says the same in the same words (page/row.js, page/words.js).
type row struct {
	ID, Name, Mapping, Size string
	State, Word             string
	Line, Attempts          string
	Created, Age            string
	Download, Hint          string
	Gone, Offer, CanRetry   bool
}

func rowOf(v *view, expired string, now time.Time) row {
	r := row{ID: v.ID, Name: v.Filename, Mapping: v.Mapping, Size: bulk(v.Bytes), State: v.Status, CanRetry: v.CanRetry, Created: v.CreatedAt.Format(time.RFC3339Nano), Age: age(v.CreatedAt, now)}
	message := ""
	if v.ErrorMessage != nil {
		message = *v.ErrorMessage
	}
	failed := v.Status == string(holdfast.Failed)
	switch {
	case v.Status == string(holdfast.Complete) && gone(v.Result):
		r.State, r.Line = "expired", expired
	case failed && v.CanRetry:
		r.Line = frankly(message) + " Retry starts it again."
	case failed:
		r.Line = frankly(message)
	case v.Status == string(holdfast.Queued) && v.Held && message == "":
		r.Line = "Waits until the converter is back."
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

// gone reports whether a file was there once and is no more.
func gone(standing string) bool { return standing == fileExpired || standing == fileMissing }

// attemptsOf says what was tried, and when it is tried next.
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

// sumOf counts rows by what their badges say.
func sumOf(rows []row, more bool) string {
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
