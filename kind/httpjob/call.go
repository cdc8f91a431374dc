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

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/safehttp"
)

// Config says what may be called. The zero value calls public addresses on ports 80 and 443, with secrets from the environment.
type Config struct {
	Allow   []netip.Prefix // networks that may be called although they are private
	Hosts   []string       // names that may be called wherever they lead: host, or host:port
	Ports   []uint16       // 80 and 443 when empty
	AnyPort bool           // all of them

	Timeout time.Duration // of a call that does not say; 30 s when zero
	// Secret finds a secret by its name and decides whether it may be sent to a host, given as scheme://host; FromEnvironment when nil. Its errors must
	// not hold the secret.
	Secret func(name, host string) (string, error)
	// Dependencies maps hosts to the names of dependencies; a host that is not in it is a dependency of its own.
	Dependencies Dependencies
	// Policy is the kind's; the engine's when zero.
	Policy failure.Policy
	// Lookup resolves names; the system's way when nil.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	Log    *slog.Logger // is told why an address was blocked; slog.Default when nil
}

// A Response is the result of a job of kind "http".
type Response struct {
	Status    int               `json:"status"`
	Headers   map[string]string `json:"headers,omitempty"` // those that were asked for
	Body      string            `json:"body,omitempty"`
	Encoding  string            `json:"encoding,omitempty"` // "base64" of a body that is no text
	Truncated bool              `json:"truncated,omitempty"`
}

type caller struct {
	cfg   Config
	guard *safehttp.Guard
}

// Register lets an engine run jobs of kind "http". It must come before Run.
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
		Allow: cfg.Allow, Hosts: cfg.Hosts, Ports: cfg.Ports, AnyPort: cfg.AnyPort, Lookup: cfg.Lookup, Log: cfg.Log, Timeout: MaxTimeout, MaxBody: MaxResponse + maxSpelled,
	})
	if err != nil {
		return err
	}
	c := &caller{cfg, g}
	return engine.HandleRaw(e, Kind, c.work, engine.Kind{Timeout: MaxTimeout + 10*time.Second, Policy: cfg.Policy})
}

// work is one attempt.
func (c *caller) work(ctx context.Context, job *engine.Raw) error {
	r, target, err := read(job.Args)
	if err != nil {
		return failure.NeverRetry(failure.WithCode(err, "INVALID_INPUT"))
	}
	s := &secrets{find: c.cfg.Secret, host: originOf(target)}
	// Whatever the job says it depends on, and whatever became of its address since, it is this host that is called.
	host := c.cfg.Dependencies.of(target)
	job.Calls(host)
	answer, err := c.call(ctx, job, r, target, s)
	if err != nil {
		err = failure.On(err, host)
	}
	if err == nil {
		job.Result(answer)
	}
	return err
}

func (c *caller) call(ctx context.Context, job *engine.Raw, r Request, target *url.URL, s *secrets) (*Response, error) {
	timeout := c.cfg.Timeout
	if r.Timeout > 0 {
		timeout = time.Duration(r.Timeout)
	}
	bounded, done := context.WithTimeout(ctx, timeout)
	defer done()
	hasty := timeout < c.cfg.Timeout/hastyShare // then a time-out says nothing about the host
	request, err := r.build(bounded, job.Lease, target, s)
	if err != nil {
		return nil, err
	}
	answer, err := c.guard.Do(request, r.Redirects)
	if err != nil {
		return nil, unreached(err, s, hasty)
	}
	defer func() { _ = answer.Body.Close() }()
	text, more, err := readBody(answer.Body, r.most(), s)
	if !r.expects(answer.StatusCode) {
		// An answer that broke off has its status all the same.
		return nil, failure.With(refused(answer), "answer", strings.ToValidUTF8(text[:min(len(text), 1<<10)], "\uFFFD"))
	}
	if err != nil {
		return nil, unreached(err, s, hasty)
	}
	return r.keep(answer, text, more, s), nil
}

// build makes the request.
func (r Request) build(ctx context.Context, lease *holdfast.Lease, target *url.URL, s *secrets) (*http.Request, error) {
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
		return nil, failure.NeverRetry(failure.WithCode(errors.New("the request cannot be made of these arguments"), "INVALID_INPUT"))
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

// most is how many bytes of an answer are kept.
func (r Request) most() int {
	if r.MaxResponse == 0 {
		return defaultResponse
	}
	return r.MaxResponse
}

// readBody reads so much, without secrets, and reports whether there was more. It reads on a little, lest half a secret stand at the end.
func readBody(from io.Reader, most int, s *secrets) (text string, more bool, err error) {
	body, err := io.ReadAll(io.LimitReader(from, int64(most)+maxSpelled))
	if errors.Is(err, safehttp.ErrTooLarge) {
		err = nil
	}
	if more = len(body) > most; more {
		err = nil
	}
	text = s.hide(string(body))
	return text[:min(most, len(text))], more, err
}

// keep makes the result. What does not fit in the store, because JSON needs more bytes for it, is left out.
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
		if written, err := json.Marshal(kept); err == nil && len(written) <= holdfast.MaxArgs || text == "" {
			return kept
		}
		text, kept.Truncated = text[:len(text)*3/4], true
	}
}

// write keeps a text as it is, also one whose last character was cut, and everything else in base64.
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

// refused is the error of an answer that was not expected.
func refused(answer *http.Response) error {
	status := answer.StatusCode
	date, _ := http.ParseTime(answer.Header.Get("Date"))
	if date.IsZero() {
		date = time.Now()
	}
	because := func(text string) error {
		return failure.HTTPErrorAt(status, answer.Header.Get("Retry-After"), date, errors.New(text))
	}
	switch {
	case status < 300:
		return failure.WithCode(because("the answer is not one of those that were expected"), "NOT_READY")
	case status < 400:
		return failure.NeverRetry(failure.WithCode(because("the address has moved: give the new one, or say how many redirects to follow"), "HTTP_4XX"))
	}
	err := because("the call was refused")
	if after, ok := failure.ParseRetryAfter(answer.Header.Get("Retry-After"), date); ok && after > 0 && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		err = failure.Throttled(err, 0)
	}
	return err
}

// hastyShare: a call that its own timeout cuts in less than this share of the usual time says nothing about the host.
const hastyShare = 10

// unreached is the error of a call without an answer.
func unreached(err error, s *secrets, hasty bool) error {
	var late net.Error
	var lookup *net.DNSError
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound: // as a name that leads inside: the difference would tell which names exist there
		return failure.NeverRetry(failure.WithCode(safehttp.ErrBlocked, "ADDRESS_BLOCKED"))
	case errors.Is(err, safehttp.ErrBlocked):
		return failure.NeverRetry(failure.WithCode(err, "ADDRESS_BLOCKED"))
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		err = failure.WithCode(errors.New("there was no answer in time"), "HTTP_TIMEOUT")
		if hasty {
			err = failure.Blameless(err)
		}
		return err
	case errors.Is(err, context.Canceled):
		return err
	}
	return failure.WithCode(errors.New("the call did not come through: "+s.hide(err.Error())), "NETWORK_ERROR")
}
