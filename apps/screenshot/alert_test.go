package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/screenshot/service"
)

// duty runs a duty of the service once.
func (s *scene) duty(name string) {
	s.Helper()
	for _, d := range s.service.Duties() {
		if d.Name == name {
			if err := d.Run(s.Context()); err != nil {
				s.Error(err)
			}
			return
		}
	}
	s.Errorf("there is no duty %s", name)
}

func TestOperatorsAreNotifiedOnceWhenTooManyRetriesFail(t *testing.T) {
	box, address := openMailbox(t)
	s := newScene(t, "MAIL_SERVER", address)
	var calls atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"failedRetryPercent":100`) || r.Header.Get("Webhook-Signature") == "" {
			t.Errorf("%s %s", r.Header, body)
		}
		calls.Add(1)
	}))
	t.Cleanup(receiver.Close)
	for _, bad := range []service.Alert{{Percent: 101, Webhook: receiver.URL}, {Percent: 50, Webhook: "nowhere"}, {Percent: 50}, {Percent: 50, Mail: "nobody"}} {
		if a := s.call("POST", "/api/v1/admin/alerts", bad); a.Status != 400 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	if a := s.call("POST", "/api/v1/admin/alerts", service.Alert{Percent: 50, Webhook: receiver.URL, Mail: "ops@example.org"}); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	s.origin.setDown(true)
	ids := s.submitMany(5)
	s.works()
	for _, id := range ids {
		s.ended(id, service.Failed)
	}
	s.until("the retries are counted", func() bool {
		rates, err := s.service.RetryRates(s.Context(), time.Hour)
		return err == nil && len(rates) == 2 && rates[0].Failed == 5 && rates[1].Failed == 5
	})
	for range 3 {
		s.duty("alerts")
	}
	s.until("the webhook was called", func() bool { return calls.Load() > 0 })
	s.until("the mail was sent", func() bool { return len(box.all()) > 0 })
	s.visitorIs(firstEmail).open("/admin").sees("Retry, last 24 h", receiver.URL)
	if n := calls.Load(); n != 1 {
		t.Errorf("it was called %d times", n)
	}
	if mails := box.all(); len(mails) != 1 || !strings.Contains(mails[0], "Subject: Retries of screenshots fail") || !strings.Contains(mails[0], "100 % of 10 retries") {
		t.Errorf("%q", mails)
	}
}

func TestPicturesAreDeletedWhenTheirTimeIsOverOrNoShotHasThem(t *testing.T) {
	s := newScene(t)
	s.works()
	done := s.submit("/ok")
	s.ended(done.ID, service.Completed)
	v, err := s.service.Job(t.Context(), s.owner, done.ID)
	if err != nil {
		t.Fatal(err)
	}
	orphan := strings.Replace(v.Stored.Key, "/1.png", "/99.png", 1)
	if _, err := s.bucket.Put(t.Context(), orphan, strings.NewReader("of a worker that lost its job")); err != nil {
		t.Fatal(err)
	}
	if keep, err := s.service.Needed(t.Context(), v.Stored.Key, time.Hour); err != nil || !keep {
		t.Errorf("the picture of a shot is deleted: %v", err)
	}
	if keep, err := s.service.Needed(t.Context(), orphan, time.Hour); err != nil || keep {
		t.Errorf("the picture of no shot is kept: %v", err)
	}
	if keep, err := s.service.Needed(t.Context(), v.Stored.Key, 31*24*time.Hour); err != nil || keep {
		t.Errorf("an old picture is kept: %v", err)
	}
	s.duty("sweep") // all are younger than an hour
	if err := s.bucket.Delete(t.Context(), v.Stored.Key); err != nil {
		t.Fatal(err)
	}
	if a := s.call("GET", "/api/v1/screenshots/"+done.ID.String()+"/result", nil); a.Status != 404 || a.code() != "EXPIRED" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// visitorIs returns a visitor who is signed in.
func (s *scene) visitorIs(email string) *visitor {
	s.Helper()
	if err := s.accounts.ResetPassword(s.Context(), email, "a long password"); err != nil {
		s.Fatal(err)
	}
	return s.visitor().open("/sign-in").send("/sign-in", "email", email, "password", "a long password", "to", "/")
}
