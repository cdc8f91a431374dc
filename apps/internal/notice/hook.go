package notice

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// MaxAge is how old a signed request may be, so that one that was recorded cannot be sent again later.
const MaxAge = 5 * time.Minute

// Hooks calls webhooks, at addresses that the guard permits. The secret of each owner is derived from one secret.
type Hooks struct {
	Guard  *safehttp.Guard
	Secret []byte
}

// A HookMessage is the body of a webhook, after Standard Webhooks.
type HookMessage struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      any       `json:"data"`
}

// Call calls a webhook of an owner. The id is the same in all attempts. The error has the code of the answer's status.
func (h *Hooks) Call(ctx context.Context, id, owner, url string, m HookMessage) error {
	body, err := json.Marshal(m)
	if err != nil {
		return failure.NeverRetry(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return failure.NeverRetry(err)
	}
	id, at := "msg_"+id, strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", at)
	r.Header.Set("Webhook-Signature", h.sign(owner, id, at, body))
	answer, err := h.Guard.Do(r, 0)
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

// SecretOf returns the secret of an owner's webhooks, in the form of Standard Webhooks.
func (h *Hooks) SecretOf(owner string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(h.key(owner))
}

// Verify reports whether a request of an owner is signed with the owner's secret and is at most MaxAge old. The header may have several signatures.
func (h *Hooks) Verify(owner string, header http.Header, body []byte) bool {
	id, at := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || owner == "" || id == "" || time.Since(time.Unix(seconds, 0)).Abs() > MaxAge {
		return false
	}
	want, right := []byte(h.sign(owner, id, at, body)), false
	for given := range strings.SplitSeq(header.Get("Webhook-Signature"), " ") {
		right = hmac.Equal([]byte(given), want) || right
	}
	return right
}

func (h *Hooks) key(owner string) []byte {
	mac := hmac.New(sha256.New, h.Secret)
	mac.Write([]byte("webhooks of " + owner))
	return mac.Sum(nil)
}

func (h *Hooks) sign(owner, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, h.key(owner))
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
