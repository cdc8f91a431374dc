package service

import (
	"context"
	"crypto/hmac"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
)

// A Trigger is a signed request of a program of an organisation to retry a shot. It is signed after Standard Webhooks, with the secret of the organisation's webhooks.
type Trigger struct {
	Organisation      string `json:"organisationId"`
	Job               string `json:"jobId"`
	ID, At, Signature string `json:"-"` // the headers Webhook-Id, Webhook-Timestamp, Webhook-Signature
	Body              []byte `json:"-"` // what is signed
}

// triggerAge is how old a trigger may be, so that one that was recorded cannot be sent again later.
const triggerAge = 5 * time.Minute

// Trigger retries a shot as a signed request asks. All requests with a wrong signature are refused in the same way.
func (s *Service) Trigger(ctx context.Context, t Trigger, request string) (Retried, error) {
	refused := &Error{Code: code.Unauthorized, Message: "The signature is not valid, or older than 5 minutes. Sign Webhook-Id, Webhook-Timestamp and the body with the secret of the organisation's webhooks."}
	at, err := strconv.ParseInt(t.At, 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > triggerAge || t.ID == "" {
		return Retried{}, refused
	}
	want, right := "v1,"+signHook(s.HookSecret(t.Organisation), t.ID, t.At, t.Body), false
	for given := range strings.SplitSeq(t.Signature, " ") {
		right = hmac.Equal([]byte(given), []byte(want)) || right
	}
	if !right || t.Organisation == "" {
		return Retried{}, refused
	}
	id, err := holdfast.ParseID(t.Job)
	if err != nil {
		return Retried{}, errNoShot
	}
	return s.Retry(ctx, Caller{Owner: t.Organisation, Name: "webhook " + clipped(t.ID), Request: request}, id, "")
}

func clipped(text string) string {
	if len(text) > 80 {
		text = text[:80]
	}
	return strings.ToValidUTF8(text, "")
}
