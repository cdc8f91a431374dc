package console_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// deliver creates a subscription and a delivery of it that ends with the outcome.
func (s *scene) deliver(o failure.Outcome) (of, delivery holdfast.ID) {
	s.t.Helper()
	ctx := s.t.Context()
	sub, err := s.Operator.Subscribe(ctx, subscription.Subscription{Name: "the <shop>", Sink: "webhook", Target: "https://ann:hunter2@example.org/hook", Events: []string{"failed"}, Secrets: []string{"shop"}}, ops.Actor{Name: "ada"})
	if err != nil {
		s.t.Fatal(err)
	}
	args, err := json.Marshal(map[string]any{"subscription": sub.ID, "id": "m_1", "events": []store.Event{{Seq: 7, Job: s.Failed[0], Name: "failed", Kind: "convert", Code: "GW_5XX", Message: "<b>no</b>"}}})
	if err != nil {
		s.t.Fatal(err)
	}
	err = s.Store.Apply(ctx, store.Change{Deliver: []holdfast.Draft{{Kind: "holdfast.webhook", Queue: subscription.Queue, Owner: subscription.Owner(sub.ID), Args: args, MaxAttempts: 1}}})
	if err != nil {
		s.t.Fatal(err)
	}
	leases, err := s.Store.Claim(ctx, store.Claim{Worker: "notifier", Queues: []string{subscription.Queue}, Limit: 1, Start: 1, Lease: time.Hour})
	if err != nil || len(leases) != 1 {
		s.t.Fatal(leases, err)
	}
	if _, err := s.Store.Settle(ctx, []store.Settlement{failure.Decide(failure.Rules{}, leases[0], o).Settlement(leases[0], o)}); err != nil {
		s.t.Fatal(err)
	}
	return sub.ID, leases[0].ID
}

func TestDeliveriesShowEventAndReceiverAndAreResent(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	of, failed := s.deliver(failure.Outcome{Err: &failure.HTTPError{Status: 503, Err: errors.New("down")}, Took: time.Second})
	text := s.shows("/deliveries", "the &lt;shop&gt;", "ann:xxxxx@example.org", "failing", "job.failed", "503", "Resend", "/deliveries/"+failed.String(), "state=failed")
	if strings.Contains(text, "hunter2") {
		t.Error("a password is shown")
	}
	s.shows("/deliveries?state=complete&subscription="+of.String(), "No deliveries match", "Deliveries of the &lt;shop&gt;")
	text = s.shows("/deliveries/"+failed.String(), "failed for good", "&lt;b&gt;no&lt;/b&gt;", "m_1", "503", "/jobs/"+s.Failed[0].String(), "/deliveries?subscription="+of.String())
	if strings.Contains(text, "<b>no") || strings.Contains(text, "hunter2") {
		t.Error("the page shows what it must not")
	}
	back := url.Values{"back": {"/deliveries"}}
	if _, text := s.post("/deliveries/"+failed.String()+"/resend", back); !strings.Contains(text, "The delivery is queued again") {
		t.Error("a failed delivery is not resent")
	}
	if _, text := s.post("/deliveries/"+failed.String()+"/resend", back); !strings.Contains(text, "has not ended") {
		t.Error("a delivery under way is sent twice")
	}
	for path, want := range map[string]int{"/deliveries?state=odd": 400, "/deliveries?subscription=x": 400, "/deliveries?cursor=x": 400, "/deliveries/" + s.Failed[0].String(): 404, "/deliveries/x": 404} {
		if status, _ := s.get(path); status != want {
			t.Errorf("%s: %d, not %d", path, status, want)
		}
	}
}

func TestACompleteDeliveryIsResentAsANewOne(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	_, delivered := s.deliver(failure.Outcome{Result: json.RawMessage(`{"status":204,"took":12000000}`), Took: 12 * time.Millisecond})
	s.shows("/deliveries", "204", "12 ms")
	s.deliver(failure.Outcome{Result: json.RawMessage(`{"status":200,"took":"34ms"}`), Took: 12 * time.Millisecond})
	s.shows("/deliveries", "34 ms")
	s.shows("/deliveries/"+delivered.String(), "Delivered to", "Response: 204.")
	if _, text := s.post("/deliveries/"+delivered.String()+"/resend", url.Values{"reason": {"they lost it"}}); !strings.Contains(text, "Queued as a new delivery") || strings.Contains(text, "/deliveries/"+delivered.String()+"/resend") {
		t.Error("no new delivery is shown")
	}
}

func TestASubscriptionIsDisabledAndEnabled(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	of, _ := s.deliver(failure.Outcome{Took: time.Millisecond})
	path, back := "/subscriptions/"+of.String(), "/deliveries"
	if _, text := s.post(path+"/disable", url.Values{"back": {back}}); !strings.Contains(text, "No reason: say why") {
		t.Error("it is disabled without a reason")
	}
	if _, text := s.post(path+"/disable", url.Values{"back": {back}, "reason": {"the receiver moves"}}); !strings.Contains(text, "Subscription disabled") || !strings.Contains(text, "the receiver moves") {
		t.Error("it is not disabled, or the reason is missing")
	}
	if _, text := s.post(path+"/enable", url.Values{"back": {back}}); !strings.Contains(text, "Missed events are delivered first") {
		t.Error("it is not enabled")
	}
}

func TestDeliveriesAreEmptyAndViewersCannotAct(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	anID := holdfast.NewID().String()
	s.shows("/deliveries", "No subscriptions yet", "No deliveries yet")
	for _, path := range []string{"/deliveries/" + anID + "/resend", "/subscriptions/" + anID + "/disable", "/subscriptions/" + anID + "/enable"} {
		if status, _ := s.post(path, nil); status != http.StatusForbidden {
			t.Errorf("%s by a viewer: %d", path, status)
		}
	}
}
