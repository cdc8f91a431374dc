package webhook_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/notify/webhook"
	"github.com/holdfastdev/holdfast/store"
)

var (
	loopback  = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	oldSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("the old canary of the secrets!!!"))
	newSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("the new canary of the secrets!!!"))
)

// sink makes a sink that may call loopback without TLS.
func sink(t *testing.T, cfg webhook.Config) *webhook.Sink {
	t.Helper()
	s, err := webhook.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func near(t *testing.T) *webhook.Sink {
	return sink(t, webhook.Config{Allow: loopback, AllowHTTP: true})
}

// receiver starts a server of the test.
func receiver(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL + "/hook?token=canary-in-the-query"
}

func delivery(target string) notify.Delivery {
	return notify.Delivery{
		Subscription: subscription.Subscription{ID: holdfast.NewID(), Sink: "webhook", Target: target, Secrets: []string{"new", "old"}},
		Events:       []store.Event{{Seq: 7, Job: holdfast.NewID(), Name: "failed", At: time.Now(), Code: "HTTP_5XX"}},
		ID:           "id_7", Attempt: 1, At: time.Now(), Secrets: []string{newSecret, oldSecret},
	}
}

// decide is the engine's decision about an error.
func decide(s *webhook.Sink, err error) failure.Verdict {
	return failure.Decide(failure.Rules{Policy: s.Traits().Policy, Dependency: "receiver"}, store.Lease{}, failure.Outcome{Event: failure.Returned, Err: err})
}

func TestAReceiverVerifiesWithEitherSecretAndReadsACloudEvent(t *testing.T) {
	var got http.Header
	var body []byte
	target := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "thank you")
	})
	d := delivery(target)
	receipt, err := near(t).Deliver(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if r := receipt.(webhook.Receipt); r.Status != 202 || r.Answer != "thank you" || !isDuration(r.Took) {
		t.Errorf("%+v", r)
	}
	for _, secret := range []string{newSecret, oldSecret} {
		if err := verify(secret, got, body); err != nil {
			t.Error(err)
		}
	}
	if verify("whsec_"+base64.StdEncoding.EncodeToString([]byte("a different secret, of 32 bytes.")), got, body) == nil {
		t.Error("another secret verifies")
	}
	if got.Get("webhook-id") != d.ID {
		t.Error(got)
	}
	var event notify.Envelope
	if err := json.Unmarshal(body, &event); err != nil || event.Type != "io.holdfast.job.failed" || event.ID != "7" || got.Get("Content-Type") != "application/cloudevents+json; charset=utf-8" {
		t.Errorf("%v: %s", err, body)
	}
}

func TestOnly2xxMeansAccepted(t *testing.T) {
	for _, c := range []struct {
		status int
		header string // Retry-After
		to     holdfast.State
		code   string
		least  time.Duration
		call   failure.Call
	}{
		{500, "", holdfast.Queued, "HTTP_5XX", 4 * time.Second, failure.BadCall},
		{503, "120", holdfast.Queued, "DEPENDENCY_DOWN", 2 * time.Minute, failure.BadCall},
		{429, "90", holdfast.Queued, "RATE_LIMITED", 90 * time.Second, failure.BadCall},
		{404, "", holdfast.Queued, "NOT_FOUND", 4 * time.Second, failure.NoCall},
		{401, "", holdfast.Queued, "UNAUTHORIZED", 4 * time.Second, failure.NoCall},
		{302, "", holdfast.Failed, "HTTP_4XX", 0, failure.NoCall},
		{308, "", holdfast.Failed, "HTTP_4XX", 0, failure.NoCall},
		{410, "", holdfast.Queued, "NOT_FOUND", 0, failure.NoCall}, // the service makes it final when it disables the subscription
	} {
		target := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.header != "" {
				w.Header().Set("Retry-After", c.header)
			}
			w.WriteHeader(c.status)
		})
		s := near(t)
		_, err := s.Deliver(t.Context(), delivery(target))
		v := decide(s, err)
		if err == nil || v.To != c.to || v.Failure.Code != c.code || v.Delay < c.least || v.Call != c.call {
			t.Errorf("%d: %v: %+v", c.status, err, v)
		}
		if errors.Is(err, notify.ErrGone) != (c.status == 410) {
			t.Errorf("%d: gone: %v", c.status, err)
		}
		silent(t, err)
	}
}

