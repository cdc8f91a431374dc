package httpjob_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/kind/httpjob"
)

func TestAFailingReceiverIsCalledUntilItAnswersWithTheSameIdempotencyKey(t *testing.T) {
	r := newReceiver(t, status(500, "Connection", "close"), resets, breaksOff, status(503), status(429, "Retry-After", "1"))
	p := build(t, nil, r)
	job := p.run(httpjob.Request{URL: r.URL + "/orders?q=1", JSON: json.RawMessage(`{"id": 7}`)})
	if got := response(t, job); got.Status != 200 || got.Body != "well" || got.Truncated || got.Encoding != "" {
		t.Errorf("%+v", got)
	}
	requests := r.requests()
	if len(requests) != 6 {
		t.Errorf("%d requests", len(requests))
	}
	for _, request := range requests {
		h := request.Header
		if h.Get("Idempotency-Key") != job.ID.String() || h.Get("Traceparent") != job.Trace || job.Trace == "" || h.Get("Content-Type") != "application/json" || request.Method != http.MethodPost {
			t.Errorf("%s %v", request.Method, h)
		}
	}
	history, err := p.store.History(t.Context(), job.ID)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, a := range history.Attempts {
		if a.Failure != nil {
			codes = append(codes, a.Failure.Code)
		}
		if a.Failure != nil && a.Failure.Code == "RATE_LIMITED" && a.DueAt.Sub(a.EndedAt) < 900*time.Millisecond {
			t.Errorf("asked to wait a second, it waited %v", a.DueAt.Sub(a.EndedAt))
		}
	}
	if fmt.Sprint(codes) != "[HTTP_5XX NETWORK_ERROR NETWORK_ERROR DEPENDENCY_DOWN RATE_LIMITED]" {
		t.Error(codes)
	}
	if job.Failures != 4 || job.Releases != 1 {
		t.Errorf("an answer 429 with Retry-After spends no attempt: %d failures, %d releases", job.Failures, job.Releases)
	}
	if host := r.Listener.Addr().String(); job.Dependency != host {
		t.Errorf("its dependency is %q", job.Dependency)
	}
}

func TestAReceiverThatDoesNotAnswerInTimeIsCalledAgain(t *testing.T) {
	r := newReceiver(t, stuck, stuck)
	p := build(t, func(c *httpjob.Config) { c.Policy.MaxAttempts = 2 }, r)
	job := p.run(httpjob.Request{URL: r.URL, Body: "hello", Timeout: httpjob.Duration(200 * time.Millisecond)})
	if job.State != holdfast.Failed || job.LastFailure.Code != "HTTP_TIMEOUT" || job.Failures != 2 || job.LastFailure.Dependency != r.Listener.Addr().String() {
		t.Errorf("%s %+v", job.State, job.LastFailure)
	}
}

func TestAFailureThatNoRetryCanHelpIsCalledOnce(t *testing.T) {
	for _, c := range []struct {
		manner http.HandlerFunc
		code   string
	}{
		{status(404), "NOT_FOUND"}, {status(401), "UNAUTHORIZED"}, {status(400), "BAD_REQUEST"}, {status(302, "Location", "/there"), "HTTP_4XX"},
	} {
		r := newReceiver(t, c.manner)
		job := build(t, nil, r).run(httpjob.Request{URL: r.URL})
		if job.State != holdfast.Failed || job.LastFailure.Code != c.code || len(r.requests()) != 1 || job.LastFailure.Context["answer"] != "so it is" {
			t.Errorf("%s: %s %+v after %d", c.code, job.State, job.LastFailure, len(r.requests()))
		}
	}
}

func TestABlockedAddressFailsTheJobUnderACodeOfItsOwn(t *testing.T) {
	p := build(t, nil)
	inner := newReceiver(t)
	port := inner.URL[strings.LastIndex(inner.URL, ":"):]
	r := newReceiver(t, status(302, "Location", "http://127.0.0.2"+port+"/"), status(302, "Location", "http://169.254.169.254/latest/"))
	for _, request := range []httpjob.Request{
		{URL: r.URL, Redirects: 3}, {URL: r.URL, Redirects: 1},
		{URL: "http://127.0.0.2" + port + "/"}, {URL: "http://[::1]" + port + "/"}, {URL: "http://169.254.169.254/"}, {URL: "http://0x7f000001" + port + "/"}, {URL: "http://[fe80::1%25eth0]/"},
	} {
		job := p.run(request)
		if job.State != holdfast.Failed || job.LastFailure.Code != "ADDRESS_BLOCKED" || job.Failures != 1 || strings.Contains(job.LastFailure.Detail, "private") {
			t.Errorf("%s: %s %+v", request.URL, job.State, job.LastFailure)
		}
	}
	if len(inner.requests()) != 0 {
		t.Error("it was called")
	}
}

