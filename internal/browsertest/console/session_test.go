package console_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
)

// A keySet is the API keys of a console.
type keySet struct {
	mu   sync.Mutex
	keys map[string]apikey.Key
}

// create creates a key.
func (r *keySet) create(o apikey.Request) (id, text string) {
	made, text := apikey.New(o, time.Now())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = map[string]apikey.Key{}
	}
	r.keys[made.ID] = made
	return made.ID, text
}

func (r *keySet) revoke(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keys, id)
}

// open signs a visitor in with a valid key.
func (r *keySet) open(_ context.Context, _, text string) (console.Visitor, error) {
	id, secret, err := apikey.Parse(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.keys[id]; err == nil && one.Accepts(secret, time.Now()) {
		return console.Visitor{Name: one.Name, Scope: one.Scope, Owner: one.Owner}, nil
	}
	return console.Visitor{}, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "this key opens nothing: ask for another"}
}

// TestSigningIn: a wrong key is refused with a message, a valid one leads to the requested page, and a revoked one is refused at the next request.
func TestSigningIn(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	var keys keySet
	s.site = s.serve(console.Config{Open: keys.open})
	operator, text := keys.create(apikey.Request{Name: "grace", Scope: apikey.Operator})
	_, bound := keys.create(apikey.Request{Name: "acme", Scope: apikey.Viewer, Owner: "acme"})
	wanted := "/jobs?q=is%3Adead"
	p := s.open(wanted)
	p.See("h1", "Sign in")
	enter := func(text string) {
		write(p, "input[name=key]", text)
		p.Follow("button[type=submit]")
	}
	enter("hf_nothing")
	p.See("[role=alert]", "This key opens nothing")
	if status(p) != 401 {
		t.Errorf("a wrong key is answered with %d", status(p))
	}
	enter(bound)
	p.See("[role=alert]", "bound to an owner")
	enter(text)
	p.Until(`location.pathname + location.search === ` + quoted(wanted))
	ready(p)
	p.See(".menu-side .visitor", "grace")
	if browser.Eval[string](p, `document.cookie`) != "" && browser.Eval[bool](p, `document.cookie.includes("holdfast_session")`) {
		t.Error("scripts can read the session")
	}
	if got := p.Cookie("holdfast_session"); got == "" || got == text {
		t.Errorf("the cookie is %q", got)
	}

	p.Follow(".menu-side .menu-foot button")
	p.See("h1", "Sign in")
	p.Go(s.site + "/overview")
	p.See("h1", "Sign in")

	enter(text)
	p.Until(`location.pathname === "/overview"`)
	ready(p)
	keys.revoke(operator)
	p.Go(s.site + "/jobs")
	p.See("h1", "Sign in")
}

// TestAViewersKeyAllowsNoActions: a viewer sees no actions.
func TestAViewersKeyAllowsNoActions(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	var keys keySet
	s.site = s.serve(console.Config{Open: keys.open})
	_, text := keys.create(apikey.Request{Name: "eve", Scope: apikey.Viewer})
	at := "/jobs/" + s.Failed[0].String()
	p := s.open(at)
	write(p, "input[name=key]", text)
	p.Follow("button[type=submit]")
	p.Until(`location.pathname === ` + quoted(at))
	ready(p)
	for _, path := range []string{at, "/jobs", "/dead-letters", "/breakers", "/queues", "/failures"} {
		p.Go(s.site + path)
		ready(p)
		if n := browser.Eval[int](p, `document.querySelectorAll("main form[method=post i], main [data-selection], main [data-key]").length`); n != 0 {
			t.Errorf("%s offers %d actions", path, n)
		}
	}
	refused := browser.Eval[int](p, `fetch(`+quoted(at+"/retry")+`, { method: "POST", body: new URLSearchParams({ reason: "x" }) }).then((answer) => answer.status)`)
	if job := s.job(s.Failed[0]); refused != 403 || job.State != holdfast.Failed {
		t.Errorf("a viewer's retry is answered with %d, and the job is %s", refused, job.State)
	}
}
