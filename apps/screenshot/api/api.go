// Package api is the HTTP API of the screenshot service, /api/v1: it identifies callers, translates between JSON and package service, and describes itself (OpenAPI).
package api

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
	"github.com/holdfastdev/holdfast/internal/limit"
)

// Prefix is the beginning of all paths of the API.
const Prefix = "/api/v1"

const maxBody = 2 << 20

// Config is what an API needs.
type Config struct {
	Service  *service.Service
	Accounts *account.Service
	Feed     Feed
	Log      *slog.Logger
	// PerMinute is how many requests that change something an organisation may make in a minute; no limit when zero.
	PerMinute int
}

// A Feed streams the events of the shots of an organisation.
type Feed interface {
	Serve(w http.ResponseWriter, r *http.Request, owner, group string) error
}

// An API answers requests.
type API struct {
	Config
	rates limit.Rates
}

// New returns the API.
func New(cfg Config) *API {
	a := &API{Config: cfg}
	if n := cfg.PerMinute; n > 0 {
		a.rates = limit.Rates{Burst: n, Every: time.Minute / time.Duration(n)}
	}
	return a
}

// A call is a request of an identified caller.
type call struct {
	w http.ResponseWriter
	r *http.Request
	account.Identity
}

// caller returns the caller as the service records it.
func (c *call) caller() service.Caller {
	return service.Caller{Owner: c.Organisation, User: c.User.ID, Name: c.Name(), Request: web.ReplyOf(c.w).ID}
}

// id returns the id in the path.
func (c *call) id() (holdfast.ID, error) {
	id, err := holdfast.ParseID(c.r.PathValue("id"))
	if err != nil {
		return id, &service.Error{Code: code.NotFound}
	}
	return id, nil
}

// read decodes the body.
func (c *call) read(into any) error {
	in := json.NewDecoder(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	in.DisallowUnknownFields()
	err := in.Decode(into)
	if err == nil && in.More() {
		err = errors.New("there is something behind the JSON value")
	}
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	large := (*http.MaxBytesError)(nil)
	if errors.As(err, &large) {
		return &service.Error{Code: code.Validation, Message: "The body is larger than " + strconv.FormatInt(large.Limit>>20, 10) + " MiB."}
	}
	return &service.Error{Code: code.Validation, Message: "The body is not valid: " + strings.TrimPrefix(err.Error(), "json: ")}
}

// Mount mounts all routes.
func (a *API) Mount(mux *http.ServeMux) {
	for _, one := range a.routes() {
		mux.HandleFunc(one.method+" "+Prefix+one.path, func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, one) })
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		if allowed := web.Methods(w, r, mux, http.MethodGet, http.MethodPost, http.MethodDelete); len(allowed) > 0 {
			a.write(w, http.StatusMethodNotAllowed, failed{Error: code.Validation, Message: "Use " + strings.Join(allowed, " or ") + " for this path."})
			return
		}
		a.Fail(w, r, &service.Error{Code: code.NotFound, Message: "There is nothing at this path. GET " + Prefix + "/openapi.json lists the paths."})
	})
}

func (a *API) serve(w http.ResponseWriter, r *http.Request, one route) {
	c := &call{w: w, r: r}
	err := a.identify(c, one)
	if err == nil {
		err = one.do(c)
	}
	if err != nil {
		a.Fail(w, r, err)
	}
}

// identify finds out who calls, and whether the route is for that caller.
func (a *API) identify(c *call, one route) (err error) {
	if one.scope == "" {
		return nil
	}
	if c.Identity, err = a.Accounts.Bearer(c.r.Context(), c.r); err != nil {
		return err
	}
	if !c.May(one.scope) {
		return &service.Error{Code: code.Forbidden, Message: "This API key does not have the scope " + string(one.scope) + "."}
	}
	if one.method != http.MethodGet && a.PerMinute > 0 && !a.rates.Allow(c.Organisation) {
		return &service.Error{Code: code.RateLimited, After: time.Minute / time.Duration(a.PerMinute)}
	}
	return nil
}

// A failed is the answer to a request that is refused, with the members of the specification.
type failed struct {
	Error     string            `json:"error"`
	Message   string            `json:"message"`
	Required  *int64            `json:"requiredCredits,omitempty"`
	Available *int64            `json:"availableCredits,omitempty"`
	Fields    []shot.FieldError `json:"fields,omitempty"`
	RequestID string            `json:"requestId"`
}

// Explain returns the refusal for any error, and its status.
func Explain(err error) (*service.Error, int) {
	refused := (*service.Error)(nil)
	if errors.As(err, &refused) {
		return refused, code.Of(refused.Code).HTTPStatus
	}
	status := account.Status(err)
	for name, of := range map[string]int{
		code.Validation: http.StatusBadRequest, code.Unauthorized: http.StatusUnauthorized, code.Forbidden: http.StatusForbidden,
		code.NotFound: http.StatusNotFound, code.ConcurrentModification: http.StatusConflict, code.RateLimited: http.StatusTooManyRequests,
	} {
		if of == status {
			message := strings.TrimPrefix(err.Error(), account.ErrInvalid.Error()+": ")
			return &service.Error{Code: name, Message: strings.ToUpper(message[:1]) + message[1:] + ".", Cause: err}, status
		}
	}
	return &service.Error{Code: code.SystemError, Cause: err}, http.StatusInternalServerError
}

// Fail answers a request with an error. An error of the service is logged in full; the client sees one line.
func (a *API) Fail(w http.ResponseWriter, r *http.Request, err error) {
	refused, status := Explain(err)
	web.ReportError(w, r, a.Log, status, err)
	if refused.Code == code.Unauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="screenshot"`)
		if errors.Is(err, account.ErrNoIdentity) {
			refused = &service.Error{Code: code.Unauthorized, Message: "Send Authorization: Bearer with an API key. The page makes one under Keys."}
		}
	}
	web.SetRetryAfter(w, refused.After)
	body := failed{Error: refused.Code, Message: refused.Error(), Fields: refused.Fields, RequestID: web.ReplyOf(w).ID}
	if refused.Short != nil {
		body.Required, body.Available = &refused.Short.Required, &refused.Short.Available
	}
	a.write(w, status, body)
}

func (a *API) write(w http.ResponseWriter, status int, body any) {
	_ = web.WriteJSON(w, status, body) // it always marshals
}