func TestOnlyRequestedHeadersAndALimitedBodyAreStored(t *testing.T) {
	big := strings.Repeat("ä", 1<<20)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 8<<20))
	_ = z.Close()
	packed := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	}
	r := newReceiver(t, status(201, "ETag", `"v1"`, "X-Other", "no"), says(big), says("\xff\xfe\x00"), packed, says(strings.Repeat("<", 600<<10)), says("0123456789"), says("0123456789"))
	p := build(t, nil, r)
	if got := response(t, p.run(httpjob.Request{URL: r.URL, KeepHeaders: []string{"etag", "absent"}})); got.Status != 201 || len(got.Headers) != 1 || got.Headers["Etag"] != `"v1"` {
		t.Errorf("%+v", got)
	}
	if got := response(t, p.run(httpjob.Request{URL: r.URL, MaxResponse: 1001})); !got.Truncated || got.Body != big[:1000] || got.Encoding != "" {
		t.Errorf("a huge answer: %d bytes, %v, %s", len(got.Body), got.Truncated, got.Encoding)
	}
	if got := response(t, p.run(httpjob.Request{URL: r.URL})); got.Encoding != "base64" || got.Body != base64.StdEncoding.EncodeToString([]byte("\xff\xfe\x00")) || got.Truncated {
		t.Errorf("no text: %+v", got)
	}
	if got := response(t, p.run(httpjob.Request{URL: r.URL})); !got.Truncated || len(got.Body) != 64<<10 {
		t.Errorf("a bomb: %d bytes, %v", len(got.Body), got.Truncated)
	}
	if got := response(t, p.run(httpjob.Request{URL: r.URL, MaxResponse: httpjob.MaxResponse})); !got.Truncated || len(got.Body) < 64<<10 {
		t.Errorf("what JSON spells with six bytes: %d bytes, %v", len(got.Body), got.Truncated)
	}
	for _, c := range []struct {
		most int
		cut  bool
	}{{10, false}, {9, true}} {
		if got := response(t, p.run(httpjob.Request{URL: r.URL, MaxResponse: c.most})); got.Truncated != c.cut || len(got.Body) != c.most {
			t.Errorf("at most %d: %+v", c.most, got)
		}
	}
}

func TestStatusesMeanWhatTheRequestExpects(t *testing.T) {
	r := newReceiver(t, status(404), status(409), status(202))
	p := build(t, nil, r)
	if got := response(t, p.run(httpjob.Request{URL: r.URL, Expect: []httpjob.Status{"200", "404"}})); got.Status != 404 || got.Body != "so it is" {
		t.Errorf("%+v", got)
	}
	if got := response(t, p.run(httpjob.Request{URL: r.URL, Expect: []httpjob.Status{"2xx", "405-410"}})); got.Status != 409 {
		t.Errorf("%+v", got)
	}
	job := p.run(httpjob.Request{URL: r.URL, Expect: []httpjob.Status{"200"}}) // the first status is 202, which means not ready
	if got := response(t, job); got.Status != 200 || len(r.requests()) != 4 {
		t.Errorf("%+v after %d", got, len(r.requests()))
	}
}

func TestRedirectsAreFollowedWhenAskedFor(t *testing.T) {
	r := newReceiver(t, status(302, "Location", "/there"), says("there"))
	if got := response(t, build(t, nil, r).run(httpjob.Request{URL: r.URL, Redirects: 1})); got.Body != "there" || r.requests()[1].URL.Path != "/there" {
		t.Errorf("%+v", got)
	}
}

