package subscription_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

type sub = subscription.Subscription

var (
	job    = holdfast.NewID()
	group  = holdfast.NewID()
	failed = store.Event{Job: job, Name: "failed", Kind: "mail.send", Queue: "default", Owner: "ada", Group: group, Code: "HTTP_5XX"}
	partly = store.Event{Subject: "group/" + group.String(), Name: "partial", Owner: "ada"}
	opened = store.Event{Subject: "breaker/gateway", Name: "open"}
	byHand = store.Event{Job: job, Name: "manual retry", Queue: "default"}
)

func TestATypeSaysWhatAnEventIsAboutAndWhatHappened(t *testing.T) {
	for want, e := range map[string]store.Event{
		"job.failed": failed, "group.partial": partly, "breaker.open": opened, "job.manual_retry": byHand,
		"retention.warning": {Subject: "retention", Name: "warning"}, "hold.paused": {Subject: "hold/queue/mail", Name: "paused"}, "feed.forgotten": {Name: "forgotten"},
	} {
		if got := subscription.Type(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestASubscriptionMatchesWhatItNames(t *testing.T) {
	for _, c := range []struct {
		s    sub
		e    store.Event
		want bool
	}{
		{sub{}, failed, true},
		{sub{}, opened, true},
		{sub{Events: []string{"failed"}}, failed, true},
		{sub{Events: []string{"job.failed"}}, failed, true},
		{sub{Events: []string{"failed"}}, store.Event{Subject: partly.Subject, Name: "failed"}, false},
		{sub{Events: []string{"group.failed"}}, failed, false},
		{sub{Events: []string{"complete", "fail*"}}, failed, true},
		{sub{Events: []string{"*"}}, opened, true},
		{sub{Events: []string{"job.*"}}, opened, false},
		{sub{Events: []string{"breaker.*"}}, opened, true},
		{sub{Events: []string{"manual retry"}}, byHand, true},
		{sub{Events: []string{"manual_retry"}}, byHand, true},
		{sub{Kinds: []string{"mail.send"}}, failed, true},
		{sub{Kinds: []string{"mail.*"}}, failed, true},
		{sub{Kinds: []string{"*"}}, opened, false},
		{sub{Kinds: []string{"sms"}}, failed, false},
		{sub{Owners: []string{"ada"}}, failed, true},
		{sub{Owners: []string{"ada"}}, partly, true},
		{sub{Owners: []string{"bob"}}, failed, false},
		{sub{Codes: []string{"HTTP_*"}}, failed, true},
		{sub{Codes: []string{"HTTP_4XX"}}, failed, false},
		{sub{Groups: []holdfast.ID{group}}, failed, true},
		{sub{Groups: []holdfast.ID{group}}, partly, true},
		{sub{Groups: []holdfast.ID{job}}, partly, false},
		{sub{Events: []string{"failed"}, Owners: []string{"bob"}}, failed, false},
		{sub{}, store.Event{Job: job, Name: "failed", Queue: "holdfast"}, false},
	} {
		if got := c.s.Matches(c.e); got != c.want {
			t.Errorf("%+v of %s: %v", c.s, subscription.Type(c.e), got)
		}
	}
}

func TestAListenerAsksForNoMoreThanTheSubscriptionNeeds(t *testing.T) {
	for _, c := range []struct {
		events []string
		want   []string
	}{
		{nil, []string{"*"}},
		{[]string{"*"}, []string{"*"}},
		{[]string{"job.*"}, []string{"*"}},
		{[]string{"failed", "group.*"}, []string{"failed"}},
		{[]string{"re*"}, []string{"reclaimed", "retry", "released"}},
		{[]string{"group.partial", "breaker.*", "manual retry"}, nil},
	} {
		s := sub{ID: job, Events: c.events, Disabled: "for now"}
		l := s.Listener()
		if l.Name != "subscription/"+job.String() || !slices.Equal(l.Events, c.want) {
			t.Errorf("%v listens for %v as %s, want %v", c.events, l.Events, l.Name, c.want)
		}
	}
}

func good() sub { return sub{Sink: "webhook", Target: "https://example.org/hook", Cursor: 7} }

func TestPrepareRefusesBadSubscriptionsAndSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		what string
		harm func(*sub)
		says string
	}{
		{"an event that does not exist", func(s *sub) { s.Events = []string{"faild"} }, "the events of the subject job are"},
		{"a job's event that does not exist", func(s *sub) { s.Events = []string{"job.exploded"} }, "the events of the subject job are"},
		{"a group's event that does not exist", func(s *sub) { s.Events = []string{"group.opened"} }, "the events of the subject group are"},
		{"a breaker's event that does not exist", func(s *sub) { s.Events = []string{"breaker.opend"} }, "the events of the subject breaker are open, half-open"},
		{"a breaker's event in the past tense", func(s *sub) { s.Events = []string{"breaker.opened"} }, "the events of the subject breaker are open, half-open"},
		{"a weight without a number", func(s *sub) { s.Events = []string{"share.heavy"} }, "the events of the subject share are weight_*"},
		{"a subject that does not exist", func(s *sub) { s.Events = []string{"braker.opened"} }, "the subjects of events are"},
		{"an open first word that does not exist", func(s *sub) { s.Events = []string{"x.*"} }, "the subjects of events are"},
		{"a star in the middle", func(s *sub) { s.Events = []string{"job.*d"} }, "at its end"},
		{"an empty event", func(s *sub) { s.Events = []string{""} }, "at its end"},
		{"half a type", func(s *sub) { s.Events = []string{"breaker."} }, "breaker.* for all"},
		{"a secret", func(s *sub) { s.Secrets = []string{"whsec_c2VjcmV0c2VjcmV0c2VjcmV0"} }, "give its name instead"},
		{"a secret that is no name", func(s *sub) { s.Secrets = []string{"a b"} }, "give a name, not the secret itself"},
		{"a secret in the target", func(s *sub) { s.Target += "?k=whsec_c2VjcmV0c2VjcmV0c2VjcmV0" }, "give its name in Secrets"},
		{"a secret in an option", func(s *sub) { s.Options = map[string]string{"key": "whsec_c2VjcmV0c2VjcmV0c2VjcmV0"} }, "give its name in Secrets"},
		{"a line break in the target", func(s *sub) { s.Target = "a@example.org\r\nBcc: b@example.org" }, "control characters"},
		{"a line break in the name", func(s *sub) { s.Name = "a\nb" }, "control characters"},
		{"no sink", func(s *sub) { s.Sink = "" }, "give the name of one"},
		{"a sink with blanks", func(s *sub) { s.Sink = "web hook" }, "give the name of one"},
		{"an empty kind", func(s *sub) { s.Kinds = []string{""} }, "give a name"},
		{"a group without an id", func(s *sub) { s.Groups = []holdfast.ID{{}} }, "leave it out"},
		{"a cursor before everything", func(s *sub) { s.Cursor = -2 }, "start with the next"},
		{"too many", func(s *sub) { s.Owners = slices.Repeat([]string{"ada"}, 101) }, "the maximum is 100"},
	} {
		s := good()
		c.harm(&s)
		err := s.Prepare()
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if strings.Contains(err.Error(), "c2Vjc") {
			t.Errorf("%s: the refusal repeats the secret: %v", c.what, err)
		}
	}
}

func TestPrepareGivesAnIdAndAdmitsEveryDocumentedForm(t *testing.T) {
	s := good()
	s.Events = []string{"*", "failed", "job.failed", "manual retry", "group.*", "group.partial", "breaker.open", "duty.paused", "schedule.*", "re*", "kind.unattended", "share.weight_3", "share.*", "breaker.forced-*"}
	s.Secrets, s.Cursor = []string{"orders-2026", "orders.old"}, subscription.FromHead
	if err := s.Prepare(); err != nil || s.ID.IsZero() {
		t.Error(err, s.ID)
	}
}

func TestPrepareNamesEveryProblemAtOnce(t *testing.T) {
	err := (&sub{Name: "a\nb", Events: []string{"nonsense"}}).Prepare()
	for _, part := range []string{"the name", "the sink", "nonsense"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}

func TestABenignFailureIsDeliveredOnlyOnRequest(t *testing.T) {
	benign := store.Event{Job: holdfast.ID{1}, Name: store.EventBenign}
	for events, wants := range map[string]bool{"failed": false, "job.failed": false, "benign": true, "job.benign": true, "*": true} {
		s := subscription.Subscription{Events: []string{events}}
		if s.Matches(benign) != wants {
			t.Errorf("%s: told of a benign end %v, want %v", events, !wants, wants)
		}
	}
	s := subscription.Subscription{Events: []string{"job.benign"}}
	if l := s.Listener(); len(l.Events) != 1 || l.Events[0] != store.EventFailed {
		t.Errorf("the feed does not hold what it wants: %v", l.Events)
	}
}
