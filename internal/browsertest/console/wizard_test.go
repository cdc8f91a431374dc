package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// TestDeadLettersAreRedriven goes from an error group to the end of a redrive that an engine carries out.
func TestDeadLettersAreRedriven(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	if err := s.Operator.ForceBreaker(t.Context(), "gateway", false, ops.Actor{Name: "grace", Reason: "the vendor says it is mended"}); err != nil {
		t.Fatal(err)
	}
	p := s.open("/failures")
	ready(p)
	leads(p, `a[data-open][href$="/failures/`+s.job(s.Failed[0]).LastFailure.Fingerprint+`"]`)
	leads(p, "main a[data-key=r]")
	p.See("main", "dead letters would be redriven")
	p.See(".preview-number", "9")
	leads(p, `.wizard-foot a[href*="step=pace"]`)
	write(p, "input[name=rate]", "50")
	write(p, "input[name=canary]", "2")
	write(p, "input[name=stop]", "20")
	leads(p, ".wizard-foot button[value=confirm]")
	p.See("main", "2 go first, the others wait")
	p.See("main", "if more than 20 %")
	write(p, "input[name=reason]", "the gateway is back")

	write(p, "input[name=count]", "8")
	if !browser.Eval[bool](p, `document.querySelector("form[data-confirm-count] button[type=submit]").disabled`) {
		t.Error("a wrong number can be sent")
	}
	browser.Eval[bool](p, `(window.before = true, document.querySelector("form[data-confirm-count]").submit(), true)`) // as a browser without JavaScript does
	p.Until(`!("before" in window)`)
	p.See("#flash", "9 match now")
	ready(p)
	if why := browser.Eval[string](p, `document.querySelector("input[name=reason]").value`); why != "the gateway is back" {
		t.Errorf("the reason is %q", why)
	}
	if n := len(s.redrives()); n != 0 {
		t.Fatalf("%d redrives were started without confirmation", n)
	}

	write(p, "input[name=count]", "9")
	p.Until(`!document.querySelector("form[data-confirm-count] button[type=submit]").disabled`)
	leads(p, "form[data-confirm-count] button[type=submit]")
	p.Until(`/\/redrives\/[0-9a-f-]{36}$/.test(location.pathname)`)
	p.See("#redrive-progress", "running")
	p.See("#redrive-stop-check", "the first 2 jobs go first")
	stays(p)
	s.work()
	p.See("#redrive-progress .badge", "done")
	p.See("#redrive-progress", "9 jobs complete")
	p.See("#redrive-stop-check", "passed: the first 2 jobs ended within the limit")
	kept(t, p)
	for _, id := range s.Failed {
		if job := s.job(id); job.State != holdfast.Complete || job.Generation != 2 {
			t.Errorf("job %s is %s in generation %d", id, job.State, job.Generation)
		}
	}
	if o := s.redrives()[0].Spec; o.PerSecond != 50 || o.Canary != 2 || o.StopAbove != 0.2 || o.Actor != "ada" || o.Reason != "the gateway is back" {
		t.Errorf("the redrive was requested with %+v", o)
	}
	if bad := p.Complaints(); len(bad) > 0 {
		t.Errorf("complaints: %v", bad)
	}
}

// TestAllThatMatchAreRedriven selects more than the page shows, from the list of dead letters.
func TestAllThatMatchAreRedriven(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	s.fail(120, "crowd", "the printer is out of paper")
	p := s.open("/failures")
	ready(p)
	leads(p, `main a.button[href*="/redrives/new"]`)
	p.See(".preview-number", "133")
	p.See(".reason-counts", "Unique key held by another")
	p.Go(s.site + "/dead-letters?kind=crowd")
	ready(p)
	listed := len(rows(p))
	p.Press("a")
	p.See("[data-selected-count]", fmt.Sprint(listed))
	p.Press("A")
	p.See("[data-selected-count]", "120")
	leads(p, "[data-selection] button[data-key=r]")
	p.See(".preview-number", "120")
	p.See("main", "Failures")
}

// TestOneFormStartsOneRedrive sends the same form several times at once.
func TestOneFormStartsOneRedrive(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	p := s.open("/redrives/new?kind=convert&step=confirm")
	ready(p)
	write(p, "input[name=reason]", "the gateway is back")
	write(p, "input[name=count]", "9")
	at := browser.Eval[[]string](p, `((form) => Promise.all([1, 2, 3].map(() => fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) }).then((answer) => answer.url))))(document.querySelector("form[data-confirm-count]"))`)
	p.Until(`!document.querySelector("form[data-confirm-count] button[type=submit]").disabled`)
	leads(p, "form[data-confirm-count] button[type=submit]")
	p.See("#flash", "was already started")
	list := s.redrives()
	if len(list) != 1 {
		t.Fatalf("one form started %d redrives", len(list))
	}
	for _, one := range append(at, browser.Eval[string](p, `location.href`)) {
		if !strings.HasSuffix(one, "/redrives/"+list[0].ID.String()) {
			t.Errorf("the form led to %s", one)
		}
	}
}

// TestARedriveIsPausedAndCancelled: an operator can pause and cancel it, and other pages show that without a reload.
func TestARedriveIsPausedAndCancelled(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	id, err := s.Operator.StartRedrive(t.Context(), redrive.Spec{Filter: store.Filter{Kind: "convert"}, PerSecond: 0.01, Actor: "grace", Reason: "carefully"})
	if err != nil {
		t.Fatal(err)
	}
	at := "/redrives/" + id.String()
	p, other := s.open(at), s.open(at)
	ready(p)
	ready(other)
	stays(other)
	for _, word := range []struct{ verb, why, state string }{{"pause", "lunch", "paused"}, {"resume", "", "running"}, {"cancel", "it makes things worse", "cancelled"}} {
		p.Click("[popovertarget=" + word.verb + "]:not([popovertargetaction])")
		p.See(":popover-open", "this redrive")
		if word.verb == "cancel" && browser.Eval[bool](p, `document.querySelector(":popover-open").checkValidity()`) {
			t.Error("no reason is asked for")
		}
		write(p, ":popover-open input[name=reason]", word.why)
		leads(p, ":popover-open button[type=submit]")
		p.See("#redrive-progress .badge", word.state)
		other.See("#redrive-progress .badge", word.state)
		other.See("#redrive-story", word.why)
		if got := s.redrives()[0].State; string(got) != word.state {
			t.Errorf("after %s it is %s", word.verb, got)
		}
	}
	other.Until(`document.querySelectorAll("#redrive-actions button").length === 0`)
	kept(t, other)
}
