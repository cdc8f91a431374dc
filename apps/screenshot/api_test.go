package main

import (
	"bytes"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
)

func TestAShotIsTakenPaidAndServed(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.works()
		job := s.submit("/ok/one")
		if job.Status != service.Queued && job.Status != service.Processing || job.Type != service.TypeScreenshot || job.RetryType != "AUTOMATIC" || job.MaxRetries != 2 || !job.IsRetryable {
			s.Errorf("%+v", job)
		}
		done := s.ended(job.ID, service.Completed)
		if done.Result == nil || done.Result.Title != "Page /ok/one" || done.Result.Width != 320 || done.Result.Height != 200 {
			s.Fatalf("%+v", done.Result)
		}
		s.has(99, 0, 1)
		picture := s.call("GET", "/api/v1/screenshots/"+job.ID.String()+"/result", nil)
		m, err := png.Decode(bytes.NewReader(picture.Body))
		if err != nil || picture.Header.Get("Content-Type") != "image/png" {
			s.Fatalf("%v %s", err, picture.Header)
		}
		if r, g, b, _ := m.At(300, 190).RGBA(); r>>8 != 0 || g>>8 != 0x88 || b>>8 != 0x44 {
			s.Errorf("the pixel is %x %x %x", r>>8, g>>8, b>>8)
		}
		linked := s.callAs("", "GET", done.Result.URL, nil)
		if linked.Status != http.StatusOK || !bytes.Equal(linked.Body, picture.Body) {
			s.Errorf("the link answers %d", linked.Status)
		}
		for _, bad := range []string{strings.Replace(done.Result.URL, "expires=1", "expires=2", 1), done.Result.URL + "0", strings.Split(done.Result.URL, "?")[0], strings.Replace(done.Result.URL, "expires=", "expires=1&x=", 1)} {
			if a := s.callAs("", "GET", bad, nil); a.Status != http.StatusForbidden {
				s.Errorf("%s answers %d", bad, a.Status)
			}
		}
		s.sound()
	})
}

func TestAShotThatFailsForGoodCostsNothing(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.works()
		final, retried := s.submit("/status/404"), s.submit("/status/503")
		one, two := s.ended(final.ID, service.Failed), s.ended(retried.ID, service.Failed)
		if *one.ErrorCode != "PAGE_HTTP_4XX" || one.IsRetryable || one.RetryCount != 0 || one.Result != nil {
			s.Errorf("%+v, %s", one, *one.ErrorCode)
		}
		if *two.ErrorCode != "PAGE_HTTP_5XX" || !two.IsRetryable || two.RetryCount != 2 || two.MaxRetries != 2 || two.NextRetryAt != nil {
			s.Errorf("%+v, %s", two, *two.ErrorCode)
		}
		s.has(100, 0, 0)
		if a := s.call("GET", "/api/v1/screenshots/"+final.ID.String()+"/result", nil); a.Status != 422 || a.code() != "PAGE_HTTP_4XX" {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		s.sound()
	})
}

