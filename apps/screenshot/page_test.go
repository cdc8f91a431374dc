package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apps/screenshot/service"
)

// A visitor is a browser without JavaScript: it sends the forms of pages.
type visitor struct {
	*scene
	client *http.Client
	page   string // the last one
	status int
}

func (s *scene) visitor() *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.Fatal(err)
	}
	return &visitor{scene: s, client: &http.Client{Jar: jar}}
}

func (v *visitor) read(a *http.Response, err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		v.Fatal(err)
	}
	v.page, v.status = string(body), a.StatusCode
}

func (v *visitor) open(path string) *visitor {
	v.Helper()
	v.read(v.client.Get(v.at + path))
	return v
}

var formToken = regexp.MustCompile(`name="token" value="([^"]*)"`)

// send sends a form of the last page, with its token.
func (v *visitor) send(path string, fields ...string) *visitor {
	v.Helper()
	form := url.Values{}
	if found := formToken.FindStringSubmatch(v.page); found != nil {
		form.Set("token", found[1])
	}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	v.read(v.client.PostForm(v.at+path, form))
	return v
}

func (v *visitor) sees(texts ...string) {
	v.Helper()
	for _, text := range texts {
		if !strings.Contains(v.page, text) {
			v.Errorf("the page lacks %q: %s", text, v.page)
		}
	}
}

func (v *visitor) signUp(email string) *visitor {
	v.Helper()
	return v.open("/sign-up").send("/sign-up", "email", email, "password", "a long password", "to", "/")
}

func TestAVisitorSignsUpShootsWatchesARetryAndRunsOutOfCredits(t *testing.T) {
	onBoth(t, func(s *scene) {
		v := s.visitor()
		v.open("/").sees("Sign in")
		v.signUp("ada@example.org").sees("No screenshots yet", "2 credits available", "ada@example.org")
		s.works()
		s.origin.setDown(true)
		v.send("/shots", "url", s.origin.URL+"/page", "format", "png", "width", "320", "height", "200").sees("The request is accepted.", "/page")
		jobs, _, err := s.service.Jobs(s.Context(), service.Query{})
		if err != nil || len(jobs) != 1 {
			s.Fatalf("%v, %v", jobs, err)
		}
		at := "/shots/" + jobs[0].ID.String()
		s.until("it failed", func() bool { return strings.Contains(v.open(at).page, `data-state="failed"`) })
		v.sees("PAGE_HTTP_5XX", "The host of the page answered with a server error", "Costs 1 credit again", "release")
		s.origin.setDown(false)
		v.send(at + "/retry").sees("Job queued for manual retry.")
		s.until("it is complete", func() bool { return strings.Contains(v.open(at).page, `data-state="completed"`) })
		v.sees(`<img src="`+at+`/picture"`, "manual retry", "disabled", "Job must be in FAILED status or stuck")
		v.send("/shots", "url", s.origin.URL+"/other")
		v.open("/").send("/shots", "url", s.origin.URL+"/third")
		if v.status != 402 {
			s.Errorf("%d", v.status)
		}
		v.sees("INSUFFICIENT_CREDITS", "1 credit is needed and 0 are available.", `value="`+s.origin.URL+`/third"`)
		v.open("/credits").sees("capture", "reserve", "grant", "Spent on retries")
		s.sound()
	}, "WELCOME_CREDITS", "2")
}

func TestAFormWithoutItsTokenAndOfAnotherSiteIsRefused(t *testing.T) {
	s := newScene(t)
	v := s.visitor().signUp("ada@example.org")
	v.page = ""
	if v.send("/keys", "name", "x"); v.status != 403 {
		t.Errorf("%d", v.status)
	}
	other := s.visitor().signUp("eve@example.org")
	v.page = other.page
	if v.send("/keys", "name", "x"); v.status != 403 {
		t.Errorf("%d", v.status)
	}
	v.open("/keys")
	r, _ := http.NewRequest("POST", s.at+"/keys", strings.NewReader("name=x&token="+formToken.FindStringSubmatch(v.page)[1]))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://evil.example")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if v.read(v.client.Do(r)); v.status != 403 {
		t.Errorf("%d", v.status)
	}
	if v.open("/admin"); v.status != 403 {
		t.Errorf("%d", v.status)
	}
}

var freshKey = regexp.MustCompile(`shot_[a-z0-9]+_[A-Z0-9]+`)

func TestAKeyIsShownOnceOnThePageAndWorksUntilItIsRevoked(t *testing.T) {
	s := newScene(t)
	v := s.visitor().signUp("ada@example.org").open("/keys").send("/keys", "name", "laptop", "scope", "read", "scope", "write")
	key := freshKey.FindString(v.page)
	if a := s.callAs(key, "GET", "/api/v1/credits", nil); a.Status != 200 || v.status != 201 {
		t.Fatalf("%d, %d %s", v.status, a.Status, a.Body)
	}
	if v.open("/keys"); strings.Contains(v.page, key) {
		t.Error("the key is shown again")
	}
	v.send(regexp.MustCompile(`/keys/[a-z0-9]+/revoke`).FindString(v.page)).sees("The API key is revoked.")
	if a := s.callAs(key, "GET", "/api/v1/credits", nil); a.Status != 401 {
		t.Errorf("%d", a.Status)
	}
}

func TestAnInvitedPersonJoinsTheTeamAndSeesItsShots(t *testing.T) {
	s := newScene(t, "SIGN_UP", "off")
	if v := s.visitor().open("/sign-up"); v.status != 403 {
		t.Errorf("%d", v.status)
	}
	s.submit("/ok")
	secret, err := s.accounts.Invite(t.Context(), s.id, "ben@example.org", "member")
	if err != nil {
		t.Fatal(err)
	}
	to := "/join?secret=" + secret
	v := s.visitor().open(to)
	v.sees("Sign in", "/sign-up?to=")
	v.open("/sign-up?to=" + url.QueryEscape(to)).sees("You are invited to First organisation")
	v.send("/sign-up", "email", "ben@example.org", "password", "a long password", "to", to).sees("Join First organisation")
	v.send("/join", "secret", secret).sees("You are a member now.", "/ok")
	v.open("/team").sees("ben@example.org", "admin@localhost", "joined")
	v.open("/account").sees("First organisation", "current")
}

func TestOperatorsPauseTheSchedulerOnThePage(t *testing.T) {
	s := newScene(t)
	if err := s.accounts.ResetPassword(t.Context(), firstEmail, "a long password"); err != nil {
		t.Fatal(err)
	}
	v := s.visitor().open("/sign-in").send("/sign-in", "email", firstEmail, "password", "a long password", "to", "//evil.example")
	v.sees("No screenshots yet")
	v.open("/admin").send("/admin/pause", "type", "DELAYED_JOBS", "duration", "1m").sees("The retry scheduler is paused.", "by admin@localhost, until")
	v.send("/admin/resume", "type", "DELAYED_JOBS").sees("The retry scheduler is resumed.")
	v.open("/account").send("/sign-out").sees("You are signed out.")
	v.send("/sign-in", "email", firstEmail, "password", "wrong password")
	v.sees("The e-mail address or the password is not correct")
	if v.open("/nothing"); v.status != 404 {
		t.Errorf("%d", v.status)
	}
}
