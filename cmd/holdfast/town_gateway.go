package main

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// A moody gateway is well, unwell, or away by turns. It listens twice: what jobs call, and a receiver of webhooks that is known by another address.
type moody struct {
	url, pager string
	servers    [2]*http.Server
	began      time.Time
	asked      atomic.Int64
	paged      atomic.Int64
}

func startMoody() (*moody, error) {
	m := &moody{began: time.Now()}
	for i, url := range []*string{&m.url, &m.pager} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			m.close()
			return nil, fmt.Errorf("the demo needs a port on loopback: %w", err)
		}
		*url = "http://" + listener.Addr().String()
		server := &http.Server{Handler: http.HandlerFunc(m.answer), ReadHeaderTimeout: 5 * time.Second}
		m.servers[i] = server
		go server.Serve(listener) //nolint:errcheck // ends with Close
	}
	return m, nil
}

func (m *moody) close() {
	for _, server := range m.servers {
		if server != nil {
			_ = server.Close()
		}
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
