package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// A demoGateway is an unreliable HTTP server. It listens on several addresses: one that jobs call, one that receives webhooks, and one for each service.
type demoGateway struct {
	url, pager string
	services   map[string]string // addresses by name: each is a separate dependency
	servers    []*http.Server
	started    time.Time
	requests   atomic.Int64
	pages      atomic.Int64 // webhooks to the pager
}

// liveServices are the services that jobs of kind http call.
var liveServices = []string{"shop", "mailer", "billing", "search"}

func startDemoGateway() (*demoGateway, error) {
	g := &demoGateway{started: time.Now(), services: make(map[string]string)}
	var err error
	if g.url, err = g.listen(); err == nil {
		g.pager, err = g.listen()
	}
	for _, name := range liveServices {
		if err == nil {
			g.services[name], err = g.listen()
		}
	}
	if err != nil {
		g.close()
		return nil, fmt.Errorf("cannot listen on loopback for the demo: %w", err)
	}
	return g, nil
}

// listen starts to answer at another address.
func (g *demoGateway) listen() (url string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: http.HandlerFunc(g.answer), ReadHeaderTimeout: 5 * time.Second}
	g.servers = append(g.servers, server)
	go server.Serve(listener) //nolint:errcheck // ends with Close
	return "http://" + listener.Addr().String(), nil
}

// dependencies returns the names of the services in the format of the setting http-dependencies.
func (g *demoGateway) dependencies() string {
	var all []string
	for name, url := range g.services {
		all = append(all, strings.TrimPrefix(url, "http://")+"="+name)
	}
	return strings.Join(all, ",")
}

func (g *demoGateway) close() {
	for _, server := range g.servers {
		_ = server.Close()
	}
}

// answer answers by path. /outage fails for the first forty seconds of every eighty.
func (g *demoGateway) answer(w http.ResponseWriter, r *http.Request) {
	n := g.requests.Add(1)
	status := http.StatusOK
	switch r.URL.Path {
	case "/broken":
		status = http.StatusInternalServerError
	case "/missing":
		status = http.StatusNotFound
	case "/flaky":
		if n%5 == 0 {
			status = http.StatusBadGateway
		}
	case "/busy":
		if n%4 == 0 {
			w.Header().Set("Retry-After", "3")
			status = http.StatusTooManyRequests
		}
	case "/outage":
		if time.Since(g.started)%(80*time.Second) < 40*time.Second {
			status = http.StatusServiceUnavailable
		}
	case "/hooks/pager":
		if g.pages.Add(1)%5 == 2 {
			status = http.StatusInternalServerError
		}
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, "%s after %d requests\n", http.StatusText(status), n)
}
