package site

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/api"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
	"github.com/holdfastdev/holdfast/ops"
)

const pageShots = 24

// statuses are the filters of the gallery.
var statuses = []string{"", service.Queued, service.Processing, service.Completed, service.Failed, service.Cancelled}

func (s *Site) gallery(v *visit) error { return s.showGallery(v, http.StatusOK, refusedForm{}) }

// A refusedForm is what the form of the gallery was sent with, and why it was refused.
type refusedForm struct {
	url.Values
	Line, Code string
}

// showGallery shows the gallery, with the form as it was sent if it was refused.
func (s *Site) showGallery(v *visit, answer int, refused refusedForm) error {
	q := v.r.URL.Query()
	status := strings.ToUpper(q.Get("status"))
	shots, next, err := s.Service.Jobs(v.r.Context(), service.Query{Owner: v.Organisation, Status: status, Limit: pageShots, Cursor: q.Get("cursor")})
	if err != nil {
		return err
	}
	balance, err := s.Service.Ledger().Balance(v.r.Context(), v.Organisation)
	if err != nil {
		return err
	}
	data := struct {
		Shots    []service.Job
		Next     string
		Status   string
		Statuses []string
		Balance  credit.Balance
		Key      holdfast.ID
		Form     refusedForm
		Formats  []shot.Format
	}{shots, next, status, statuses, balance, holdfast.NewID(), refused, []shot.Format{shot.PNG, shot.JPEG, shot.WebP, shot.PDF}}
	return s.render(v, answer, "gallery.html", view{Title: "Screenshots", Nav: "gallery", Data: data})
}

// submit takes the form of the gallery. A form that is refused is shown again with what was written into it.
func (s *Site) submit(v *visit) error {
	err := s.submitForm(v, v.r.PostForm)
	if err == nil {
		return nil
	}
	refused, status, line := s.explain(v, err)
	return s.showGallery(v, status, refusedForm{v.r.PostForm, line, refused.Code})
}

// submitForm submits what a form asks for. The key of the form makes sure that one that is sent twice is one shot.
func (s *Site) submitForm(v *visit, form url.Values) error {
	address := strings.TrimSpace(form.Get("url"))
	if address != "" && !strings.Contains(address, "://") {
		address = "https://" + address
	}
	sub := service.Submission{Options: shot.Options{
		URL: address, Format: shot.Format(form.Get("format")), FullPage: form.Get("fullPage") != "" && form.Get("format") != string(shot.PDF), DarkMode: form.Get("darkMode") != "", BlockAds: form.Get("blockAds") != "",
	}, Key: form.Get("key")}
	for name, into := range map[string]*int{"width": &sub.Width, "height": &sub.Height, "delayMs": &sub.DelayMS} {
		if text := strings.TrimSpace(form.Get(name)); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return &service.Error{Code: code.Validation, Message: name + ": give a whole number"}
			}
			*into = n
		}
	}
	job, _, err := s.Service.Submit(v.r.Context(), v.caller(), sub)
	if err != nil {
		return err
	}
	return v.back("/shots/"+job.ID.String(), "submitted")
}

func (s *Site) shot(v *visit) error {
	id, err := v.id()
	if err != nil {
		return err
	}
	ctx := v.r.Context()
	job, err := s.Service.Job(ctx, v.Organisation, id)
	if err != nil {
		return err
	}
	story, err := s.Service.Story(ctx, v.Organisation, id)
	if err != nil {
		return err
	}
	entries, err := s.Service.Ledger().OfJob(ctx, id)
	if err != nil {
		return err
	}
	balance, err := s.Service.Ledger().Balance(ctx, v.Organisation)
	if err != nil {
		return err
	}
	data := struct {
		service.Job
		Story   []ops.StoryLine
		Entries []credit.Entry
		Meaning string // of the code
		NoRetry string // why Retry is disabled
		Cost    string
		Waits   string // what holds it
	}{Job: job, Story: story, Entries: entries, NoRetry: job.Refusal}
	if data.Waits, err = s.Service.Waits(ctx, &job); err != nil {
		return err
	}
	switch {
	case job.Refusal != "" || job.Status != service.Failed:
	case balance.Available < job.Credits:
		data.NoRetry = "A retry costs " + inCredits(job.Credits) + ", and " + strconv.FormatInt(balance.Available, 10) + " are available."
	default:
		data.Cost = "Costs " + inCredits(job.Credits) + " again, which is released if it fails."
	}
	if job.NextRetryAt != nil {
		data.Cost = "Replaces the automatic retry and costs nothing more."
	}
	return s.render(v, http.StatusOK, "shot.html", view{Title: "Screenshot", Nav: "gallery", Data: data})
}

func inCredits(n int64) string {
	if n == 1 {
		return "1 credit"
	}
	return strconv.FormatInt(n, 10) + " credits"
}

func (s *Site) picture(v *visit) error {
	id, err := v.id()
	if err != nil {
		return err
	}
	job, file, err := s.Service.Open(v.r.Context(), v.Organisation, id)
	if err != nil {
		return err
	}
	api.Send(v.w, v.r, job, file)
	return nil
}

func (s *Site) retry(v *visit) error {
	id, err := v.id()
	if err != nil {
		return err
	}
	if _, err := s.Service.Retry(v.r.Context(), v.caller(), id, ""); err != nil {
		return err
	}
	return v.back("/shots/"+id.String(), "retried")
}

func (s *Site) cancel(v *visit) error {
	id, err := v.id()
	if err != nil {
		return err
	}
	if _, err := s.Service.Cancel(v.r.Context(), v.caller(), id); err != nil {
		return err
	}
	return v.back("/shots/"+id.String(), "cancelled")
}
