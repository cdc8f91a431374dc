package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfastdev/holdfast/failure"
)

// An HTTPBank is the bank's API.
type HTTPBank struct{ URL string }

// Charge asks the bank for the money. Its errors say what the engine has to know: a declined card is final, anything else is classified by the HTTP status and retried.
func (b HTTPBank) Charge(ctx context.Context, key string, cents int) error {
	body := strings.NewReader(fmt.Sprintf(`{"cents": %d}`, cents))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL+"/charges", body)
	if err != nil {
		return failure.NeverRetry(err)
	}
	request.Header.Set("Idempotency-Key", key)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	switch {
	case answer.StatusCode == http.StatusPaymentRequired:
		return failure.NeverRetry(failure.WithCode(errors.New("the bank declined the card"), "CARD_DECLINED"))
	case answer.StatusCode >= 300:
		return failure.NewHTTPError(answer.StatusCode, answer.Header, nil)
	}
	return nil
}
