package notify_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/store"
)

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

func TestAnEnvelopeWithoutASourceNamesHoldfast(t *testing.T) {
	if e := notify.Wrap("", store.Event{Seq: 1, Name: "queued"}); e.Source != notify.DefaultSource {
		t.Error(e.Source)
	}
}

func TestDurationsAreStringsForReceiversToo(t *testing.T) {
	body, err := json.Marshal(notify.Wrap("", store.Event{Seq: 7, Name: "completed", Took: 1500 * time.Millisecond}))
	if err != nil || !strings.Contains(string(body), `"took":"1.5s"`) || strings.Count(string(body), `"took"`) != 1 {
		t.Fatalf("got %s, %v", body, err)
	}
	var read notify.Envelope
	if err := json.Unmarshal(body, &read); err != nil || read.Data.Took != 1500*time.Millisecond || read.Data.Seq != 7 {
		t.Fatalf("read %+v, %v", read, err)
	}
	if body, err = json.Marshal(notify.Wrap("", store.Event{Seq: 7})); err != nil || strings.Contains(string(body), "took") {
		t.Fatalf("got %s, %v", body, err)
	}
}
