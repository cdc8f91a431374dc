package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
)

// held is the heap and stack memory in use after a garbage collection.
func held() uint64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() + sample[1].Value.Uint64()
}

// peak samples the memory until stop is closed, and sends the maximum.
func peak(stop <-chan struct{}) <-chan uint64 {
	out := make(chan uint64, 1)
	go func() {
		var most uint64
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
		for {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64()+sample[1].Value.Uint64())
			select {
			case <-stop:
				out <- most
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return out
}

const memoryAbove = 64 << 20

func TestEndlessBodiesUseLittleMemoryAndBlockNoOther(t *testing.T) {
	s := newGateScene(t)
	idle := held()
	stop := make(chan struct{})
	most := peak(stop)
	var senders sync.WaitGroup
	var sent atomic.Int64
	for i := range 6 {
		senders.Go(func() {
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				return
			}
			defer conn.Close()
			path, who := "/v1/jobs", s.keys["admin"]
			if i%2 == 1 {
				who = "nobody"
			}
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", path, s.addr, who)
			chunk := "10000\r\n" + strings.Repeat("[", 1<<16) + "\r\n"
			for range 1 << 14 { // 1 GiB, if the server reads it all
				n, err := io.WriteString(conn, chunk)
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
			t.Error("somebody listened to 1 GiB")
		})
	}
	for range 20 {
		if a := s.ask("viewer", "GET", "/v1/jobs", ""); a.status != http.StatusOK {
			t.Error(a.status, a.body)
		}
	}
	senders.Wait()
	close(stop)
	if seen := <-most; seen > idle+memoryAbove {
		t.Errorf("%d MiB above idle, after %d MiB were sent", (seen-idle)>>20, sent.Load()>>20)
	}
}

func TestIdleConnectionsUseLittleMemoryAndBlockNoOther(t *testing.T) {
	s := newGateScene(t, func(c *Config) { c.Limits.Idle = 100 })
	idle := held()
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}()
	for i := range 400 {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		switch i % 3 {
		case 0: // sends nothing
		case 1:
			_, _ = io.WriteString(conn, "GET /v1/jobs HTTP/1.1\r\nHost: x\r\nX-A: ")
		case 2:
			fmt.Fprintf(conn, "POST /v1/jobs HTTP/1.1\r\nHost: %s\r\nContent-Length: 100000\r\n\r\n{", s.addr)
		}
		if i%20 == 0 {
			if a := s.ask("viewer", "GET", "/v1/jobs", ""); a.status != http.StatusOK {
				t.Fatal(i, a.status, a.body, a.err)
			}
		}
	}
	if now := held(); now > idle+memoryAbove {
		t.Errorf("%d MiB above idle", (now-idle)>>20)
	}
	// The oldest connection is closed, because newer ones came.
	_ = conns[0].SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := conns[0].Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Error("the connection that was silent longest is still open:", err)
	}
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error) //nolint:errorlint // it comes from the connection as it is
	return ok && timeout.Timeout()
}

func TestASlowBodyDoesNotCountAsARunningRequest(t *testing.T) {
	s := newGateScene(t, func(c *Config) { c.Limits = Limits{Running: 2, InFlight: 50} })
	for range 20 {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /v1/jobs HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 100000\r\n\r\n{", s.addr, s.keys["admin"])
	}
	eventually(t, "they are all under way", func() bool {
		q, ok := s.srv.quotas.Load(keyID(s.keys["admin"]))
		return ok && q.(*quota).running.Load() == 20
	})
	for _, who := range []string{"viewer", "admin"} {
		if a := s.ask(who, "GET", "/v1/jobs", ""); a.status != http.StatusOK {
			t.Error(who, a.status, a.body)
		}
	}
}

func TestOverloadLosesNoAcknowledgedJob(t *testing.T) {
	s := newGateScene(t, func(c *Config) { c.Limits = Limits{Running: 4, PerSecond: 1e6, InFlight: 1000} })
	var acknowledged sync.Map
	var good, away, other atomic.Int64
	end := time.Now().Add(3 * time.Second)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	defer client.CloseIdleConnections()
	var senders sync.WaitGroup
	for range 80 {
		senders.Go(func() {
			for time.Now().Before(end) {
				id := holdfast.NewID()
				r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.addr+"/v1/jobs", strings.NewReader(`{"kind":"mail","id":"`+id.String()+`"}`))
				r.Header.Set("Authorization", "Bearer "+s.keys["worker"])
				response, err := client.Do(r)
				if err != nil {
					other.Add(1)
					continue
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				switch {
				case response.StatusCode < 300:
					good.Add(1)
					acknowledged.Store(id, true)
				case response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "":
					away.Add(1)
				default:
					other.Add(1)
				}
			}
		})
	}
	senders.Wait()
	if good.Load() == 0 || other.Load() > 0 {
		t.Errorf("%d acknowledged, %d sent away, %d neither", good.Load(), away.Load(), other.Load())
	}
	acknowledged.Range(func(id, _ any) bool {
		if _, err := s.store.Job(t.Context(), id.(holdfast.ID)); err != nil {
			t.Errorf("%v was acknowledged: %v", id, err)
			return false
		}
		return true
	})
	t.Logf("%d acknowledged, %d sent away", good.Load(), away.Load())
}
