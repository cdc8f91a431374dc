// Package site is the pages of the screenshot service: gallery, one shot with its story, keys, webhooks, credits, team, account, administration. They are rendered completely on
// the server and work without JavaScript; a script replaces their parts when something happens.
package site

import (
	"cmp"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/internal/events"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/apps/screenshot/api"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/ops"
)

//go:embed page
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"age": web.FormatAge, "bytes": web.FormatBytes[int], "count": web.FormatCount[int64], "lower": strings.ToLower, "stamp": stamp, "day": day, "second": second, "seconds": formatSeconds,
}).ParseFS(files, "page/*.html"))

// Config is what the pages need.
type Config struct {
	Service  *service.Service
	Accounts *account.Service
	Operator *ops.Service
	API      *api.API
	Feed     *events.Streams
	Log      *slog.Logger
	SignUp   bool   // anyone may make an account
	Base     string // address of the service in links; empty: the one that the visitor uses
}

// A Site serves the pages.
type Site struct {
	Config
	assets *web.Assets
}

// New returns the site.
func New(cfg Config) *Site {
	s := &Site{Config: cfg}
	s.assets = web.NewAssets(files, "page", s.missing)
	return s
}

// A visit is a request for a page, or of a form.
type visit struct {
	w http.ResponseWriter
	r *http.Request
	account.Identity
}

func (v *visit) caller() service.Caller {
	return service.Caller{Owner: v.Organisation, User: v.User.ID, Name: v.Name(), Request: web.ReplyOf(v.w).ID}
}

// id returns the id in the path.
func (v *visit) id() (holdfast.ID, error) {
	id, err := holdfast.ParseID(v.r.PathValue("id"))
	if err != nil {
		return id, &service.Error{Code: code.NotFound}
	}
	return id, nil
}

// back redirects after a form. said is the name of a notice.
func (v *visit) back(to, said string) error {
	if said != "" {
		to += "?said=" + said
	}
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// base returns the address of the service for links that are sent to others.
func (s *Site) base(v *visit) string {
	scheme := "http://"
	if v.r.TLS != nil || strings.EqualFold(v.r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https://"
	}
	return cmp.Or(s.Base, scheme+v.r.Host)
}

// Mount mounts the pages and their forms.
func (s *Site) Mount(mux *http.ServeMux) {
	mux.Handle("GET /assets/{version}/{name}", s.assets)
	for pattern, do := range map[string]func(v *visit) error{
		"GET /sign-in": s.signInPage, "POST /sign-in": s.signIn, "GET /sign-up": s.signUpPage, "POST /sign-up": s.signUp,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(&visit{w: w, r: r}, do) })
	}
	for pattern, do := range map[string]func(v *visit) error{
		"GET /{$}": s.gallery, "POST /shots": s.submit,
		"GET /shots/{id}": s.shot, "GET /shots/{id}/picture": s.picture, "POST /shots/{id}/retry": s.retry, "POST /shots/{id}/cancel": s.cancel,
		"GET /keys": s.keys, "POST /keys": s.makeKey, "POST /keys/{id}/revoke": s.revokeKey,
		"GET /webhooks": s.webhooks, "POST /webhooks": s.addWebhook, "POST /webhooks/{id}/remove": s.removeWebhook,
		"GET /credits": s.credits,
		"GET /team":    s.team, "POST /team/invite": s.invite, "POST /team/{id}/role": s.setRole, "GET /join": s.joinPage, "POST /join": s.join, "POST /switch": s.switchTo, "POST /organisations": s.found,
		"GET /account": s.account, "POST /account/password": s.changePassword, "POST /account/sessions/{id}/revoke": s.revokeSession, "POST /sign-out": s.signOut,
		"GET /events": func(v *visit) error { return s.Feed.Serve(v.w, v.r, v.Organisation, "") },
		"GET /admin":  s.operators(s.admin), "POST /admin/pause": s.operators(s.pause), "POST /admin/resume": s.operators(s.resume), "POST /admin/process-stuck": s.operators(s.processStuck), "POST /admin/alert": s.operators(s.setAlert),
		"POST /team/budget": s.setBudget,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serveMember(&visit{w: w, r: r}, do) })
	}
	mux.HandleFunc("/", s.missing)
}

