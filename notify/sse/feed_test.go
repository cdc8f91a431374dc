package sse_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify"
	feedsse "github.com/holdfastdev/holdfast/notify/sse"
)

func TestAClientGetsEventsFromTheMomentItConnects(t *testing.T) {
	m := &feedStore{}
	m.happen(10, "old", "")
	_, s := open(t, m, feedsse.Config{Source: "/here"})
	r := connect(t, s.URL, nil)
	until(t, "the client is there", r.settled)
	m.happen(700, "new", "acme")
	until(t, "it was told", func() bool { return len(r.ids()) >= 700 })
	inARow(t, r.ids(), 11, 710)
	e := r.all()[len(r.all())-1]
	var envelope notify.Envelope
	if err := json.Unmarshal([]byte(e.Data), &envelope); err != nil {
		t.Fatal(err)
	}
	if e.Type != "job.failed" || envelope.ID != e.LastEventID || envelope.Type != "io.holdfast.job.failed" || envelope.Source != "/here" || envelope.Data.Kind != "new" {
		t.Errorf("%+v", e)
	}
}

func TestAReconnectHasNoGapAndNoDuplicateHoweverOftenTheConnectionIsLost(t *testing.T) {
	m := &feedStore{}
	_, s := open(t, m, feedsse.Config{Page: 7})
	r := connect(t, s.URL+"?after=0", nil)
	for round := range 20 {
		m.happen(50, "k", "")
		until(t, "some of it was told", func() bool { return len(r.ids()) > round*50 })
		s.CloseClientConnections()
	}
	until(t, "all was told", func() bool { return len(r.ids()) >= 1000 })
	inARow(t, r.ids(), 1, 1000)
}

func TestAClientWithoutEventsMissesNothingWhenItReconnects(t *testing.T) {
	m := &feedStore{}
	m.happen(5, "old", "")
	h, s := open(t, m, feedsse.Config{Retry: 100 * time.Millisecond})
	r := connect(t, s.URL, nil)
	until(t, "the client is there", r.settled)
	s.CloseClientConnections()
	until(t, "it is gone", func() bool { return h.Clients() == 0 })
	m.happen(3, "new", "")
	until(t, "it was told", func() bool { return len(r.ids()) >= 3 })
	inARow(t, r.ids(), 6, 8)
}

func TestPurgedEventsAreCountedAndTheRestIsSent(t *testing.T) {
	m := &feedStore{}
	m.happen(100, "k", "")
	m.forget(60)
	_, s := open(t, m, feedsse.Config{})
	r := connect(t, s.URL, map[string]string{"Last-Event-ID": "20"})
	other := connect(t, s.URL, map[string]string{"Last-Event-ID": "500"}) // a number from another store
	until(t, "it was told", func() bool { return len(r.ids()) >= 40 && other.settled() })
	inARow(t, r.ids(), 61, 100)
	if e := r.all()[0]; e.Type != "reset" || e.LastEventID != "60" || e.Data != `{"asked":20,"from":60,"head":100,"missed":40}` {
		t.Errorf("%+v", e)
	}
	if e := other.all()[0]; e.Type != "reset" || e.LastEventID != "100" || e.Data != `{"asked":500,"from":100,"head":100,"missed":0}` {
		t.Errorf("%+v", e)
	}
}

func TestAClientGetsOnlyMatchingEventsAndItsPosition(t *testing.T) {
	m := &feedStore{}
	_, s := open(t, m, feedsse.Config{Comment: 5 * time.Millisecond})
	r := connect(t, s.URL+"?after=0&event=failed&kind=mail.*&owner=acme", nil)
	m.happen(1000, "other", "acme")
	m.happen(2, "mail.send", "acme")
	m.happen(1, "mail.send", "eve")
	until(t, "it knows how far the feed was read", func() bool {
		all := r.all()
		return len(r.ids()) == 2 && all[len(all)-1].LastEventID == "1003"
	})
	inARow(t, r.ids(), 1001, 1002)
	before := false
	for _, e := range r.all() {
		before = before || e.Type == "position" && e.LastEventID > "0" && len(e.LastEventID) < 4
	}
	if !before {
		t.Errorf("a thousand events that do not match are passed over without a word: %v", r.all())
	}
}

func TestAnOwnerSeesItsOwnEventsWhateverItAsksFor(t *testing.T) {
	m := &feedStore{}
	_, s := open(t, m, feedsse.Config{Owner: func(r *http.Request) (string, bool) {
		return r.Header.Get("X-Owner"), r.Header.Get("X-Owner") != ""
	}})
	mine := connect(t, s.URL+"?after=0&owner=*", map[string]string{"X-Owner": "a*"})
	m.happen(3, "k", "acme")
	m.happen(1, "k", "")
	m.happen(1, "k", "a*")
	until(t, "it was told", func() bool { return len(mine.ids()) >= 1 })
	inARow(t, mine.ids(), 5, 5)
	if response, err := http.Get(s.URL); err != nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("%v, %v", response, err)
	}
}

