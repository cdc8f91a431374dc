package main

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/internal/web"
)

// The pages are rendered completely on the server and work without JavaScript. A script replaces their parts when something happens.

//go:embed page
var pageFiles embed.FS

var pageTemplates = template.Must(template.New("").Funcs(template.FuncMap{
	"bytes": formatBytes, "age": formatAge, "percent": percentOf, "count": formatCount, "letter": func(n uint64) string { return strconv.FormatUint(n, 10) },
}).ParseFS(pageFiles, "page/*.html"))

const (
	pageJobs      = 20
	pageResources = 50
	maxForm       = 1 << 20 // bytes of the form with addresses
)

// pages serves the pages.
type pages struct {
	*api
	assets *web.Assets
}

// mountPage mounts the pages and their forms.
func (f *api) mountPage() {
	p := &pages{api: f}
	p.assets = web.NewAssets(pageFiles, "page", p.missing)
	f.mux.Handle("GET /assets/{version}/{name}", p.assets)
	for pattern, show := range map[string]func(w http.ResponseWriter, r *http.Request, c caller) error{
		"GET /{$}":                            p.overview,
		"GET /jobs/{id}":                      p.job,
		"GET /jobs/{id}/results":              f.results,
		"GET /jobs/{id}/resources/{resource}": p.resourcePage,
		"GET /dead-letters":                   p.lettersPage,
		"GET /events":                         func(w http.ResponseWriter, r *http.Request, c caller) error { return f.follow(w, r, c.scope(), "") },

		"POST /jobs":                                 p.submitForm,
		"POST /jobs/{id}/cancel":                     p.cancelForm,
		"POST /jobs/{id}/retry":                      p.retryForm,
		"POST /jobs/{id}/resources/{resource}/retry": p.retryResourceForm,
		"POST /replays":                              p.replayForm,
		"POST /replays/{id}/cancel":                  p.cancelReplayForm,
	} {
		f.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			c, err := p.visitor(w, r)
			if err == nil {
				err = show(w, r, c)
			}
			if err != nil {
				p.failed(w, r, err)
			}
		})
	}
	f.mux.HandleFunc("/", p.missing)
}

// visitor identifies the visitor of a page. While only this machine can reach the page, it is open, as files of this user are. Otherwise the browser asks for an API
// key: it is the password, and the user name does not matter.
func (p *pages) visitor(w http.ResponseWriter, r *http.Request) (caller, error) {
	if web.IsLoopback(p.set.Addr) && len(p.set.Hosts) == 0 && !p.set.TrustProxy {
		return caller{owner: "local", all: true, name: "page"}, nil
	}
	_, key, ok := r.BasicAuth()
	if ok {
		k, err := p.keys.Open(r.Context(), p.jobs, key, r.RemoteAddr)
		if err == nil {
			return callerOf(k, r.Method)
		}
		if !errors.As(keyError(err), new(apiError)) {
			return caller{}, err
		}
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="fetchbox: an API key as the password", charset="UTF-8"`)
	return caller{}, apiError{code: code.AuthMissing, line: "Sign in with an API key as the password."}
}

// A view is the data of every page.
type view struct {
	Assets, Title, Notice, Nav string
	Now                        time.Time
	Data                       any
}

// notices are the messages after a form. The address contains only their names, so that a link cannot put a text of its choice on the page.
var notices = map[string]string{
	"submitted": "The job was accepted.", "cancelled": "The job is being cancelled.", "retried": "The failed resources are queued again.",
	"resource": "The resource is queued again.", "replayed": "The replay has started.", "stopped": "The replay was cancelled.",
}

func (p *pages) render(w http.ResponseWriter, r *http.Request, status int, name string, v view) error {
	v.Assets, v.Now = p.assets.Path(), time.Now()
	v.Notice = cmp.Or(v.Notice, notices[r.URL.Query().Get("said")])
	return web.WritePage(w, status, pageTemplates, name, v)
}

// failed shows an error as a page.
func (p *pages) failed(w http.ResponseWriter, r *http.Request, err error) {
	answer := apiErrorOf(err)
	status := p.statusOf(answer)
	web.ReportError(w, r, p.log.With("error_code", answer.code), status, err)
	line := answer.line
	if answer.problems != nil {
		for _, problem := range answer.problems.List[:min(3, len(answer.problems.List))] {
			line += fmt.Sprintf(" Line %d: %s.", problem.Line, problem.Message)
		}
	}
	data := struct{ Code, Line string }{answer.code, cmp.Or(line, code.Of(answer.code).Message)}
	if err := p.render(w, r, status, "error.html", view{Title: "Error", Data: data}); err != nil {
		p.writeError(w, answer)
	}
}

func (p *pages) missing(w http.ResponseWriter, r *http.Request) { p.failed(w, r, noSuchPath) }

func (p *pages) parse(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return apiError{code: code.ValidationInvalidBody, line: "The form did not arrive completely, or it is too long.", cause: err}
	}
	return nil
}

func (p *pages) back(w http.ResponseWriter, r *http.Request, to string, err error) error {
	if err == nil {
		http.Redirect(w, r, to, http.StatusSeeOther)
	}
	return err
}
