package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// A listener reads the events of GET /api/events.
type listener struct {
	mu    sync.Mutex
	lines []string // as they came
	names []string // of events of jobs, with the job's id
}

// listens opens an event stream and returns when the server has answered.
func (c *caller) listens() *listener {
	c.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.at+"/api/events", nil)
	if err != nil {
		c.Fatal(err)
	}
	response, err := c.client.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		c.Fatalf("%d %v", response.StatusCode, response.Header)
	}
	l, begun := &listener{}, make(chan struct{})
	go func() {
		defer response.Body.Close()
		once := sync.OnceFunc(func() { close(begun) })
		name := ""
		for lines := bufio.NewScanner(response.Body); lines.Scan(); once() {
			l.hear(lines.Text(), &name)
		}
	}()
	<-begun
	return l
}

func (l *listener) hear(line string, name *string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	if event, ok := strings.CutPrefix(line, "event: "); ok {
		*name = event
	}
	var event struct {
		Data struct {
			Job holdfast.ID `json:"job"`
		} `json:"data"`
	}
	if data, ok := strings.CutPrefix(line, "data: "); ok && strings.HasPrefix(*name, "job.") && json.Unmarshal([]byte(data), &event) == nil {
		l.names = append(l.names, strings.TrimPrefix(*name, "job.")+" "+event.Data.Job.String())
	}
}

// heard reports whether an event of a job was received.
func (l *listener) heard(name string, id holdfast.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.names {
		if n == name+" "+id.String() {
			return true
		}
	}
	return false
}

func (l *listener) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// C11: live rows. E15: an event for each transition, sent only to the owner of the job.
func TestAJobsEventsAreSentOnlyToItsOwner(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick)
		at := s.served()
		mine, other := newCaller(t, at), newCaller(t, at)
		me, them := mine.listens(), other.listens()
		s.works()
		theirs := other.has(s, 9)
		s.until("the others hear of theirs", func() bool { return them.heard("queued", theirs) && them.heard("complete", theirs) })
		s.gateway.does(func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				speak(w, http.StatusBadGateway, "the secret of the gateway")
				return
			}
			convertsIt(n, w, r)
		})
		id := mine.has(s, 1)
		for _, name := range []string{"queued", "processing", "retry", "complete"} {
			s.until(name+" is heard", func() bool { return me.heard(name, id) })
		}
		for _, hidden := range []string{theirs.String(), other.owner, "secret", "gateway_message"} {
			if strings.Contains(me.text(), hidden) {
				t.Errorf("the stream contains %q:\n%s", hidden, me.text())
			}
		}
		if strings.Contains(them.text(), id.String()) {
			t.Errorf("another owner receives events of the job:\n%s", them.text())
		}
		if !strings.Contains(me.text(), "GW_5XX") {
			t.Errorf("the code is missing:\n%s", me.text())
		}
		// Asking for more does not help.
		mine.asks("GET", "/api/events?owner=*&after=x").is(400, "UNKNOWN")
		mine.asks("GET", "/api/events", "Last-Event-ID", "-1").is(400, "UNKNOWN")
	})
}

// C12: the expiry of a file is an event.
func TestAManualRetryAndAnExpirySendEvents(t *testing.T) {
	s := newScene(t, "", quick, func(set *settings) { set.KeepResult = time.Second })
	c := newCaller(t, s.served())
	l := c.listens()
	s.gateway.says(http.StatusBadRequest, "")
	s.works()
	id := c.has(s, 1)
	s.until("it fails", func() bool { return l.heard("failed", id) })
	s.gateway.converts()
	c.asks("POST", "/api/jobs/"+id.String()+"/retry").is(202, "")
	s.until("it completes", func() bool { return l.heard("complete", id) })
	s.until("the expiry is heard", func() bool {
		if err := s.operator.RunDuty(t.Context(), "artifacts", ops.Actor{Name: "test"}); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(l.text(), "expired")
	})
	expect(t, "the result", c.get(id).Result, fileExpired)
	if !strings.Contains(l.text(), "manual") {
		t.Errorf("the event of the retry is missing:\n%s", l.text())
	}
}

func TestCloseEndsEventStreams(t *testing.T) {
	s := newScene(t, "")
	handler, err := s.handler()
	if err != nil {
		t.Fatal(err)
	}
	f := handler.(*webHandler)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if !f.health.Draining() {
		t.Error("it counts as ready")
	}
}