const maxForm = 1 << 20

func (s *Site) serve(v *visit, do func(v *visit) error) {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	err := v.r.ParseForm()
	if err != nil {
		err = &service.Error{Code: code.Validation, Message: "The form did not arrive completely, or it is too long.", Cause: err}
	} else {
		err = do(v)
	}
	if err != nil {
		s.failed(v, err)
	}
}

// serveMember serves a page for people who are signed in. Others are sent to the form for that, and a form without the token of its session is refused.
func (s *Site) serveMember(v *visit, do func(v *visit) error) {
	s.serve(v, func(v *visit) (err error) {
		v.Identity, err = s.Accounts.Visitor(v.r.Context(), v.r)
		if errors.Is(err, account.ErrNoIdentity) && v.r.Method == http.MethodGet && v.r.URL.Path != "/events" {
			return v.back("/sign-in?to="+url.QueryEscape(v.r.URL.RequestURI()), "")
		}
		if err != nil {
			return err
		}
		if v.r.Method == http.MethodPost {
			if err := v.CheckForm(v.r.PostForm.Get("token")); err != nil {
				return err
			}
		}
		return do(v)
	})
}

// operators lets only operators of the service pass.
func (s *Site) operators(do func(v *visit) error) func(v *visit) error {
	return func(v *visit) error {
		if !v.May(account.Operate) {
			return &service.Error{Code: code.Forbidden, Message: "This page is for operators of the service."}
		}
		return do(v)
	}
}

// A view is the data of every page.
type view struct {
	Assets, Title, Notice, Nav, Token string
	Now                               time.Time
	User                              *account.User // nil: not signed in
	Organisation                      string
	Operator                          bool
	Data                              any
}

// notices are the messages after a form. The address contains only their names, so that a link cannot put a text of its choice on the page.
var notices = map[string]string{
	"submitted": "The request is accepted.", "retried": "Job queued for manual retry.", "cancelled": "The screenshot is being cancelled.", "revoked": "The API key is revoked.", "password": "The password is changed. All other sessions have ended.",
	"session": "The session has ended.", "role": "The member is changed.", "joined": "You are a member now.", "founded": "The organisation exists. Switch to it below.", "paused": "The retry scheduler is paused.", "resumed": "The retry scheduler is resumed.",
	"processed": "Stuck screenshots were queued again.", "exists": "A picture of the same request answered. It cost nothing.", "out": "You are signed out.", "alert": "The alert is set.", "budget": "The budget is set.", "hook": "The webhook is added.", "unhooked": "The webhook is removed.",
}

func (s *Site) render(v *visit, status int, name string, data view) error {
	data.Assets, data.Now = s.assets.Path(), time.Now()
	data.Notice = cmp.Or(data.Notice, notices[v.r.URL.Query().Get("said")])
	if v.User.ID != "" {
		data.User, data.Token, data.Operator = &v.User, v.FormToken(), v.User.Operator
		if o, err := s.Accounts.Organisation(v.r.Context(), v.Organisation); err == nil {
			data.Organisation = o.Name
		}
	}
	return web.WritePage(v.w, status, templates, name, data)
}

// failed shows an error as a page.
func (s *Site) failed(v *visit, err error) {
	refused, status, line := s.explain(v, err)
	data := struct{ Code, Line string }{refused.Code, line}
	if err := s.render(v, status, "error.html", view{Title: "Error", Data: data}); err != nil {
		s.API.Fail(v.w, v.r, err)
	}
}

// explain reports an error, and returns it with its HTTP status and what a page says of it.
func (s *Site) explain(v *visit, err error) (refused *service.Error, status int, line string) {
	refused, status = api.Explain(err)
	web.ReportError(v.w, v.r, s.Log, status, err)
	line = refused.Error()
	if refused.Short != nil {
		line = refused.Short.Error() + "."
		line = strings.ToUpper(line[:1]) + line[1:]
	}
	return refused, status, line
}

func (s *Site) missing(w http.ResponseWriter, r *http.Request) {
	v := &visit{w: w, r: r}
	if id, err := s.Accounts.Visitor(r.Context(), r); err == nil {
		v.Identity = id
	}
	s.failed(v, &service.Error{Code: code.NotFound, Message: "There is no such page."})
}
