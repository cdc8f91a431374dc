package webhook

import (
	"encoding/base64"
	"fmt"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdfastdev/holdfast/notify"
)

const (
	prefix = "whsec_"
	minKey = 24
	maxKey = 64
)

// sign signs a message with every secret, newest first, so that a receiver may verify with the old or the new secret while they are exchanged.
func sign(d notify.Delivery, body []byte) (string, error) {
	var all []string
	for i, secret := range d.Secrets {
		key, err := readKey(secret)
		if err != nil {
			return "", fmt.Errorf("the secret %s: %w", nameOf(d, i), err)
		}
		signer, err := standardwebhooks.NewWebhookRaw(key)
		if err != nil {
			return "", fmt.Errorf("the secret %s cannot be used to sign", nameOf(d, i))
		}
		signature, err := signer.Sign(d.ID, d.At, body)
		if err != nil {
			return "", fmt.Errorf("the secret %s cannot be used to sign", nameOf(d, i))
		}
		all = append(all, signature)
	}
	return strings.Join(all, " "), nil
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
