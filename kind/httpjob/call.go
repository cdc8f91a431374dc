package httpjob

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/store"
)

// Config configures which addresses may be called. The zero value allows public addresses on ports 80 and 443, with secrets from the environment.
type Config struct {
	Allow   []netip.Prefix // private networks that may be called
	Hosts   []string       // hosts that may be called at any address, public or private, as host or host:port
	Ports   []uint16       // 80 and 443 when empty
	AnyPort bool           // all ports

	Timeout time.Duration // of a request that sets none; 30 s when zero
	// Secret returns a secret by name, or an error if it does not exist or may not be sent to the host, given as scheme://host; FromEnvironment when nil. Its errors
	// must not contain the secret.
	Secret func(name, host string) (string, error)
	// Dependencies maps hosts to names of dependencies. A host that is not in it is a dependency under its own name.
	Dependencies Dependencies
	// Policy is the policy of the kind; see engine.KindOptions.Policy.
	Policy failure.Policy
	// Lookup resolves host names; the system resolver when nil.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	Log    *slog.Logger // logs why an address was blocked; slog.Default when nil
}

// A Response is the result of a job of kind "http".
type Response struct {
	Status    int               `json:"status"`
	Headers   map[string]string `json:"headers,omitempty"` // the ones in Request.KeepHeaders
	Body      string            `json:"body,omitempty"`
	Encoding  string            `json:"encoding,omitempty"` // "base64" if the body is not text
	Truncated bool              `json:"truncated,omitempty"`
}

type caller struct {
	cfg   Config
	guard *safehttp.Guard
}

