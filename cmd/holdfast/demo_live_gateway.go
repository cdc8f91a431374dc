package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// A moody gateway is well, unwell, or away by turns. It listens several times: what jobs call, a receiver of webhooks, and one address for each service of the town.
type moody struct {
	url, pager string
	services   map[string]string // addresses by name: each is a dependency of its own
	servers    []*http.Server
	began      time.Time
	asked      atomic.Int64
	paged      atomic.Int64
}

// townServices are what jobs of kind http call.
var townServices = []string{"shop", "mailer", "billing", "search"}

func startMoody() (*moody, error) {
	m := &moody{began: time.Now(), services: make(map[string]string)}
	var err error
	if m.url, err = m.listen(); err == nil {
		m.pager, err = m.listen()
	}
	for _, name := range townServices {
		if err == nil {
			m.services[name], err = m.listen()
		}
	}
	if err != nil {
		m.close()
		return nil, fmt.Errorf("the demo needs a port on loopback: %w", err)
	}
	return m, nil
}

// listen answers at one more address.
func (m *moody) listen() (url string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: http.HandlerFunc(m.answer), ReadHeaderTimeout: 5 * time.Second}
	m.servers = append(m.servers, server)
	go server.Serve(listener) //nolint:errcheck // ends with Close
	return "http://" + listener.Addr().String(), nil
}

// dependencies are the names of the services, as the setting http-dependencies wants them.
func (m *moody) dependencies() string {
	var all []string
	for name, url := range m.services {
		all = append(all, strings.TrimPrefix(url, "http://")+"="+name)
	}
	return strings.Join(all, ",")
}

func (m *moody) close() {
	for _, server := range m.servers {
		_ = server.Close()
	}
}

// answer answers by the path. The tides are out for the first forty seconds of every eighty.
func (m *moody) answer(w http.ResponseWriter, r *http.Request) {
	n := m.asked.Add(1)
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
	case "/tides":
		if time.Since(m.began)%(80*time.Second) < 40*time.Second {
			status = http.StatusServiceUnavailable
		}
	case "/hooks/pager":
		if m.paged.Add(1)%5 == 2 {
			status = http.StatusInternalServerError
		}
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, "%s after %d requests\n", http.StatusText(status), n)
}
