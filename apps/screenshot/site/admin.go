package site

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
)

func (s *Site) admin(v *visit) error {
	ctx := v.r.Context()
	workers, err := s.Service.WorkersStatus(ctx)
	if err != nil {
		return err
	}
	stuck, err := s.Service.Stuck(ctx)
	if err != nil {
		return err
	}
	spent, err := s.Service.Ledger().SpentOnRetries(ctx, "")
	if err != nil {
		return err
	}
	rates, err := s.Service.RetryRates(ctx, 24*time.Hour)
	if err != nil {
		return err
	}
	alert, err := s.Service.Alert(ctx)
	if err != nil {
		return err
	}
	data := struct {
		service.Workers
		Stuck  []service.Job
		Counts service.Counts
		Rates  []service.RetryRate
		Alert  service.Alert
		Spent  int64
	}{workers, stuck, s.Service.Counts(), rates, alert, spent}
	return s.render(v, http.StatusOK, "admin.html", view{Title: "Administration", Nav: "admin", Data: data})
}

func (s *Site) pause(v *visit) error {
	lasting := time.Duration(0)
	if text := v.r.PostForm.Get("duration"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return &service.Error{Code: code.Validation, Message: "duration: use a duration such as 30m, or leave it empty"}
		}
		lasting = d
	}
	if err := s.Service.Pause(v.r.Context(), v.caller(), v.r.PostForm["type"], lasting); err != nil {
		return err
	}
	return v.back("/admin", "paused")
}

func (s *Site) resume(v *visit) error {
	if err := s.Service.Resume(v.r.Context(), v.caller(), v.r.PostForm["type"]); err != nil {
		return err
	}
	return v.back("/admin", "resumed")
}

func (s *Site) processStuck(v *visit) error {
	if _, err := s.Service.ProcessStuck(v.r.Context(), v.caller()); err != nil {
		return err
	}
	return v.back("/admin", "processed")
}

func (s *Site) setAlert(v *visit) error {
	percent, err := strconv.Atoi(v.r.PostForm.Get("percent"))
	if err != nil {
		return &service.Error{Code: code.Validation, Message: "Give a number of percent, 0 for no alert."}
	}
	if err := s.Service.SetAlert(v.r.Context(), service.Alert{Percent: percent, Webhook: strings.TrimSpace(v.r.PostForm.Get("webhook")), Mail: strings.TrimSpace(v.r.PostForm.Get("mail"))}); err != nil {
		return err
	}
	return v.back("/admin", "alert")
}
