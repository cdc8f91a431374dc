// Package pages shows jobs, resources, dead letters and proxies in a browser, and has forms for what people do to them. The pages are rendered completely on the server and
// work without JavaScript. A script replaces their parts when something happens.
package pages

import (
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/access"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/apps/fetchbox/intake"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/fetchbox/replay"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/apps/fetchbox/view"
	"github.com/holdfastdev/holdfast/apps/internal/events"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/ops"
)

//go:embed page
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"bytes": web.FormatBytes[int64], "age": web.FormatAge, "percent": percentOf, "count": web.FormatCount[int], "letter": func(n uint64) string { return strconv.FormatUint(n, 10) },
}).ParseFS(files, "page/*.html"))

const (
	pageJobs      = 20
	pageResources = 50
	maxForm       = 1 << 20 // bytes of the form with addresses
)

// A Config is what the pages show and call.
type Config struct {
	Gate     *access.Gate
	Intake   *intake.Intake
	Views    *view.Reader
	Events   *events.Streams
	Operator *ops.Service
	Replays  *replay.Runner
	Stream   *deadletter.Stream
	Proxies  *proxy.Pools
	Spool    *spool.Spool
	Log      *slog.Logger

	Concurrency int // resources that the process works on at once
}

type pages struct {
	Config
	assets *web.Assets
}

// Mount mounts the pages with their forms and assets. It answers every path that has no other handler.
func Mount(mux *http.ServeMux, cfg Config) {
	p := &pages{Config: cfg}
	p.assets = web.NewAssets(files, "page", p.missing)
	mux.Handle("GET /assets/{version}/{name}", p.assets)
	for pattern, show := range map[string]func(w http.ResponseWriter, r *http.Request, c access.Caller) error{
		"GET /{$}":                            p.overview,
		"GET /jobs/{id}":                      p.job,
		"GET /jobs/{id}/results":              p.results,
		"GET /jobs/{id}/resources/{resource}": p.resourcePage,
		"GET /dead-letters":                   p.lettersPage,
		"GET /events":                         p.events,

		"POST /jobs":                                 p.submitForm,
		"POST /jobs/{id}/cancel":                     p.cancelForm,
		"POST /jobs/{id}/retry":                      p.retryForm,
		"POST /jobs/{id}/resources/{resource}/retry": p.retryResourceForm,
		"POST /replays":                              p.replayForm,
		"POST /replays/{id}/cancel":                  p.cancelReplayForm,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			c, err := cfg.Gate.Visitor(w, r)
			if err == nil {
				err = show(w, r, c)
			}
			if err != nil {
				p.failed(w, r, err)
			}
		})
	}
	mux.HandleFunc("/", p.missing)
}

func (p *pages) events(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	return p.Events.Serve(w, r, c.Scope(), "")
}

// A page is the data of every page.
type page struct {
	Assets, Title, Notice, Nav string
	Now                        time.Time
	Data                       any
}

// notices are the messages after a form. The address contains only their names, so that a link cannot put a text of its choice on the page.
var notices = map[string]string{
	"submitted": "The job was accepted.", "cancelled": "The job is being cancelled.", "retried": "The failed resources are queued again.",
	"resource": "The resource is queued again.", "replayed": "The replay has started.", "stopped": "The replay was cancelled.",
}

func (p *pages) render(w http.ResponseWriter, r *http.Request, status int, name string, v page) error {
	v.Assets, v.Now = p.assets.Path(), time.Now()
	v.Notice = cmp.Or(v.Notice, notices[r.URL.Query().Get("said")])
	return web.WritePage(w, status, templates, name, v)
}

// failed shows an error as a page.
func (p *pages) failed(w http.ResponseWriter, r *http.Request, err error) {
	answer := refusal.Of(err)
	status := answer.HTTPStatus()
	web.ReportError(w, r, p.Log.With("error_code", answer.Code), status, err)
	line := answer.Line
	if answer.Problems != nil {
		for _, problem := range answer.Problems.List[:min(3, len(answer.Problems.List))] {
			line += fmt.Sprintf(" Line %d: %s.", problem.Line, problem.Message)
		}
	}
	data := struct{ Code, Line string }{answer.Code, cmp.Or(line, code.Of(answer.Code).Message)}
	if err := p.render(w, r, status, "error.html", page{Title: "Error", Data: data}); err != nil {
		refusal.Write(w, answer)
	}
}

func (p *pages) missing(w http.ResponseWriter, r *http.Request) { p.failed(w, r, refusal.NoSuchPath) }

func (p *pages) parse(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return refusal.Error{Code: code.ValidationInvalidBody, Line: "The form did not arrive completely, or it is too long.", Cause: err}
	}
	return nil
}

func (p *pages) back(w http.ResponseWriter, r *http.Request, to string, err error) error {
	if err == nil {
		http.Redirect(w, r, to, http.StatusSeeOther)
	}
	return err
}
