package sse_test

import (
	"bufio"
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A received is a server-sent event as a client dispatches it.
type received struct{ Type, LastEventID, Data string }

// A reader is a client that records the events it gets. The tests in internal/interop follow a feed with an independent client.
type reader struct {
	t     *testing.T
	last  string        // id of the last event, which the next connection sends
	retry time.Duration // how long to wait before the next connection

	mu     sync.Mutex
	events []received
}

func (r *reader) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.events...)
}

// ids are the numbers of the events of the feed, in the order of arrival.
func (r *reader) ids() (ids []string) {
	for _, e := range r.all() {
		if e.Type != "position" && e.Type != "reset" {
			ids = append(ids, e.LastEventID)
		}
	}
	return ids
}

// settled reports whether the client has received its position.
func (r *reader) settled() bool { return len(r.all()) > 0 }

// connect follows a feed until the test ends, and reconnects whenever the connection is lost, as a browser does.
func connect(t *testing.T, url string, header map[string]string) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	client := &http.Client{Transport: &http.Transport{}}
	r := &reader{t: t, last: header["Last-Event-ID"], retry: time.Millisecond}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			r.follow(ctx, client, url, header)
			select {
			case <-ctx.Done():
			case <-time.After(r.retry):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended; client.CloseIdleConnections() })
	return r
}

// follow reads one connection to its end.
func (r *reader) follow(ctx context.Context, client *http.Client, url string, header map[string]string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		r.t.Error(err)
		return
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	if r.last != "" {
		request.Header.Set("Last-Event-ID", r.last)
	}
	answer, err := client.Do(request)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		r.t.Errorf("the feed answered %s", answer.Status)
		return
	}
	var event received
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		event = r.line(event, lines.Text())
	}
}

// line adds a line to an event. An empty line dispatches the event; what follows the last empty line of a connection is dropped.
func (r *reader) line(event received, line string) received {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "id":
		event.LastEventID = value
	case "event":
		event.Type = value
	case "data":
		event.Data += value + "\n"
	case "retry":
		milliseconds, err := strconv.Atoi(value)
		if err != nil {
			r.t.Errorf("%q: %v", line, err)
		}
		r.retry = time.Duration(milliseconds) * time.Millisecond
	case "":
		if line != "" || event.Data == "" { // a comment, or the end of one
			return event
		}
		event.Data = strings.TrimSuffix(event.Data, "\n")
		r.last = event.LastEventID
		r.mu.Lock()
		r.events = append(r.events, event)
		r.mu.Unlock()
		return received{LastEventID: event.LastEventID}
	default:
		r.t.Errorf("the line %q is in no event stream", line)
	}
	return event
}
