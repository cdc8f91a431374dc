// Package site is the pages of the watermark service: videos, campaigns with their tokens, downloads for recipients, and searches for marks. They are rendered completely on the
// server and work without JavaScript; a script replaces their parts when something happens.
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

	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/apps/watermark/campaign"
	"github.com/holdfastdev/holdfast/apps/watermark/code"
)

//go:embed page
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"bytes": web.FormatBytes[int64], "day": web.FormatMinute, "lower": lower, "chance": formatChance, "span": formatSpan, "retries": func() int { return code.Retries },
}).ParseFS(files, "page/*.html"))

// Config is what the pages need.
type Config struct {
	Campaigns *campaign.Service
	Accounts  *account.Service
	Log       *slog.Logger
	SignUp    bool   // any visitor may make an account
	Folder    string // of the service
	Upload    int64  // maximum bytes of an upload
	Public    string // the address of the service; empty: the one that the browser asks for
	KeptMail  bool   // there is no mail server: mails are shown on a page
	// HookSecret returns the secret that signs the webhooks of an owner.
	HookSecret func(owner string) string
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

// NoMetrics counts nothing.
type NoMetrics struct{}

// ObserveRequest does nothing.
func (NoMetrics) ObserveRequest(string, int, time.Duration) {}

// A visit is a request for a page, or of a form.
type visit struct {
	w http.ResponseWriter
	r *http.Request
	account.Identity
}

// back redirects after a form. said is the name of a notice.
func (v *visit) back(to string, said ...string) error {
	query := url.Values{}
	for i := 0; i+1 < len(said); i += 2 {
		query.Set(said[i], said[i+1])
	}
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// A problem is an error with a status and a line for the user.
type problem struct {
	status int
	line   string
	cause  error
}

func (p *problem) Error() string { return p.line }
func (p *problem) Unwrap() error { return p.cause }

// Mount mounts the pages and their forms.
func (s *Site) Mount(mux *http.ServeMux) {
	mux.Handle("GET /assets/{version}/{name}", s.assets)
	for pattern, do := range map[string]func(v *visit) error{
		"GET /sign-in": s.signInPage, "POST /sign-in": s.signIn, "GET /sign-up": s.signUpPage, "POST /sign-up": s.signUp,
		"GET /d/{secret}": s.downloadPage, "GET /d/{secret}/file": s.download,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(&visit{w: w, r: r}, do) })
	}
	for pattern, do := range map[string]func(v *visit) error{
		"GET /{$}": s.list, "GET /campaigns": s.list, "GET /campaigns/new": s.newPage, "POST /campaigns": s.create, "GET /campaigns/{id}": s.show,
		"POST /campaigns/{id}/recipients": s.addRecipients, "POST /campaigns/{id}/publish": s.publish, "POST /campaigns/{id}/tokens/{token}/retry": s.retry,
		"POST /campaigns/{id}/tokens/{token}/remove": s.removeRecipient, "POST /videos/sample": s.sample,
		"GET /campaigns/{id}/links.csv": s.links,
		"GET /campaigns/{id}/events":    s.events, "GET /campaigns/{id}/tokens/{token}/events": s.events,
		"GET /videos": s.videos, "GET /detect": s.startPage, "GET /detect/{id}": s.found, "GET /detect/{id}/evidence": s.evidence,
		"GET /notices": s.notices, "POST /notices": s.setNotices, "POST /sign-out": s.signOut,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(&visit{w: w, r: r}, s.member(do)) })
	}
	for pattern, do := range map[string]func(v *visit) error{"POST /videos": s.upload, "POST /detect": s.detect} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serveUpload(&visit{w: w, r: r}, do) })
	}
	for pattern, do := range map[string]func(v *visit) error{"POST /uploads": s.beginUpload, "HEAD /uploads/{id}": s.lookUpload, "GET /uploads/{id}": s.lookUpload, "PATCH /uploads/{id}": s.appendUpload} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serveParts(&visit{w: w, r: r}, do) })
	}
	mux.HandleFunc("/", s.missing)
}

const maxForm = 1 << 20

func (s *Site) serve(v *visit, do func(v *visit) error) {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	err := v.r.ParseMultipartForm(maxForm)
	if errors.Is(err, http.ErrNotMultipart) {
		err = nil // the form was parsed
	}
	if err != nil {
		err = &problem{http.StatusBadRequest, "The form did not arrive completely, or it is too long.", err}
	} else {
		err = do(v)
	}
	if err != nil {
		s.failed(v, err)
	}
}