// silent fails the test if an error contains what only the receiver may know.
func silent(t *testing.T, err error) {
	t.Helper()
	for _, canary := range []string{"canary", newSecret[6:], oldSecret[6:]} {
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
}

func TestAnAttemptThatIsLateOrCutOffIsTriedAgain(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	for what, c := range map[string]struct {
		answer http.HandlerFunc
		code   string
	}{
		"slow": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}, "HTTP_TIMEOUT"},
		"reset": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}, "NETWORK_ERROR"},
		"silent end": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.Close()
		}, "NETWORK_ERROR"},
	} {
		s := sink(t, webhook.Config{Allow: loopback, AllowHTTP: true, Timeout: 300 * time.Millisecond})
		_, err := s.Deliver(t.Context(), delivery(receiver(t, c.answer)))
		if v := decide(s, err); err == nil || v.To != holdfast.Queued || v.Failure.Code != c.code || v.Call != failure.BadCall {
			t.Errorf("%s: %v: %+v", what, err, v)
		}
		silent(t, err)
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	s := near(t)
	_, err := s.Deliver(t.Context(), delivery(closed.URL+"/?token=canary"))
	if v := decide(s, err); err == nil || v.To != holdfast.Queued || v.Failure.Code != "NETWORK_ERROR" {
		t.Errorf("nobody there: %v: %+v", err, v)
	}
	silent(t, err)
}

func TestARedirectIsNotFollowed(t *testing.T) {
	var mu sync.Mutex
	reached := 0
	inside := receiver(t, func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		reached++
	})
	s := near(t)
	_, err := s.Deliver(t.Context(), delivery(receiver(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside, http.StatusTemporaryRedirect)
	})))
	mu.Lock()
	defer mu.Unlock()
	if v := decide(s, err); err == nil || v.To != holdfast.Failed || reached != 0 {
		t.Errorf("%v, reached %d times", err, reached)
	}
}

func TestAHugeAnswerIsCutAndAnEchoOfTheSecretHidden(t *testing.T) {
	target := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "you said "+newSecret+" and "+oldSecret[6:]+" ")
		for range 1 << 10 {
			if _, err := io.WriteString(w, strings.Repeat("a lot of words ", 1000)); err != nil {
				return
			}
		}
	})
	receipt, err := near(t).Deliver(t.Context(), delivery(target))
	if err != nil {
		t.Fatal(err)
	}
	answer := receipt.(webhook.Receipt).Answer
	if len(answer) > 2<<10 || strings.Contains(answer, newSecret[6:]) || strings.Contains(answer, oldSecret[6:]) || !strings.HasPrefix(answer, "you said") {
		t.Errorf("%d bytes: %.200s", len(answer), answer)
	}
}

func TestPrivateAddressesAreNeverCalled(t *testing.T) {
	reached := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.Host }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	s := sink(t, webhook.Config{AllowHTTP: true})
	for _, host := range []string{
		"127.0.0.1", "127.8.9.10", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "169.254.169.254", "10.0.0.1", "192.168.1.1",
		"100.64.0.1", "[fd00::1]", "[fe80::1]", "2130706433", "0x7f000001", "127.1", "017700000001",
	} {
		d := delivery("http://" + host + ":" + port + "/?token=canary")
		ctx, done := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := s.Deliver(ctx, d)
		done()
		if err == nil {
			t.Errorf("%s was called", host)
		}
		silent(t, err)
	}
	if len(reached) > 0 {
		t.Errorf("reached as %s", <-reached)
	}
	_, err := s.Deliver(t.Context(), delivery("http://localhost:"+port+"/"))
	if v := decide(s, err); v.To != holdfast.Failed || !strings.Contains(err.Error(), "may not be called") {
		t.Errorf("a name that leads inside: %v", err)
	}
}

