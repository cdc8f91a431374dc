package webhook

import (
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/notify"
)

// The signature was made with: printf 'msg_1.1767323045.{"a": 1}' | openssl dgst -sha256 -mac HMAC -macopt hexkey:KEY -binary | base64
func TestASignatureIsThatOfStandardWebhooks(t *testing.T) {
	d := notify.Delivery{ID: "msg_1", At: time.Unix(1767323045, 999_999_999), Secrets: []string{"whsec_YSBrZXkgZm9yIHRoZSB0ZXN0IG9mIHNpZ25hdHVyZXM="}}
	const want = "v1,ICe7J5HxTir7V0ZpgjsHLYR5nC8RDxugnwhpkUxNb84="
	if got, err := sign(d, []byte(`{"a": 1}`)); got != want || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	d.Secrets = append(d.Secrets, d.Secrets[0])
	if got, err := sign(d, []byte(`{"a": 1}`)); got != want+" "+want || err != nil {
		t.Errorf("with two secrets: got %q, %v", got, err)
	}
	d.Secrets = nil
	if got, err := sign(d, []byte(`{"a": 1}`)); got != "" || err != nil {
		t.Errorf("without a secret: got %q, %v", got, err)
	}
}
