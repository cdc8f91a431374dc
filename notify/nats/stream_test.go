package nats_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	natssink "github.com/holdfastdev/holdfast/notify/nats"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// verdict is the engine's decision about an error at the hundredth attempt.
func verdict(sink *natssink.Sink, err error) failure.Verdict {
	rules := failure.Rules{Policy: sink.Traits().Policy, Dependency: "nats"}
	return failure.Decide(rules, store.Lease{Job: holdfast.Job{Failures: 99}}, failure.Outcome{Event: failure.Returned, Err: err, Age: 24 * time.Hour})
}

func TestEventsAreInTheStreamAsCloudEventsInOrder(t *testing.T) {
	s := serve(t, t.TempDir(), 0)
	sink := open(t, natssink.Config{URL: s.ClientURL(), Stream: "EVENTS", EnsureStream: true})
	d := delivery("acme.events", 1, 200)
	d.Events[7].Job, d.Events[7].Subject, d.Events[7].Name = holdfast.ID{}, "schedule/näch tlich", "manual retry"
	receipt, err := sink.Deliver(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if got := receipt.(natssink.Receipt); got != (natssink.Receipt{Stream: "EVENTS", Events: 200, First: 1, Last: 200}) {
		t.Errorf("receipt %+v", got)
	}
	all := kept(t, admin(t, s.ClientURL()), "EVENTS")
	if len(all) != 200 {
		t.Fatalf("%d messages", len(all))
	}
	for i, m := range all {
		var e store.Event
		if err := json.Unmarshal(m.Data, &e); err != nil || e.Seq != int64(i+1) {
			t.Fatalf("message %d: %v, %v", i, e.Seq, err)
		}
	}
	h := all[0].Header
	if all[0].Subject != "acme.events.job.complete" || h.Get("ce-id") != "1" || h.Get("ce-type") != "io.holdfast.job.complete" || h.Get("ce-specversion") != "1.0" ||
		h.Get("ce-source") != "/holdfast" || h.Get("ce-subject") != d.Events[0].Job.String() || h.Get("content-type") != "application/json" {
		t.Errorf("%s: %v", all[0].Subject, h)
	}
	if odd := all[7]; odd.Subject != "acme.events.schedule.manual_retry" || odd.Header.Get("ce-subject") != "schedule/n%C3%A4ch%20tlich" {
		t.Errorf("%s: %v", odd.Subject, odd.Header)
	}
}

func TestASecondAttemptLeavesOneMessageOfEachEvent(t *testing.T) {
	s := serve(t, t.TempDir(), 0)
	cfg := natssink.Config{URL: s.ClientURL(), Stream: "EVENTS", EnsureStream: true}
	d := delivery("acme.events", 1, 20)
	if _, err := open(t, cfg).Deliver(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	receipt, err := open(t, cfg).Deliver(t.Context(), d) // by another process
	if err != nil || receipt.(natssink.Receipt).Twins != 20 {
		t.Fatalf("%+v, %v", receipt, err)
	}
	if all := kept(t, admin(t, s.ClientURL()), "EVENTS"); len(all) != 20 {
		t.Errorf("%d messages", len(all))
	}
}

func TestTwoSubscriptionsAndTwoStoresInOneStreamKeepTheirEvents(t *testing.T) {
	s := serve(t, t.TempDir(), 0)
	sink := open(t, natssink.Config{URL: s.ClientURL(), Stream: "EVENTS", EnsureStream: true})
	for _, d := range []struct {
		target, source string
	}{{"acme.events", ""}, {"acme.audit", ""}, {"acme.events", "/holdfast/two"}} {
		one := delivery(d.target, 1, 5)
		one.Source = d.source
		if receipt, err := sink.Deliver(t.Context(), one); err != nil || receipt.(natssink.Receipt).Twins != 0 {
			t.Fatalf("%+v: %+v, %v", d, receipt, err)
		}
	}
	if all := kept(t, admin(t, s.ClientURL()), "EVENTS"); len(all) != 15 {
		t.Errorf("%d messages", len(all))
	}
}

func TestAnUnavailableServerIsRetriedAndNothingCountsAsSent(t *testing.T) {
	folder := t.TempDir()
	s := serve(t, folder, 0)
	port := s.Addr().(*net.TCPAddr).Port
	sink := open(t, natssink.Config{URL: s.ClientURL(), Stream: "EVENTS", EnsureStream: true, Timeout: 10 * time.Second})
	if _, err := sink.Deliver(t.Context(), delivery("acme.events", 1, 5)); err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	s.WaitForShutdown()
	for range 3 {
		_, err := sink.Deliver(t.Context(), delivery("acme.events", 6, 5))
		if err == nil {
			t.Fatal("a server that is away took something")
		}
		if v := verdict(sink, err); v.To != holdfast.Queued || v.Call != failure.BadCall || v.Delay > 6*time.Minute {
			t.Errorf("%v: %+v", err, v)
		}
	}
	s = serve(t, folder, port)
	until(t, "the delivery succeeds", func() bool {
		_, err := sink.Deliver(t.Context(), delivery("acme.events", 6, 5))
		return err == nil
	})
	if all := kept(t, admin(t, s.ClientURL()), "EVENTS"); len(all) != 10 {
		t.Errorf("%d messages", len(all))
	}
}

func TestAServerThatNeverAnsweredIsRetried(t *testing.T) {
	s := serve(t, t.TempDir(), 0)
	url := s.ClientURL()
	s.Shutdown()
	s.WaitForShutdown()
	sink := open(t, natssink.Config{URL: url})
	_, err := sink.Deliver(t.Context(), delivery("acme.events", 1, 1))
	if err == nil {
		t.Fatal("success")
	}
	if v := verdict(sink, err); v.To != holdfast.Queued || v.Call != failure.BadCall {
		t.Errorf("%v: %+v", err, v)
	}
}

func TestASubjectWithoutAStreamIsAnErrorThatSaysWhatToDo(t *testing.T) {
	s := serve(t, t.TempDir(), 0)
	js := admin(t, s.ClientURL())
	sink := open(t, natssink.Config{URL: s.ClientURL()})
	_, err := sink.Deliver(t.Context(), delivery("acme.events", 1, 3))
	if err == nil || !strings.Contains(err.Error(), "EnsureStream") || verdict(sink, err).To != holdfast.Queued {
		t.Errorf("%v", err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"acme.>"}}); err != nil {
		t.Fatal(err)
	}
	wrong := delivery("acme.events", 1, 3)
	wrong.Subscription.Options = map[string]string{"stream": "MINE"}
	if _, err := sink.Deliver(t.Context(), wrong); err == nil {
		t.Error("a stream that was not meant took the events")
	}
	if _, err := sink.Deliver(t.Context(), delivery("acme.events", 1, 3)); err != nil {
		t.Error(err)
	}
}

func TestAnExistingStreamIsNotChanged(t *testing.T) {
	s := serve(t, t.TempDir(), 0)
	js := admin(t, s.ClientURL())
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"acme.>"}, MaxMsgs: 7}); err != nil {
		t.Fatal(err)
	}
	sink := open(t, natssink.Config{URL: s.ClientURL(), Stream: "EVENTS", EnsureStream: true})
	for _, target := range []string{"acme.events", "other.events"} {
		if _, err := sink.Deliver(t.Context(), delivery(target, 1, 1)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := js.Stream(t.Context(), "EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	if cfg := found.CachedInfo().Config; cfg.MaxMsgs != 7 || fmt.Sprint(cfg.Subjects) != "[acme.> other.events.>]" {
		t.Errorf("%+v", cfg)
	}
	if err := js.DeleteStream(t.Context(), "EVENTS"); err != nil {
		t.Fatal(err)
	}
	until(t, "a deleted stream is made again", func() bool {
		_, err := sink.Deliver(t.Context(), delivery("acme.events", 1, 1))
		return err == nil
	})
}

func TestARefusedPasswordIsRetriedAndShowsNowhere(t *testing.T) {
	s := start(t, &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, Username: "u", Password: "right"})
	sink := open(t, natssink.Config{URL: strings.Replace(s.ClientURL(), "nats://", "nats://u:canary@", 1)})
	_, err := sink.Deliver(t.Context(), delivery("acme.events", 1, 1))
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Fatalf("%v", err)
	}
	if v := verdict(sink, err); v.To != holdfast.Queued {
		t.Errorf("%v: %+v", err, v)
	}
	if _, err := natssink.New(natssink.Config{URL: "nats://u:canary@%zz"}); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("%v", err)
	}
}

