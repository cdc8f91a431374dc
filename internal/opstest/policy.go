package opstest

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// publish does what an engine does with its own codes when it starts.
func (s *scene) publish(version string, codes ...failure.Code) string {
	s.Helper()
	own, err := failure.NewTaxonomy(codes...)
	s.must(err)
	records, err := s.store.Records(s.ctx, catalog.Namespace)
	s.must(err)
	s.must(s.store.Apply(s.ctx, store.Change{Records: catalog.Publish(own, policy.GoSettings{}, version, records)}))
	return catalog.Name(own, policy.GoSettings{})
}

func mailboxUnknown(message string) failure.Code {
	return failure.Code{Name: "MAILBOX_UNKNOWN", Category: "input", Blame: failure.BlameUser, HTTPStatus: 422, Message: message, Remedy: "Ask the customer for another address."}
}

// entry finds a code in the list of all.
func (s *scene) entry(name string) (found catalog.Entry) {
	s.Helper()
	codes, err := s.operator.Codes(s.ctx)
	s.must(err)
	n := slices.IndexFunc(codes, func(e catalog.Entry) bool { return e.Code.Name == name })
	if n < 0 {
		s.Fatalf("%s is not listed", name)
	}
	return codes[n]
}

func publishedCodes(s *scene) {
	if e := s.entry("TIMEOUT"); e.Source != catalog.BuiltIn || !e.Live || e.Code.Remedy == "" {
		s.Errorf("a built-in code is listed as %+v", e)
	}
	first := s.publish("v1", mailboxUnknown("No such mailbox."))
	s.publish("v2", mailboxUnknown("The mailbox does not exist."))
	s.must(s.store.ReportWorker(s.ctx, store.WorkerInfo{Worker: "w1", Version: "v1", Codes: first, For: time.Hour}))
	e := s.entry("MAILBOX_UNKNOWN")
	if e.Code != mailboxUnknown("No such mailbox.") || e.Source != catalog.Worker || !e.Live || !slices.Equal(e.Versions, []string{"v1"}) || e.PublishedAt.IsZero() {
		s.Errorf("the live worker's definition does not apply: %+v", e)
	}
	if len(e.Others) != 1 || e.Others[0].Live || e.Others[0].Code.Message != "The mailbox does not exist." {
		s.Errorf("the other definition is listed as %+v", e.Others)
	}
	id := s.enqueue()
	s.settle(s.claim(id), func(t *store.Settlement) {
		fail(t)
		t.Failure.Code, t.Failure.Category, t.Failure.Message = "MAILBOX_UNKNOWN", "input", "No such mailbox."
	})
	letters, _, err := s.operator.DeadLetters(s.ctx, store.Filter{})
	s.must(err)
	if len(letters) != 1 || letters[0].Code != e.Code {
		s.Errorf("the dead letter has %+v", letters)
	}
	trouble, err := s.operator.ErrorGroup(s.ctx, "f1")
	s.must(err)
	if trouble.Code != e.Code {
		s.Errorf("the error group has %+v", trouble.Code)
	}
	why, err := s.operator.Explain(s.ctx, id)
	s.must(err)
	if !strings.Contains(why.Reasons[0].Remedy, "Ask the customer for another address") {
		s.Errorf("the job is explained by %+v", why.Reasons)
	}
}

