package interop

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/notify/webhook"
	"github.com/holdfastdev/holdfast/store"
)

func secretOf(text string) string { return "whsec_" + base64.StdEncoding.EncodeToString([]byte(text)) }

// deliver sends events to a receiver, and returns what the receiver got.
func deliver(t *testing.T, id string, secrets []string, events ...store.Event) (header http.Header, body []byte) {
	t.Helper()
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
	}))
	defer receiver.Close()
	sink, err := webhook.New(webhook.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	_, err = sink.Deliver(t.Context(), notify.Delivery{
		Subscription: subscription.Subscription{ID: holdfast.NewID(), Sink: "webhook", Target: receiver.URL, Secrets: []string{"new", "old"}},
		Events:       events, ID: id, Attempt: 1, At: time.Now(), Secrets: secrets,
	})
	if err != nil {
		t.Fatal(err)
	}
	return header, body
}

func failed(seq int64) store.Event {
	return store.Event{Seq: seq, Job: holdfast.NewID(), Name: "failed", At: time.Now(), Code: "HTTP_5XX"}
}

func TestAReceiverVerifiesWithEitherSecret(t *testing.T) {
	secrets := []string{secretOf("the new secret of the receiver"), secretOf("the old secret of the receiver")}
	header, body := deliver(t, "id_7", secrets, failed(7))
	for _, secret := range secrets {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(body, header); err != nil {
			t.Error(err)
		}
		if verifier.Verify(append([]byte(" "), body...), header) == nil {
			t.Error("a body that was changed verifies")
		}
	}
	other, err := standardwebhooks.NewWebhook(secretOf("the secret of another receiver"))
	if err != nil {
		t.Fatal(err)
	}
	if other.Verify(body, header) == nil {
		t.Error("another secret verifies")
	}
	if header.Get(standardwebhooks.HeaderWebhookID) != "id_7" {
		t.Error(header)
	}
}

func TestAWebhookIsACloudEvent(t *testing.T) {
	_, body := deliver(t, "id_7", []string{secretOf("the new secret of the receiver")}, failed(7))
	var ce event.Event
	if err := ce.UnmarshalJSON(body); err != nil || ce.Validate() != nil || ce.Type() != "io.holdfast.job.failed" || ce.ID() != "7" {
		t.Errorf("%v: %s", err, body)
	}
	_, body = deliver(t, "id_7", []string{secretOf("the new secret of the receiver")}, failed(7), failed(8))
	var several []event.Event
	if err := json.Unmarshal(body, &several); err != nil || len(several) != 2 || several[1].Validate() != nil || several[1].ID() != "8" {
		t.Errorf("several events: %v: %s", err, body)
	}
}

func TestAnEnvelopeIsACloudEvent(t *testing.T) {
	job, at := holdfast.NewID(), time.Date(2026, 11, 16, 1, 2, 3, 456_000_000, time.FixedZone("", 3600))
	for _, c := range []struct {
		e             store.Event
		kind, subject string
	}{
		{store.Event{Seq: 42, Job: job, At: at, Name: "failed", Kind: "mail", Code: "HTTP_5XX", Context: map[string]string{"http_status": "502"}}, "io.holdfast.job.failed", job.String()},
		{store.Event{Seq: 42, Job: job, At: at, Name: "manual retry", Actor: "ada"}, "io.holdfast.job.manual_retry", job.String()},
		{store.Event{Seq: 42, Subject: "group/" + job.String(), At: at, Name: "partial"}, "io.holdfast.group.partial", "group/" + job.String()},
		{store.Event{Seq: 42, At: at, Name: "forgotten"}, "io.holdfast.feed.forgotten", ""},
	} {
		body, err := json.Marshal(notify.Wrap("/shop", c.e))
		if err != nil {
			t.Fatal(err)
		}
		var ce event.Event
		if err := json.Unmarshal(body, &ce); err != nil {
			t.Fatal(err)
		}
		if err := ce.Validate(); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if ce.SpecVersion() != "1.0" || ce.ID() != "42" || ce.Source() != "/shop" || ce.Type() != c.kind || ce.Subject() != c.subject || !ce.Time().Equal(at) {
			t.Errorf("%v", ce)
		}
		if ce.Extensions()["sequence"] != "0000000000000000042" {
			t.Errorf("sequence: %v", ce.Extensions())
		}
		var inside store.Event
		if err := ce.DataAs(&inside); err != nil || inside.Seq != 42 || inside.Name != c.e.Name || inside.Code != c.e.Code {
			t.Errorf("%v: %+v", err, inside)
		}
	}
}
