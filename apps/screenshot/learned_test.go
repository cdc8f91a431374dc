package main

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
)

// SmartRetry of the specification. The experience is that of 200 retries after PAGE_TIMEOUT, none of which succeeded, and 60 after PAGE_HTTP_5XX, which did.
func TestSmartRetryIsOffByDefaultAndWhenOnGivesUpWhatNeverHelpedAndSaysWhy(t *testing.T) {
	synctest.Test(t, smartRetry) // the retries of each host have a rate: they take minutes
}

func smartRetry(t *testing.T) {
	set := settingsFor(t, "BROWSERS", "8", "WELCOME_CREDITS", "1000")
	off := openLearner(t, set)
	off.teach()
	off.works() // an engine that has the experience from its start
	if retries, last := off.shootLate(code.PageTimeout, 0); retries != 2 || strings.Contains(last, "gave up early") {
		t.Errorf("off: %d retries, and the story ends with %q", retries, last)
	}
	off.stop()
	set.Learned = true
	on := openLearner(t, set)
	on.works()
	last, tries := "", 0
	on.until("the engine has read the experience", func() bool {
		retries := 0
		tries++
		retries, last = on.shootLate(code.PageTimeout, tries)
		return retries == 0
	})
	if !strings.Contains(last, "gave up early: only 0 of 20") || !strings.Contains(last, "such retries succeeded") {
		t.Errorf("the story ends with %q", last)
	}
	for _, name := range []string{code.PageHTTP5XX, code.PageDNSError} { // helped, and not known
		if retries, last := on.shootLate(name, 0); retries != 2 || strings.Contains(last, "gave up early") {
			t.Errorf("%s: %d retries, and the story ends with %q", name, retries, last)
		}
	}
	on.sound()
}

// A learner is a service with a camera of the test.
type learner struct {
	*scene
	camera *scriptedCamera
	caller service.Caller
}

func openLearner(t *testing.T, set settings) *learner {
	s := &learner{scene: &scene{T: t, logged: &lockedBuffer{}}, camera: newCamera()}
	s.openApp(set, s.camera)
	user, err := s.accounts.UserByEmail(t.Context(), firstEmail)
	if err != nil { // the first start
		s.signUp()
		user = s.id.User
	}
	organisations, err := s.accounts.Organisations(t.Context(), user.ID)
	if err != nil || len(organisations) != 1 {
		t.Fatal(organisations, err)
	}
	s.owner = organisations[0].ID
	s.caller = service.Caller{Owner: s.owner, User: user.ID, Name: "test"}
	return s
}

// teach makes the retries, on so many hosts that no breaker opens, and stops the engine.
func (s *learner) teach() {
	s.Helper()
	s.works()
	var all []holdfast.ID
	for n := range 50 {
		host := fmt.Sprintf("bad%d.example", n)
		s.camera.set(host, code.PageTimeout)
		all = append(all, s.shoot(host, 4, 1)...)
	}
	for n := range 15 {
		host := fmt.Sprintf("good%d.example", n)
		s.camera.setTimes(host, code.PageHTTP5XX, 4)
		all = append(all, s.shoot(host, 4, 2)...)
	}
	for _, id := range all {
		s.until("shot "+id.String()+" has ended", func() bool { return s.shown(id).Status == service.Failed || s.shown(id).Status == service.Completed })
	}
	s.stop()
}

// shoot submits shots of a host with so many retries each.
func (s *learner) shoot(host string, n, retries int) (ids []holdfast.ID) {
	s.Helper()
	var list []service.Submission
	for range n {
		one := urlOf(host)
		one.MaxRetries = &retries
		list = append(list, one)
	}
	jobs, _, err := s.service.SubmitAll(s.Context(), s.caller, list)
	if err != nil {
		s.Fatal(err)
	}
	for _, job := range jobs {
		ids = append(ids, job.ID)
	}
	return ids
}

func (s *learner) shown(id holdfast.ID) service.Job {
	s.Helper()
	job, err := s.service.Job(s.Context(), s.owner, id)
	if err != nil {
		s.Fatal(err)
	}
	return job
}

// shootLate submits a shot of a new host that always fails with a code. It returns how many retries were made and the last line of the story.
func (s *learner) shootLate(name string, n int) (retries int, last string) {
	s.Helper()
	host := fmt.Sprintf("%s%d.example", strings.ToLower(strings.ReplaceAll(name, "_", "-")), n)
	s.camera.set(host, name)
	id := s.shoot(host, 1, 2)[0]
	s.until("the shot has failed", func() bool { return s.shown(id).Status == service.Failed })
	story, err := s.operator.Story(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return len(s.camera.begun(host)) - 1, story[len(story)-1].Text
}
