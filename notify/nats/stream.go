// Package nats is a sink that publishes events to a JetStream stream of NATS: every event at least once, under one id, and a delivery is
// successful only when the stream has confirmed each of its events.
//
// The stream is a copy that can be made anew: set the subscription's cursor back (package ops does it), and what the
// feed still has is published again. Within the stream's duplicate window that adds nothing, as the ids are the same: after a purge of
// the stream, wait for as long, or delete the stream and have it made again.
//
// Events are published in the order of the feed. After a trouble in the middle of a delivery some may stand behind later ones: the
// header ce-sequence tells the order.
package nats

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
)

// Config says which servers to publish to. Only URL is required.
type Config struct {
	URL         string // nats://a:4222, or several with commas between them
	Credentials string // the file with the user's credentials, if the servers ask for some
	// Stream is the one that must take the events; a subscription names another with its option "stream". Without a name any stream
	// that listens to the subject will do.
	Stream  string
	Subject string // what subjects begin with when a subscription has no target; "holdfast.events" when empty

	// EnsureStream makes the stream when it is not there, and adds the subject to one that does not listen to it. A stream that is
	// there is otherwise left as it is.
	EnsureStream bool
	Replicas     int           // of a stream that is made; 1 when zero
	Duplicates   time.Duration // within which a stream that is made knows a twin; 10 min when zero

	Together int           // so many events in one delivery at most; 200 when zero
	Timeout  time.Duration // of an attempt; 30 s when zero
	Options  []nats.Option // whatever else the connection needs, such as TLS
}

const (
	defaultSubject    = "holdfast.events"
	defaultDuplicates = 10 * time.Minute
	defaultTogether   = 200
	defaultTimeout    = 30 * time.Second
)

// A Sink publishes. Any number of deliveries share its one connection, which is made at the first and comes back by itself.
type Sink struct {
	cfg  Config
	host string

	mu      sync.Mutex
	conn    *nats.Conn
	js      jetstream.JetStream
	ensured map[place]bool
	closed  bool
}

// A place is a stream and what its subjects begin with.
type place struct{ stream, subject string }

// New checks the configuration, naming every problem at once. It does not call the servers.
func New(cfg Config) (*Sink, error) {
	var problems []error
	if cfg.Subject == "" {
		cfg.Subject = defaultSubject
	}
	if cfg.Duplicates <= 0 {
		cfg.Duplicates = defaultDuplicates
	}
	if cfg.Together <= 0 {
		cfg.Together = defaultTogether
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	cfg.Replicas = max(cfg.Replicas, 1)
	host, err := hostOf(cfg.URL)
	problems = append(problems, err, checkSubject(cfg.Subject), checkStream(cfg.Stream))
	if cfg.EnsureStream && cfg.Stream == "" {
		problems = append(problems, errors.New("a stream is to be made, and has no name: give Stream"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: err.Error()}
	}
	return &Sink{cfg: cfg, host: host, ensured: make(map[place]bool)}, nil
}

// hostOf is the first server's name. The text of an address that makes no sense is not repeated: it may hold a password.
func hostOf(list string) (string, error) {
	first, _, _ := strings.Cut(list, ",")
	if !strings.Contains(first, "://") {
		first = "nats://" + first
	}
	u, err := url.Parse(strings.TrimSpace(first))
	if err != nil || u.Hostname() == "" {
		return "", errors.New("the address of the NATS servers makes no sense: write it like nats://nats.example.com:4222")
	}
	return u.Hostname(), nil
}

// Traits keeps the order, and goes on for a week: a stream that has gaps is of little use.
func (s *Sink) Traits() notify.Traits {
	yes := true
	return notify.Traits{
		Together: s.cfg.Together, Ordered: true, Timeout: s.cfg.Timeout,
		Policy: failure.Policy{
			MaxAttempts: 1_000_000, GiveUpAfter: 7 * 24 * time.Hour, MaxCrashes: 20,
			Backoff: failure.Exponential{Base: time.Second, Factor: 2, Cap: 5 * time.Minute, Jitter: failure.Jitter{Percent: 20}},
			Codes:   map[string]failure.Override{"UNAUTHORIZED": {Retryable: &yes}}, // somebody will renew the credentials
		},
	}
}

// Check refuses a target that is no subject to publish to.
func (s *Sink) Check(sub subscription.Subscription) error {
	at := s.placeOf(sub)
	if err := errors.Join(checkSubject(at.subject), checkStream(at.stream)); err != nil {
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: err.Error()}
	}
	return nil
}

// Host is the first of the servers: they are one dependency.
func (s *Sink) Host(subscription.Subscription) string { return s.host }

func (s *Sink) placeOf(sub subscription.Subscription) place {
	at := place{stream: s.cfg.Stream, subject: s.cfg.Subject}
	if sub.Target != "" {
		at.subject = sub.Target
	}
	if name := sub.Options["stream"]; name != "" {
		at.stream = name
	}
	return at
}

// checkSubject refuses what NATS would take for a pattern, or for its own.
func checkSubject(subject string) error {
	switch {
	case len(subject) > 200:
		return fmt.Errorf("a subject of %d bytes: the limit is 200", len(subject))
	case strings.HasPrefix(subject, "$") || strings.HasPrefix(subject, "_INBOX"):
		return fmt.Errorf("the subject %.80q belongs to NATS: choose another", subject)
	}
	for token := range strings.SplitSeq(subject, ".") {
		if token == "" || token != tokenOf(token) {
			return fmt.Errorf("the subject %.80q: write words of letters, digits, - and _ with dots between them, like holdfast.events", subject)
		}
	}
	return nil
}

func checkStream(name string) error {
	if name != tokenOf(name) {
		return fmt.Errorf("a stream named %.80q: use letters, digits, - and _", name)
	}
	return nil
}

// tokenOf makes a word fit for a subject.
func tokenOf(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, word)
}

// Close ends the connection. Deliveries under way fail, and are made again by whoever comes next.
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.conn != nil {
		s.conn.Close()
	}
	return nil
}
