// Package access says who sent a request and what it may do: by its API key, or because only this machine can send it.
package access

import (
	"errors"
	"net/http"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/internal/keyring"
	"github.com/holdfastdev/holdfast/store"
)

// A Caller is who sent a request.
type Caller struct {
	Owner string // of what it submits
	All   bool   // it sees and changes the jobs of every owner
	Name  string // for the audit log
}

// Scope returns the owner whose jobs the caller sees; empty: every owner's.
func (c Caller) Scope() string {
	if c.All {
		return ""
	}
	return c.Owner
}

// A Gate identifies callers. A read-only key is refused for anything but GET and HEAD. It is safe for concurrent use.
type Gate struct {
	keys *keyring.Gate
	from store.Maintainer
	open bool
}

// NewGate makes a Gate that reads API keys from a store. With open, visitors of the pages need no key.
func NewGate(from store.Maintainer, open bool) *Gate {
	return &Gate{keys: keyring.NewGate(), from: from, open: open}
}

// Client identifies the sender of a request to the API by the API key in its Authorization header.
func (g *Gate) Client(w http.ResponseWriter, r *http.Request) (Caller, error) {
	given := r.Header["Authorization"]
	if len(given) == 0 {
		w.Header().Set("WWW-Authenticate", `Bearer realm="fetchbox"`)
		return Caller{}, refusal.Error{Code: code.AuthMissing, Line: "Send Authorization: Bearer hf_... with an API key. `fetchbox key create --name NAME` makes one."}
	}
	k, err := g.keys.Bearer(r.Context(), g.from, given, r.RemoteAddr)
	if err = refused(err); err != nil {
		if errors.As(err, new(refusal.Error)) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="fetchbox"`)
		}
		return Caller{}, err
	}
	return callerOf(k, r.Method)
}

// Visitor identifies the visitor of a page. An open page is open to everyone, as files of this user are. Otherwise the browser asks for an API key: it is the password,
// and the user name does not matter.
func (g *Gate) Visitor(w http.ResponseWriter, r *http.Request) (Caller, error) {
	if g.open {
		return Caller{Owner: "local", All: true, Name: "page"}, nil
	}
	_, key, ok := r.BasicAuth()
	if ok {
		k, err := g.keys.Open(r.Context(), g.from, key, r.RemoteAddr)
		if err == nil {
			return callerOf(k, r.Method)
		}
		if !errors.As(refused(err), new(refusal.Error)) {
			return Caller{}, err
		}
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="fetchbox: an API key as the password", charset="UTF-8"`)
	return Caller{}, refusal.Error{Code: code.AuthMissing, Line: "Sign in with an API key as the password."}
}

var (
	badKey         = refusal.Error{Code: code.AuthInvalid, Line: "This API key is not valid. Send Authorization: Bearer hf_... with a complete key that is not revoked or expired."}
	tooManyBadKeys = refusal.Error{Code: code.AuthInvalid, Status: http.StatusTooManyRequests, Line: "Too many requests with an invalid API key came from this address. Check the key and try again later.", After: 2 * time.Second}
)

// refused returns the answer for an error of a key.
func refused(err error) error {
	switch {
	case errors.Is(err, keyring.ErrInvalid):
		return badKey
	case errors.Is(err, keyring.ErrTooMany):
		return tooManyBadKeys
	}
	return err
}

// callerOf returns what a key allows for a request with a method.
func callerOf(k apikey.Key, method string) (Caller, error) {
	needed := apikey.Operator
	if method == http.MethodGet || method == http.MethodHead {
		needed = apikey.Viewer
	}
	if !k.Scope.Allows(needed) {
		return Caller{}, refusal.Error{Code: code.AuthForbidden, Line: "This API key is read-only."}
	}
	c := Caller{Owner: k.Owner, All: k.Scope.Allows(apikey.Admin) && k.Owner == "", Name: k.Name}
	if c.Owner == "" {
		c.Owner = "key-" + k.ID
	}
	return c, nil
}
