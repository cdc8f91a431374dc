// Package notice sends what an application has to say to people and to their programs: mails, and webhooks signed after Standard Webhooks. It sends once; the engine
// retries.
package notice

import (
	"context"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"net"
	"strconv"
	"strings"
	texttemplate "text/template"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/setting"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/mail"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// A MailServer is the server through which mails are sent.
type MailServer struct {
	Address  string // host:port
	From     string // such as "Watermark <marks@example.com>"
	User     string // empty: no authentication
	Password string `json:"-"`
	// TLS is how the connection is protected: starttls, implicit, opportunistic or none. Empty: starttls with a user, opportunistic without.
	TLS string
}

// A Letter is a mail in plain text.
type Letter struct{ To, Subject, Text string }

// A Mailer sends mails. It is safe for concurrent use.
type Mailer struct{ sink *mail.Sink }

// The letter is the only event of its delivery: its subject is the event's name and its text the event's message.
var letter = mail.Template{
	Subject: texttemplate.Must(texttemplate.New("subject").Parse(`{{(index .Lines 0).Event.Name}}`)),
	Text:    texttemplate.Must(texttemplate.New("text").Parse(`{{(index .Lines 0).Event.Message}}`)),
	HTML:    htmltemplate.Must(htmltemplate.New("html").Parse(`<!doctype html><html><body style="font-family: sans-serif; white-space: pre-wrap">{{(index .Lines 0).Event.Message}}</body></html>`)),
}

// NewMailer checks the settings of a mail server. It does not connect.
func NewMailer(s MailServer) (*Mailer, error) {
	host, port, err := net.SplitHostPort(s.Address)
	number, bad := strconv.Atoi(port)
	if err != nil || bad != nil {
		return nil, fmt.Errorf("the mail server %.80q is not valid: use host:port, such as mail.example.com:587", s.Address)
	}
	mode := mail.TLS(s.TLS)
	switch {
	case mode == "" && s.User == "":
		mode = mail.Opportunistic
	case mode == "":
		mode = mail.StartTLS
	}
	sink, err := mail.New(mail.Config{Host: host, Port: number, Username: s.User, Password: s.Password, TLS: mode, From: s.From, Templates: map[string]mail.Template{"": letter}})
	if err != nil {
		return nil, err
	}
	return &Mailer{sink}, nil
}

// CheckAddress refuses a text that is not a list of mail addresses, separated by commas.
func CheckAddress(to string) error {
	checked, err := mail.New(mail.Config{Host: "localhost", From: "check@localhost"})
	if err != nil {
		return err
	}
	return checked.Check(subscription.Subscription{Target: to})
}

// Send sends a mail. The id is the same in all attempts and becomes part of the Message-ID, so that a receiver can recognise a duplicate. The error has a code, and says
// whether another attempt can help.
func (m *Mailer) Send(ctx context.Context, id string, l Letter) error {
	if strings.TrimSpace(l.Text) == "" {
		return errors.New("the mail has no text")
	}
	_, err := m.sink.Deliver(ctx, notify.Delivery{
		ID: id, Attempt: 1, At: time.Now(), Subscription: subscription.Subscription{Target: l.To},
		Events: []store.Event{{Name: l.Subject, Message: l.Text, At: time.Now()}},
	})
	return err
}

// MailSettings are the settings of a mail server. without says what happens when there is none.
func MailSettings[S any](of func(*S) *MailServer, from, without string) []setting.Setting[S] {
	return []setting.Setting[S]{
		{Name: "MAIL_SERVER", Meaning: "The mail server, host:port. Default: " + without, Set: setting.Text(func(s *S) *string { return &of(s).Address })},
		{Name: "MAIL_FROM", Default: from, Meaning: "The sender of mails.", Set: setting.Text(func(s *S) *string { return &of(s).From })},
		{Name: "MAIL_USER", Meaning: "The user name for the mail server. Default: no authentication.", Set: setting.Text(func(s *S) *string { return &of(s).User })},
		{Name: "MAIL_PASSWORD", Meaning: "The password for the mail server.", Secret: true, Set: setting.Text(func(s *S) *string { return &of(s).Password })},
		{Name: "MAIL_TLS", Meaning: "How the connection to the mail server is protected: starttls (required), implicit (port 465), opportunistic, none. Default: starttls with MAIL_USER, otherwise opportunistic.", Set: setting.Text(func(s *S) *string { return &of(s).TLS })},
	}
}
