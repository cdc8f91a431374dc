// Package nats is a sink that publishes events to a JetStream stream of NATS: every event at least once, always under the same id. A delivery is complete only
// when the stream has confirmed each of its events.
//
// The stream can be rebuilt: rewind the subscription (package ops), and all events that the feed still has are published again. Within the stream's
// duplicate window that adds nothing, because the ids are the same: after a purge of the stream, wait that long, or delete the stream and create it again.
//
// Events are published in the order of the feed. After a failure in the middle of a delivery, some may come after later ones: the header ce-sequence has the
// order.
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

// Config configures the sink. Only URL is required.
type Config struct {
	URL         string // nats://a:4222, or several separated by commas
	Credentials string // file with the user's credentials, if the servers require them
	// Stream is the stream that must receive the events; a subscription selects another with its option "stream". If it is empty, any stream with the subject
	// will do.
	Stream  string
	Subject string // prefix of subjects when a subscription has no target; "holdfast.events" when empty

	// EnsureStream creates the stream if it does not exist, and adds the subject to one that does not have it. An existing stream is otherwise not changed.
	EnsureStream bool
	Replicas     int           // of a stream that is created; 1 when zero
	Duplicates   time.Duration // duplicate window of a stream that is created; 10 min when zero

	Together int           // maximum number of events in one delivery; 200 when zero
	Timeout  time.Duration // time limit of an attempt; 30 s when zero
	Options  []nats.Option // further options of the connection, such as TLS
}

const (
	defaultSubject    = "holdfast.events"
	defaultDuplicates = 10 * time.Minute
	defaultTogether   = 200
	defaultTimeout    = 30 * time.Second
)

// A Sink publishes to NATS. It is safe for concurrent use: all deliveries share one connection, which is made at the first and reconnects by itself.
type Sink struct {
	cfg  Config
	host string

	mu      sync.Mutex
	conn    *nats.Conn
	js      jetstream.JetStream
	ensured map[destination]bool
	closed  bool
}

// A destination is a stream and the prefix of its subjects.
type destination struct{ stream, subject string }

// New checks the configuration; the error names every problem. It does not connect to the servers.
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
		problems = append(problems, errors.New("EnsureStream needs the name of the stream: set Stream"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, &holdfast.Error{Err: holdfast.ErrInvalid, Message: err.Error()}
	}
	return &Sink{cfg: cfg, host: host, ensured: make(map[destination]bool)}, nil
}

// hostOf is the host of the first server. The error does not repeat the address, which may contain a password.
func hostOf(list string) (string, error) {
	first, _, _ := strings.Cut(list, ",")
	if !strings.Contains(first, "://") {
		first = "nats://" + first
	}
	u, err := url.Parse(strings.TrimSpace(first))
	if err != nil || u.Hostname() == "" {
		return "", errors.New("the address of the NATS servers is not valid: use a form such as nats://nats.example.com:4222")
	}
	return u.Hostname(), nil
}

// Traits keep the order, and retry for a week: a stream with gaps is of little use.
func (s *Sink) Traits() notify.Traits {
	yes := true
	return notify.Traits{
		Together: s.cfg.Together, Ordered: true, Timeout: s.cfg.Timeout,
		Policy: failure.Policy{
			MaxAttempts: 1_000_000, GiveUpAfter: 7 * 24 * time.Hour, MaxCrashes: 20,
			Backoff: failure.Exponential{Base: time.Second, Factor: 2, Cap: 5 * time.Minute, Jitter: failure.Jitter{Percent: 20}},
			Codes:   map[string]failure.Override{"UNAUTHORIZED": {Retryable: &yes}}, // the credentials will be renewed
		},
	}
}

// Check refuses a target that is not a subject.
func (s *Sink) Check(sub subscription.Subscription) error {
	at := s.destinationOf(sub)
	if err := errors.Join(checkSubject(at.subject), checkStream(at.stream)); err != nil {
		return &holdfast.Error{Err: holdfast.ErrInvalid, Message: err.Error()}
	}
	return nil
}

// Host is the first of the servers: they are one dependency.
func (s *Sink) Host(subscription.Subscription) string { return s.host }

func (s *Sink) destinationOf(sub subscription.Subscription) destination {
	at := destination{stream: s.cfg.Stream, subject: s.cfg.Subject}
	if sub.Target != "" {
		at.subject = sub.Target
	}
	if name := sub.Options["stream"]; name != "" {
		at.stream = name
	}
	return at
}

// checkSubject refuses wildcards and the subjects that NATS reserves.
func checkSubject(subject string) error {
	switch {
	case len(subject) > 200:
		return fmt.Errorf("the subject has %d bytes: the maximum is 200", len(subject))
	case strings.HasPrefix(subject, "$") || strings.HasPrefix(subject, "_INBOX"):
		return fmt.Errorf("the subject %.80q is reserved by NATS: use another", subject)
	}
	for token := range strings.SplitSeq(subject, ".") {
		if token == "" || token != tokenOf(token) {
			return fmt.Errorf("the subject %.80q is not valid: use words of letters, digits, - and _ separated by dots, such as holdfast.events", subject)
		}
	}
	return nil
}

func checkStream(name string) error {
	if name != tokenOf(name) {
		return fmt.Errorf("the stream name %.80q is not valid: use letters, digits, - and _", name)
	}
	return nil
}

// tokenOf replaces characters that a subject token cannot have.
func tokenOf(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, word)
}

// Close closes the connection. Deliveries in progress fail and are retried.
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.conn != nil {
		s.conn.Close()
	}
	return nil
}
