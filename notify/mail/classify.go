package mail

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfastdev/holdfast/failure"
)

// status is the SMTP status in an error; 0 if it has none.
func status(err error) int {
	if answer, ok := errors.AsType[*textproto.Error](err); ok {
		return answer.Code
	}
	return 0
}

// classify turns an SMTP error into one with a failure code, on which retry and breaker depend. The message is built from text without the password, and the
// original error is not wrapped, so that it cannot reveal the password.
func (s *Sink) classify(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	coded := errors.New(what + ": " + s.cleanReply(err.Error(), 300))
	number := status(err)
	if number == 0 {
		return failure.WithCode(coded, "NETWORK_ERROR")
	}
	coded = failure.With(coded, "smtp_status", strconv.Itoa(number))
	switch {
	case number == 421:
		return failure.WithCode(coded, "DEPENDENCY_DOWN")
	case number < 500:
		return failure.WithCode(coded, "RATE_LIMITED")
	case number == 530 || number == 534 || number == 535 || number == 538:
		return failure.NeverRetry(failure.WithCode(coded, "UNAUTHORIZED"))
	case number == 552:
		return failure.NeverRetry(failure.WithCode(coded, "TOO_LARGE"))
	case number == 550 || number == 551 || number == 553:
		return failure.NeverRetry(failure.WithCode(coded, "NOT_FOUND"))
	}
	return failure.NeverRetry(failure.WithCode(coded, "BAD_REQUEST"))
}

// cleanReply is a server's reply for the record. The password is removed before the text is cut, because half of it could remain otherwise.
func (s *Sink) cleanReply(text string, most int) string { return oneLine(s.hidePassword(text), most) }

// hidePassword removes the password from a text, also in the forms that SMTP sends. A server may repeat what it received.
func (s *Sink) hidePassword(text string) string {
	password := s.password()
	if password == "" {
		return text
	}
	plain := "\x00" + s.cfg.Username + "\x00" + password
	for _, secret := range []string{password, base64.StdEncoding.EncodeToString([]byte(password)), base64.StdEncoding.EncodeToString([]byte(plain))} {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// maxRemembered is the number of deliveries whose accepted recipients are remembered.
const maxRemembered = 1000

// A recipientCache knows, for deliveries that will be retried, which recipients have already accepted the mail, so that a retry does not send it twice. It is local to
// this process: if another process makes the next attempt, they get a duplicate with the same Message-ID. It is safe for concurrent use.
type recipientCache struct {
	mu         sync.Mutex
	order      []string
	recipients map[string][]string
}

func (m *recipientCache) of(delivery string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.recipients[delivery])
}

func (m *recipientCache) add(delivery string, addresses []string) {
	if len(addresses) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.recipients == nil {
		m.recipients = make(map[string][]string)
	}
	if _, known := m.recipients[delivery]; !known {
		m.order = append(m.order, delivery)
	}
	m.recipients[delivery] = append(m.recipients[delivery], addresses...)
	if len(m.order) > maxRemembered {
		delete(m.recipients, m.order[0])
		m.order = m.order[1:]
	}
}

func (m *recipientCache) forget(delivery string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.recipients[delivery]; known {
		delete(m.recipients, delivery)
		m.order = slices.DeleteFunc(m.order, func(d string) bool { return d == delivery })
	}
}
