package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

// waits sends a request that waits for the end of a job, and returns when the server counts it.
func (s *gateScene) waits(who string, id holdfast.ID, wait string) (answered chan answerSeen) {
	s.t.Helper()
	answered = make(chan answerSeen, 1)
	before := s.srv.streams.count()
	go func() { answered <- s.ask(who, "GET", "/v1/jobs/"+id.String()+"?wait="+wait, "") }()
	eventually(s.t, "it waits", func() bool { return s.srv.streams.count() == before+1 })
	return answered
}

func (s *gateScene) endJob(id holdfast.ID) {
	s.t.Helper()
	if _, err := s.store.Cancel(s.t.Context(), store.Intervention{Job: id, Actor: "test"}); err != nil {
		s.t.Fatal(err)
	}
}

func TestAWaitForAJobIsAnsweredWhenTheJobHasEnded(t *testing.T) {
	s := newGateScene(t)
	id := s.job("bob")
	for _, who := range []string{"viewer", "own"} {
		answered := s.waits(who, id, "30s")
		select {
		case a := <-answered:
			t.Fatalf("%s is answered before the job has ended: %d %s", who, a.status, a.body)
		default:
		}
		s.endJob(id)
		if a := <-answered; a.status != http.StatusOK || !strings.Contains(a.body, `"state":"cancelled"`) || a.header.Get("ETag") == "" {
			t.Errorf("%s: %d %s %v", who, a.status, a.body, a.err)
		}
		id = s.job("bob")
	}
	eventually(t, "none waits", func() bool { return s.srv.streams.count() == 0 })
}

func TestAWaitForAJobIsAnsweredWithTheJobAsItIsWhenTheTimeIsOver(t *testing.T) {
	s := newGateScene(t)
	id := s.job("bob")
	for _, wait := range []string{"50ms", "0s"} {
		if a := s.ask("viewer", "GET", "/v1/jobs/"+id.String()+"?wait="+wait, ""); a.status != http.StatusOK || !strings.Contains(a.body, `"state":"queued"`) {
			t.Errorf("wait=%s: %d %s %v", wait, a.status, a.body, a.err)
		}
	}
	for path, status := range map[string]int{
		"/v1/jobs/" + holdfast.NewID().String() + "?wait=30s": http.StatusNotFound,
		"/v1/jobs/" + id.String() + "?wait=soon":              http.StatusBadRequest,
		"/v1/jobs/" + id.String() + "?wait=-1s":               http.StatusBadRequest,
	} {
		if a := s.ask("viewer", "GET", path, ""); a.status != status {
			t.Errorf("%s: %d %s, want %d", path, a.status, a.body, status)
		}
	}
	if a := s.ask("foreign", "GET", "/v1/jobs/"+id.String()+"?wait=30s", ""); a.status != http.StatusNotFound {
		t.Errorf("a key of another owner: %d %s", a.status, a.body)
	}
}

func TestAWaitForAJobEndsWithTheKey(t *testing.T) {
	s := newBareScene(t)
	id := s.job("bob")
	for how, end := range s.keyEndings() {
		text := s.makeKey(apikey.Request{Name: "waits", Scope: apikey.Operator})
		s.keys["waits"] = text
		answered := s.waits("waits", id, "30s")
		end(text)
		if a := <-answered; a.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s %v", how, a.status, a.body, a.err)
		}
	}
}

func TestAWaitForAJobEndsWhenTheServerStops(t *testing.T) {
	s := newGateScene(t)
	answered := s.waits("viewer", s.job("bob"), "30s")
	begun := time.Now()
	s.srv.close()
	if a := <-answered; a.status != http.StatusOK || !strings.Contains(a.body, `"state":"queued"`) || time.Since(begun) > 20*time.Second {
		t.Errorf("after %v: %d %s %v", time.Since(begun), a.status, a.body, a.err)
	}
}

func TestWaitsForJobsLeaveCapacityForOtherRequests(t *testing.T) {
	s := newGateScene(t, func(c *Config) { c.Limits.Streams, c.Limits.Running = 8, 4 })
	id := s.job("bob")
	var waiting []chan answerSeen
	for range 6 { // three quarters of Streams
		waiting = append(waiting, s.waits("viewer", id, "30s"))
	}
	if a := s.ask("viewer", "GET", "/v1/jobs/"+id.String()+"?wait=30s", ""); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("one wait too many: %d %s", a.status, a.body)
	}
	if a := s.ask("viewer", "GET", "/v1/jobs/"+id.String(), ""); a.status != http.StatusOK {
		t.Errorf("a read beside the waits: %d %s", a.status, a.body)
	}
	if a := s.ask("worker", "POST", "/v1/wakes", `{"queues":["none"],"patience":"1ms"}`); a.status != http.StatusOK {
		t.Errorf("a worker that waits for jobs: %d %s", a.status, a.body)
	}
	s.endJob(id)
	for _, answered := range waiting {
		if a := <-answered; a.status != http.StatusOK {
			t.Errorf("a wait: %d %s %v", a.status, a.body, a.err)
		}
	}
}

// A worker's key that is bound to queues waits for jobs of these only.
func TestAWorkerWaitsOnlyForJobsThatItMaySee(t *testing.T) {
	s := newGateScene(t)
	id := s.job("bob")
	s.keys["elsewhere"] = s.makeKey(apikey.Request{Name: "elsewhere", Scope: apikey.Worker, Queues: []string{"elsewhere"}})
	body := `{"id":"` + id.String() + `"}`
	if a := s.ask("elsewhere", "POST", "/v1/store/job?wait=30s", body); a.status != http.StatusNotFound {
		t.Errorf("a job of another queue: %d %s", a.status, a.body)
	}
	s.endJob(id)
	if a := s.ask("worker", "POST", "/v1/store/job?wait=30s", body); a.status != http.StatusOK || !strings.Contains(a.body, "cancelled") {
		t.Errorf("a job that has ended: %d %s", a.status, a.body)
	}
}
