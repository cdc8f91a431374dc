package mail

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

// connect connects and authenticates. The connection is closed when ctx ends, whatever the server does; the caller must call hangUp. A client is made for each
// connect, because the library's client is not safe for concurrent use.
func (s *Sink) connect(ctx context.Context) (session *smtp.Client, disconnect func(), err error) {
	disconnect = func() {}
	dial := func(dialling context.Context, network, address string) (net.Conn, error) {
		var conn net.Conn
		var err error
		if s.cfg.TLS == Implicit {
			conn, err = (&tls.Dialer{Config: s.tlsConfig()}).DialContext(dialling, network, address)
		} else {
			conn, err = (&net.Dialer{}).DialContext(dialling, network, address)
		}
		if err != nil {
			return nil, err
		}
		closed := sync.OnceFunc(func() { _ = conn.Close() })
		stop := context.AfterFunc(ctx, closed)
		disconnect = func() { stop(); closed() }
		return conn, nil
	}
	client, err := gomail.NewClient(s.cfg.Host, append(s.options(), gomail.WithDialContextFunc(dial))...)
	if err != nil {
		return nil, nil, err
	}
	session, err = client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		disconnect()
		return nil, nil, err
	}
	return session, disconnect, nil
}

func (s *Sink) options() []gomail.Option {
	policy := gomail.TLSMandatory
	switch s.cfg.TLS {
	case Opportunistic:
		policy = gomail.TLSOpportunistic
	case NoTLS, Implicit: // implicit TLS is set up before SMTP begins
		policy = gomail.NoTLS
	}
	options := []gomail.Option{
		gomail.WithPort(s.cfg.Port), gomail.WithTimeout(s.cfg.Timeout),
		gomail.WithTLSConfig(s.tlsConfig()), gomail.WithTLSPolicy(policy),
	}
	if s.cfg.Hello != "" {
		options = append(options, gomail.WithHELO(s.cfg.Hello))
	}
	if s.cfg.Username != "" {
		options = append(options, gomail.WithUsername(s.cfg.Username), gomail.WithPassword(s.password()),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin, gomail.SMTPAuthCramMD5))
	}
	return options
}

func (s *Sink) tlsConfig() *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.cfg.TLSConfig != nil {
		cfg = s.cfg.TLSConfig.Clone()
	}
	if cfg.ServerName == "" {
		cfg.ServerName = s.cfg.Host
	}
	return cfg
}
