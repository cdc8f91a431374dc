package main

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A gateway is an HTTP server on loopback that fails in scripted ways. Each document has a script: the answers to its first, second, ... request.
type gateway struct {
	server *http.Server
	url    string

	mu     sync.Mutex
	seen   map[string]int
	healed bool
	down   bool // the renderer answers 503
	font   bool // the missing font is installed
	ink    bool // the missing ink is in stock
}

// missingFont is a font that some pages need and the renderer does not have at first.
const missingFont = "baskerville"

// missingInk is an ink that some cards need and that is not in stock at first.
const missingInk = "gold"

// An answer is the scripted answer to one request.
type answer struct {
	status     int
	retryAfter int           // seconds
	stall      time.Duration // delay before the answer
}

// Scripts by document. The last answer repeats. A document without a script is converted at its first request.
var gatewayScripts = map[string][]answer{
	"flaky.pdf":     {{status: 502}, {status: 502}, {status: 200}},
	"busy.pdf":      {{status: 429, retryAfter: 4}, {status: 200}},
	"slow.pdf":      {{status: 200, stall: 20 * time.Second}, {status: 200}},
	"not-a-pdf.txt": {{status: 415}},
	"cursed.pdf":    {{status: 503}},
}

func startGateway() (*gateway, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen on loopback for the demo: %w", err)
	}
	g := &gateway{url: "http://" + listener.Addr().String(), seen: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /convert/{document}", g.convert)
	mux.HandleFunc("POST /render", g.render)
	mux.HandleFunc("POST /print", g.print)
	g.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go g.server.Serve(listener) //nolint:errcheck // ends with Close
	return g, nil
}

func (g *gateway) close() { _ = g.server.Close() }

// heal ends the scripts: every document is converted from now on.
func (g *gateway) heal() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.healed = true
}

// breakRenderer takes the renderer down, or up again.
func (g *gateway) breakRenderer(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
}

func (g *gateway) installFont() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.font = true
}

func (g *gateway) deliverInk() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ink = true
}

// print prints a card, if its ink is in stock.
func (g *gateway) print(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	ink := g.ink
	g.mu.Unlock()
	time.Sleep(100 * time.Millisecond)
	if r.URL.Query().Get("ink") == missingInk && !ink {
		w.WriteHeader(http.StatusUnprocessableEntity)
	}
}

// render draws a page, if its font is installed.
func (g *gateway) render(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	down, font := g.down, g.font
	g.mu.Unlock()
	time.Sleep(150 * time.Millisecond)
	switch {
	case down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Query().Get("font") == missingFont && !font:
		w.WriteHeader(http.StatusUnprocessableEntity)
	}
}

func (g *gateway) convert(w http.ResponseWriter, r *http.Request) {
	a := g.next(r.PathValue("document"))
	select {
	case <-time.After(a.stall):
	case <-r.Context().Done():
		return
	}
	if a.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(a.retryAfter))
	}
	w.WriteHeader(a.status)
	fmt.Fprintf(w, "<document name=%q/>", r.PathValue("document"))
}

func (g *gateway) next(document string) answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	script := gatewayScripts[document]
	if g.healed || len(script) == 0 {
		return answer{status: http.StatusOK, stall: 150 * time.Millisecond}
	}
	n := min(g.seen[document], len(script)-1)
	g.seen[document]++
	return script[n]
}
