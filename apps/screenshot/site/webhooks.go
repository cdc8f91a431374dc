package site

import (
	"net/http"
	"strings"

	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
)

func (s *Site) webhooks(v *visit) error {
	list, err := s.Service.Endpoints(v.r.Context(), v.Organisation)
	if err != nil {
		return err
	}
	data := struct {
		List   []service.Endpoint
		Types  []string
		Secret string // only admins see it
		Base   string
	}{List: list, Types: service.RetryEventTypes, Base: s.base(v)}
	if v.Role == account.Admin {
		data.Secret = s.Service.HookSecret(v.Organisation)
	}
	return s.render(v, http.StatusOK, "webhooks.html", view{Title: "Webhooks", Nav: "webhooks", Data: data})
}

func (s *Site) addWebhook(v *visit) error {
	if v.Role != account.Admin {
		return account.ErrForbidden
	}
	form := v.r.PostForm
	if _, err := s.Service.AddEndpoint(v.r.Context(), v.Organisation, service.Endpoint{URL: strings.TrimSpace(form.Get("url")), Events: form["event"]}); err != nil {
		return err
	}
	return v.back("/webhooks", "hook")
}

func (s *Site) removeWebhook(v *visit) error {
	if v.Role != account.Admin {
		return account.ErrForbidden
	}
	if err := s.Service.RemoveEndpoint(v.r.Context(), v.Organisation, v.r.PathValue("id")); err != nil {
		return err
	}
	return v.back("/webhooks", "unhooked")
}