// Register registers the kind "http" with an engine. It must be called before Run.
func Register(e *engine.Engine, cfg Config) error {
	if cfg.Timeout < 0 || cfg.Timeout > MaxTimeout {
		return fmt.Errorf("Timeout is %v: give a duration up to %v, or 0 for %v", cfg.Timeout, MaxTimeout, defaultTimeout)
	}
	if err := cfg.Dependencies.Check(); err != nil {
		return err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Secret == nil {
		cfg.Secret = FromEnvironment
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	g, err := safehttp.New(safehttp.Config{
		Allow: cfg.Allow, Hosts: cfg.Hosts, Ports: cfg.Ports, AnyPort: cfg.AnyPort, Lookup: cfg.Lookup, Log: cfg.Log, Timeout: MaxTimeout, MaxBody: MaxResponse + maxEscapedSecret,
	})
	if err != nil {
		return err
	}
	c := &caller{cfg, g}
	engine.HandleRaw(e, Kind, c.work, engine.KindOptions{Timeout: MaxTimeout + 10*time.Second, Policy: cfg.Policy})
	return nil
}

// work makes one attempt.
func (c *caller) work(ctx context.Context, job *engine.Raw) error {
	r, target, err := read(job.Args)
	if err != nil {
		return failure.NeverRetry(failure.WithCode(err, "INVALID_INPUT"))
	}
	s := &secrets{find: c.cfg.Secret, host: originOf(target)}
	// The dependency is derived from the address that is called, not from the job: its address may have been edited.
	host := c.cfg.Dependencies.of(target)
	job.SetDependency(host)
	answer, called, err := c.call(ctx, job, r, target, s)
	if err != nil {
		// After a redirect, the host that failed is another one. The host that redirected did its work, and must not be blamed: a caller could otherwise open
		// its breaker with any of its pages that redirects to an address of the caller's choice.
		return failure.On(err, c.cfg.Dependencies.of(called))
	}
	job.Result(answer)
	return nil
}

// call makes the request and returns the response, or an error that classifies why there is none or why its status is not expected. called is the address of
// the last call: the target of the last redirect that was followed.
func (c *caller) call(ctx context.Context, job *engine.Raw, r Request, target *url.URL, s *secrets) (kept *Response, called *url.URL, err error) {
	timeout := c.cfg.Timeout
	if r.Timeout > 0 {
		timeout = time.Duration(r.Timeout)
	}
	bounded, done := context.WithTimeout(ctx, timeout)
	defer done()
	tooShort := timeout < c.cfg.Timeout/shortTimeoutShare // then a timeout says nothing about the host
	request, err := r.build(bounded, &job.Lease, target, s)
	if err != nil {
		return nil, target, err
	}
	answer, err := c.guard.Do(request, r.Redirects)
	if err != nil {
		redirected := (*safehttp.RedirectedError)(nil)
		if errors.As(err, &redirected) {
			target = redirected.URL
		}
		return nil, target, noAnswer(err, s, tooShort)
	}
	called = answer.Request.URL
	defer func() { _ = answer.Body.Close() }()
	text, more, err := readBody(answer.Body, r.responseLimit(), s)
	if !r.expects(answer.StatusCode) {
		// The status counts even if the body could not be read to its end.
		return nil, called, failure.With(unexpectedStatus(answer), "answer", strings.ToValidUTF8(text[:min(len(text), 1<<10)], "\uFFFD"))
	}
	if err != nil {
		return nil, called, noAnswer(err, s, tooShort)
	}
	return r.keep(answer, text, more, s), called, nil
}

// build creates the HTTP request, with secrets in place of their references.
func (r Request) build(ctx context.Context, lease *store.Lease, target *url.URL, s *secrets) (*http.Request, error) {
	to := *target
	query, err := s.put(to.RawQuery, url.QueryEscape)
	if err != nil {
		return nil, err
	}
	to.RawQuery = query
	var body io.Reader
	if r.sends() {
		body = strings.NewReader(r.Body + string(r.JSON))
	}
	request, err := http.NewRequestWithContext(ctx, r.method(), to.String(), body)
	if err != nil {
		return nil, failure.NeverRetry(failure.WithCode(errors.New("no request can be made from these arguments"), "INVALID_INPUT"))
	}
	h := request.Header
	h.Set("User-Agent", "Holdfast")
	h.Set("Idempotency-Key", lease.ID.String())
	if lease.Trace != "" {
		h.Set("Traceparent", lease.Trace)
	}
	switch {
	case len(r.JSON) > 0:
		h.Set("Content-Type", "application/json")
	case r.Body != "":
		h.Set("Content-Type", "text/plain; charset=utf-8")
	}
	for name, value := range r.Headers {
		if value, err = s.put(value, func(secret string) string { return secret }); err != nil {
			return nil, err
		}
		h.Set(name, value)
	}
	return request, nil
}

// responseLimit returns how many bytes of the response body are stored.
func (r Request) responseLimit() int {
	if r.MaxResponse == 0 {
		return defaultResponse
	}
	return r.MaxResponse
}

// readBody reads at most limit bytes, without secrets, and reports whether there was more. It reads a little further, so that a secret at the limit is recognised and
// no half of it remains.
func readBody(from io.Reader, limit int, s *secrets) (text string, more bool, err error) {
	body, err := io.ReadAll(io.LimitReader(from, int64(limit)+maxEscapedSecret))
	if errors.Is(err, safehttp.ErrTooLarge) {
		err = nil
	}
	if more = len(body) > limit; more {
		err = nil
	}
	text = s.hide(string(body))
	return text[:min(limit, len(text))], more, err
}

// keep returns the result to store. A body that exceeds the limit of the store once it is written as JSON is shortened.
func (r Request) keep(answer *http.Response, text string, more bool, s *secrets) *Response {
	kept := &Response{Status: answer.StatusCode, Truncated: more}
	for _, name := range r.KeepHeaders {
		if values := answer.Header.Values(name); len(values) > 0 {
			if kept.Headers == nil {
				kept.Headers = make(map[string]string)
			}
			value := strings.Join(values, ", ")
			kept.Headers[http.CanonicalHeaderKey(name)] = s.hide(strings.ToValidUTF8(value[:min(len(value), maxValue)], "\uFFFD"))
		}
	}
	for {
		kept.write(text)
		if written, err := json.Marshal(kept); err == nil && len(written) <= check.MaxArgs || text == "" {
			return kept
		}
		text, kept.Truncated = text[:len(text)*3/4], true
	}
}

// write sets the body: text as it is, even if its last character was cut off, and everything else as base64.
func (k *Response) write(text string) {
	whole := text
	for range utf8.UTFMax - 1 {
		if !k.Truncated || utf8.ValidString(whole) || whole == "" {
			break
		}
		whole = whole[:len(whole)-1]
	}
	k.Body, k.Encoding = whole, ""
	if !utf8.ValidString(whole) {
		k.Body, k.Encoding = base64.StdEncoding.EncodeToString([]byte(text)), "base64"
	}
}

// unexpectedStatus returns the error of a response whose status is not expected.
func unexpectedStatus(answer *http.Response) error {
	status := answer.StatusCode
	answered := failure.NewHTTPError(status, answer.Header, nil)
	because := func(text string) error {
		answered.Err = errors.New(text)
		return answered
	}
	switch {
	case status < 300:
		return failure.WithCode(because("the status is not one of the expected ones"), "NOT_READY")
	case status < 400:
		return failure.NeverRetry(failure.WithCode(because("the address redirects: use the new address, or set redirects to the number to follow"), "HTTP_4XX"))
	}
	err := because("the receiver answered with an error")
	if answered.RetryAfter > 0 && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		err = failure.Throttled(err, 0)
	}
	return err
}

// shortTimeoutShare: a timeout of less than a tenth of Config.Timeout says nothing about the host.
const shortTimeoutShare = 10

// noAnswer returns the error of a request without a complete response.
func noAnswer(err error, s *secrets, tooShort bool) error {
	var late net.Error
	var lookup *net.DNSError
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound: // like a name with a blocked address: the difference would reveal which internal names exist
		return failure.NeverRetry(failure.WithCode(safehttp.ErrBlocked, "ADDRESS_BLOCKED"))
	case errors.Is(err, safehttp.ErrBlocked):
		return failure.NeverRetry(failure.WithCode(err, "ADDRESS_BLOCKED"))
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		err = failure.WithCode(errors.New("there was no response within the timeout"), "HTTP_TIMEOUT")
		if tooShort {
			err = failure.Blameless(err)
		}
		return err
	case errors.Is(err, context.Canceled):
		return err
	}
	return failure.WithCode(errors.New("the request failed: "+s.hide(err.Error())), "NETWORK_ERROR")
}
