package mail

import (
	"context"
	"maps"
	"slices"
	"strings"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

// send hands a letter to the server. Who is refused for good is left out, and the others get it. Who is refused for now is tried
// again; those that have the letter by then are not sent it again by this process.
func (s *Sink) send(ctx context.Context, w written, delivery string) (any, error) {
	client, hangUp, err := s.call(ctx)
	if err != nil {
		return nil, s.judge(ctx, "the mail server cannot be used", err)
	}
	defer hangUp()
	if err := client.Mail(bare(w.from)); err != nil {
		return nil, s.judge(ctx, "the mail server refuses the sender "+w.from.Address, err)
	}
	had := s.accepted.of(delivery)
	receipt := Receipt{MessageID: w.id, Subject: w.subject, Refused: make(map[string]string)}
	var taken, waiting []string
	var later, never error
	for _, a := range w.to {
		if slices.Contains(had, a.Address) {
			continue
		}
		err := client.Rcpt(bare(a))
		switch {
		case err == nil:
			taken = append(taken, a.Address)
		case status(err) >= 500:
			never = err
			receipt.Refused[a.Address] = s.said(err.Error(), 200)
		case status(err) >= 400 && status(err) != 421:
			later = err
			waiting = append(waiting, a.Address)
		default:
			return nil, s.judge(ctx, "the conversation with the mail server broke off", err)
		}
	}
	if len(taken) > 0 {
		if receipt.Server, err = post(client, w.message); err != nil {
			return nil, s.judge(ctx, "the mail server does not take the letter", err)
		}
		_ = client.Quit() // the letter is taken; what the server says after that changes nothing
	}
	receipt.Accepted = append(had, taken...)
	receipt.Server = s.said(receipt.Server, 200)
	switch {
	case later != nil:
		s.accepted.add(delivery, taken)
		return nil, s.judge(ctx, "the mail server does not take the letter for "+strings.Join(waiting, ", ")+" yet", later)
	case len(receipt.Accepted) == 0:
		return nil, s.judge(ctx, "the mail server refuses every recipient: "+strings.Join(slices.Sorted(maps.Keys(receipt.Refused)), ", "), never)
	}
	s.accepted.forget(delivery)
	return receipt, nil
}

// post sends the letter itself, and answers with what the server says to it.
func post(client *smtp.Client, m *gomail.Msg) (string, error) {
	body, err := client.Data()
	if err != nil {
		return "", err
	}
	if _, err := m.WriteTo(body); err != nil {
		return "", err // without the end of the letter the server drops it
	}
	if err := body.Close(); err != nil {
		return "", err
	}
	if answer, ok := body.(interface{ ServerResponse() string }); ok {
		return answer.ServerResponse(), nil
	}
	return "", nil
}
