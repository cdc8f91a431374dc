// Package mail is a sink that writes letters: what happened, in words, as plain text and as HTML side by side. Several events become
// one letter, so that a bad night fills no mailbox.
//
//	sink, err := mail.New(mail.Config{Host: "smtp.example.com", Username: "holdfast", Password: secret, From: "Holdfast <holdfast@example.com>"})
//	notify.Config{Sinks: map[string]notify.Sink{"mail": sink}}
package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
)

// A TLS says how the way to the mail server is protected.
type TLS string

const (
	StartTLS      TLS = "starttls"      // required; the default
	Implicit      TLS = "implicit"      // from the first byte, as on port 465
	Opportunistic TLS = "opportunistic" // when the server offers it
	NoTLS         TLS = "none"          // never; a password is then only given to a server on this machine
)

// Config says by which server letters go, and what they look like.
type Config struct {
	Host      string
	Port      int // 587 when zero, 465 with Implicit
	Username  string
	Password  string `json:"-"` // in no error, log or record
	TLS       TLS
	TLSConfig *tls.Config `json:"-"` // when the server's certificate is not one the machine trusts anyway
	From      string      // "Holdfast <holdfast@example.com>"
	Hello     string      // how we introduce ourselves to the server; the machine's name when empty

	// Templates are letters of the application's own, by name. One named "" replaces the built-in letter; a subscription asks for
	// another with its option "template".
	Templates map[string]Template

	Together int           // so many events in one letter at most; 50 when zero
	Burst    int           // so many letters at once to a target; 5 when zero
	Every    time.Duration // and one more each time so much has passed; 5 min when zero
	Timeout  time.Duration // of an attempt; 1 min when zero
}

// Format hides the password from every verb of package fmt.
func (c Config) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "mail by %s as %q", net.JoinHostPort(c.Host, strconv.Itoa(c.Port)), c.Username)
}

// A Sink sends letters. Any number of deliveries may use it at once.
type Sink struct {
	cfg      Config // without the password
	password func() string
	from     *netmail.Address
	letters  map[string]Template
	accepted memory
}

// New checks the configuration, naming every problem at once. It does not call the server.
func New(cfg Config) (*Sink, error) {
	cfg = cfg.withDefaults()
	from, err := oneAddress(cfg.From)
	problems := []error{err}
	if cfg.Host == "" || strings.ContainsFunc(cfg.Host, unprintable) || strings.ContainsAny(cfg.Host, " /@") {
		problems = append(problems, fmt.Errorf("a mail server named %.80q: give the name or address of a host", cfg.Host))
	}
	if cfg.Port < 1 || cfg.Port > 65535 {
		problems = append(problems, fmt.Errorf("a mail server on port %d: give one from 1 to 65535", cfg.Port))
	}
	switch cfg.TLS {
	case StartTLS, Implicit, Opportunistic, NoTLS:
	default:
		problems = append(problems, fmt.Errorf("TLS %.40q: use starttls, implicit, opportunistic or none", cfg.TLS))
	}
	if cfg.Username == "" && cfg.Password != "" {
		problems = append(problems, errors.New("a password without a user name: give both or neither"))
	}
	letters, err := prepare(cfg.Templates)
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: err.Error()}
	}
	password := cfg.Password
	cfg.Password, cfg.Templates = "", nil
	return &Sink{cfg: cfg, password: func() string { return password }, from: from, letters: letters}, nil
}

func (c Config) withDefaults() Config {
	if c.TLS == "" {
		c.TLS = StartTLS
	}
	if c.Port == 0 {
		c.Port = 587
		if c.TLS == Implicit {
			c.Port = 465
		}
	}
	if c.Together <= 0 {
		c.Together = 50
	}
	if c.Burst <= 0 {
		c.Burst = 5
	}
	if c.Every <= 0 {
		c.Every = 5 * time.Minute
	}
	if c.Timeout <= 0 {
		c.Timeout = time.Minute
	}
	return c
}

// Traits gathers events into few letters, and tries for about three hours.
func (s *Sink) Traits() notify.Traits {
	delays := failure.Table{30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour}
	return notify.Traits{
		Together: s.cfg.Together, Burst: s.cfg.Burst, Every: s.cfg.Every, Timeout: s.cfg.Timeout,
		Policy: failure.Policy{
			MaxAttempts: len(delays) + 1,
			GiveUpAfter: 24 * time.Hour, // a mail server that is away is probed for no longer
			Backoff:     failure.Spread{Of: delays, Jitter: failure.Jitter{Percent: 10}},
		},
	}
}

// Check refuses a target that is no address, or a list with one that is none, and a template nobody has.
func (s *Sink) Check(sub subscription.Subscription) error {
	_, err := addresses(sub.Target)
	problems := []error{err}
	if strings.ContainsFunc(sub.Name, unprintable) {
		problems = append(problems, errors.New("a name with control characters: leave them out, it stands in every letter"))
	}
	if name := sub.Options["template"]; name != "" {
		if _, ok := s.letters[name]; !ok {
			problems = append(problems, fmt.Errorf("a template named %.80q: nobody has configured it; leave it out for the built-in letter", name))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: err.Error()}
	}
	return nil
}

// Host is the mail server: when it is away, it is away for every target.
func (s *Sink) Host(subscription.Subscription) string { return s.cfg.Host }

// A Receipt says who got the letter. A recipient the server refused for good is named with its words; it got nothing, and will not.
type Receipt struct {
	MessageID string            `json:"message_id"`
	Subject   string            `json:"subject"`
	Accepted  []string          `json:"accepted"`
	Refused   map[string]string `json:"refused,omitempty"`
	Server    string            `json:"server,omitempty"` // its last words, often the number it gave the letter
}

// Deliver writes one letter about all events and hands it to the server. Every attempt at a delivery has the same Message-ID, so that
// a receiver can tell a twin.
func (s *Sink) Deliver(ctx context.Context, d notify.Delivery) (any, error) {
	to, err := addresses(d.Subscription.Target)
	if err != nil {
		return nil, failure.NeverRetry(failure.WithCode(err, "INVALID_INPUT"))
	}
	letter, err := s.compose(to, d)
	if err != nil {
		return nil, failure.NeverRetry(failure.WithCode(err, "HANDLER_ERROR"))
	}
	return s.send(ctx, letter, d.ID)
}
