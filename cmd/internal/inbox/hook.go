package inbox

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// A Call is a webhook that arrived and whose signature is right.
type Call struct {
	ID      string // the same however often it is sent
	Type    string // of the CloudEvent in it
	Subject string
	Body    []byte
	At      time.Time
}

// A Hook receives webhooks and refuses those that were not signed with its secret.
type Hook struct {
	URL string

	verify *standardwebhooks.Webhook
	server *http.Server
	mu     sync.Mutex
	calls  []Call
	forged int
}

// OpenHook starts a receiver on a free port of loopback.
func OpenHook(secret string) (*Hook, error) {
	verify, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("a receiver needs a port on loopback: %w", err)
	}
	h := &Hook{URL: "http://" + listener.Addr().String() + "/hook", verify: verify}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook", h.receive)
	h.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go h.server.Serve(listener) //nolint:errcheck // ends with Close
	return h, nil
}

func (h *Hook) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.verify.Verify(body, r.Header); err != nil {
		h.forged++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var event struct{ Type, Subject string }
	_ = json.Unmarshal(body, &event) // what cannot be read has no type
	h.calls = append(h.calls, Call{ID: r.Header.Get(standardwebhooks.HeaderWebhookID), Type: event.Type, Subject: event.Subject, Body: body, At: time.Now()})
	w.WriteHeader(http.StatusNoContent)
}

// Calls are those that arrived so far, the oldest first.
func (h *Hook) Calls() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Call(nil), h.calls...)
}

// Forged counts what was refused because its signature was wrong.
func (h *Hook) Forged() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.forged
}

// Close ends the receiver.
func (h *Hook) Close() error { return h.server.Close() }
