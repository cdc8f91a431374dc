// Package notice sends what the watermark service has to say: mails by SMTP, and signed webhooks.
package notice

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"net/smtp"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/watermark/campaign"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// A Mailer sends mails through a server. If the server offers STARTTLS it is used, and a password is never sent without it, except to this machine.
type Mailer struct {
	Server         string // host:port
	From           string // such as "Watermark <marks@example.com>"
	User, Password string // empty: no authentication
}

// Send sends a mail.
func (m *Mailer) Send(_ context.Context, l campaign.Letter) error {
	from, err := mail.ParseAddress(m.From)
	if err != nil {
		return failure.NeverRetry(fmt.Errorf("the sender of mails %q is not valid: %w", m.From, err))
	}
	to, err := mail.ParseAddress(l.To)
	if err != nil {
		return failure.NeverRetry(fmt.Errorf("the address %q is not valid: %w", l.To, err))
	}
	var auth smtp.Auth
	if m.User != "" {
		host, _, _ := strings.Cut(m.Server, ":")
		auth = smtp.PlainAuth("", m.User, m.Password, host)
	}
	return smtp.SendMail(m.Server, auth, from.Address, []string{to.Address}, message(from, to, l))
}

func message(from, to *mail.Address, l campaign.Letter) []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "From: %s\r\nTo: %s\r\nSubject: %s\r\nDate: %s\r\nMessage-ID: <%s@watermark>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\nAuto-Submitted: auto-generated\r\n\r\n",
		from, to, mime.QEncoding.Encode("utf-8", strings.Join(strings.Fields(l.Subject), " ")), time.Now().Format(time.RFC1123Z), rand.Text())
	body := quotedprintable.NewWriter(&text)
	_, _ = body.Write([]byte(strings.ReplaceAll(l.Text, "\n", "\r\n"))) // Write of a buffer never fails
	_ = body.Close()
	return text.Bytes()
}

// A Caller calls webhooks: signed after Standard Webhooks, to addresses that the guard permits.
type Caller struct {
	Guard  *safehttp.Guard
	Secret []byte
}

// Call calls a webhook. The error has the code of the answer's status.
func (c *Caller) Call(ctx context.Context, id string, h campaign.Hook) error {
	body, err := json.Marshal(map[string]any{"type": "campaign_ready", "timestamp": h.At, "data": map[string]any{
		"campaign_id": h.Campaign, "name": h.Name, "state": h.State, "completed": h.Ready, "failed": h.Failed,
	}})
	if err != nil {
		return failure.NeverRetry(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return failure.NeverRetry(err)
	}
	id, at := "msg_"+id, strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", at)
	mac := hmac.New(sha256.New, c.key(h.Owner))
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	answer, err := c.Guard.Do(r, 0)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	if answer.StatusCode >= 300 {
		return failure.NewHTTPError(answer.StatusCode, answer.Header, nil)
	}
	return nil
}

func (c *Caller) key(owner string) []byte {
	mac := hmac.New(sha256.New, c.Secret)
	mac.Write([]byte("webhooks of " + owner))
	return mac.Sum(nil)
}

// HookSecret returns the secret that signs the webhooks of an owner, in the form of Standard Webhooks.
func (c *Caller) HookSecret(owner string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(c.key(owner))
}