func TestAPolicyKeepsEachHostToItsOwnNumberOfCalls(t *testing.T) {
	set, err := policy.Parse([]byte("dependencies:\n  \"*\": {limit: {at_most: 2}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var once sync.Once
	var a, b *receiver
	now, most := make(map[string]int), make(map[string]int)
	enough := make(chan struct{}) // closed when both hosts have as many calls as their limits allow
	busy := func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now[r.Host]++
		most[r.Host] = max(most[r.Host], now[r.Host])
		if most[a.Listener.Addr().String()] >= 2 && most[b.Listener.Addr().String()] >= 2 {
			once.Do(func() { close(enough) })
		}
		mu.Unlock()
		select {
		case <-enough:
		case <-r.Context().Done():
		}
		mu.Lock()
		now[r.Host]--
		mu.Unlock()
	}
	a, b = newReceiver(t, busy, busy, busy, busy), newReceiver(t, busy, busy, busy, busy)
	p := buildIn(t, nil, engine.Config{Policies: set})
	var drafts []holdfast.Draft
	for i := range 8 {
		draft, err := httpjob.Draft(httpjob.Request{URL: []string{a.URL, b.URL}[i%2]})
		if err != nil {
			t.Fatal(err)
		}
		drafts = append(drafts, draft)
	}
	p.waitForPolicy()
	for _, job := range p.runAll(p.gate, drafts...) {
		if job.State != holdfast.Complete {
			t.Errorf("%s %+v", job.State, job.LastFailure)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if most[a.Listener.Addr().String()] != 2 || most[b.Listener.Addr().String()] != 2 {
		t.Error(most)
	}
}

const canary = `canary/9+"&k=<s>`

func TestASecretIsSentAndIsNowhereElse(t *testing.T) {
	echo := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Echo", r.Header.Get("X-Key"))
			w.WriteHeader(code)
			told, _ := json.Marshal(r.Header)
			_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Header.Get("X-Key"), r.URL.RawQuery, told, base64.StdEncoding.EncodeToString([]byte(canary)))
		}
	}
	r := newReceiver(t, echo(500), resets, echo(200))
	p := build(t, func(c *httpjob.Config) {
		c.Secret = func(name, host string) (string, error) {
			if name != "shop-key" || host != r.URL {
				return "", errors.New("there is no such secret")
			}
			return canary, nil
		}
	}, r)
	job := p.run(httpjob.Request{URL: r.URL + "/?a=1&key=${secret:shop-key}", Headers: map[string]string{"X-Key": "Bearer ${secret:shop-key}."}, KeepHeaders: []string{"X-Echo"}})
	got := response(t, job)
	if !strings.Contains(got.Body, "Bearer [secret].") || got.Headers["X-Echo"] != "Bearer [secret]." {
		t.Errorf("%+v", got)
	}
	for _, request := range r.requests() {
		if request.Header.Get("X-Key") != "Bearer "+canary+"." || request.URL.Query().Get("key") != canary || request.URL.Query().Get("a") != "1" {
			t.Errorf("%v %v", request.URL, request.Header)
		}
	}
	for where, text := range p.storedTexts(job.ID) {
		if strings.Contains(text, "canary") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(canary))) {
			t.Errorf("the secret is in %s", where)
		}
	}
}

func TestASecretThatIsCutAtTheEndIsHiddenToo(t *testing.T) {
	r := newReceiver(t, says("0123456789"+canary+" and more"))
	p := build(t, func(c *httpjob.Config) { c.Secret = func(string, string) (string, error) { return canary, nil } }, r)
	got := response(t, p.run(httpjob.Request{URL: r.URL, Headers: map[string]string{"X-Key": "${secret:k}"}, MaxResponse: 16}))
	if strings.Contains(got.Body, "ca") || !got.Truncated {
		t.Errorf("%+v", got)
	}
}

func TestASecretGoesOnlyToTheHostsThatWereNamedForIt(t *testing.T) {
	r := newReceiver(t)
	t.Setenv("HOLDFAST_SECRET_SHOP_KEY", canary)
	for hosts, sent := range map[string]bool{"": false, "api.example.org": false, r.Listener.Addr().String(): false, "api.example.org, " + r.URL: true} {
		t.Setenv("HOLDFAST_SECRET_SHOP_KEY_HOSTS", hosts)
		p := build(t, func(c *httpjob.Config) { c.Policy.MaxAttempts = 1 }, r)
		job := p.run(httpjob.Request{URL: r.URL, Headers: map[string]string{"X-Key": "${secret:shop-key}"}})
		if sent != (job.State == holdfast.Complete) {
			t.Errorf("%q: %s", hosts, job.State)
		}
		if !sent && (job.LastFailure.Code != "SECRET_MISSING" || !strings.Contains(job.LastFailure.Detail, "HOLDFAST_SECRET_SHOP_KEY_HOSTS")) {
			t.Errorf("%q: %+v", hosts, job.LastFailure)
		}
	}
	if n := len(r.requests()); n != 1 {
		t.Errorf("called %d times", n)
	}
}

func TestAJobThatWasNotPreparedIsValidatedWhenItRuns(t *testing.T) {
	p := build(t, nil)
	job := p.runDraft(p.store, holdfast.Draft{Kind: httpjob.Kind, Args: json.RawMessage(`{"url": "https://example.org/", "header": {}}`)})
	if job.State != holdfast.Failed || job.LastFailure.Code != "INVALID_INPUT" || job.Failures != 1 {
		t.Errorf("%s %+v", job.State, job.LastFailure)
	}
	r := newReceiver(t, status(404))
	job = p.runDraft(p.store, holdfast.Draft{Kind: httpjob.Kind, Args: json.RawMessage(`{"url": "` + r.URL + `"}`)})
	if host := r.Listener.Addr().String(); job.LastFailure == nil || job.LastFailure.Dependency != host {
		t.Errorf("blamed on another than %s: %+v", host, job.LastFailure)
	}
}