// member serves a page for people who are signed in. Others are sent to the form for that, and a form without the token of its session is refused.
func (s *Site) member(do func(v *visit) error) func(v *visit) error {
	return func(v *visit) (err error) {
		v.Identity, err = s.Accounts.Visitor(v.r.Context(), v.r)
		if errors.Is(err, account.ErrNoIdentity) && v.r.Method == http.MethodGet && !strings.HasSuffix(v.r.URL.Path, "/events") {
			return v.back("/sign-in", "to", v.r.URL.RequestURI())
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
	}
}

// A view is the data of every page.
type view struct {
	Assets, Title, Notice, Bad, Nav, Token string
	Now                                    time.Time
	User                                   *account.User // nil: not signed in
	Data                                   any
}

// notices are the messages after a form. The address contains only their names, so that a link cannot put a text of its choice on the page.
var notices = map[string]string{
	"created": "The campaign is a draft. Add recipients, then publish it.", "added": "The recipients were added.", "published": "The campaign is published.",
	"uploaded": "The video was uploaded.", "removed": "The recipient was removed.", "sample": "A sample clip was made.", "out": "You are signed out.", "saved": "The address is stored.",
}

func (s *Site) render(v *visit, status int, name string, data view) error {
	data.Assets, data.Now = s.assets.Path(), time.Now().UTC()
	data.Notice = cmp.Or(data.Notice, notices[v.r.URL.Query().Get("said")])
	if v.User.ID != "" {
		data.User, data.Token = &v.User, v.FormToken()
	}
	return web.WritePage(v.w, status, templates, name, data)
}

// explain returns the status and the line of an error.
func explain(err error) (int, string) {
	if p, ok := errors.AsType[*problem](err); ok {
		return p.status, p.line
	}
	if status := account.Status(err); status != 0 {
		return status, sentence(err.Error())
	}
	for known, status := range map[error]int{
		campaign.ErrNotFound: http.StatusNotFound, campaign.ErrInvalid: http.StatusBadRequest, campaign.ErrPublished: http.StatusConflict, campaign.ErrNotFailed: http.StatusBadRequest,
		campaign.ErrNotReady: http.StatusConflict, campaign.ErrConsumed: http.StatusGone, campaign.ErrExpired: http.StatusGone,
		campaign.ErrOffset: http.StatusConflict, campaign.ErrReceiving: http.StatusLocked, campaign.ErrTooLarge: http.StatusRequestEntityTooLarge,
	} {
		if errors.Is(err, known) {
			return status, sentence(err.Error())
		}
	}
	c := code.Of(code.Name(err))
	if c.Name == code.SystemError {
		return http.StatusInternalServerError, c.Message
	}
	return c.HTTPStatus, c.Message + " " + sentence(err.Error()) + " " + c.Remedy
}

// sentence makes an error into a sentence.
func sentence(text string) string {
	text = strings.TrimPrefix(text, campaign.ErrInvalid.Error()+": ")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// failed shows an error as a page.
func (s *Site) failed(v *visit, err error) {
	status, line := explain(err)
	web.ReportError(v.w, v.r, s.Log, status, err)
	if err := s.render(v, status, "error.html", view{Title: "Error", Data: line}); err != nil {
		http.Error(v.w, line, status)
	}
}

func (s *Site) missing(w http.ResponseWriter, r *http.Request) {
	v := &visit{w: w, r: r}
	if id, err := s.Accounts.Visitor(r.Context(), r); err == nil {
		v.Identity = id
	}
	s.failed(v, &problem{http.StatusNotFound, "There is no such page.", nil})
}

// Refused answers a request that is not passed on, or that panicked.
func (s *Site) Refused(w http.ResponseWriter, why web.Refusal) {
	switch why {
	case web.OtherSite:
		http.Error(w, "This request came from another site. Open the page itself and try again.", http.StatusForbidden)
	case web.OtherHost:
		http.Error(w, "This site does not serve that host name. If it should, set HOSTS to the name that visitors use.", http.StatusMisdirectedRequest)
	default:
		http.Error(w, code.Of(code.SystemPanic).Message, http.StatusInternalServerError)
	}
}
