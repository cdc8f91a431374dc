package mail_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/notify/mail"
	"github.com/holdfastdev/holdfast/store"
)

// verdict is the engine's decision about an error at the first attempt.
func verdict(sink *mail.Sink, err error) failure.Verdict {
	rules := failure.Rules{Policy: sink.Traits().Policy, Dependency: "mail server"}
	return failure.Decide(rules, store.Lease{}, failure.Outcome{Event: failure.Returned, Err: err})
}

func refuse(code int, message string) error { return &smtp.SMTPError{Code: code, Message: message} }

func TestTemporaryRefusalsAreRetriedAndPermanentOnesAreNot(t *testing.T) {
	always := func(code int) func(string) error { return func(string) error { return refuse(code, "no") } }
	for name, c := range map[string]struct {
		plan  script
		retry bool
		call  failure.Call
		code  string
	}{
		"450 to the sender":    {script{mail: always(451)}, true, failure.BadCall, "RATE_LIMITED"},
		"421 to the sender":    {script{mail: always(421)}, true, failure.BadCall, "DEPENDENCY_DOWN"},
		"550 to the sender":    {script{mail: always(550)}, false, failure.NoCall, "NOT_FOUND"},
		"450 to the recipient": {script{rcpt: always(450)}, true, failure.BadCall, "RATE_LIMITED"},
		"550 to the recipient": {script{rcpt: always(550)}, false, failure.NoCall, "NOT_FOUND"},
		"452 to the letter":    {script{data: func(*smtp.Conn) error { return refuse(452, "full") }}, true, failure.BadCall, "RATE_LIMITED"},
		"554 to the letter":    {script{data: func(*smtp.Conn) error { return refuse(554, "spam") }}, false, failure.NoCall, "BAD_REQUEST"},
		"552 to the letter":    {script{data: func(*smtp.Conn) error { return refuse(552, "large") }}, false, failure.NoCall, "TOO_LARGE"},
		"a dropped connection": {script{data: func(c *smtp.Conn) error { return c.Conn().Close() }}, true, failure.BadCall, "NETWORK_ERROR"},
		"a wrong password":     {script{auth: func(string, string) error { return refuse(535, "no") }}, false, failure.NoCall, "UNAUTHORIZED"},
	} {
		_, cfg := serve(t, c.plan)
		sink := open(t, cfg)
		_, err := sink.Deliver(t.Context(), delivery("ana@example.com", failed(1)))
		if err == nil {
			t.Errorf("%s: success", name)
			continue
		}
		v := verdict(sink, err)
		if retried := v.To == holdfast.Queued; retried != c.retry || v.Call != c.call || v.Failure.Code != c.code {
			t.Errorf("%s: to %s, call %d, code %s: %v", name, v.To, v.Call, v.Failure.Code, err)
		}
	}
}

func TestAPermanentlyRefusedRecipientDoesNotAffectTheOthers(t *testing.T) {
	s, cfg := serve(t, script{rcpt: func(to string) error {
		if to == "gone@example.com" {
			return refuse(550, "no such user")
		}
		return nil
	}})
	receipt, err := open(t, cfg).Deliver(t.Context(), delivery("gone@example.com, ana@example.com", failed(1)))
	if err != nil {
		t.Fatal(err)
	}
	got := receipt.(mail.Receipt)
	if len(s.taken()) != 1 || len(got.Accepted) != 1 || !strings.Contains(got.Refused["gone@example.com"], "no such user") {
		t.Errorf("receipt %+v", got)
	}
}

func TestATemporarilyRefusedRecipientIsRetriedWithoutADuplicateForTheOthers(t *testing.T) {
	attempt := 0
	s, cfg := serve(t, script{rcpt: func(to string) error {
		if to == "grey@example.com" && attempt < 2 {
			return refuse(450, "come back later")
		}
		return nil
	}})
	sink := open(t, cfg)
	for attempt = range 3 {
		_, err := sink.Deliver(t.Context(), delivery("ana@example.com, grey@example.com", failed(1)))
		if (err == nil) != (attempt == 2) {
			t.Fatalf("attempt %d: %v", attempt, err)
		}
		if err != nil && (verdict(sink, err).To != holdfast.Queued || !strings.Contains(err.Error(), "grey@example.com")) {
			t.Errorf("attempt %d: %v", attempt, err)
		}
	}
	letters := s.taken()
	if len(letters) != 2 || fmt.Sprint(letters[0].to, letters[1].to) != "[ana@example.com] [grey@example.com]" {
		t.Errorf("letters to %v", letters)
	}
}

func TestASilentServerIsLeftAtTheTimeout(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	arrived := make(chan net.Conn, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		arrived <- conn
		cancel()
	}()
	_, cfg := serve(t, script{})
	cfg.Port = listener.Addr().(*net.TCPAddr).Port
	if _, err := open(t, cfg).Deliver(ctx, delivery("ana@example.com", failed(1))); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	(<-arrived).Close()
}

func TestAnUnavailableServerIsRetriedAndCountsAsABadCall(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, cfg := serve(t, script{})
	cfg.Port = listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	sink := open(t, cfg)
	_, err = sink.Deliver(t.Context(), delivery("ana@example.com", failed(1)))
	if v := verdict(sink, err); v.To != holdfast.Queued || v.Call != failure.BadCall {
		t.Errorf("%v: %+v", err, v)
	}
}

func TestThePasswordIsInNoErrorEvenIfTheServerRepeatsIt(t *testing.T) {
	_, cfg := serve(t, script{auth: func(user, given string) error {
		return refuse(535, "wrong: "+given+strings.Repeat("x", 280)+given)
	}})
	sink := open(t, cfg)
	_, err := sink.Deliver(t.Context(), delivery("ana@example.com", failed(1)))
	if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "***") {
		t.Errorf("%v", err)
	}
	if v := verdict(sink, err); strings.Contains(fmt.Sprintf("%+v %+v", v, v.Failure), "canary") {
		t.Errorf("%+v", v.Failure)
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		if strings.Contains(fmt.Sprintf("%v %+v", inner, inner), "canary") {
			t.Errorf("%#v", inner)
		}
	}
}
