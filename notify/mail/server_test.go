package mail_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/mail"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

const password = "canary-7d1f-Pass word"

// A script is the behaviour of a server. A nil step succeeds.
type script struct {
	mail func(from string) error
	rcpt func(to string) error
	data func(conn *smtp.Conn) error
	auth func(user, password string) error
}

// A letter is a mail that the server accepted.
type letter struct {
	to   []string
	body []byte
}

type server struct {
	script
	host    string
	port    int
	mu      sync.Mutex
	letters []letter
	signed  int // number of successful logins
}

func (s *server) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &session{server: s, conn: c}, nil
}

func (s *server) taken() []letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]letter(nil), s.letters...)
}

type session struct {
	*server
	conn *smtp.Conn
	to   []string
}

func (s *session) Reset()        { s.to = nil }
func (s *session) Logout() error { return nil }

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.mail != nil {
		return s.mail(from)
	}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.rcpt != nil {
		if err := s.rcpt(to); err != nil {
			return err
		}
	}
	s.to = append(s.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.data != nil {
		if err := s.data(s.conn); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letters = append(s.letters, letter{s.to, body})
	return nil
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, given string) error {
		if s.auth != nil {
			return s.auth(user, given)
		}
		if user != "holdfast" || given != password {
			return errors.New("no")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.signed++
		return nil
	}), nil
}

// serve starts a mail server on loopback that can do STARTTLS.
func serve(t *testing.T, plan script) (*server, mail.Config) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	s := &server{script: plan, host: "127.0.0.1", port: address.Port}
	certificate, pool := certify(t)
	smtpd := smtp.NewServer(s)
	smtpd.Domain, smtpd.TLSConfig, smtpd.AllowInsecureAuth = "mail.test", &tls.Config{Certificates: []tls.Certificate{certificate}}, true
	smtpd.ErrorLog = quiet{}
	served := make(chan struct{})
	go func() { defer close(served); _ = smtpd.Serve(listener) }()
	t.Cleanup(func() { _ = smtpd.Close(); <-served })
	return s, mail.Config{
		Host: s.host, Port: s.port, From: "Holdfast <holdfast@example.com>", Username: "holdfast", Password: password,
		TLSConfig: &tls.Config{RootCAs: pool}, Hello: "sender.test", Timeout: 20 * time.Second,
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

func certify(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func open(t *testing.T, cfg mail.Config) *mail.Sink {
	t.Helper()
	sink, err := mail.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return sink
}

// failed is an event of a job that failed.
func failed(seq int64) store.Event {
	return store.Event{
		Seq: seq, Job: holdfast.NewID(), Name: store.EventFailed, At: time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC),
		Kind: "campaign.send", Queue: "mail", Owner: "acme", Attempt: 3, Code: "HTTP_5XX", Message: "status 502 <b>from</b> the gateway",
	}
}

func delivery(target string, events ...store.Event) notify.Delivery {
	return notify.Delivery{
		Subscription: subscription.Subscription{ID: holdfast.NewID(), Name: "night watch", Sink: "mail", Target: target},
		Events:       events, ID: "subscription/one/17", Attempt: 1, At: time.Date(2026, 3, 1, 9, 31, 0, 0, time.UTC),
	}
}
