package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/stream"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	shotstream "github.com/holdfastdev/holdfast/apps/screenshot/stream"
)

// A receiver counts the retry events that it gets, by type. The first call is refused, so that it comes again.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	got  map[string]int
	asks int
}

func (s *scene) receiver(owner string) *receiver {
	r := &receiver{got: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		at, _ := strconv.ParseInt(q.Header.Get("Webhook-Timestamp"), 10, 64)
		if want := signed(s.service.HookSecret(owner), q.Header.Get("Webhook-Id"), time.Unix(at, 0), string(body)); q.Header.Get("Webhook-Signature") != want[5] {
			s.Errorf("the signature is %s", q.Header.Get("Webhook-Signature"))
		}
		var event struct {
			Type string
			Data service.RetryEvent
		}
		if err := json.Unmarshal(body, &event); err != nil || event.Type != event.Data.Type {
			s.Errorf("%v: %s", err, body)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.asks++; r.asks == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.got[event.Data.Job.String()+" "+event.Type]++
	}))
	s.Cleanup(r.Close)
	return r
}

// has reports whether the receiver got exactly these events, each as often as said.
func (r *receiver) has(id holdfast.ID, want map[string]int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := 0
	for name, n := range want {
		if r.got[id.String()+" "+name] != n {
			return false
		}
		all++
	}
	return len(r.got) == all
}

func TestRetryEventsReachWebhooksTheEventStreamAndJetStream(t *testing.T) {
	nats, err := server.NewServer(&server.Options{JetStream: true, StoreDir: t.TempDir(), Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	go nats.Start()
	t.Cleanup(func() { nats.Shutdown(); nats.WaitForShutdown() })
	if !nats.ReadyForConnections(patience) {
		t.Fatal("the NATS server does not start")
	}
	onBoth(t, func(s *scene) {
		every, some := s.receiver(s.owner), s.receiver(s.owner)
		for _, add := range []map[string]any{{"url": every.URL}, {"url": some.URL, "events": []string{"RetryFailed"}}} {
			if a := s.call("POST", "/api/v1/webhooks", add); a.Status != 201 {
				s.Fatalf("%d %s", a.Status, a.Body)
			}
		}
		r, err := http.NewRequestWithContext(s.Context(), "GET", s.at+"/api/v1/events", nil)
		if err != nil {
			s.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.key)
		events, err := http.DefaultClient.Do(r)
		if err != nil {
			s.Fatal(err)
		}
		read := &lockedBuffer{}
		go func() { _, _ = io.Copy(read, events.Body) }()
		s.Cleanup(func() { _ = events.Body.Close() })

		s.works()
		s.origin.setDown(true)
		job := s.submit("/page")
		s.ended(job.ID, service.Failed)
		s.origin.setDown(false)
		if a := s.retry(job.ID); a.Status != 200 {
			s.Fatalf("%d %s", a.Status, a.Body)
		}
		s.ended(job.ID, service.Completed)
		want := map[string]int{"RetryScheduled": 3, "RetryStarted": 3, "RetryFailed": 2, "RetrySucceeded": 1}
		s.until("the webhooks were called", func() bool { return every.has(job.ID, want) && some.has(job.ID, map[string]int{"RetryFailed": 2}) })
		s.until("the event stream has them", func() bool {
			return slices.IndexFunc([]string{`"retry_events":"RetryScheduled"`, `"retry_events":"RetryFailed RetryScheduled"`, `"retry_events":"RetryStarted"`, `"retry_events":"RetrySucceeded"`}, func(part string) bool { return !strings.Contains(read.String(), part) }) < 0
		})
		s.until("the stream has them", func() bool { return same(s.published(nats.ClientURL(), job.ID), want) })
		s.sound()
	}, "NATS_URL", nats.ClientURL())
}

func same(a, b map[string]int) bool {
	for name := range b {
		if a[name] != b[name] {
			return false
		}
	}
	return len(a) == len(b)
}

// published returns how many events of a shot JetStream has, by type.
func (s *scene) published(url string, id holdfast.ID) map[string]int {
	s.Helper()
	conn, js, err := stream.Connect("test", url)
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	got := map[string]int{}
	all, err := js.OrderedConsumer(s.Context(), shotstream.Name, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return got // it does not exist yet
	}
	batch, err := all.FetchNoWait(1000)
	if err != nil {
		return got
	}
	for m := range batch.Messages() {
		var message shotstream.Message
		if err := json.Unmarshal(m.Data(), &message); err != nil || message.Organisation == "" || m.Subject() != shotstream.Subject+"."+message.Type {
			s.Errorf("%v: %s %s", err, m.Subject(), m.Data())
		}
		if message.Job == id {
			got[message.Type]++
		}
	}
	return got
}

func TestOnlyAdminsChangeWebhooksAndOnlyThoseOfTheirOrganisation(t *testing.T) {
	s := newScene(t)
	for _, bad := range []map[string]any{{"url": "nowhere"}, {"url": s.origin.URL, "events": []string{"Everything"}}, {"url": s.origin.URL, "secret": "x"}} {
		if a := s.call("POST", "/api/v1/webhooks", bad); a.Status != 400 || a.code() != "VALIDATION_ERROR" {
			t.Errorf("%v: %d %s", bad, a.Status, a.Body)
		}
	}
	var made service.Endpoint
	s.call("POST", "/api/v1/webhooks", map[string]any{"url": s.origin.URL}).into(s, &made)
	other := s.visitor().signUp("eve@example.org")
	other.open("/webhooks").send("/webhooks/"+made.ID+"/remove", "x", "y")
	if other.status != 404 {
		t.Errorf("another organisation's webhook was answered with %d", other.status)
	}
	other.open("/webhooks").send("/webhooks", "url", s.origin.URL+"/hooks", "event", "RetryFailed").sees("The webhook is added.", s.origin.URL+"/hooks", "RetryFailed")
	for range 9 {
		s.call("POST", "/api/v1/webhooks", map[string]any{"url": s.origin.URL})
	}
	if a := s.call("POST", "/api/v1/webhooks", map[string]any{"url": s.origin.URL}); a.Status != 400 || !strings.Contains(string(a.Body), "at most 10 webhooks") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	var left struct{ Webhooks []service.Endpoint }
	if s.call("DELETE", "/api/v1/webhooks/"+made.ID, nil).into(s, &left); len(left.Webhooks) != 9 {
		t.Errorf("%+v", left)
	}
	if a := s.call("DELETE", "/api/v1/webhooks/"+made.ID, nil); a.Status != 404 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// A mailbox is a mail server that keeps what it gets.
type mailbox struct {
	mu    sync.Mutex
	mails []string
}

func (m *mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &mailSession{m}, nil }

func (m *mailbox) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.mails)
}

type mailSession struct{ *mailbox }

func (*mailSession) Reset()                               {}
func (*mailSession) Logout() error                        { return nil }
func (*mailSession) Mail(string, *smtp.MailOptions) error { return nil }
func (*mailSession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (s *mailSession) Data(r io.Reader) error {
	body, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, string(body))
	return err
}

func openMailbox(t *testing.T) (*mailbox, string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	box := &mailbox{}
	mail := smtp.NewServer(box)
	served := make(chan struct{})
	go func() { defer close(served); _ = mail.Serve(listener) }()
	t.Cleanup(func() { _ = mail.Close(); <-served })
	return box, listener.Addr().String()
}
