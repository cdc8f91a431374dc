package api

import (
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/ops"
)

// A route is a path of the API with a method. The mux, the identification and the OpenAPI document are made of it.
type route struct {
	method, path string
	scope        account.Scope // that the key needs; empty: no key
	summary      string
	query        []string // parameters
	request      any      // an example of the body, by whose type it is described; nil: none
	status       int
	answer       any // likewise; nil: not JSON
	refusals     []string
	do           func(c *call) error
}

// The bodies of requests.
type (
	retryBody struct {
		RequestedBy string `json:"requestedBy,omitempty"`
	}
	bulkBody struct {
		Requests []service.Submission `json:"requests"`
	}
	pauseBody struct {
		Duration string   `json:"duration,omitempty"`
		Types    []string `json:"types,omitempty"`
	}
	planBody struct {
		RetryWithin  string `json:"retryWithin,omitempty"`
		Compensation int64  `json:"compensation,omitempty"`
	}
	budgetBody struct {
		User     string           `json:"userId,omitempty"`
		Daily    int              `json:"dailyRetryLimit,omitempty"`
		Monthly  int              `json:"monthlyRetryLimit,omitempty"`
		Cost     int64            `json:"costLimit,omitempty"`
		Priority service.Priority `json:"priorityLevel,omitempty"`
	}
	endpointBody struct {
		URL    string   `json:"url"`
		Events []string `json:"events,omitempty"`
	}
	grantBody struct {
		Amount int64  `json:"amount"`
		Note   string `json:"note,omitempty"`
		Once   string `json:"once,omitempty"`
	}
)

// The bodies of answers.
type (
	jobList struct {
		Screenshots []service.Job `json:"screenshots"`
		Next        string        `json:"nextCursor"`
	}
	bulkAnswer struct {
		Screenshots []service.Job `json:"screenshots"`
	}
	cancelAnswer struct {
		ID     holdfast.ID `json:"jobId"`
		Status string      `json:"status"`
	}
	storyAnswer struct {
		Lines   []ops.StoryLine      `json:"lines"`
		Credits []credit.Entry       `json:"credits"`
		Retries []service.RetryEvent `json:"retryEvents"`
	}
	ledgerAnswer struct {
		Entries []credit.Entry `json:"entries"`
		Next    string         `json:"nextCursor"`
	}
	budgetsAnswer struct {
		Budgets []service.Budget `json:"budgets"`
	}
	ratesAnswer struct {
		Retries []service.RetryRate `json:"retries"`
	}
	stuckAnswer struct {
		Jobs []service.Job `json:"jobs"`
	}
	processedAnswer struct {
		Processed int `json:"processed"`
	}
	schedulerAnswer struct {
		Duties []service.DutyStatus `json:"duties"`
	}
	endpointsAnswer struct {
		Webhooks []service.Endpoint `json:"webhooks"`
	}
	codesAnswer struct {
		Codes []failure.Code `json:"codes"`
	}
)