func TestCheckRefusesBadTargetsAndSaysWhatToDo(t *testing.T) {
	s := sink(t, webhook.Config{})
	good := delivery("https://example.org/hook?token=canary").Subscription
	if err := s.Check(good); err != nil || s.Host(good) != "example.org" {
		t.Error(err, s.Host(good))
	}
	for target, says := range map[string]string{
		"http://example.org/canary":               "need https",
		"ftp://example.org/canary":                "need https",
		"example.org/canary":                      "not a URL",
		"https://":                                "not a URL",
		"https://exa mple.org/canary":             "not a URL",
		"https://ada:canary@example.org/":         "requests are signed",
		"https://example.org/#canary":             "remove it",
		"https://127.0.0.1/canary":                "may not be called",
		"https://[::1]:8443/canary":               "may not be called",
		"https://169.254.169.254/latest?t=canary": "may not be called",
	} {
		bad := good
		bad.Target = target
		err := s.Check(bad)
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", target, err)
		}
		silent(t, err)
	}
	unsigned := good
	unsigned.Secrets = nil
	if err := s.Check(unsigned); err == nil || !strings.Contains(err.Error(), "needs a secret") {
		t.Error(err)
	}
	unsigned.Options = map[string]string{webhook.Unsigned: "true"}
	if err := s.Check(unsigned); err != nil {
		t.Error(err)
	}
	unsigned.Options = map[string]string{"template": "x"}
	if err := s.Check(unsigned); err == nil {
		t.Error("an option it does not have is accepted")
	}
}

func TestABadSecretIsNamedAndNotRepeated(t *testing.T) {
	s := near(t)
	for _, secret := range []string{"", "canary", "whsec_", "whsec_canary!", "whsec_" + base64.StdEncoding.EncodeToString([]byte("short canary")), "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65))} {
		d := delivery(receiver(t, func(http.ResponseWriter, *http.Request) { t.Error("called") }))
		d.Secrets = []string{secret, oldSecret}
		_, err := s.Deliver(t.Context(), d)
		if err == nil || !strings.Contains(err.Error(), "the secret new") {
			t.Errorf("%q: %v", secret, err)
		}
		silent(t, err)
		if v := decide(s, err); v.To != holdfast.Queued {
			t.Errorf("somebody may put it right, yet: %+v", v)
		}
	}
}

func TestAttemptsSpreadOverThreeDays(t *testing.T) {
	s := near(t)
	var whole time.Duration
	for failures := range 9 {
		v := failure.Decide(failure.Rules{Policy: s.Traits().Policy}, store.Lease{Job: holdfast.Job{Failures: failures}}, failure.Outcome{Event: failure.Returned, Err: &failure.HTTPError{Status: 500}, Roll: 0.5})
		if v.To != holdfast.Queued {
			t.Fatalf("given up after %d", failures+1)
		}
		whole += v.Delay
	}
	if whole < 70*time.Hour || whole > 80*time.Hour {
		t.Error(whole)
	}
	if v := failure.Decide(failure.Rules{Policy: s.Traits().Policy}, store.Lease{Job: holdfast.Job{Failures: 9}}, failure.Outcome{Event: failure.Returned, Err: &failure.HTTPError{Status: 500}}); v.To != holdfast.Failed {
		t.Error("never given up")
	}
}

func TestAProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") }))
	defer proxy.Close()
	for _, variable := range []string{"HTTP_PROXY", "http_proxy"} {
		t.Setenv(variable, proxy.URL)
	}
	s := near(t)
	_, err := s.Deliver(t.Context(), delivery("http://receiver.invalid/hook?token=canary"))
	if v := decide(s, err); err == nil || v.Failure.Code != "NETWORK_ERROR" {
		t.Errorf("%v: %+v", err, v)
	}
	silent(t, err)
}

// isDuration reports whether a text is a duration, as documented.
func isDuration(text string) bool {
	_, err := time.ParseDuration(text)
	return err == nil
}

func TestATargetThatOnlyThisProcessForbidsIsLeftToOthers(t *testing.T) {
	called := false
	target := receiver(t, func(http.ResponseWriter, *http.Request) { called = true })
	for what, strict := range map[string]*webhook.Sink{
		"plain HTTP":        sink(t, webhook.Config{Allow: loopback}),
		"a private network": sink(t, webhook.Config{AllowHTTP: true}),
	} {
		d := delivery(target)
		if err := strict.Check(d.Subscription); !errors.Is(err, holdfast.ErrInvalid) || errors.Is(err, notify.ErrNotConfigured) {
			t.Errorf("%s: checked with %v", what, err)
		}
		if _, err := strict.Deliver(t.Context(), d); !errors.Is(err, notify.ErrNotConfigured) || called {
			t.Errorf("%s: delivered with %v", what, err)
		}
		d.Subscription.Target = "ftp://example.org"
		if _, err := strict.Deliver(t.Context(), d); err == nil || errors.Is(err, notify.ErrNotConfigured) {
			t.Errorf("%s: a malformed target: %v", what, err)
		}
	}
}