func TestTheHeaderIsSentAtOnceAndForbidsBuffering(t *testing.T) {
	_, s := open(t, &feedStore{}, feedsse.Config{Comment: time.Millisecond, Retry: 1234 * time.Millisecond})
	response, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	h := response.Header
	if h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" || !strings.Contains(h.Get("Cache-Control"), "no-cache") {
		t.Errorf("%v", h)
	}
	lines := bufio.NewReader(response.Body)
	if first, err := lines.ReadString('\n'); first != "retry: 1234\n" {
		t.Errorf("%q, %v", first, err)
	}
	for line := ""; line != ": still here\n"; {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASlowClientIsDisconnectedAndBlocksNoOther(t *testing.T) {
	m := &feedStore{}
	h, err := feedsse.New(m, feedsse.Config{Poll: time.Millisecond, Retry: time.Millisecond, Write: 300 * time.Millisecond, Page: 50})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
		}
	}
	s.Start()
	t.Cleanup(func() { h.Close(); s.Close() })
	slow, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	_ = slow.(*net.TCPConn).SetReadBuffer(4 << 10)
	if _, err := io.WriteString(slow, "GET /?after=0 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	until(t, "the slow client is there", func() bool { return h.Clients() == 1 })
	quick := connect(t, s.URL+"?after=0", nil)
	until(t, "both are there", func() bool { return h.Clients() == 2 })
	m.happen(20_000, strings.Repeat("k", 200), "")
	until(t, "the quick one was told", func() bool { return len(quick.ids()) >= 20_000 })
	until(t, "the slow one is cut off", func() bool { return h.Clients() == 1 })
	inARow(t, quick.ids(), 1, 20_000)
}

func TestFiveHundredClientsCostTheStoreOnePoller(t *testing.T) {
	m := &feedStore{}
	m.happen(3, "old", "")
	h, s := open(t, m, feedsse.Config{Poll: 20 * time.Millisecond})
	readers := make([]*reader, 500)
	for i := range readers {
		readers[i] = connect(t, s.URL, nil)
	}
	until(t, "all are there", func() bool {
		for _, r := range readers {
			if !r.settled() {
				return false
			}
		}
		return h.Clients() == len(readers)
	})
	before, began := m.asked(), time.Now()
	m.happen(40, "new", "")
	until(t, "all were told", func() bool {
		for _, r := range readers {
			if len(r.ids()) < 40 {
				return false
			}
		}
		return true
	})
	// A ticker never ticks more often than time passes, so this holds on any machine, however slow. Two more are for the rounds at the edges.
	if asked, most := m.asked()-before, int(time.Since(began)/(20*time.Millisecond))+2; asked > most {
		t.Errorf("the store was asked %d times for 500 clients, at most %d were due", asked, most)
	}
	for _, r := range readers {
		inARow(t, r.ids(), 4, 43)
	}
}

func TestTooManyClientsGet503(t *testing.T) {
	h, s := open(t, &feedStore{}, feedsse.Config{Clients: 1})
	first, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	second, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	second.Body.Close()
	if second.StatusCode != http.StatusServiceUnavailable || second.Header.Get("Retry-After") == "" {
		t.Errorf("%v", second)
	}
	first.Body.Close()
	until(t, "the first is gone", func() bool { return h.Clients() == 0 })
	third, err := http.Get(s.URL)
	if err != nil || third.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", third, err)
	}
	h.Close()
	if _, err := io.ReadAll(third.Body); err != nil {
		t.Errorf("a feed that closes does not end cleanly: %v", err)
	}
	third.Body.Close()
	if late, err := http.Get(s.URL); err != nil || late.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a closed feed takes on a client: %v, %v", late, err)
	}
}

func TestATemporaryStoreFailureDisconnectsNoClient(t *testing.T) {
	m := &feedStore{}
	var log bytes.Buffer
	_, s := open(t, m, feedsse.Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Listen: []string{"*"}})
	r := connect(t, s.URL, nil)
	until(t, "the client is there and events were read", func() bool { return r.settled() && m.asked() > 3 })
	m.mu.Lock()
	m.broken = errors.New("the disk is gone")
	m.mu.Unlock()
	from := m.asked()
	until(t, "the poller met the trouble", func() bool { return m.asked() > from+2 })
	m.mu.Lock()
	m.broken = nil
	m.mu.Unlock()
	m.happen(5, "k", "")
	until(t, "it was told", func() bool { return len(r.ids()) >= 5 })
	inARow(t, r.ids(), 1, 5)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.heard) == 0 || m.heard[0].Name != "feed" || m.heard[0].Events[0] != "*" {
		t.Errorf("nobody listens: %v", m.heard)
	}
}

func TestARestoredStoreMakesClientsStartAgain(t *testing.T) {
	m := &feedStore{}
	m.happen(100, "k", "")
	_, s := open(t, m, feedsse.Config{})
	r := connect(t, s.URL, nil)
	until(t, "the client is there", r.settled)
	m.mu.Lock()
	m.events = m.events[:40]
	m.mu.Unlock()
	until(t, "it was told to begin anew", func() bool {
		all := r.all()
		return all[len(all)-1].Type == "reset"
	})
	m.happen(2, "k", "")
	until(t, "it was told", func() bool { return len(r.ids()) >= 2 })
	inARow(t, r.ids(), 41, 42)
}

func TestABadRequestIsAnsweredWithAReason(t *testing.T) {
	_, s := open(t, &feedStore{}, feedsse.Config{})
	for query, want := range map[string]int{"?after=x": 400, "?after=-1": 400, "?group=nonsense": 400} {
		response, err := http.Get(s.URL + query)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != want || len(text) < 20 {
			t.Errorf("%s: %d %s", query, response.StatusCode, text)
		}
	}
	response, err := http.Post(s.URL, "text/plain", nil)
	if err != nil || response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("%v, %v", response, err)
	}
	if _, err := feedsse.New(onlyFeed{}, feedsse.Config{Listen: []string{"*"}}); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

type onlyFeed struct{ feedsse.Store }