// routes are all routes.
func (a *API) routes() []route {
	return append([]route{
		{method: "POST", path: "/screenshots", scope: account.Write, summary: "Take a screenshot of a page, or make a PDF of it. The answer is 202 for a new one, and 200 for one that exists by its Idempotency-Key or in the cache.", request: service.Submission{}, status: 202, answer: service.Job{}, refusals: []string{code.InsufficientCredits}, do: a.submit},
		{method: "POST", path: "/screenshots/bulk", scope: account.Write, summary: "Take up to 100 screenshots: all are accepted, or none.", request: bulkBody{}, status: 202, answer: bulkAnswer{}, refusals: []string{code.InsufficientCredits}, do: a.bulk},
		{method: "GET", path: "/screenshots", scope: account.Read, summary: "List the screenshots of the organisation, the newest first.", query: []string{"status", "jobType", "limit", "cursor"}, status: 200, answer: jobList{}, do: a.list},
		{method: "GET", path: "/screenshots/{id}", scope: account.Read, summary: "Read a screenshot.", status: 200, answer: service.Job{}, refusals: []string{code.NotFound}, do: a.get},
		{method: "GET", path: "/screenshots/{id}/result", scope: account.Read, summary: "Get the picture.", status: 200, refusals: []string{code.NotFound, code.NotReady}, do: a.picture},
		{method: "GET", path: "/screenshots/{id}/story", scope: account.Read, summary: "Read what happened to a screenshot, and to its credits.", status: 200, answer: storyAnswer{}, refusals: []string{code.NotFound}, do: a.story},
		{method: "POST", path: "/screenshots/{id}/retry", scope: account.Write, summary: "Retry a screenshot that failed, that waits for an automatic retry, or that has been processed for more than 30 minutes.", request: retryBody{}, status: 200, answer: service.Retried{}, refusals: []string{code.InsufficientCredits, code.NotFound, code.ConcurrentModification}, do: a.retry},
		{method: "POST", path: "/screenshots/{id}/cancel", scope: account.Write, summary: "Cancel a screenshot that has not ended. Its credits are released.", status: 200, answer: cancelAnswer{}, refusals: []string{code.NotFound}, do: a.cancel},
		{method: "GET", path: "/results/{id}", summary: "Get the picture by the signed link of a screenshot, which has expires and signature. It needs no key.", query: []string{"expires", "signature"}, status: 200, refusals: []string{code.Forbidden, code.NotFound}, do: a.linked},
		{method: "GET", path: "/credits", scope: account.Read, summary: "Read the balance of the organisation.", status: 200, answer: credit.Balance{}, do: a.credits},
		{method: "GET", path: "/credits/ledger", scope: account.Read, summary: "List the entries of the ledger of credits, the newest first.", query: []string{"limit", "cursor"}, status: 200, answer: ledgerAnswer{}, do: a.ledger},
		{method: "GET", path: "/budgets", scope: account.Read, summary: "Read the budgets of manual retries, of the organisation and of its users.", status: 200, answer: budgetsAnswer{}, do: a.budgets},
		{method: "POST", path: "/budgets", scope: account.Write, summary: "Set the budget of a user, or that of the organisation if there is no userId. Only admins of the organisation may. 0 is no limit.", request: budgetBody{}, status: 200, answer: budgetsAnswer{}, do: a.setBudget},
		{method: "GET", path: "/webhooks", scope: account.Read, summary: "List the webhooks of the organisation, which are called with the retry events of its screenshots.", status: 200, answer: endpointsAnswer{}, do: a.endpoints},
		{method: "POST", path: "/webhooks", scope: account.Write, summary: "Add a webhook to the organisation. events names the types RetryScheduled, RetryStarted, RetrySucceeded, RetryFailed; without it, it gets all. Only admins of the organisation may.", request: endpointBody{}, status: 201, answer: service.Endpoint{}, do: a.addEndpoint},
		{method: "DELETE", path: "/webhooks/{id}", scope: account.Write, summary: "Remove a webhook of the organisation. Only admins of the organisation may.", status: 200, answer: endpointsAnswer{}, refusals: []string{code.NotFound}, do: a.removeEndpoint},
		{method: "POST", path: "/webhooks/retry", summary: "Retry a screenshot by a request that is signed after Standard Webhooks with the secret of the organisation's webhooks, instead of a key.", request: service.Trigger{}, status: 200, answer: service.Retried{}, refusals: []string{code.Validation, code.Unauthorized, code.InsufficientCredits, code.NotFound, code.ConcurrentModification}, do: a.trigger},
		{method: "GET", path: "/events", scope: account.Read, summary: "Follow the events of the organisation's screenshots, as server-sent events.", query: []string{"after"}, status: 200, answer: nil, do: func(c *call) error { return a.Feed.Serve(c.w, c.r, c.Organisation, "") }},
		{method: "GET", path: "/codes", summary: "List the error codes: what each means, and what to do.", status: 200, answer: codesAnswer{}, do: a.codes},
		{method: "GET", path: "/openapi.json", summary: "Read this description.", status: 200, do: a.openAPI},
	}, a.adminRoutes()...)
}

