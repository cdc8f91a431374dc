package api

import (
	"net/http"

	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
)

func (a *API) endpoints(c *call) error {
	list, err := a.Service.Endpoints(c.r.Context(), c.Organisation)
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusOK, endpointsAnswer{append([]service.Endpoint{}, list...)})
}

func (a *API) addEndpoint(c *call) error {
	if c.Role != account.Admin {
		return account.ErrForbidden
	}
	var body endpointBody
	if err := c.read(&body); err != nil {
		return err
	}
	e, err := a.Service.AddEndpoint(c.r.Context(), c.Organisation, service.Endpoint{URL: body.URL, Events: body.Events})
	if err != nil {
		return err
	}
	return web.WriteJSON(c.w, http.StatusCreated, e)
}

func (a *API) removeEndpoint(c *call) error {
	if c.Role != account.Admin {
		return account.ErrForbidden
	}
	if err := a.Service.RemoveEndpoint(c.r.Context(), c.Organisation, c.r.PathValue("id")); err != nil {
		return err
	}
	return a.endpoints(c)
}