func policiesRemoved(s *scene) {
	s.expect(s.operator.RemovePolicy(s.ctx, 0, byPerson("ann", "")), holdfast.ErrNotFound)
	for _, text := range []string{"defaults: {max_attempts: 4}", "defaults: {max_attempts: 5}"} {
		_, err := s.operator.ApplyPolicy(s.ctx, ops.PolicyRequest{Text: text}, byPerson("ann", ""))
		s.must(err)
	}
	_, err := s.operator.ApplyPolicy(s.ctx, ops.PolicyRequest{Text: "defaults: {max_attempts: 6}", Replaces: 1}, byPerson("ann", ""))
	s.expect(err, holdfast.ErrConflict)
	s.expect(s.operator.RemovePolicy(s.ctx, 1, byPerson("ann", "")), holdfast.ErrConflict)
	s.expect(s.operator.RemovePolicy(s.ctx, 2, byPerson("", "")), holdfast.ErrInvalid)
	s.must(s.operator.RemovePolicy(s.ctx, 2, byPerson("ann", "the file is right again")))
	s.expectEvents("policy", "removed", "applied", "applied")
	_, err = s.operator.Policy(s.ctx)
	s.expect(err, holdfast.ErrNotFound)
	s.expect(s.operator.RemovePolicy(s.ctx, 0, byPerson("ann", "")), holdfast.ErrNotFound)
	again, err := s.operator.ApplyPolicy(s.ctx, ops.PolicyRequest{Text: "defaults: {max_attempts: 5}"}, byPerson("ann", ""))
	s.must(err)
	if again.Version != 4 {
		s.Errorf("after a removal versions do not go on: %d", again.Version)
	}
}

func policiesOfUnknownCodes(s *scene) {
	const text = "codes: {MAILBOX_UNKNOWN: {retryable: false}}"
	order := ops.PolicyRequest{Text: text}
	_, err := s.operator.ApplyPolicy(s.ctx, order, byPerson("ann", ""))
	s.expect(err, holdfast.ErrInvalid)
	if !strings.Contains(err.Error(), "line 1") || !strings.Contains(err.Error(), "MAILBOX_UNKNOWN") {
		s.Errorf("the refusal says %v", err)
	}
	order.Codes = []string{"MAILBOX_UNKNOWN", "no name"}
	_, err = s.operator.ApplyPolicy(s.ctx, order, byPerson("ann", ""))
	s.expect(err, holdfast.ErrInvalid)
	order.Codes = order.Codes[:1]
	_, err = s.operator.ApplyPolicy(s.ctx, order, byPerson("ann", "its workers start tomorrow"))
	s.must(err)
	s.must(s.operator.RemovePolicy(s.ctx, 0, byPerson("ann", "")))
	s.publish("v1", mailboxUnknown("No such mailbox."))
	_, err = s.operator.ApplyPolicy(s.ctx, ops.PolicyRequest{Text: text}, byPerson("ann", ""))
	s.must(err)
	_, err = s.operator.ApplyPolicy(s.ctx, ops.PolicyRequest{Text: "codes: {MAILBOX_UNKNOW: {retryable: false}}"}, byPerson("ann", ""))
	s.expect(err, holdfast.ErrInvalid)
	if !strings.Contains(err.Error(), "did you mean MAILBOX_UNKNOWN?") {
		s.Errorf("the refusal says %v", err)
	}
}

func policiesNotFollowed(s *scene) {
	_, err := s.operator.ApplyPolicy(s.ctx, ops.PolicyRequest{Text: "defaults: {max_attempts: 4}"}, byPerson("ann", ""))
	s.must(err)
	s.must(s.store.ReportWorker(s.ctx, store.WorkerInfo{Worker: "w1", Policy: 1, For: time.Hour}))
	s.must(s.store.ReportWorker(s.ctx, store.WorkerInfo{Worker: "w2", Misses: "version 1 cannot be read here", For: time.Hour}))
	p, err := s.operator.Policy(s.ctx)
	s.must(err)
	if !slices.Equal(p.Workers, []ops.PolicyWorker{{Worker: "w1", Version: 1}, {Worker: "w2", Misses: "version 1 cannot be read here"}}) {
		s.Errorf("the policy is followed by %+v", p.Workers)
	}
}

