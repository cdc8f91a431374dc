package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A script is a gateway that the test controls. It is the transport of the apps in a scene too, so that it can refuse connections.
type script struct {
	url   string
	inner http.RoundTripper // to a real server, or nil: the handler is called without a network

	mu       sync.Mutex
	answer   func(n int, w http.ResponseWriter, r *http.Request)
	down     bool // it refuses connections
	sick     bool // /healthz says no
	asked    []asked
	healths  int
	released chan struct{} // closed when the scene ends: waiting requests return
	once     sync.Once
}

// asked is one conversion request to the gateway.
type asked struct {
	at      time.Time
	key     string // the Idempotency-Key: the job
	mapping string
	body    []byte
}

// newScript starts a gateway that listens on this machine, and answers every PDF with a small XML until the test changes that.
func newScript(t testing.TB) *script {
	g := newBubbleScript()
	server := httptest.NewServer(g)
	g.url, g.inner = server.URL, server.Client().Transport
	t.Cleanup(func() {
		g.release()
		server.Close()
	})
	return g
}

// newBubbleScript returns a gateway that is called without a network, for scenarios in virtual time.
func newBubbleScript() *script {
	return &script{url: "http://gateway.invalid", answer: convertsIt, released: make(chan struct{})}
}

// does sets the answer to the n-th conversion from now on, counted from 1.
func (g *script) does(answer func(n int, w http.ResponseWriter, r *http.Request)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer, g.asked = answer, nil
}

// says sets the answer to every conversion from now on. Headers come in pairs.
func (g *script) says(status int, body string, headers ...string) {
	g.does(func(_ int, w http.ResponseWriter, _ *http.Request) { speak(w, status, body, headers...) })
}

// converts makes every conversion succeed from now on.
func (g *script) converts() { g.does(convertsIt) }

// hangs makes every conversion wait until the caller is gone, or the scene ends.
func (g *script) hangs() {
	g.does(func(_ int, _ http.ResponseWriter, r *http.Request) { g.wait(r) })
}

// wait waits until the caller is gone, or the scene ends.
func (g *script) wait(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-g.released:
	}
}

// stops makes it refuse connections; starts makes it accept them again.
func (g *script) stops() { g.set(func() { g.down = true }) }

func (g *script) starts() { g.set(func() { g.down = false }) }

// health sets the answer of /healthz.
func (g *script) health(well bool) { g.set(func() { g.sick = !well }) }

func (g *script) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

func (g *script) release() { g.once.Do(func() { close(g.released) }) }

// calls are the conversions it was asked for since the test last changed its behaviour.
func (g *script) calls() []asked {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]asked(nil), g.asked...)
}

func speak(w http.ResponseWriter, status int, body string, headers ...string) {
	for i := 0; i+1 < len(headers); i += 2 {
		w.Header().Set(headers[i], headers[i+1])
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// xmlOf returns the XML of the scripted gateway for a PDF.
func xmlOf(mapping string, size int) string {
	return fmt.Sprintf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<document mapping=%q bytes=\"%d\"><page>Hello</page></document>\n", mapping, size)
}

func convertsIt(_ int, w http.ResponseWriter, r *http.Request) {
	pdf, _ := io.ReadAll(r.Body)
	speak(w, http.StatusOK, xmlOf(r.URL.Query().Get("mapping"), len(pdf)), "Content-Type", "application/xml")
}

// ServeHTTP is the gateway.
func (g *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	sick, answer := g.sick, g.answer
	g.mu.Unlock()
	switch r.URL.Path {
	case "/healthz":
		g.set(func() { g.healths++ })
		if sick {
			speak(w, http.StatusServiceUnavailable, "not well")
			return
		}
		speak(w, http.StatusOK, `{"status":"ok"}`)
	case "/mappings":
		speak(w, http.StatusOK, `{"mappings":[{"name":"text","title":"Text"},{"name":"layout","title":"Layout"},{"name":"fields","title":"Fields"}]}`, "Content-Type", "application/json")
	case "/convert":
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		g.mu.Lock()
		g.asked = append(g.asked, asked{at: time.Now(), key: r.Header.Get("Idempotency-Key"), mapping: r.URL.Query().Get("mapping"), body: body})
		n := len(g.asked)
		g.mu.Unlock()
		answer(n, w, r)
	default:
		http.NotFound(w, r)
	}
}

// RoundTrip carries a request to the gateway, unless it refuses connections.
func (g *script) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	down := g.down
	g.mu.Unlock()
	if down {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if g.inner != nil {
		return g.inner.RoundTrip(r)
	}
	return g.carry(r)
}

// carry calls the handler without a network. As on a network, the beginning of an answer arrives before its end, and a panic of the handler cuts it off.
func (g *script) carry(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	served := r.Clone(ctx)
	if served.Body == nil {
		served.Body = http.NoBody
	}
	body, to := io.Pipe()
	w := &wire{header: http.Header{}, began: make(chan struct{}), to: to}
	go func() {
		defer cancel()
		defer served.Body.Close()
		defer func() {
			if recover() != nil {
				_ = to.CloseWithError(io.ErrUnexpectedEOF)
				w.begin(0)
				return
			}
			w.begin(http.StatusOK)
			_ = to.Close()
		}()
		g.ServeHTTP(w, served)
	}()
	stop := context.AfterFunc(r.Context(), func() { _ = to.CloseWithError(r.Context().Err()) })
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-w.began:
	}
	if w.status == 0 {
		stop()
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.sent, Request: r, ContentLength: -1,
		Body: struct {
			io.Reader
			io.Closer
		}{body, closer(func() error { stop(); cancel(); return body.Close() })},
	}, nil
}

type closer func() error

// Close calls it.
func (c closer) Close() error { return c() }

// A wire is the gateway's end of an answer without a network.
type wire struct {
	header, sent http.Header
	status       int
	once         sync.Once
	began        chan struct{}
	to           *io.PipeWriter
}

func (w *wire) begin(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.began)
	})
}

// Header is what will be sent.
func (w *wire) Header() http.Header { return w.header }

// WriteHeader sends it.
func (w *wire) WriteHeader(status int) { w.begin(status) }

// Write sends a piece of the body.
func (w *wire) Write(text []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.to.Write(text)
}
