package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func TestPoliciesShowTheDecisionForAFailure(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	s.shows("/policies", "No policy is applied", "It is tried 3 times and is a dead letter 18 s to 28 s after it was enqueued.", "5–10 s", "10–15 s", "Its worker crashes")
	s.shows("/policies?code=TOO_LARGE", "The first failure is final")
	s.shows("/policies?error=dial+tcp%3A+connection+refused", "NETWORK_ERROR", "by the text &#34;connection refused&#34;")
	s.shows("/policies?error=whatever", "UNKNOWN", "because no rule matches")
	s.shows("/policies?kind=convert&outage=10m", "With an outage that ends", "The job completes on attempt", "is held", "gateway")
	for _, bad := range []string{"/policies?code=NO_SUCH", "/policies?take=soon", "/policies?outage=-1s", "/policies?tab=none"} {
		if status, _ := s.get(bad); status != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, status)
		}
	}
}

func TestPoliciesFollowWhatWasApplied(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	const file = `defaults: {max_attempts: 4, backoff: {shape: fixed, delay: 10s}}
codes: {RATE_LIMITED: {max_attempts: 2}}
kinds: {mail: {backoff: {delays: [1s, 2m]}}}
`
	if _, err := s.Operator.ApplyPolicy(t.Context(), ops.PolicyRequest{Text: file}, ops.Actor{Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	s.shows("/policies", "version 1 of the policy", "It is tried 4 times and is a dead letter 34 s after it was enqueued.", "10 s, 10 s, 10 s")
	s.shows("/policies?code=RATE_LIMITED", "It is tried 2 times")
	s.shows("/policies?kind=mail", "1 s, 2 min, 2 min", "Rules for the kind mail")
	s.shows("/policies?tab=file", "shape: fixed, delay: 10s", "Version 1")
}

func TestPoliciesThatNeverEndAreReported(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	if _, err := s.Operator.ApplyPolicy(t.Context(), ops.PolicyRequest{Text: "defaults: {max_attempts: 100000, backoff: {shape: fixed, delay: 1s}}"}, ops.Actor{Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	s.shows("/policies", "after 1,000 attempts", "976 more attempts not drawn", "over 50")
}

func TestPoliciesListTheCodesThatASearchFinds(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	own, err := failure.NewTaxonomy(failure.Code{Name: "PRESS_JAM", Category: "handler", Blame: failure.BlameUs, HTTPStatus: 500, Message: "<b>The press</b> is stuck.", Remedy: "Open the lid."})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Apply(t.Context(), store.Change{Records: catalog.Publish(own, policy.GoSettings{}, "v7", nil)}); err != nil {
		t.Fatal(err)
	}
	text := s.shows("/policies?tab=codes&find="+url.QueryEscape("press stuck"), "PRESS_JAM", "&lt;b&gt;The press", "1 of 42", "former worker v7")
	if strings.Contains(text, "TOO_LARGE") {
		t.Error("a code that was not searched for")
	}
	s.shows("/policies?tab=codes&category=throttled", "RATE_LIMITED")
	s.shows("/policies?tab=codes&find=zzz", "No codes match")
}

func TestPoliciesShowTheSourceOfEachSettingAndCanBeRemoved(t *testing.T) {
	s := newScene(t, apikey.Admin, nil)
	inGo := policy.GoSettings{Kinds: map[string]policy.Described{"fax": policy.Describe(failure.Policy{MaxAttempts: 7})}}
	if err := s.Store.Apply(t.Context(), store.Change{Records: catalog.Publish(nil, inGo, "v7", nil)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Operator.ApplyPolicy(t.Context(), ops.PolicyRequest{Text: "defaults: {max_attempts: 4}"}, ops.Actor{Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	s.shows("/policies?kind=fax&code=TIMEOUT", "Source of each setting", "Go: KindOptions.Policy", "4 <span class=\"mono\">(defaults)</span>", "No live worker works on this kind")
	s.shows("/policies?tab=file", "Remove version 1 of the policy?")
	for _, bad := range []url.Values{{"reason": {"x"}}, {"version": {"2"}, "reason": {"x"}}} {
		s.post("/policies/remove", bad)
	}
	if _, err := s.Operator.Policy(t.Context()); err != nil {
		t.Errorf("a form that names no version, or another, removed the policy: %v", err)
	}
	if status, text := s.post("/policies/remove", url.Values{"version": {"1"}, "reason": {"the file is right again"}, "back": {"/policies?tab=file"}}); status != http.StatusOK || !strings.Contains(text, "Policy removed") {
		t.Errorf("%d, and the policy was not removed", status)
	}
	s.shows("/policies?tab=file", "No policy is applied")
	operator := newScene(t, apikey.Operator, nil)
	if status, _ := operator.post("/policies/remove", url.Values{"version": {"1"}, "reason": {"x"}}); status != http.StatusForbidden {
		t.Errorf("an operator removes the policy: %d", status)
	}
}
