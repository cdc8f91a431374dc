package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verify checks a request as a receiver with one secret does. The tests in internal/interop check requests with an independent library.
func verify(secret string, header http.Header, body []byte) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	sent, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		return err
	}
	if age := time.Since(time.Unix(sent, 0)); age.Abs() > 5*time.Minute {
		return errors.New("the timestamp differs from the time by " + age.String())
	}
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, header.Get("webhook-id")+"."+header.Get("webhook-timestamp")+"."+string(body))
	if !slices.Contains(strings.Split(header.Get("webhook-signature"), " "), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))) {
		return errors.New("no signature is made with this secret")
	}
	return nil
}
