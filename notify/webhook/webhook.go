// Package webhook delivers events over HTTP, following Standard Webhooks: every request is signed, has an id that is the same in all attempts, and has the event as
// CloudEvents JSON. Receivers can verify it with any Standard Webhooks library.
//
// A target is an address that a subscriber chose. The addresses it resolves to are checked when the connection is made, so that no name, redirect or spelling
// leads into a private network. Redirects are not followed, and no proxy is taken from the environment.
package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
)

// Config says which addresses may be called. The zero value allows public addresses over HTTPS.
type Config struct {
	// Allow are private networks that may be called, such as that of an internal receiver, or loopback in a test.
	Allow     []netip.Prefix
	AllowHTTP bool          // targets may be http as well as https
	Timeout   time.Duration // time limit of a request with its answer; 15 s when zero
}

// A Sink delivers by HTTP requests. It is safe for concurrent use.
type Sink struct {
	cfg   Config
	guard *safehttp.Guard
}

// Unsigned is the option of a subscription without a signature: its receiver accepts requests from anybody.
const Unsigned = "unsigned"

// retryDelays is the backoff: the time before each further attempt, three days in all.
var retryDelays = failure.Table{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// New makes a sink. One is enough for any number of subscriptions.
func New(cfg Config) (*Sink, error) {
	if cfg.Timeout < 0 || cfg.Timeout > time.Hour {
		return nil, invalid("Timeout is %v: give a duration up to an hour, or 0 for 15s", cfg.Timeout)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 15 * time.Second
	}
	// Receivers may listen on any port: a signed request to a public address does no harm elsewhere.
	g, err := safehttp.New(safehttp.Config{Allow: cfg.Allow, AnyPort: true, Timeout: cfg.Timeout})
	if err != nil {
		return nil, invalid("%v", err)
	}
	return &Sink{cfg: cfg, guard: g}, nil
}

// Close closes idle connections.
func (s *Sink) Close() { s.guard.Close() }

// Traits are one event in each request, and attempts over three days. Client errors (4xx) are retried too, because they are often a mistake of the receiver that is
// being repaired.
func (s *Sink) Traits() notify.Traits {
	again := true
	policy := failure.Policy{
		MaxAttempts: len(retryDelays) + 1, GiveUpAfter: 4 * 24 * time.Hour, RetryAfterCap: 24 * time.Hour,
		Backoff: failure.Spread{Of: retryDelays, Jitter: failure.Jitter{Percent: 10}}, Codes: make(map[string]failure.Override),
	}
	for _, code := range []string{"BAD_REQUEST", "UNAUTHORIZED", "AUTH_DENIED", "NOT_FOUND", "TOO_LARGE", "HTTP_4XX"} {
		policy.Codes[code] = failure.Override{Retryable: &again}
	}
	return notify.Traits{Together: 1, Timeout: s.cfg.Timeout + 5*time.Second, Policy: policy}
}

// Host is the receiver's host, with its port if the URL has one.
func (s *Sink) Host(sub subscription.Subscription) string {
	u, err := url.Parse(sub.Target)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// Check refuses a target that cannot be called, and a subscription without a secret unless it is unsigned.
func (s *Sink) Check(sub subscription.Subscription) error {
	return errors.Join(s.malformed(sub), s.forbidden(sub))
}

// malformed refuses a subscription that no process could deliver.
func (s *Sink) malformed(sub subscription.Subscription) error {
	problems := []error{s.badTarget(sub)}
	for key, value := range sub.Options {
		if key != Unsigned || value != "true" {
			problems = append(problems, invalid("the option %.60q with this value does not exist: the only option of a webhook is unsigned, with the value true", key))
		}
	}
	if len(sub.Secrets) == 0 && sub.Options[Unsigned] != "true" {
		problems = append(problems, invalid("a webhook needs a secret: give the name of one, or set the option unsigned to true if the receiver does not verify requests"))
	}
	return errors.Join(problems...)
}

// badTarget refuses a target that is no address of a receiver. Errors do not repeat it, because it may contain a secret.
func (s *Sink) badTarget(sub subscription.Subscription) error {
	u, err := url.Parse(sub.Target)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return invalid("the target is not a URL: give one such as https://example.org/hook")
	case u.Scheme != "https" && u.Scheme != "http":
		return invalid("the target begins with %.20q: webhooks need https", u.Scheme+":")
	case u.User != nil:
		return invalid("the target contains a user name or password: remove them; requests are signed")
	case u.Fragment != "":
		return invalid("the target has a fragment (#), which is never sent to a receiver: remove it")
	}
	if _, err := s.guard.Check(sub.Target); err != nil && !errors.Is(err, safehttp.ErrBlocked) {
		return invalid("the target is not valid: %v", err)
	}
	return nil
}

// forbidden refuses a target that the configuration of this sink does not allow.
func (s *Sink) forbidden(sub subscription.Subscription) error {
	if scheme, _, _ := strings.Cut(sub.Target, ":"); strings.EqualFold(scheme, "http") && !s.cfg.AllowHTTP {
		return invalid("the target begins with \"http:\": webhooks need https, unless webhook.Config allows http")
	}
	if _, err := s.guard.Check(sub.Target); errors.Is(err, safehttp.ErrBlocked) {
		return invalid("the target is in a network that may not be called: use a public address, or allow its network in webhook.Config")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
