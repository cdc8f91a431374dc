package console_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

func TestQueuesShowDepthsAndHolds(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	s.shows("/queues", `id="q-convert"`, "paused", "the vendor is on it", "No worker claims from this queue", "queue%3Aconvert", "is%3Adead", "its breaker", "Every owner has the same weight")
}

func TestAQueueIsPausedForAWhileAndResumed(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	back := url.Values{"back": {"/queues"}, "scope": {"queue"}, "name": {"fetch"}}
	say := func(path string, pairs ...string) string {
		form := url.Values{}
		for name, values := range back {
			form[name] = values
		}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		_, text := s.post(path, form)
		return text
	}
	if text := say("/holds/place"); !strings.Contains(text, "give a reason") {
		t.Error("a queue is paused without a reason")
	}
	if text := say("/holds/place", "reason", "moving", "for", "soon"); !strings.Contains(text, "is invalid: use 90s") {
		t.Error("an invalid duration is accepted")
	}
	if text := say("/holds/place", "reason", "moving", "for", "1h"); !strings.Contains(text, "Queue fetch paused") || !strings.Contains(text, "in 1 h") {
		t.Error("the page does not confirm the pause")
	}
	if h := s.holdOn("queue", "fetch"); h == nil || h.Actor != "ada" || h.Reason != "moving" || h.Until.Before(h.Since.Add(59*time.Minute)) {
		t.Errorf("%+v", h)
	}
	s.shows("/queues", "by ada", "moving", "Resume fetch?")
	say("/holds/lift")
	if h := s.holdOn("queue", "fetch"); h != nil {
		t.Errorf("still held: %+v", h)
	}
}

func TestOtherThingsAreHeldAndSharesAreSet(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	place := url.Values{"back": {"/queues"}, "scope": {"kind"}, "name": {"mail"}, "reason": {"too many"}, "at_most": {"3"}, "retries": {"yes"}}
	s.post("/holds/place", place)
	if h := s.holdOn("kind", "mail"); h == nil || h.AtMost != 3 || !h.Retries {
		t.Errorf("%+v", h)
	}
	s.shows("/queues", "first attempts; retries: 3 at once", "too many")
	for field, value := range map[string]string{"at_most": "many", "scope": "world", "name": "", "rate": "-1"} {
		form := url.Values{"back": {"/queues"}, "scope": {"kind"}, "name": {"mail"}, "reason": {"x"}}
		form.Set(field, value)
		if status, text := s.post("/holds/place", form); status != 200 || !strings.Contains(text, `class="banner bad"`) {
			t.Errorf("%s=%q: %d, and no error is shown", field, value, status)
		}
	}
	if _, text := s.post("/shares/set", url.Values{"back": {"/queues"}, "owner": {"ada"}, "weight": {"heavy"}}); !strings.Contains(text, "0.001 to 1000") {
		t.Error("an invalid weight is accepted")
	}
	s.post("/shares/set", url.Values{"back": {"/queues"}, "owner": {"ada"}, "weight": {"2.5"}})
	s.shows("/queues", "ada <strong>2.5</strong>")
}

func (s *scene) holdOn(scope, name string) *store.Hold {
	s.t.Helper()
	holds, err := s.Operator.Holds(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, one := range holds {
		if on, called := one.Scope(); on == scope && called == name {
			return &one.Hold
		}
	}
	return nil
}

// Callers can invent any number of queues, so no page lists them all.
func TestPagesListABoundedNumberOfQueues(t *testing.T) {
	s := emptyScene(t)
	drafts := make([]holdfast.Draft, 1000)
	for i := range drafts {
		drafts[i] = holdfast.Draft{Kind: "mail", Queue: fmt.Sprintf("made-up-%04d", i)}
	}
	if _, err := s.Store.Enqueue(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}
	text := s.shows("/queues", "200 queues of 1,000 are listed", `id="q-made-up-0199"`, `name="find"`)
	if n := strings.Count(text, `id="q-made-up-`); n != 200 {
		t.Errorf("the page lists %d queues", n)
	}
	s.shows("/queues?find=up-0999", `id="q-made-up-0999"`, "All queues")
	s.shows("/queues?find=unheard", "No queues match")
	for path, part := range map[string]string{"/overview": "980 more kinds without a worker", "/workers": "and 980 more"} {
		if text := s.shows(path, part); strings.Count(text, "made-up-") > 150 {
			t.Errorf("%s names %d queues", path, strings.Count(text, "made-up-"))
		}
	}
}
