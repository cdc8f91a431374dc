package mail_test

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/holdfastdev/holdfast/notify/mail"
)

// behind starts another mail server: without TLS, or with TLS from the first byte.
func behind(t *testing.T, implicit bool) (*server, mail.Config) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{host: "127.0.0.1", port: listener.Addr().(*net.TCPAddr).Port}
	certificate, pool := certify(t)
	if implicit {
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}})
	}
	smtpd := smtp.NewServer(s)
	smtpd.Domain, smtpd.AllowInsecureAuth, smtpd.ErrorLog = "mail.test", true, quiet{}
	served := make(chan struct{})
	go func() { defer close(served); _ = smtpd.Serve(listener) }()
	t.Cleanup(func() { _ = smtpd.Close(); <-served })
	return s, mail.Config{
		Host: s.host, Port: s.port, From: "holdfast@example.com", Username: "holdfast", Password: password, TLSConfig: &tls.Config{RootCAs: pool},
	}
}

func TestAMailIsSentWithEachTLSMode(t *testing.T) {
	for _, c := range []struct {
		implicit, anonymous bool
		way                 mail.TLS
	}{{true, false, mail.Implicit}, {false, false, mail.NoTLS}, {false, true, mail.NoTLS}, {false, false, mail.Opportunistic}} {
		s, cfg := behind(t, c.implicit)
		cfg.TLS = c.way
		if c.anonymous {
			cfg.Username, cfg.Password = "", ""
		}
		if _, err := open(t, cfg).Deliver(t.Context(), delivery("ana@example.com", failed(1))); err != nil || len(s.taken()) != 1 {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestThePasswordGoesToNoServerThatCannotProtectIt(t *testing.T) {
	s, cfg := behind(t, false) // as if an attacker had removed STARTTLS
	if _, err := open(t, cfg).Deliver(t.Context(), delivery("ana@example.com", failed(1))); err == nil || s.signed != 0 || len(s.taken()) != 0 {
		t.Errorf("a letter went unprotected: %v", err)
	}
	s, cfg = serve(t, script{})
	cfg.TLSConfig = nil // the server's certificate is not trusted
	if _, err := open(t, cfg).Deliver(t.Context(), delivery("ana@example.com", failed(1))); err == nil || s.signed != 0 {
		t.Errorf("a server that cannot prove who it is was told the password: %v", err)
	}
}
