// Package mail is a sink that sends mail: what happened, in sentences, as plain text and HTML. Several events become one mail, so that many failures at once
// do not fill a mailbox.
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

// A TLS is how the connection to the mail server is protected.
type TLS string

const (
	StartTLS      TLS = "starttls"      // required; the default
	Implicit      TLS = "implicit"      // from the first byte, as on port 465
	Opportunistic TLS = "opportunistic" // if the server offers it
	NoTLS         TLS = "none"          // never; the password is then only sent to a server on this machine
)

// Config configures the mail server and the mails. Host and From are required.
type Config struct {
	Host      string
	Port      int // 587 when zero, 465 with Implicit
	Username  string
	Password  string `json:"-"` // never in an error, log or record
	TLS       TLS
	TLSConfig *tls.Config `json:"-"` // for a server whose certificate the machine does not trust
	From      string      // such as "Holdfast <holdfast@example.com>"
	Hello     string      // name in the SMTP greeting; the host name when empty

	// Templates are the application's own templates, by name. One named "" replaces the built-in template; a subscription selects another with its option
	// "template".
	Templates map[string]Template

	Together int           // maximum number of events in one mail; 50 when zero
	Burst    int           // maximum number of mails to a target at once; 5 when zero
	Every    time.Duration // time after which one more mail is allowed; 5 min when zero
	Timeout  time.Duration // time limit of an attempt; 1 min when zero
}

// Format hides the password from every verb of package fmt.
func (c Config) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "mail by %s as %q", net.JoinHostPort(c.Host, strconv.Itoa(c.Port)), c.Username)
}

// A Sink sends mail. It is safe for concurrent use.
type Sink struct {
	cfg      Config // without the password
	password func() string
	from     *netmail.Address
	letters  map[string]Template
	accepted recipientCache
}

// New checks the configuration; the error names every problem. It does not connect to the server.
func New(cfg Config) (*Sink, error) {
	cfg = cfg.withDefaults()
	from, err := parseSender(cfg.From)
	problems := []error{err}
	if cfg.Host == "" || strings.ContainsFunc(cfg.Host, unprintable) || strings.ContainsAny(cfg.Host, " /@") {
		problems = append(problems, fmt.Errorf("the mail server %.80q is not a host: give a host name or an IP address", cfg.Host))
	}
	if cfg.Port < 1 || cfg.Port > 65535 {
		problems = append(problems, fmt.Errorf("the port of the mail server is %d: give one from 1 to 65535", cfg.Port))
	}
	switch cfg.TLS {
	case StartTLS, Implicit, Opportunistic, NoTLS:
	default:
		problems = append(problems, fmt.Errorf("unknown TLS mode %.40q: use starttls, implicit, opportunistic or none", cfg.TLS))
	}
	if cfg.Username == "" && cfg.Password != "" {
		problems = append(problems, errors.New("there is a password without a user name: give both or neither"))
	}
	letters, err := completeTemplates(cfg.Templates)
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, &holdfast.Error{Err: holdfast.ErrInvalid, Message: err.Error()}
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

// Traits combine events into few mails, and retry for about three hours.
func (s *Sink) Traits() notify.Traits {
	delays := failure.Table{30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour}
	return notify.Traits{
		Together: s.cfg.Together, Burst: s.cfg.Burst, Every: s.cfg.Every, Timeout: s.cfg.Timeout,
		Policy: failure.Policy{
			MaxAttempts: len(delays) + 1,
			GiveUpAfter: 24 * time.Hour, // an unavailable mail server is probed for no longer
			Backoff:     failure.Spread{Of: delays, Jitter: failure.Jitter{Percent: 10}},
		},
	}
}

// Check refuses a target that is not a list of mail addresses, and a template that is not configured.
func (s *Sink) Check(sub subscription.Subscription) error {
	_, err := parseTarget(sub.Target)
	problems := []error{err}
	if strings.ContainsFunc(sub.Name, unprintable) {
		problems = append(problems, errors.New("the name of the subscription has control characters: remove them, because every mail contains it"))
	}
	if name := sub.Options["template"]; name != "" {
		if _, ok := s.letters[name]; !ok {
			problems = append(problems, fmt.Errorf("there is no mail template %.80q: configure it, or leave the option out for the built-in one", name))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return &holdfast.Error{Err: holdfast.ErrInvalid, Message: err.Error()}
	}
	return nil
}

// Host is the mail server: if it is down, it is down for every target.
func (s *Sink) Host(subscription.Subscription) string { return s.cfg.Host }

// A Receipt says who accepted the mail. Recipients that the server refused for good are listed with its reply; they get nothing, and there is no retry for
// them.
type Receipt struct {
	MessageID string            `json:"message_id"`
	Subject   string            `json:"subject"`
	Accepted  []string          `json:"accepted"`
	Refused   map[string]string `json:"refused,omitempty"`
	Server    string            `json:"server,omitempty"` // its last reply, often with the number it gave the mail
}

// Deliver sends one mail about all events. Every attempt of a delivery has the same Message-ID, so that a receiver can recognise a duplicate.
func (s *Sink) Deliver(ctx context.Context, d notify.Delivery) (any, error) {
	to, err := parseTarget(d.Subscription.Target)
	if err != nil {
		return nil, failure.NeverRetry(failure.WithCode(err, "INVALID_INPUT"))
	}
	letter, err := s.compose(to, d)
	if errors.Is(err, notify.ErrNotConfigured) {
		return nil, failure.WithCode(err, "HANDLER_ERROR")
	}
	if err != nil {
		return nil, failure.NeverRetry(failure.WithCode(err, "HANDLER_ERROR"))
	}
	return s.send(ctx, letter, d.ID)
}
