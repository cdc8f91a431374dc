package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// mailboxUnknown is a final code of an application.
var mailboxUnknown = failure.Code{
	Name: "MAILBOX_UNKNOWN", Category: "input", Blame: failure.BlameUser, HTTPStatus: 422,
	Message: "There is no such mailbox.", Remedy: "Ask the customer for another address.",
}

func withCodes(s *harness, codes ...failure.Code) *failure.Taxonomy {
	s.Helper()
	known, err := failure.NewTaxonomy(codes...)
	if err != nil {
		s.Fatal(err)
	}
	return known
}

// publishedCodes returns the records in which engines publish codes.
func (s *harness) publishedCodes() []store.Record {
	s.Helper()
	records, err := s.store.Records(context.Background(), catalog.Namespace)
	if err != nil {
		s.Fatal(err)
	}
	return records
}

func (s *harness) presence(worker string) (found store.WorkerInfo) {
	s.Helper()
	workers, err := s.store.Workers(context.Background())
	if err != nil {
		s.Fatal(err)
	}
	for _, w := range workers {
		if w.Worker == worker {
			found = w
		}
	}
	return found
}

func TestAnEnginePublishesItsCodesOnceAndOperatorsElsewhereReadTheRemedy(t *testing.T) {
	inBubble(t, func(s *harness) {
		cfg := engine.Config{Version: "v1", Taxonomy: withCodes(s, mailboxUnknown)}
		var runs starts
		work := handleNotes(func(context.Context, *engine.Job[Note]) error {
			runs.mark()
			return failure.WithCode(errFailed, "MAILBOX_UNKNOWN")
		})
		first := s.startWorker(cfg, work)
		s.waitUntil("the codes are published", func() bool { return len(s.publishedCodes()) == 1 })
		id := s.enqueue()
		s.waitForState(id, holdfast.Failed)
		expect(s, "attempts at a final code", runs.count(), 1)
		elsewhere := ops.New(s.store, ops.Config{})
		why, err := elsewhere.Explain(context.Background(), id)
		if err != nil || !strings.Contains(why.Reasons[0].Remedy, "Ask the customer for another address") {
			t.Errorf("%+v, %v", why.Reasons, err)
		}
		first.stop()
		s.startWorker(cfg, work)
		time.Sleep(time.Minute)
		records := s.publishedCodes()
		expect(s, "records after a restart", len(records), 1)
		expect(s, "times it was kept", records[0].Version, 1)
	})
}

func TestACodeInARemoteReportMeansWhatTheProgramThatPublishedItDefines(t *testing.T) {
	inBubble(t, func(s *harness) {
		server := s.startWorker(engine.Config{Name: "server"})
		time.Sleep(3 * time.Second) // the engine has read the codes when there were none
		s.startWorker(engine.Config{Name: "app", Taxonomy: withCodes(s, mailboxUnknown)})
		time.Sleep(time.Minute)
		id := s.enqueue(onRemoteQueue)
		s.judge(server, returned(s.claimRemote(1)[0], failure.WithCode(errFailed, "MAILBOX_UNKNOWN")))
		job := s.job(id)
		expect(s, "state", job.State, holdfast.Failed)
		expect(s, "message", job.LastFailure.Message, mailboxUnknown.Message)
		expect(s, "category", job.LastFailure.Category, "input")
	})
}

func TestAWorkerFollowsAPolicyWithACodeItDoesNotKnowAndSaysSo(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		w := s.startWorker(engine.Config{}, handleNotes(failing(&runs), engine.KindOptions{Policy: failure.Policy{Backoff: failure.Fixed(time.Second)}}))
		s.applyPolicy("kinds: {note: {max_attempts: 2}}\ncodes: {NO_SUCH_CODE: {max_attempts: 1}}", 0)
		s.waitUntil("the worker reports", func() bool { return s.presence(w.Worker()).Policy == 1 })
		if misses := s.presence(w.Worker()).Misses; !strings.Contains(misses, "line 2") || !strings.Contains(misses, "NO_SUCH_CODE") {
			t.Errorf("it misses %q", misses)
		}
		expect(s, "failures", s.waitForState(s.enqueue(), holdfast.Failed).Failures, 2)
		s.applyPolicy("kinds: {note: {max_attempts: 9}}\nfrobnicate: 1", 1)
		s.waitUntil("the worker complains", func() bool { return strings.Contains(s.presence(w.Worker()).Misses, "version 2 cannot be read here") })
		expect(s, "the version it follows", s.presence(w.Worker()).Policy, 1)
	})
}

