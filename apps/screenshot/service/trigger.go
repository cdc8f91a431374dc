package service

import (
	"context"
	"net/http"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
)

// A Trigger is a signed request of a program of an organisation to retry a shot. It is signed after Standard Webhooks, with the secret of the organisation's webhooks.
type Trigger struct {
	Organisation string      `json:"organisationId"`
	Job          string      `json:"jobId"`
	Header       http.Header `json:"-"` // with the signature
	Body         []byte      `json:"-"` // what is signed
}

// Trigger retries a shot as a signed request asks. All requests with a wrong signature are refused in the same way.
func (s *Service) Trigger(ctx context.Context, t Trigger, request string) (Retried, error) {
	if !s.hooks.Verify(t.Organisation, t.Header, t.Body) {
		return Retried{}, &Error{Code: code.Unauthorized, Message: "The signature is not valid, or older than 5 minutes. Sign Webhook-Id, Webhook-Timestamp and the body with the secret of the organisation's webhooks."}
	}
	id, err := holdfast.ParseID(t.Job)
	if err != nil {
		return Retried{}, errNoShot
	}
	return s.Retry(ctx, Caller{Owner: t.Organisation, Name: "webhook " + clipped(t.Header.Get("Webhook-Id")), Request: request}, id, "")
}

func clipped(text string) string {
	if len(text) > 80 {
		text = text[:80]
	}
	return strings.ToValidUTF8(text, "")
}
