package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/notify"
)

// maxAnswer is how much of an answer is read and stored.
const maxAnswer = 2 << 10

// A Receipt is what is stored of a successful answer.
type Receipt struct {
	Status int    `json:"status"`
	Took   string `json:"took"`             // duration as a string, such as 120ms
	Answer string `json:"answer,omitempty"` // beginning of the body, with secrets removed
}

// Deliver sends one signed request. Only a 2xx status means that the receiver has accepted it.
func (s *Sink) Deliver(ctx context.Context, d notify.Delivery) (any, error) {
	if err := s.malformed(d.Subscription); err != nil {
		return nil, failure.NeverRetry(failure.WithCode(err, "HANDLER_REFUSED"))
	}
	if err := s.forbidden(d.Subscription); err != nil {
		return nil, notConfigured(err)
	}
	ctx, done := context.WithTimeout(ctx, s.cfg.Timeout)
	defer done()
	request, err := s.request(ctx, d)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	answer, err := s.guard.Do(request, 0)
	if err != nil {
		return nil, requestError(err)
	}
	defer func() { _ = answer.Body.Close() }()
	// The status is known even if the body breaks off or never ends.
	body, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	text := cleanAnswer(string(body), d.Secrets)
	if answer.StatusCode >= 200 && answer.StatusCode < 300 {
		return Receipt{Status: answer.StatusCode, Took: time.Since(began).Round(time.Millisecond).String(), Answer: text}, nil
	}
	return nil, failure.With(statusError(answer), "answer", text)
}

func (s *Sink) request(ctx context.Context, d notify.Delivery) (*http.Request, error) {
	body, kind, err := encode(d)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.Subscription.Target, bytes.NewReader(body))
	if err != nil {
		return nil, invalid("the target is not a URL: give one such as https://example.org/hook")
	}
	signature, err := sign(d, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	request.Header.Set("User-Agent", "Holdfast")
	request.Header.Set("webhook-id", d.ID)
	request.Header.Set("webhook-timestamp", strconv.FormatInt(d.At.Unix(), 10))
	if signature != "" {
		request.Header.Set("webhook-signature", signature)
	}
	return request, nil
}

// encode encodes the event, or a list of them, in the JSON form of CloudEvents.
func encode(d notify.Delivery) (body []byte, kind string, err error) {
	if len(d.Events) == 1 {
		body, err = json.Marshal(notify.Wrap(d.Source, d.Events[0]))
		return body, "application/cloudevents+json; charset=utf-8", err
	}
	all := make([]notify.Envelope, len(d.Events))
	for i, e := range d.Events {
		all[i] = notify.Wrap(d.Source, e)
	}
	body, err = json.Marshal(all)
	return body, "application/cloudevents-batch+json; charset=utf-8", err
}

// statusError is the error of an answer without a 2xx status.
func statusError(answer *http.Response) error {
	status := answer.StatusCode
	because := func(cause error) error { return failure.NewHTTPError(status, answer.Header, cause) }
	switch {
	case status == http.StatusGone:
		return because(fmt.Errorf("%w: it answered 410 Gone", notify.ErrGone))
	case status >= 300 && status < 400:
		return failure.NeverRetry(failure.WithCode(because(errors.New("the receiver answered with a redirect, which is not followed: change the target to the new address")), "HTTP_4XX"))
	}
	return because(errors.New("the receiver did not accept the event"))
}

// notConfigured is the error of a target that this process may not call. Another process may have another configuration.
func notConfigured(err error) error {
	return failure.WithCode(fmt.Errorf("%w: %w", notify.ErrNotConfigured, err), "ADDRESS_BLOCKED")
}

// requestError is the error of a request without an answer.
func requestError(err error) error {
	var late net.Error
	switch {
	case errors.Is(err, safehttp.ErrBlocked):
		return notConfigured(errors.New("the target is in a network that may not be called: use a public address, or allow its network in webhook.Config"))
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return failure.WithCode(fmt.Errorf("the receiver did not answer in time: %w", err), "HTTP_TIMEOUT")
	case errors.Is(err, context.Canceled):
		return err
	}
	return failure.WithCode(fmt.Errorf("the receiver could not be reached: %w", err), "NETWORK_ERROR")
}

// cleanAnswer makes an answer safe to store and show: a receiver may send back anything, also the secrets.
func cleanAnswer(text string, secrets []string) string {
	for _, secret := range secrets {
		key := strings.TrimPrefix(secret, prefix)
		if len(key) >= 8 {
			text = strings.ReplaceAll(text, key, "[secret]")
		}
	}
	return strings.ToValidUTF8(failure.Scrub(text), "")
}