func TestAfterAnAppliedPolicyIsRemovedTheConfiguredOneIsInForceAgain(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		w := s.startWorker(engine.Config{Policies: set(s, "kinds: {note: {max_attempts: 4, backoff: {shape: fixed, delay: 1s}}}")}, handleNotes(failing(&runs)))
		operator, by := ops.New(s.store, ops.Config{}), ops.Actor{Name: "ann"}
		if _, err := operator.ApplyPolicy(context.Background(), ops.PolicyRequest{Text: "kinds: {note: {max_attempts: 2, backoff: {shape: fixed, delay: 1s}, limit: {at_most: 5}}}"}, by); err != nil {
			t.Fatal(err)
		}
		s.waitUntil("it is followed", func() bool { return s.presence(w.Worker()).Policy == 1 })
		expect(s, "failures", s.waitForState(s.enqueue(), holdfast.Failed).Failures, 2)
		if err := operator.RemovePolicy(context.Background(), 1, by); err != nil {
			t.Fatal(err)
		}
		s.waitUntil("it is not followed any more", func() bool { return s.presence(w.Worker()).Policy == 0 })
		expect(s, "failures after the removal", s.waitForState(s.enqueue(), holdfast.Failed).Failures, 4)
		if hold := s.hold(store.SourceLimit); hold != nil {
			t.Errorf("a limit of the removed policy is left: %+v", hold)
		}
	})
}

func TestLimitsOfAPolicyThatWasRemovedWhileNoWorkerRanAreLiftedByTheNext(t *testing.T) {
	inBubble(t, func(s *harness) {
		operator, by := ops.New(s.store, ops.Config{}), ops.Actor{Name: "ann"}
		if _, err := operator.ApplyPolicy(context.Background(), ops.PolicyRequest{Text: "kinds: {note: {limit: {at_most: 5}}}"}, by); err != nil {
			t.Fatal(err)
		}
		w := s.startWorker(engine.Config{})
		s.waitUntil("the limit is placed", func() bool { return s.hold(store.SourceLimit) != nil })
		w.stop()
		if err := operator.RemovePolicy(context.Background(), 0, by); err != nil {
			t.Fatal(err)
		}
		s.startWorker(engine.Config{})
		s.waitUntil("the limit is lifted", func() bool { return s.hold(store.SourceLimit) == nil })
	})
}

func TestACodeDefinedByAPolicyAppliesToRemoteReports(t *testing.T) {
	inBubble(t, func(s *harness) {
		server := s.startWorker(engine.Config{})
		operator := ops.New(s.store, ops.Config{})
		order := ops.PolicyRequest{Text: "codes: {MAILBOX_UNKNOWN: {message: There is no such mailbox., remedy: Ask for another., category: input, blame: user, retryable: false}}"}
		if _, err := operator.ApplyPolicy(context.Background(), order, ops.Actor{Name: "ann"}); err != nil {
			t.Fatal(err)
		}
		s.waitUntil("it is followed", func() bool { return s.presence(server.Worker()).Policy == 1 })
		id := s.enqueue(onRemoteQueue)
		s.judge(server, returned(s.claimRemote(1)[0], failure.WithCode(errFailed, "MAILBOX_UNKNOWN")))
		job := s.job(id)
		expect(s, "state", job.State, holdfast.Failed)
		expect(s, "message", job.LastFailure.Message, "There is no such mailbox.")
		expect(s, "category", job.LastFailure.Category, "input")
		letters, _, err := operator.DeadLetters(context.Background(), store.Filter{})
		if err != nil || letters[0].Code.Remedy != "Ask for another." || letters[0].Code.Blame != failure.BlameUser {
			t.Errorf("%+v, %v", letters, err)
		}
	})
}

func TestDefaultsOfAPolicyDoNotReplaceWhatAKindSaysInGo(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		w := s.startWorker(engine.Config{Version: "v1", Policy: failure.Policy{MaxAttempts: 9, Backoff: failure.Fixed(time.Second)}}, handleNotes(failing(&runs), engine.KindOptions{Policy: failure.Policy{MaxAttempts: 4}}))
		s.applyPolicy("defaults: {max_attempts: 2}\ncodes: {UNKNOWN: {max_attempts: 3}}", 0)
		s.waitUntil("the worker follows it", func() bool { return s.presence(w.Worker()).Policy == 1 })
		expect(s, "failures", s.waitForState(s.enqueue(), holdfast.Failed).Failures, 4)
		e, err := ops.New(s.store, ops.Config{}).ExplainPolicy(context.Background(), ops.PolicyQuestion{Kind: "note", Code: "UNKNOWN"})
		if err != nil {
			t.Fatal(err)
		}
		sources := map[string]string{}
		for _, one := range e.Settings {
			sources[one.Name] = one.Value + " of " + one.Source
		}
		expect(s, "attempts elsewhere", sources["max_attempts"], "4 of Go: KindOptions.Policy")
		expect(s, "backoff elsewhere", sources["backoff"], "fixed: 1s of Go: Config.Policy")
		s.applyPolicy("kinds: {note: {max_attempts: 2}}", 1)
		s.waitUntil("the worker follows it", func() bool { return s.presence(w.Worker()).Policy == 2 })
		expect(s, "failures when the file names the kind", s.waitForState(s.enqueue(), holdfast.Failed).Failures, 2)
	})
}
