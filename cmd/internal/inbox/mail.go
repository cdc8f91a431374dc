package inbox

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net"
	"net/mail"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
)

// A Letter is a mail that arrived.
type Letter struct {
	From, Subject string
	To            []string
	Raw           []byte
	At            time.Time
}

// A Mailbox is a mail server that keeps what it is sent.
type Mailbox struct {
	Host string
	Port int

	server  *smtp.Server
	mu      sync.Mutex
	letters []Letter
}

// OpenMailbox starts a mail server on a free port of loopback.
func OpenMailbox() (*Mailbox, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("a mail server needs a port on loopback: %w", err)
	}
	address := listener.Addr().(*net.TCPAddr)
	m := &Mailbox{Host: address.IP.String(), Port: address.Port}
	m.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{box: m}, nil }))
	m.server.Domain = "localhost"
	m.server.MaxMessageBytes, m.server.ReadTimeout, m.server.WriteTimeout = 1<<20, 10*time.Second, 10*time.Second
	go m.server.Serve(listener) //nolint:errcheck // ends with Close
	return m, nil
}

// Letters are those that arrived so far, the oldest first.
func (m *Mailbox) Letters() []Letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Letter(nil), m.letters...)
}

// Close ends the server.
func (m *Mailbox) Close() error { return m.server.Close() }

// A session is one conversation with a sender.
type session struct {
	box    *Mailbox
	letter Letter
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.letter.From = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.letter.To = append(s.letter.To, to)
	return nil
}

func (s *session) Data(body io.Reader) error {
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	message, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return &smtp.SMTPError{Code: 554, Message: "this is no mail"}
	}
	s.letter.Raw, s.letter.At = raw, time.Now()
	if s.letter.Subject, err = new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject")); err != nil {
		s.letter.Subject = message.Header.Get("Subject")
	}
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	s.box.letters = append(s.box.letters, s.letter)
	return nil
}

func (s *session) Reset() { s.letter = Letter{} }

func (s *session) Logout() error { return nil }
