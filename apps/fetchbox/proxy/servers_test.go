package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A testProxy is a proxy that records what it is asked for.
type testProxy struct {
	address string // host:port

	mu    sync.Mutex
	asked []string
}

func (p *testProxy) record(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, target)
}

func (p *testProxy) targets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

// httpProxy starts an HTTP proxy, encrypted if certificate is set, that wants credentials if they are not empty.
func httpProxy(t *testing.T, credentials string, certificate *tls.Certificate) *testProxy {
	t.Helper()
	p := &testProxy{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if credentials != "" && r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte(credentials)) {
			w.Header().Set("Proxy-Authenticate", "Basic")
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		p.record(r.Method + " " + r.RequestURI)
		if r.Method != http.MethodConnect {
			forward(w, r)
			return
		}
		to, err := dialTest(r.Context(), "tcp", r.RequestURI)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		from, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		join(from, to)
	}))
	if certificate != nil {
		server.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}}
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	p.address = server.Listener.Addr().String()
	return p
}

func forward(w http.ResponseWriter, r *http.Request) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, r.RequestURI, nil)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	transport := &http.Transport{DialContext: dialTest, DisableKeepAlives: true}
	answer, err := transport.RoundTrip(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	w.Header().Set("Location", answer.Header.Get("Location"))
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}

// dialTest connects to an address. To the proxies of the tests, all names that end in .test are names of this machine.
func dialTest(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err == nil && strings.HasSuffix(host, ".test") {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// join copies in both directions until both are closed.
func join(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	both.Wait()
}

// listen serves each connection with a function.
func listen(t *testing.T, serve func(conn net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				serve(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// socksProxy starts a SOCKS5 proxy. A reply other than 0 is given to every request.
func socksProxy(t *testing.T, user, password string, reply byte) *testProxy {
	t.Helper()
	p := &testProxy{}
	p.address = listen(t, func(conn net.Conn) {
		from := bufio.NewReader(conn)
		if !greet(from, conn, user, password) {
			return
		}
		target, ok := readTarget(from)
		if !ok {
			return
		}
		p.record(target)
		to, err := dialTest(t.Context(), "tcp", target)
		if reply == 0 && err != nil {
			reply = 5
		}
		_, _ = conn.Write([]byte{5, reply, 0, 1, 0, 0, 0, 0, 0, 0})
		if reply == 0 {
			join(conn, to)
		}
	})
	return p
}

func greet(from *bufio.Reader, to io.Writer, user, password string) bool {
	head, ok := take(from, 2)
	if !ok {
		return false
	}
	if _, ok := take(from, int(head[1])); !ok {
		return false
	}
	if user == "" {
		_, _ = to.Write([]byte{5, 0})
		return true
	}
	_, _ = to.Write([]byte{5, 2})
	_, _ = take(from, 1)
	name, password2 := takeText(from), takeText(from)
	status := byte(0)
	if name != user || password2 != password {
		status = 1
	}
	_, _ = to.Write([]byte{1, status})
	return status == 0
}

func take(from io.Reader, n int) ([]byte, bool) {
	bytes := make([]byte, n)
	_, err := io.ReadFull(from, bytes)
	return bytes, err == nil
}

func takeText(from io.Reader) string {
	size, _ := take(from, 1)
	text, _ := take(from, int(size[0]))
	return string(text)
}

func readTarget(from io.Reader) (string, bool) {
	head, ok := take(from, 4)
	if !ok {
		return "", false
	}
	var host string
	switch head[3] {
	case 1, 4:
		ip, _ := take(from, map[byte]int{1: 4, 4: 16}[head[3]])
		host = net.IP(ip).String()
	default:
		host = takeText(from)
	}
	port, ok := take(from, 2)
	return net.JoinHostPort(host, strconv.Itoa(int(port[0])<<8|int(port[1]))), ok
}
