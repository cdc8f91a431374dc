package api

import (
	"net/http"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
)

// adminRoutes are for operators of the service.
func (a *API) adminRoutes() []route {
	return []route{
		{method: "POST", path: "/admin/jobs/stuck", scope: account.Operate, summary: "List screenshots that have been processed for more than 30 minutes.", status: 200, answer: stuckAnswer{}, do: a.stuck},
		{method: "POST", path: "/admin/jobs/process-stuck", scope: account.Operate, summary: "Queue stuck screenshots again, up to 100.", status: 200, answer: processedAnswer{}, do: a.processStuck},
		{method: "GET", path: "/admin/workers/status", scope: account.Operate, summary: "Read what workers, browsers and duties do.", status: 200, answer: service.Workers{}, do: a.workers},
		{method: "GET", path: "/admin/retry-scheduler", scope: account.Operate, summary: "Read how the duties of the retry scheduler run.", status: 200, answer: schedulerAnswer{}, do: a.scheduler},
		{method: "POST", path: "/admin/retry-scheduler/pause", scope: account.Operate, summary: "Pause duties of the retry scheduler, for a duration such as 30m or until they are resumed. No types are all.", request: pauseBody{}, status: 200, answer: schedulerAnswer{}, do: a.pause},
		{method: "POST", path: "/admin/retry-scheduler/resume", scope: account.Operate, summary: "Resume duties of the retry scheduler.", request: pauseBody{}, status: 200, answer: schedulerAnswer{}, do: a.resume},
		{method: "GET", path: "/admin/retries", scope: account.Operate, summary: "Read how retries ended in the last 24 hours, by their number.", status: 200, answer: ratesAnswer{}, do: a.retryRates},
		{method: "GET", path: "/admin/alerts", scope: account.Operate, summary: "Read when operators are notified about failing retries.", status: 200, answer: service.Alert{}, do: a.alert},
		{method: "POST", path: "/admin/alerts", scope: account.Operate, summary: "Set when operators are notified: a share of failed retries in the last hour, and a webhook, which is called at most once an hour. 0 is never.", request: service.Alert{}, status: 200, answer: service.Alert{}, do: a.setAlert},
		{method: "POST", path: "/admin/organisations/{id}/credits", scope: account.Operate, summary: "Grant credits to an organisation. Grants with the same once are made once.", request: grantBody{}, status: 200, answer: credit.Balance{}, refusals: []string{code.NotFound}, do: a.grant},
		{method: "POST", path: "/admin/organisations/{id}/plan", scope: account.Operate, summary: "Promise an organisation that a failed screenshot is tried again within a time; each retry that begins later is compensated with credits.", request: planBody{}, status: 200, answer: planBody{}, refusals: []string{code.NotFound}, do: a.plan},
	}
}

func (a *API) stuck(c *call) error {
	jobs, err := a.Service.Stuck(c.r.Context())
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, stuckAnswer{jobs})
}

func (a *API) processStuck(c *call) error {
	n, err := a.Service.ProcessStuck(c.r.Context(), c.caller())
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, processedAnswer{n})
}

func (a *API) workers(c *call) error {
	w, err := a.Service.WorkersStatus(c.r.Context())
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, w)
}

func (a *API) scheduler(c *call) error {
	duties, err := a.Service.Scheduler(c.r.Context())
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, schedulerAnswer{duties})
}

func (a *API) pause(c *call) error {
	var body pauseBody
	if err := c.read(&body); err != nil {
		return err
	}
	lasting := time.Duration(0)
	if body.Duration != "" {
		d, err := time.ParseDuration(body.Duration)
		if err != nil || d <= 0 {
			return &service.Error{Code: code.Validation, Message: "duration: use a duration such as 30m, or leave it out"}
		}
		lasting = d
	}
	if err := a.Service.Pause(c.r.Context(), c.caller(), body.Types, lasting); err != nil {
		return err
	}
	return a.scheduler(c)
}

func (a *API) resume(c *call) error {
	var body pauseBody
	if err := c.read(&body); err != nil {
		return err
	}
	if err := a.Service.Resume(c.r.Context(), c.caller(), body.Types); err != nil {
		return err
	}
	return a.scheduler(c)
}

func (a *API) grant(c *call) error {
	var body grantBody
	if err := c.read(&body); err != nil {
		return err
	}
	if body.Amount <= 0 || body.Amount > 1e12 {
		return &service.Error{Code: code.Validation, Message: "amount: use a positive number of credits"}
	}
	o, err := a.Accounts.Organisation(c.r.Context(), c.r.PathValue("id"))
	if err != nil {
		return err
	}
	ledger := a.Service.Ledger()
	err = ledger.DB.Write(c.r.Context(), func(tx *database.Tx) error {
		_, err := ledger.Grant(c.r.Context(), tx, credit.Gift{Owner: o.ID, Amount: body.Amount, Note: body.Note, Once: body.Once})
		return err
	})
	if err != nil {
		return err
	}
	b, err := ledger.Balance(c.r.Context(), o.ID)
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, b)
}