func policiesExplained(s *scene) {
	setting := func(e policy.Explanation, name string) (found policy.Setting) {
		if n := slices.IndexFunc(e.Settings, func(one policy.Setting) bool { return one.Name == name }); n >= 0 {
			found = e.Settings[n]
		}
		return found
	}
	explain := func(q ops.PolicyQuestion) policy.Explanation {
		s.Helper()
		e, err := s.operator.ExplainPolicy(s.ctx, q)
		s.must(err)
		return e
	}
	e := explain(ops.PolicyQuestion{Kind: "mail", Code: "TIMEOUT"})
	if got := setting(e, "max_attempts"); got.Value != "3" || got.Source != "built in" || len(e.Notes) != 2 || e.Version != 0 {
		s.Errorf("without a policy and workers: %+v, %q", got, e.Notes)
	}
	inGo := policy.GoSettings{Engine: policy.Describe(failure.Policy{MaxCrashes: 7}), Kinds: map[string]policy.Described{"mail": policy.Describe(failure.Policy{MaxAttempts: 4})}}
	s.must(s.store.Apply(s.ctx, store.Change{Records: catalog.Publish(nil, inGo, "v1", nil)}))
	s.must(s.store.ReportWorker(s.ctx, store.WorkerInfo{Worker: "w1", Kinds: []string{"mail"}, Depends: map[string]string{"mail": "smtp"}, Version: "v1", Codes: catalog.Name(nil, inGo), For: time.Hour}))
	_, err := s.operator.ApplyPolicy(s.ctx, ops.PolicyRequest{Text: "defaults: {max_attempts: 5, backoff: {shape: fixed, delay: 2s}}\nowners: {acme: {max_attempts: 9}}\ndependencies: {smtp: {breaker: {open_for: 5s}}}"}, byPerson("ann", ""))
	s.must(err)
	for _, want := range []struct {
		q                   ops.PolicyQuestion
		name, value, source string
	}{
		{ops.PolicyQuestion{Kind: "mail"}, "max_attempts", "4", "Go: KindOptions.Policy"},
		{ops.PolicyQuestion{Kind: "mail"}, "backoff", "fixed: 2s", "defaults"},
		{ops.PolicyQuestion{Kind: "mail"}, "max_crashes", "7", "Go: Config.Policy"},
		{ops.PolicyQuestion{Kind: "mail"}, "breaker.open_for", "5s", "dependencies.smtp"},
		{ops.PolicyQuestion{Kind: "mail", Owner: "acme"}, "max_attempts", "9", "owners.acme"},
		{ops.PolicyQuestion{Kind: "other"}, "max_attempts", "5", "defaults"},
		{ops.PolicyQuestion{Kind: "holdfast.webhook"}, "max_attempts", "3", "built in"},
		{ops.PolicyQuestion{Job: s.enqueue(func(d *holdfast.Draft) { d.Kind, d.Owner, d.MaxAttempts = "mail", "acme", 2 })}, "max_attempts", "2", "the job"},
	} {
		e := explain(want.q)
		if got := setting(e, want.name); got.Value != want.value || got.Source != want.source || e.Version != 1 {
			s.Errorf("%+v: %s is %q of %q, want %q of %q", want.q, want.name, got.Value, got.Source, want.value, want.source)
		}
	}
	p, err := s.operator.Policy(s.ctx)
	s.must(err)
	if len(p.InGo) != 2 || p.InGo[0].Settings["max_crashes"] != "7" || p.InGo[1].Kind != "mail" || p.InGo[1].Settings["max_attempts"] != "4" || !slices.Equal(p.InGo[1].Versions, []string{"v1"}) {
		s.Errorf("the policy shows in Go: %+v", p.InGo)
	}
	for _, q := range []ops.PolicyQuestion{{}, {Code: "TIMEOUT"}} {
		_, err := s.operator.ExplainPolicy(s.ctx, q)
		s.expect(err, holdfast.ErrInvalid)
	}
	for _, q := range []ops.PolicyQuestion{{Kind: "mail", Code: "TIMEOUTT"}, {Job: holdfast.NewID()}} {
		_, err := s.operator.ExplainPolicy(s.ctx, q)
		s.expect(err, holdfast.ErrNotFound)
	}
}
