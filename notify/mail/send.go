package mail

import (
	"context"
	"maps"
	"slices"
	"strings"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

// send hands a mail to the server. Recipients that are refused for good are left out, and the others get it. If recipients are refused for now, the delivery is
// retried for them; this process does not send it again to those that have accepted it.
func (s *Sink) send(ctx context.Context, w outgoing, delivery string) (any, error) {
	client, disconnect, err := s.connect(ctx)
	if err != nil {
		return nil, s.classify(ctx, "the connection to the mail server failed", err)
	}
	defer disconnect()
	if err := client.Mail(smtpAddress(w.from)); err != nil {
		return nil, s.classify(ctx, "the mail server refused the sender "+w.from.Address, err)
	}
	accepted := s.accepted.of(delivery)
	receipt := Receipt{MessageID: w.id, Subject: w.subject, Refused: make(map[string]string)}
	var taken, waiting []string
	var later, never error
	for _, a := range w.to {
		if slices.Contains(accepted, a.Address) {
			continue
		}
		err := client.Rcpt(smtpAddress(a))
		switch {
		case err == nil:
			taken = append(taken, a.Address)
		case status(err) >= 500:
			never = err
			receipt.Refused[a.Address] = s.cleanReply(err.Error(), 200)
		case status(err) >= 400 && status(err) != 421:
			later = err
			waiting = append(waiting, a.Address)
		default:
			return nil, s.classify(ctx, "the connection to the mail server broke", err)
		}
	}
	if len(taken) > 0 {
		if receipt.Server, err = sendData(client, w.message); err != nil {
			return nil, s.classify(ctx, "the mail server refused the mail", err)
		}
		_ = client.Quit() // the mail is accepted; what the server replies after that changes nothing
	}
	receipt.Accepted = append(accepted, taken...)
	receipt.Server = s.cleanReply(receipt.Server, 200)
	switch {
	case later != nil:
		s.accepted.add(delivery, taken)
		return nil, s.classify(ctx, "the mail server refused the mail for now for "+strings.Join(waiting, ", "), later)
	case len(receipt.Accepted) == 0:
		return nil, s.classify(ctx, "the mail server refused every recipient: "+strings.Join(slices.Sorted(maps.Keys(receipt.Refused)), ", "), never)
	}
	s.accepted.forget(delivery)
	return receipt, nil
}

// sendData sends the data of the mail and returns the server's reply.
func sendData(client *smtp.Client, m *gomail.Msg) (string, error) {
	body, err := client.Data()
	if err != nil {
		return "", err
	}
	if _, err := m.WriteTo(body); err != nil {
		return "", err // without the end mark the server drops the mail
	}
	if err := body.Close(); err != nil {
		return "", err
	}
	if answer, ok := body.(interface{ ServerResponse() string }); ok {
		return answer.ServerResponse(), nil
	}
	return "", nil
}
