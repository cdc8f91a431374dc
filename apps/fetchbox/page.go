package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/manifest"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/replay"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/store"
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
	pageLetters   = 10
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
		k, err := p.openKey(r, key)
		if err == nil {
			return callerOf(k, r.Method)
		}
		if !errors.As(err, new(apiError)) {
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
	var text bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&text, name, v); err != nil {
		return fmt.Errorf("the page cannot be rendered: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(text.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // the client may be gone
	return nil
}

// failed shows an error as a page.
func (p *pages) failed(w http.ResponseWriter, r *http.Request, err error) {
	answer := apiErrorOf(err)
	status := p.statusOf(answer)
	if status >= http.StatusInternalServerError && r.Context().Err() == nil {
		p.log.Error("request failed", "event", "request_failed", "request_id", web.ReplyOf(w).ID, "method", r.Method, "path", web.PathOf(r), "error_code", answer.code, "error", err.Error())
	}
	if web.ReplyOf(w).Status != 0 {
		panic(http.ErrAbortHandler)
	}
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

// overviewData is the data of the first page.
type overviewData struct {
	Tiles   []tile
	Chart   chart
	Jobs    []jobRow
	Next    string
	Proxies []proxy.Status
	Letters []letterView
	Stream  string // why the stream cannot be read
	Replays []replay.Progress
	Held    string // why resources wait
}

// A tile is one number with its meaning.
type tile struct{ Name, Value, Note string }

// A jobRow is a job in the list.
type jobRow struct {
	jobView
	Done int // percent
}

func rowOf(v jobView) jobRow {
	return jobRow{jobView: v, Done: percentOf(v.ResourcesComplete, v.Resources)}
}

// Label returns what people call the job.
func (r jobRow) Label() string { return cmp.Or(r.Name, "Job "+r.ID.String()[:8]) }

func (p *pages) overview(w http.ResponseWriter, r *http.Request, c caller) error {
	var before holdfast.ID
	if text := r.URL.Query().Get("cursor"); text != "" {
		id, err := holdfast.ParseID(text)
		if err != nil {
			return noSuchPath
		}
		before = id
	}
	data := overviewData{Proxies: p.transfer.proxies.Status()}
	jobs, next, err := p.jobViews(r.Context(), c.scope(), before, pageJobs)
	if err != nil {
		return err
	}
	for _, v := range jobs {
		data.Jobs = append(data.Jobs, rowOf(v))
	}
	if next != nil {
		data.Next = next.String()
	}
	if err := p.numbers(r.Context(), &data); err != nil {
		return err
	}
	if data.Letters, _, err = p.letters(r.Context(), c.scope(), 0, pageLetters); err != nil {
		data.Stream = apiErrorOf(err).Error()
	}
	if data.Replays, err = p.recentReplays(r.Context(), c.scope()); err != nil {
		return err
	}
	return p.render(w, r, http.StatusOK, "overview.html", view{Title: "FetchBox", Nav: "overview", Data: data})
}

func (p *pages) recentReplays(ctx context.Context, owner string) ([]replay.Progress, error) {
	list, err := p.ownReplays(ctx, owner)
	return list[:min(5, len(list))], err
}

// numbers fills in the tiles, the chart and the banner.
func (p *pages) numbers(ctx context.Context, data *overviewData) error {
	depths, err := p.operator.Depths(ctx)
	if err != nil {
		return err
	}
	var waiting, retrying, running, dead int
	for _, d := range depths {
		if d.Queue == queueFetch {
			waiting, retrying, running, dead = d.Ready+d.Later, d.Retrying, d.Processing, d.Dead
		}
	}
	trends, err := p.operator.Trends(ctx, chartMinutes*time.Minute, time.Minute)
	if err != nil {
		return err
	}
	data.Chart = chartOf(trends, time.Now())
	usage := p.spoolUsage()
	data.Tiles = []tile{
		{"Waiting", formatCount(waiting), "resources in the queue"},
		{"Running", formatCount(running), "resources in progress"},
		{"Retrying", formatCount(retrying), "wait for their next attempt"},
		{"Stored", formatCount(data.Chart.Complete), "in the last hour"},
		{"Failed", formatCount(dead), "not retried or replayed"},
		{"Spool", formatBytes(usage.Bytes), fmt.Sprintf("%d files, of %s", usage.Files, formatBytes(usage.Quota))},
	}
	holds, err := p.operator.Holds(ctx)
	for _, h := range holds {
		if h.Source == store.SourceBreaker && h.Dependency == dependencyStorage && h.Closed() {
			data.Held = "The object storage does not work. Resources wait at no cost and continue by themselves."
		}
	}
	return err
}

// jobData is the data of a job's page.
type jobData struct {
	jobRow
	Members holdfast.Members
	State   string
	States  []string
	Rows    []resourceView
	Next    string
}

func (p *pages) job(w http.ResponseWriter, r *http.Request, c caller) error {
	group, err := p.ownGroup(r.Context(), c.scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	v, err := p.jobView(group)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	data := jobData{jobRow: rowOf(v), Members: group.Members, State: query.Get("state"), States: []string{"queued", "processing", "complete", "failed", "cancelled"}}
	data.Rows, data.Next, err = p.resourceViews(r.Context(), store.Filter{Group: group.ID, State: holdfast.State(data.State), Limit: pageResources, Cursor: query.Get("cursor")})
	if err != nil {
		return err
	}
	return p.render(w, r, http.StatusOK, "job.html", view{Title: data.Label() + " – FetchBox", Data: data})
}

// resourceData is the data of a resource's page.
type resourceData struct {
	resourceView
	Job    string
	Remedy string
}

func (p *pages) resourcePage(w http.ResponseWriter, r *http.Request, c caller) error {
	v, err := p.resourceWithHistory(r.Context(), c.scope(), r.PathValue("id"), r.PathValue("resource"))
	if err != nil {
		return err
	}
	data := resourceData{resourceView: v, Job: r.PathValue("id")}
	if v.Failure != nil {
		data.Remedy = code.Of(v.Failure.Code).Remedy
	}
	return p.render(w, r, http.StatusOK, "resource.html", view{Title: "Resource – FetchBox", Data: data})
}

// lettersData is the data of the page of dead letters.
type lettersData struct {
	Form    url.Values
	Codes   []string
	Preview *replay.Preview
	Letters []letterView
	Next    string
	Replays []replay.Progress
}

func (p *pages) lettersPage(w http.ResponseWriter, r *http.Request, c caller) error {
	return p.showLetters(w, r, c, lettersData{Form: url.Values{}}, "")
}

func (p *pages) showLetters(w http.ResponseWriter, r *http.Request, c caller, data lettersData, notice string) error {
	before, _ := strconv.ParseUint(r.URL.Query().Get("cursor"), 10, 64) // anything else begins at the newest
	var next uint64
	var err error
	if data.Letters, next, err = p.letters(r.Context(), c.scope(), before, pageResources); err != nil {
		return err
	}
	if next > 1 {
		data.Next = strconv.FormatUint(next, 10)
	}
	for _, known := range code.All() {
		if stage := code.Stage(known.Name); stage != "VALIDATION_" && stage != "AUTH_" {
			data.Codes = append(data.Codes, known.Name)
		}
	}
	if data.Replays, err = p.recentReplays(r.Context(), c.scope()); err != nil {
		return err
	}
	return p.render(w, r, http.StatusOK, "letters.html", view{Title: "Dead letters – FetchBox", Nav: "letters", Data: data, Notice: notice})
}

// submitForm makes a job of addresses, one in each line.
func (p *pages) submitForm(w http.ResponseWriter, r *http.Request, c caller) error {
	if err := p.parse(w, r); err != nil {
		return err
	}
	var lines strings.Builder
	for line := range strings.Lines(r.PostForm.Get("urls")) {
		if line = strings.TrimSpace(line); line != "" {
			text, _ := json.Marshal(manifest.Resource{URL: line}) // text always marshals
			lines.Write(append(text, '\n'))
		}
	}
	m, problems, err := manifest.ReadLines(strings.NewReader(lines.String()), manifest.Defaults{Name: r.PostForm.Get("name")}, manifest.Checker{})
	switch {
	case err != nil:
		return err
	case problems.Count > 0:
		return refusedManifest(problems)
	}
	done, err := p.accept(r.Context(), c.owner, "", m)
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/jobs/"+done.Job.String()+"?said=submitted", http.StatusSeeOther)
	return nil
}

func (p *pages) parse(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return apiError{code: code.ValidationInvalidBody, line: "The form did not arrive completely, or it is too long.", cause: err}
	}
	return nil
}

func (p *pages) cancelForm(w http.ResponseWriter, r *http.Request, c caller) error {
	group, err := p.ownGroup(r.Context(), c.scope(), r.PathValue("id"))
	if err == nil {
		err = p.operator.CancelGroup(r.Context(), store.Intervention{Group: group.ID, Actor: c.name, Reason: "requested on the page", Request: web.ReplyOf(w).ID})
	}
	return p.back(w, r, "/jobs/"+r.PathValue("id")+"?said=cancelled", err)
}

func (p *pages) retryForm(w http.ResponseWriter, r *http.Request, c caller) error {
	group, err := p.ownGroup(r.Context(), c.scope(), r.PathValue("id"))
	if err == nil {
		_, err = p.operator.RetryGroup(r.Context(), store.Intervention{Group: group.ID, Actor: c.name, Reason: "requested on the page", Request: web.ReplyOf(w).ID})
	}
	return p.back(w, r, "/jobs/"+r.PathValue("id")+"?said=retried", err)
}

func (p *pages) retryResourceForm(w http.ResponseWriter, r *http.Request, c caller) error {
	job, err := p.ownTask(r.Context(), c.scope(), r.PathValue("id"), r.PathValue("resource"))
	if err == nil {
		_, err = p.operator.Retry(r.Context(), store.Intervention{Job: job.ID, Actor: c.name, Reason: "requested on the page", Request: web.ReplyOf(w).ID})
	}
	return p.back(w, r, "/jobs/"+r.PathValue("id")+"/resources/"+r.PathValue("resource")+"?said=resource", err)
}

func (p *pages) back(w http.ResponseWriter, r *http.Request, to string, err error) error {
	if err == nil {
		http.Redirect(w, r, to, http.StatusSeeOther)
	}
	return err
}

// replayForm starts a replay, or shows what it would do.
func (p *pages) replayForm(w http.ResponseWriter, r *http.Request, c caller) error {
	if err := p.parse(w, r); err != nil {
		return err
	}
	form := r.PostForm
	spec := replay.Spec{Actor: c.name, Reason: form.Get("reason"), Filter: replay.Filter{Code: form.Get("code"), Host: form.Get("host"), Owner: c.scope()}}
	err := errors.Join(parseSequence(form.Get("seq"), &spec.Filter), parseInstant("since", form.Get("since"), &spec.Filter.Since))
	for name, into := range map[string]*int{"canary": &spec.Canary} {
		if text := form.Get(name); text != "" {
			n, bad := strconv.Atoi(text)
			*into, err = n, errors.Join(err, bad)
		}
	}
	if text := form.Get("rate"); text != "" {
		rate, bad := strconv.ParseFloat(text, 64)
		spec.PerSecond, err = rate, errors.Join(err, bad)
	}
	if err != nil {
		return apiError{code: code.ValidationInvalidField, line: err.Error()}
	}
	if form.Get("do") == "preview" {
		preview, err := p.replays.Preview(r.Context(), spec)
		if err != nil {
			return replayError(err)
		}
		return p.showLetters(w, r, c, lettersData{Form: form, Preview: &preview}, "")
	}
	if _, err := p.replays.Start(r.Context(), spec); err != nil {
		return replayError(err)
	}
	return p.back(w, r, "/dead-letters?said=replayed", nil)
}

func (p *pages) cancelReplayForm(w http.ResponseWriter, r *http.Request, c caller) error {
	own, err := p.ownReplays(r.Context(), c.scope())
	if err != nil {
		return err
	}
	for _, one := range own {
		if one.ID.String() == r.PathValue("id") {
			return p.back(w, r, "/dead-letters?said=stopped", p.replays.Cancel(r.Context(), one.ID, c.name))
		}
	}
	return noSuchPath
}
