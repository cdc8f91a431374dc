package httpjob_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/kind/httpjob"
)

// circuit is the part of a breaker record that tests check: its state, the last calls and how often it opened.
type circuit struct {
	State  string `json:"state"`
	Recent string `json:"recent"`
	Opens  int    `json:"opens"`
}

func (p *harness) readBreaker(dependency string) (c circuit) {
	p.Helper()
	records, err := p.store.Records(p.Context(), "breaker")
	if err != nil {
		p.Fatal(err)
	}
	for _, r := range records {
		if r.Name == dependency {
			if err := json.Unmarshal(r.Body, &c); err != nil {
				p.Fatal(err)
			}
		}
	}
	return c
}

// Drafts that were not prepared stand for jobs whose address was changed by an edit or a redrive.
func TestOnlyTheHostThatIsCalledIsBlamed(t *testing.T) {
	down := newReceiver(t, status(502), status(502), status(502), status(502), status(502), status(502), status(502), status(502), status(502), status(502), status(502), status(502))
	host := down.Listener.Addr().String()
	p := buildIn(t, nil, engine.Config{Slots: 1, Dependencies: map[string]engine.Dependency{"bank.example": {}, host: {}}})
	var drafts []holdfast.Draft
	for range 12 {
		d, err := holdfast.NewDraft(httpjob.Request{URL: down.URL})
		if err != nil {
			t.Fatal(err)
		}
		d.Dependency, d.MaxAttempts = "bank.example", 1
		drafts = append(drafts, d)
	}
	p.runAll(p.store, drafts...)
	p.waitUntil("the breaker of the host that failed", func() bool { return p.readBreaker(host).Opens > 0 })
	if c := p.readBreaker("bank.example"); c.Recent != "" || c.Opens > 0 {
		t.Errorf("the call counted for another host: %+v", c)
	}
	d, _ := holdfast.NewDraft(httpjob.Request{URL: newReceiver(t).URL})
	d.Dependency = "bank.example"
	if job := p.runDraft(p.store, d); job.State != holdfast.Complete {
		t.Errorf("a job of the other host is %s: %+v", job.State, job.LastFailure)
	}
}

// A person who enqueues chooses the address, and many hosts have a page that redirects wherever its query says.
func TestAHostIsNotBlamedForTheTargetOfItsRedirect(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"that answers with an error": status(502), "that breaks the connection": resets} {
		t.Run(name, func(t *testing.T) {
			down := newReceiver(t, slices.Repeat([]http.HandlerFunc{answer}, 12)...)
			front := newReceiver(t, slices.Repeat([]http.HandlerFunc{status(http.StatusFound, "Location", down.URL)}, 12)...)
			host, target := front.Listener.Addr().String(), down.Listener.Addr().String()
			p := buildIn(t, nil, engine.Config{Slots: 1, Dependencies: map[string]engine.Dependency{host: {}, target: {}}})
			var drafts []holdfast.Draft
			for range 12 {
				d, err := httpjob.Draft(httpjob.Request{URL: front.URL, Redirects: 1})
				if err != nil {
					t.Fatal(err)
				}
				d.MaxAttempts = 1
				drafts = append(drafts, d)
			}
			p.runAll(p.gate, drafts...)
			p.waitUntil("the breaker of the host that failed", func() bool { return p.readBreaker(target).Opens > 0 })
			if c := p.readBreaker(host); c.Opens > 0 || strings.Contains(c.Recent, "x") {
				t.Errorf("the failed calls counted for the host that redirected: %+v", c)
			}
		})
	}
}

func TestATimeoutFarBelowTheUsualOneSaysNothingAboutTheHost(t *testing.T) {
	slow := newReceiver(t, stuck, stuck, stuck, stuck, stuck, stuck, stuck, stuck, stuck, stuck, stuck, stuck)
	down := newReceiver(t, status(502))
	host := slow.Listener.Addr().String()
	p := buildIn(t, nil, engine.Config{Slots: 12, Dependencies: map[string]engine.Dependency{host: {}, down.Listener.Addr().String(): {}}})
	var drafts []holdfast.Draft
	for range 12 {
		d, err := httpjob.Draft(httpjob.Request{URL: slow.URL, Timeout: httpjob.Duration(time.Millisecond)})
		if err != nil {
			t.Fatal(err)
		}
		d.MaxAttempts = 1
		drafts = append(drafts, d)
	}
	for _, job := range p.runAll(p.gate, drafts...) {
		if job.LastFailure == nil || job.LastFailure.Code != "HTTP_TIMEOUT" {
			t.Fatalf("%s: %+v", job.State, job.LastFailure)
		}
	}
	// Breakers are saved together: when this failed call is saved, earlier ones would be, too.
	bad, err := httpjob.Draft(httpjob.Request{URL: down.URL})
	if err != nil {
		t.Fatal(err)
	}
	bad.MaxAttempts = 1
	p.runDraft(p.gate, bad)
	p.waitUntil("a bad call to be kept", func() bool { return p.readBreaker(down.Listener.Addr().String()).Recent == "x" })
	if c := p.readBreaker(host); c.Opens > 0 || c.Recent != "" {
		t.Errorf("calls with a very short timeout counted for the breaker: %+v", c)
	}
}
