// Package webhook tells receivers over HTTP, as Standard Webhooks has it: every request is signed, names its message by an id that stays the
// same over attempts, and carries the event as CloudEvents JSON. Receivers verify with any Standard Webhooks library.
//
// A target is an address somebody else chose. What it resolves to is looked at when it is dialled, so that no name, redirect or trick of
// spelling leads into a private network; redirects are not followed, and no proxy is taken from the environment.
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
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/safehttp"
)

// Config says what may be called. The zero value calls public addresses over HTTPS.
type Config struct {
	// Allow are networks that may be called although they are private: a receiver beside us, loopback in a test.
	Allow     []netip.Prefix
	AllowHTTP bool          // targets need not be https
	Timeout   time.Duration // of a request with its answer; 15 s when zero
}

// Sink tells by HTTP requests.
type Sink struct {
	cfg   Config
	guard *safehttp.Guard
}

// Unsigned is the option of a subscription that goes without a signature: its receiver believes whoever calls.
const Unsigned = "unsigned"

// schedule is how long after each failed attempt the next one comes: three days in all.
var schedule = failure.Table{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// New makes a sink. One is enough for any number of subscriptions.
func New(cfg Config) (*Sink, error) {
	if cfg.Timeout < 0 || cfg.Timeout > time.Hour {
		return nil, refusal("Timeout is %v: give a duration up to an hour, or 0 for 15s", cfg.Timeout)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 15 * time.Second
	}
	// Receivers listen on whatever port they like: a signed request to a public address means nothing to anybody else.
	g, err := safehttp.New(safehttp.Config{Allow: cfg.Allow, AnyPort: true, Timeout: cfg.Timeout})
	if err != nil {
		return nil, refusal("%v", err)
	}
	return &Sink{cfg: cfg, guard: g}, nil
}

// Close lets go of connections that are not in use.
func (s *Sink) Close() { s.guard.Close() }

// Traits are one event a request, and attempts over three days. An answer that means "you are wrong" is tried again too: it is as often the
// receiver that is being repaired.
func (s *Sink) Traits() notify.Traits {
	again := true
	policy := failure.Policy{
		MaxAttempts: len(schedule) + 1, GiveUpAfter: 4 * 24 * time.Hour, RetryAfterCap: 24 * time.Hour,
		Backoff: failure.Spread{Of: schedule, Jitter: failure.Jitter{Percent: 10}}, Codes: make(map[string]failure.Override),
	}
	for _, code := range []string{"BAD_REQUEST", "UNAUTHORIZED", "AUTH_DENIED", "NOT_FOUND", "TOO_LARGE", "HTTP_4XX"} {
		policy.Codes[code] = failure.Override{Retryable: &again}
	}
	return notify.Traits{Together: 1, Timeout: s.cfg.Timeout + 5*time.Second, Policy: policy}
}

// Host is the receiver's, with its port if the address names one.
func (s *Sink) Host(sub subscription.Subscription) string {
	u, err := url.Parse(sub.Target)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// Check refuses a target that cannot be called, and a subscription whose receiver could not tell who calls.
func (s *Sink) Check(sub subscription.Subscription) error {
	_, err := s.target(sub)
	problems := []error{err}
	for key, value := range sub.Options {
		if key != Unsigned || value != "true" {
			problems = append(problems, refusal("option %.60q with that value: a webhook has only unsigned, which may be true", key))
		}
	}
	if len(sub.Secrets) == 0 && sub.Options[Unsigned] != "true" {
		problems = append(problems, refusal("a webhook without a secret: name one, or set the option unsigned to true if its receiver believes whoever calls"))
	}
	return errors.Join(problems...)
}

// target reads the address. Refusals do not repeat it: it may hold what only the receiver should know.
func (s *Sink) target(sub subscription.Subscription) (*url.URL, error) {
	u, err := url.Parse(sub.Target)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return nil, refusal("the target is no address: give one such as https://example.org/hook")
	case u.Scheme != "https" && !(u.Scheme == "http" && s.cfg.AllowHTTP):
		return nil, refusal("the target begins with %.20q: webhooks go over https", u.Scheme+":")
	case u.User != nil:
		return nil, refusal("the target holds a user name or password: leave it out; requests are signed")
	case u.Fragment != "":
		return nil, refusal("the target has a part after #, which never reaches a receiver: leave it out")
	}
	switch _, err := s.guard.Check(sub.Target); {
	case errors.Is(err, safehttp.ErrBlocked):
		return nil, refusal("the target is in a network that may not be called: give a public address, or allow its network in webhook.Config")
	case err != nil:
		return nil, refusal("the target: %v", err)
	}
	return u, nil
}

func refusal(format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
