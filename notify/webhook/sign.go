package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast/notify"
)

const (
	prefix = "whsec_"
	minKey = 24
	maxKey = 64
)

// sign returns the signatures of a request in the form of Standard Webhooks: "v1," and the base64 of an HMAC-SHA256, one for each secret, separated by spaces. The
// newest secret is first. A receiver may verify with the old or the new secret while they are exchanged.
func sign(d notify.Delivery, body []byte) (string, error) {
	var all []string
	for i, secret := range d.Secrets {
		key, err := readKey(secret)
		if err != nil {
			return "", fmt.Errorf("the secret %s: %w", nameOf(d, i), err)
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%d.", d.ID, d.At.Unix()) // a hash never returns an error
		mac.Write(body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " "), nil
}

// CheckSecret refuses a secret with which no request can be signed.
func (s *Sink) CheckSecret(secret string) error {
	_, err := readKey(secret)
	return err
}

func nameOf(d notify.Delivery, i int) string {
	if i < len(d.Subscription.Secrets) {
		return d.Subscription.Secrets[i]
	}
	return fmt.Sprintf("number %d", i+1)
}

// readKey decodes a secret. The error never contains a part of it. It is not permanent: the secret may be corrected, so the delivery is retried.
func readKey(secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, prefix)
	if !ok {
		return nil, fmt.Errorf("it does not begin with %s: create one with: echo %s$(openssl rand -base64 32)", prefix, prefix)
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) < minKey || len(key) > maxKey {
		return nil, fmt.Errorf("the part after %s is not the base64 of %d to %d bytes: create one with: echo %s$(openssl rand -base64 32)", prefix, minKey, maxKey, prefix)
	}
	return key, nil
}
