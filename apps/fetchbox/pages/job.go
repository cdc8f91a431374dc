package pages

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/access"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/manifest"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/fetchbox/view"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/store"
)

// jobData is the data of a job's page.
type jobData struct {
	jobRow
	Live  bool
	Tiles []stateTile
	State string // that the list is limited to
	Code  string // the same
	Rows  []view.Resource
	Next  string // the query of the next page
}

// A stateTile is how many resources are in a state; it links to them.
type stateTile struct {
	Name, State string
	Resources   int
}

func (p *pages) job(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	group, err := p.Views.Group(r.Context(), c.Scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	v, err := p.Views.Job(group)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	data := jobData{jobRow: rowOf(v), Live: group.Members.Live() > 0, State: query.Get("state"), Code: query.Get("code"), Tiles: []stateTile{
		{"All", "", v.Resources}, {"Queued", "queued", v.ResourcesQueued}, {"Processing", "processing", v.ResourcesRunning}, {"Complete", "complete", v.ResourcesComplete},
		{"Failed", "failed", v.ResourcesFailed}, {"Cancelled", "cancelled", v.ResourcesCancelled},
	}}
	if !slices.ContainsFunc(data.Tiles, func(t stateTile) bool { return t.State == data.State }) {
		return refusal.NoSuchPath
	}
	filter := store.Filter{Group: group.ID, State: holdfast.State(data.State), Code: data.Code, Limit: pageResources, Cursor: query.Get("cursor")}
	rows, next, err := p.Views.Resources(r.Context(), filter)
	if err != nil {
		return err
	}
	data.Rows = rows
	if next != "" {
		data.Next = url.Values{"state": {data.State}, "code": {data.Code}, "cursor": {next}}.Encode()
	}
	return p.render(w, r, http.StatusOK, "job.html", page{Title: data.Label() + " – FetchBox", Data: data})
}

// results sends the manifest of results as a file.
func (p *pages) results(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	group, err := p.Views.Group(r.Context(), c.Scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return p.Views.WriteResults(w, r, group.ID, r.URL.Query().Get("format"))
}

// resourceData is the data of a resource's page.
type resourceData struct {
	view.Resource
	Job    string
	Remedy string
	Facts  map[string]string // the context of the failure
}

func (p *pages) resourcePage(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	v, err := p.Views.Resource(r.Context(), c.Scope(), r.PathValue("id"), r.PathValue("resource"))
	if err != nil {
		return err
	}
	data := resourceData{Resource: v, Job: r.PathValue("id")}
	if v.Failure != nil {
		data.Remedy, data.Facts = code.Of(v.Failure.Code).Remedy, maps.Clone(v.Failure.Context)
		if data.Facts["http_status"] == data.Facts["status"] {
			delete(data.Facts, "http_status") // the engine's name of the same number
		}
		delete(data.Facts, "attempt") // the page has it already
	}
	return p.render(w, r, http.StatusOK, "resource.html", page{Title: "Resource – FetchBox", Data: data})
}

// submitForm makes a job of addresses, one in each line.
func (p *pages) submitForm(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	if err := p.parse(w, r); err != nil {
		return err
	}
	defaults := manifest.Defaults{Name: r.PostForm.Get("name"), Proxy: r.PostForm.Get("proxy")}
	done, err := p.Intake.AcceptURLs(r.Context(), c.Owner, defaults, r.PostForm.Get("urls"))
	return p.back(w, r, "/jobs/"+done.Job.String()+"?said=submitted", err)
}

func (p *pages) cancelForm(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	group, err := p.Views.Group(r.Context(), c.Scope(), r.PathValue("id"))
	if err == nil {
		err = refusal.Cancel(p.Operator.CancelGroup(r.Context(), store.Intervention{Group: group.ID, Actor: c.Name, Reason: "requested on the page", Request: web.ReplyOf(w).ID}))
	}
	return p.back(w, r, "/jobs/"+r.PathValue("id")+"?said=cancelled", err)
}

func (p *pages) retryForm(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	group, err := p.Views.Group(r.Context(), c.Scope(), r.PathValue("id"))
	if err == nil {
		_, err = p.Operator.RetryGroup(r.Context(), store.Intervention{Group: group.ID, Actor: c.Name, Reason: "requested on the page", Request: web.ReplyOf(w).ID})
		err = refusal.Retry(err)
	}
	return p.back(w, r, "/jobs/"+r.PathValue("id")+"?said=retried", err)
}

func (p *pages) retryResourceForm(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	job, err := p.Views.Task(r.Context(), c.Scope(), r.PathValue("id"), r.PathValue("resource"))
	if err == nil {
		_, err = p.Operator.Retry(r.Context(), store.Intervention{Job: job.ID, Actor: c.Name, Reason: "requested on the page", Request: web.ReplyOf(w).ID})
		err = refusal.RetryResource(job.State, err)
	}
	return p.back(w, r, "/jobs/"+r.PathValue("id")+"/resources/"+r.PathValue("resource")+"?said=resource", err)
}