func TestWithoutCreditsNothingIsAccepted(t *testing.T) {
	onBoth(t, func(s *scene) {
		bulk := map[string]any{"requests": []any{map[string]any{"url": s.origin.URL + "/a"}, map[string]any{"url": s.origin.URL + "/b"}, map[string]any{"url": s.origin.URL + "/c"}}}
		a := s.call("POST", "/api/v1/screenshots/bulk", bulk)
		var refused struct{ RequiredCredits, AvailableCredits int }
		a.into(s, &refused)
		if a.Status != 402 || a.code() != "INSUFFICIENT_CREDITS" || refused.RequiredCredits != 3 || refused.AvailableCredits != 2 {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		if jobs, _, err := s.service.Jobs(s.Context(), service.Query{}); err != nil || len(jobs) != 0 {
			s.Errorf("%d shots, %v", len(jobs), err)
		}
		s.has(2, 0, 0)
		s.submit("/a")
		s.has(1, 1, 0)
	}, "WELCOME_CREDITS", "2")
}

func TestARequestThatIsRepeatedIsOneShot(t *testing.T) {
	onBoth(t, func(s *scene) {
		body := map[string]any{"url": s.origin.URL + "/ok"}
		var first, second service.Job
		s.call("POST", "/api/v1/screenshots", body, "Idempotency-Key", "k1").into(s, &first)
		a := s.call("POST", "/api/v1/screenshots", body, "Idempotency-Key", "k1")
		a.into(s, &second)
		if a.Status != 200 || first.ID != second.ID {
			s.Errorf("%d: %s and %s", a.Status, first.ID, second.ID)
		}
		s.has(99, 1, 0)
		if a := s.call("POST", "/api/v1/screenshots", map[string]any{"url": s.origin.URL + "/other"}, "Idempotency-Key", "k1"); a.Status != 400 || a.code() != "VALIDATION_ERROR" {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		s.has(99, 1, 0)
	})
}

func TestAPictureInTheCacheAnswersAndCostsNothing(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.works()
		cached := map[string]any{"cacheSeconds": 3600}
		first := s.submit("/ok", cached)
		s.ended(first.ID, service.Completed)
		a := s.call("POST", "/api/v1/screenshots", map[string]any{"url": s.origin.URL + "/ok", "width": 320, "height": 200, "cacheSeconds": 3600})
		var again service.Job
		a.into(s, &again)
		if a.Status != 200 || again.ID != first.ID || !again.Cached || again.Result == nil {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		s.has(99, 0, 1)
		if other := s.submit("/ok", cached, map[string]any{"darkMode": true}); other.ID == first.ID {
			s.Error("a picture of other options answered")
		}
	})
}

func TestACancelledShotCostsNothing(t *testing.T) {
	onBoth(t, func(s *scene) {
		queued := s.submit("/ok")
		if a := s.call("POST", "/api/v1/screenshots/"+queued.ID.String()+"/cancel", nil); a.Status != 200 || !strings.Contains(string(a.Body), "CANCELLED") {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		s.works()
		s.has(100, 0, 0)
		running := s.submit("/hold")
		s.ended(running.ID, service.Processing)
		if a := s.call("POST", "/api/v1/screenshots/"+running.ID.String()+"/cancel", nil); a.Status != 200 {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		s.ended(running.ID, service.Cancelled)
		s.has(100, 0, 0)
		if a := s.call("POST", "/api/v1/screenshots/"+queued.ID.String()+"/cancel", nil); a.Status != 400 {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		s.sound()
	})
}

func TestBadRequestsAreRefusedWithTheField(t *testing.T) {
	s := newScene(t)
	for body, want := range map[string]string{
		`{`: "", `{"url": "ftp://example.org"}`: "url", `{}`: "url", `{"url": "https://example.org", "format": "gif"}`: "format", `{"url": "https://example.org", "colour": "red"}`: "",
		`{"url": "https://example.org", "cacheSeconds": -1}`: "cacheSeconds", `{"url": "https://example.org", "maxRetries": 99}`: "maxRetries", `{"url": "https://example.org", "webhook": "nowhere"}`: "webhook",
		`{"url": "https://example.org"} x`: "",
	} {
		a := s.call("POST", "/api/v1/screenshots", body)
		var refused struct{ Fields []struct{ Field string } }
		a.into(t, &refused)
		if a.Status != 400 || a.code() != "VALIDATION_ERROR" || want != "" && (len(refused.Fields) == 0 || refused.Fields[0].Field != want) {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	s.has(100, 0, 0)
}

func TestTheShotsOfOthersDoNotExist(t *testing.T) {
	onBoth(t, func(s *scene) {
		job := s.submit("/ok")
		other := s.member("eve@example.org")
		for _, path := range []string{"", "/result", "/story"} {
			if a := s.callAs(other, "GET", "/api/v1/screenshots/"+job.ID.String()+path, nil); a.Status != 404 || a.code() != "NOT_FOUND" {
				s.Errorf("%s: %d %s", path, a.Status, a.Body)
			}
		}
		for _, path := range []string{"/retry", "/cancel"} {
			if a := s.callAs(other, "POST", "/api/v1/screenshots/"+job.ID.String()+path, nil); a.Status != 404 || a.code() != "NOT_FOUND" {
				s.Errorf("%s: %d %s", path, a.Status, a.Body)
			}
		}
		unknown := s.callAs(other, "POST", "/api/v1/screenshots/"+holdfast.NewID().String()+"/retry", nil)
		theirs := s.callAs(other, "POST", "/api/v1/screenshots/"+job.ID.String()+"/retry", nil)
		if withoutID(unknown) != withoutID(theirs) {
			s.Errorf("%s and %s", unknown.Body, theirs.Body)
		}
		var list struct{ Screenshots []service.Job }
		s.callAs(other, "GET", "/api/v1/screenshots", nil).into(s, &list)
		if len(list.Screenshots) != 0 {
			s.Errorf("%+v", list)
		}
	})
}

// withoutID returns a body without the id of the request.
func withoutID(a answer) string {
	text, _, _ := strings.Cut(string(a.Body), `"requestId"`)
	return text
}

// member makes another account and returns an API key of it.
func (s *scene) member(email string, scopes ...account.Scope) string {
	s.Helper()
	ctx := s.Context()
	if _, err := s.accounts.SignUp(ctx, account.SignUp{Email: email, Password: "a long password"}); err != nil {
		s.Fatal(err)
	}
	token, _, err := s.accounts.SignIn(ctx, account.SignIn{Email: email, Password: "a long password", From: email})
	if err != nil {
		s.Fatal(err)
	}
	id, err := s.accounts.OpenSession(ctx, token)
	if err != nil {
		s.Fatal(err)
	}
	_, key, err := s.accounts.CreateKey(ctx, id, account.KeyRequest{Name: "test", Scopes: scopes})
	if err != nil {
		s.Fatal(err)
	}
	return key
}

func TestAKeyOpensWhatItsScopesPermit(t *testing.T) {
	s := newScene(t)
	reader := s.member("ada@example.org", account.Read)
	for _, c := range []struct {
		key, method, path string
		status            int
	}{
		{"", "GET", "/screenshots", 401}, {"shot_a_b", "GET", "/screenshots", 401}, {reader, "GET", "/screenshots", 200}, {reader, "POST", "/screenshots", 403},
		{reader, "GET", "/admin/workers/status", 403}, {s.key, "GET", "/admin/workers/status", 200}, {"", "GET", "/codes", 200}, {s.key, "DELETE", "/screenshots", 405}, {s.key, "GET", "/nothing", 404},
	} {
		if a := s.callAs(c.key, c.method, "/api/v1"+c.path, nil); a.Status != c.status {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.Status, a.Body)
		}
	}
}

func TestOperatorsGrantCreditsOnce(t *testing.T) {
	s := newScene(t)
	var b credit.Balance
	for range 2 {
		s.call("POST", "/api/v1/admin/organisations/"+s.owner+"/credits", map[string]any{"amount": 50, "once": "invoice 1", "note": "paid"}).into(t, &b)
	}
	if b.Available != 150 {
		t.Errorf("%+v", b)
	}
	if a := s.call("POST", "/api/v1/admin/organisations/nothing/credits", map[string]any{"amount": 50}); a.Status != 404 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
