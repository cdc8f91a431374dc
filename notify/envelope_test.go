package notify_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/store"
)

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