func (a *API) submit(c *call) error {
	var sub service.Submission
	if err := c.read(&sub); err != nil {
		return err
	}
	sub.Key = c.r.Header.Get("Idempotency-Key")
	job, fresh, err := a.Service.Submit(c.r.Context(), c.caller(), sub)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", Prefix+"/screenshots/"+job.ID.String())
	status := http.StatusOK
	if fresh {
		status = http.StatusAccepted
	}
	return web.WriteJSON(c.w, status, job)
}

func (a *API) bulk(c *call) error {
	var body bulkBody
	if err := c.read(&body); err != nil {
		return err
	}
	if key := c.r.Header.Get("Idempotency-Key"); key != "" {
		for i := range body.Requests {
			body.Requests[i].Key = key + "/" + strconv.Itoa(i)
		}
	}
	jobs, _, err := a.Service.SubmitAll(c.r.Context(), c.caller(), body.Requests)
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusAccepted, bulkAnswer{jobs})
}

const (
	defaultLimit = 50
	maxLimit     = 200
)

func (c *call) limit() (int, error) {
	text := c.r.URL.Query().Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, &service.Error{Code: code.Validation, Message: fmt.Sprintf("limit: use 1 to %d", maxLimit)}
	}
	return n, nil
}

func (a *API) list(c *call) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	q := c.r.URL.Query()
	jobs, next, err := a.Service.Jobs(c.r.Context(), service.Query{Owner: c.Organisation, Status: q.Get("status"), Type: service.JobType(q.Get("jobType")), Limit: limit, Cursor: q.Get("cursor")})
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, jobList{jobs, next})
}

func (a *API) get(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	job, err := a.Service.Job(c.r.Context(), c.Organisation, id)
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, job)
}

func (a *API) picture(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	job, file, err := a.Service.Open(c.r.Context(), c.Organisation, id)
	if err != nil {
		return err
	}
	Send(c.w, c.r, job, file)
	return nil
}

func (a *API) linked(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	q := c.r.URL.Query()
	job, file, err := a.Service.Linked(c.r.Context(), id, q.Get("expires"), q.Get("signature"))
	if err != nil {
		return err
	}
	c.w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin") // the link is the permission
	Send(c.w, c.r, job, file)
	return nil
}

// Send answers a request with a picture, and closes it.
func Send(w http.ResponseWriter, r *http.Request, job service.Job, file *blob.File) {
	defer func() { _ = file.Close() }()
	header := w.Header()
	header.Set("Content-Type", job.Stored.Format.MediaType())
	header.Set("Content-Disposition", `inline; filename="`+job.ID.String()+"."+string(job.Stored.Format)+`"`)
	header.Set("Cache-Control", "private, max-age=300")
	header.Set("ETag", `"`+job.ID.String()+"-"+strconv.Itoa(job.Generation)+`"`)
	http.ServeContent(w, r, "", file.MadeAt, io.ReadSeeker(file))
}

func (a *API) story(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	lines, err := a.Service.Story(c.r.Context(), c.Organisation, id)
	if err != nil {
		return err
	}
	entries, err := a.Service.Ledger().OfJob(c.r.Context(), id)
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, storyAnswer{lines, entries, service.RetryEvents(id, lines)})
}

func (a *API) retry(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	var body retryBody
	if err := c.read(&body); err != nil {
		return err
	}
	done, err := a.Service.Retry(c.r.Context(), c.caller(), id, body.RequestedBy)
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, done)
}

func (a *API) cancel(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	status, err := a.Service.Cancel(c.r.Context(), c.caller(), id)
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, cancelAnswer{id, status})
}

func (a *API) credits(c *call) error {
	b, err := a.Service.Ledger().Balance(c.r.Context(), c.Organisation)
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, b)
}

func (a *API) ledger(c *call) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	list, err := a.Service.Ledger().Entries(c.r.Context(), c.Organisation, c.r.URL.Query().Get("cursor"), limit)
	if err != nil {
		return err
	}
	answer := ledgerAnswer{Entries: list}
	if len(list) == limit {
		answer.Next = list[limit-1].ID
	}
	return web.WriteJSON(c.w, http.StatusOK, answer)
}

func (a *API) codes(c *call) error {
	return web.WriteJSON(c.w, http.StatusOK, codesAnswer{code.All()})
}
