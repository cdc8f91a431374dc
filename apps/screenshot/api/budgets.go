package api

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
)

func (a *API) budgets(c *call) error {
	list, err := a.Service.Budgets(c.r.Context(), c.Organisation)
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, budgetsAnswer{list})
}

func (a *API) setBudget(c *call) error {
	if c.Role != account.Admin {
		return account.ErrForbidden
	}
	var body budgetBody
	if err := c.read(&body); err != nil {
		return err
	}
	if body.User != "" {
		members, err := a.Accounts.Members(c.r.Context(), c.Organisation)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(members, func(m account.Member) bool { return m.User.ID == body.User }) {
			return account.ErrNotFound
		}
	}
	err := a.Service.SetBudget(c.r.Context(), c.Organisation, service.Budget{User: body.User, Daily: body.Daily, Monthly: body.Monthly, Cost: body.Cost, Priority: body.Priority})
	if err != nil {
		return err
	}
	return a.budgets(c)
}

func (a *API) plan(c *call) error {
	var body planBody
	if err := c.read(&body); err != nil {
		return err
	}
	p := service.Plan{Compensation: body.Compensation}
	if body.RetryWithin != "" {
		d, err := time.ParseDuration(body.RetryWithin)
		if err != nil {
			return &service.Error{Code: code.Validation, Message: "retryWithin: use a duration such as 10m, or leave it out"}
		}
		p.RetryWithin = d
	}
	o, err := a.Accounts.Organisation(c.r.Context(), c.r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := a.Service.SetPlan(c.r.Context(), o.ID, p); err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, body)
}

// maxTrigger is the size of a signed request.
const maxTrigger = 4 << 10

func (a *API) trigger(c *call) error {
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxTrigger))
	t := service.Trigger{}
	if err == nil {
		err = json.Unmarshal(body, &t)
	}
	if err != nil {
		return &service.Error{Code: code.Validation, Message: "The body is not valid: send organisationId and jobId.", Cause: err}
	}
	t.Header, t.Body = c.r.Header, body
	done, err := a.Service.Trigger(c.r.Context(), t, web.ReplyOf(c.w).ID)
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, done)
}

// ratesWithin is how far back the rates of retries look.
const ratesWithin = 24 * time.Hour

func (a *API) retryRates(c *call) error {
	list, err := a.Service.RetryRates(c.r.Context(), ratesWithin)
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, ratesAnswer{list})
}

func (a *API) alert(c *call) error {
	alert, err := a.Service.Alert(c.r.Context())
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, alert)
}

func (a *API) setAlert(c *call) error {
	var alert service.Alert
	if err := c.read(&alert); err != nil {
		return err
	}
	if err := a.Service.SetAlert(c.r.Context(), alert); err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, alert)
}
