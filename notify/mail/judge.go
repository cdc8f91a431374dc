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

// status is the number a server answered with, or 0 when it said nothing that has one.
func status(err error) int {
	if answer, ok := errors.AsType[*textproto.Error](err); ok {
		return answer.Code
	}
	return 0
}

// judge makes an error of what went wrong: one that the reader can act on, with the code by which retry and breaker decide. It is made
// anew, in words from which the password is gone, so that nothing inside can give it away.
func (s *Sink) judge(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	said := errors.New(what + ": " + s.said(err.Error(), 300))
	number := status(err)
	if number == 0 {
		return failure.WithCode(said, "NETWORK_ERROR")
	}
	said = failure.With(said, "smtp_status", strconv.Itoa(number))
	switch {
	case number == 421:
		return failure.WithCode(said, "DEPENDENCY_DOWN")
	case number < 500:
		return failure.WithCode(said, "RATE_LIMITED")
	case number == 530 || number == 534 || number == 535 || number == 538:
		return failure.NeverRetry(failure.WithCode(said, "UNAUTHORIZED"))
	case number == 552:
		return failure.NeverRetry(failure.WithCode(said, "TOO_LARGE"))
	case number == 550 || number == 551 || number == 553:
		return failure.NeverRetry(failure.WithCode(said, "NOT_FOUND"))
	}
	return failure.NeverRetry(failure.WithCode(said, "BAD_REQUEST"))
}

// said is what a server said, fit to be kept. The password is hidden before the text is cut, or half of it might stay.
func (s *Sink) said(text string, most int) string { return oneLine(s.hide(text), most) }

// hide takes the password out of a text, also as it looks on the wire. A server may repeat what it was told.
func (s *Sink) hide(text string) string {
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

// most is for how many deliveries it is remembered who has the letter already.
const most = 1000

// A memory knows who has a letter that others still wait for, so that a retry does not send it twice. It is this process's own: when
// another makes the next attempt, they get a twin, with the same Message-ID.
type memory struct {
	mu    sync.Mutex
	order []string
	who   map[string][]string
}

func (m *memory) of(delivery string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.who[delivery])
}

func (m *memory) add(delivery string, addresses []string) {
	if len(addresses) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.who == nil {
		m.who = make(map[string][]string)
	}
	if _, known := m.who[delivery]; !known {
		m.order = append(m.order, delivery)
	}
	m.who[delivery] = append(m.who[delivery], addresses...)
	if len(m.order) > most {
		delete(m.who, m.order[0])
		m.order = m.order[1:]
	}
}

func (m *memory) forget(delivery string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.who[delivery]; known {
		delete(m.who, delivery)
		m.order = slices.DeleteFunc(m.order, func(d string) bool { return d == delivery })
	}
}