func TestBadSubjectsAreRefused(t *testing.T) {
	sink := open(t, natssink.Config{URL: "nats://nats.example.com:4222", Options: []nats.Option{}})
	for _, target := range []string{"a..b", ".a", "a.", "a.*", "a.>", "a b", "a\r\nb", "$JS.API", "_INBOX.x", strings.Repeat("a", 300)} {
		if err := sink.Check(subscription.Subscription{Target: target}); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%q is not refused: %v", target, err)
		}
	}
	for _, target := range []string{"", "holdfast", "holdfast.events-2.x_y"} {
		if err := sink.Check(subscription.Subscription{Target: target}); err != nil {
			t.Errorf("%q is refused: %v", target, err)
		}
	}
	if err := sink.Check(subscription.Subscription{Target: "a", Options: map[string]string{"stream": "a.b"}}); err == nil {
		t.Error("a stream's name with a dot is not refused")
	}
	if _, err := natssink.New(natssink.Config{EnsureStream: true}); err == nil || !strings.Contains(err.Error(), "address") || !strings.Contains(err.Error(), "set Stream") {
		t.Errorf("%v", err)
	}
	if traits := sink.Traits(); traits.Together != 200 || !traits.Ordered || sink.Host(subscription.Subscription{}) != "nats.example.com" {
		t.Errorf("%+v", traits)
	}
}
