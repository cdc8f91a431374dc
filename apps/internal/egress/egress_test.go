package egress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/egress"
	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// A scene is a proxy that may call 127.0.0.1, which stands for a public address: other loopback addresses stay private. Names resolve as the test says.
type scene struct {
	*testing.T
	proxy  *egress.Proxy
	client *egress.Client
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

func open(t *testing.T, limits egress.Limits) *scene {
	t.Helper()
	s := &scene{T: t}
	guard, err := safehttp.New(safehttp.Config{
		AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		Lookup: func(ctx context.Context, host string) ([]netip.Addr, error) { return s.lookup(ctx, host) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.proxy, err = egress.Listen(egress.Config{Guard: guard, Resolve: 200 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.proxy.Close)
	s.resolves("127.0.0.1")
	s.client = s.proxy.Open(limits)
	return s
}

func (s *scene) resolves(addresses ...string) {
	s.lookup = func(context.Context, string) (found []netip.Addr, err error) {
		for _, a := range addresses {
			found = append(found, netip.MustParseAddr(a))
		}
		return found, nil
	}
}

// http returns an HTTP client behind the proxy.
func (s *scene) http() *http.Client {
	to := &url.URL{Scheme: "http", Host: s.proxy.Address(), User: url.UserPassword(s.client.User, s.client.Password)}
	transport := &http.Transport{Proxy: http.ProxyURL(to)}
	s.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

func (s *scene) get(address string) (string, error) {
	answer, err := s.http().Get(address)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// connect asks the proxy for a tunnel, and returns it with the status of the answer.
func (s *scene) connect(host string) (net.Conn, int) {
	s.Helper()
	conn, err := net.Dial("tcp", s.proxy.Address())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: host}, Host: host, Header: http.Header{}}
	auth := &http.Request{Header: http.Header{}}
	auth.SetBasicAuth(s.client.User, s.client.Password)
	ask.Header.Set("Proxy-Authorization", auth.Header.Get("Authorization"))
	if err := ask.Write(conn); err != nil {
		s.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), ask)
	if err != nil {
		s.Fatal(err)
	}
	return conn, answer.StatusCode
}

func serve(t *testing.T, handler http.HandlerFunc) (address, port string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	_, port, _ = net.SplitHostPort(server.Listener.Addr().String())
	return server.URL, port
}

func TestRequestsAndTunnelsReachTheirTarget(t *testing.T) {
	s := open(t, egress.Limits{})
	_, port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %q %q", r.Host, r.URL.Path, r.Header.Get("Proxy-Authorization"), r.Header.Get("X-Forwarded-For"))
	})
	if got, err := s.get("http://target.example:" + port + "/path"); err != nil || got != `target.example:`+port+` /path "" ""` {
		t.Error(got, err)
	}
	conn, status := s.connect("target.example:" + port)
	if status != http.StatusOK {
		t.Fatal(status)
	}
	fmt.Fprint(conn, "GET /tunnel HTTP/1.0\r\n\r\n")
	if got, err := io.ReadAll(conn); err != nil || !strings.Contains(string(got), "/tunnel") {
		t.Errorf("%q %v", got, err)
	}
	if r := s.client.Report(); r.Connections != 2 || r.Bytes == 0 || r.Refused != 0 {
		t.Errorf("%+v", r)
	}
}

func TestWithoutTheCredentialNothingIsConnected(t *testing.T) {
	s := open(t, egress.Limits{})
	_, port := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the target was called") })
	other := s.proxy.Open(egress.Limits{})
	good := s.client
	for _, bad := range []struct{ user, password string }{{"", ""}, {good.User, ""}, {good.User, other.Password}, {other.User, good.Password}, {"x", "y"}} {
		s.client = &egress.Client{User: bad.user, Password: bad.password}
		answer, err := s.http().Get("http://target.example:" + port + "/")
		if err != nil || answer.StatusCode != http.StatusProxyAuthRequired || answer.Header.Get("Proxy-Authenticate") == "" {
			t.Error(answer, err)
		}
		if _, status := s.connect("target.example:" + port); status != http.StatusProxyAuthRequired {
			t.Errorf("a tunnel: %d", status)
		}
	}
	s.client = other
	other.Close()
	if _, status := s.connect("target.example:" + port); status != http.StatusProxyAuthRequired {
		t.Errorf("a closed credential: %d", status)
	}
}

func TestPrivateAddressesAreRefusedInEverySpelling(t *testing.T) {
	s := open(t, egress.Limits{})
	for _, host := range []string{
		"127.0.0.2", "[::1]", "[::ffff:127.0.0.2]", "169.254.169.254", "10.0.0.1", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "224.0.0.1", "0x7f.2", "2130706434", "0.0.0.0", "[fe80::1]",
	} {
		if _, status := s.connect(host + ":80"); status != http.StatusBadGateway {
			t.Errorf("CONNECT %s: %d", host, status)
		}
		if got, err := s.get("http://" + host + "/"); err == nil {
			t.Errorf("GET %s: %q", host, got)
		}
		if reason := s.client.Report().Of(host + ":80"); reason != egress.Blocked {
			t.Errorf("%s: %q", host, reason)
		}
	}
	for _, private := range []string{"127.0.0.2", "::1", "169.254.169.254", "64:ff9b::a9fe:a9fe"} {
		name := "name-of-" + strings.NewReplacer(":", "-", ".", "-").Replace(private) + ".example:443"
		s.resolves(private)
		if _, status := s.connect(name); status != http.StatusBadGateway || s.client.Report().Of(name) != egress.Blocked {
			t.Errorf("%s: %d, %+v", name, status, s.client.Report())
		}
	}
}

func TestANameKeepsItsFirstAddresses(t *testing.T) {
	s := open(t, egress.Limits{})
	var asked, private atomic.Int64
	_, port := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	listener, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err == nil { // systems without this address have nothing that could be reached
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				if _, err := listener.Accept(); err != nil {
					return
				}
				private.Add(1)
			}
		}()
	}
	s.lookup = func(context.Context, string) ([]netip.Addr, error) {
		if asked.Add(1) == 1 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
	}
	for range 5 {
		if _, err := s.get("http://rebinds.example:" + port + "/"); err != nil {
			t.Error(err)
		}
	}
	if asked.Load() != 1 || private.Load() != 0 {
		t.Errorf("the resolver was asked %d times, the private address was reached %d times", asked.Load(), private.Load())
	}
	s.client = s.proxy.Open(egress.Limits{})
	if _, err := s.get("http://rebinds.example:" + port + "/"); err == nil || s.client.Report().Of("rebinds.example:"+port) != egress.Blocked {
		t.Errorf("the next credential: %v, %+v", err, s.client.Report())
	}
}

func TestEachFailureHasItsReason(t *testing.T) {
	s := open(t, egress.Limits{Deny: func(host string) bool { return host == "ads.example" }})
	closed := httptest.NewServer(nil)
	_, port, _ := net.SplitHostPort(closed.Listener.Addr().String())
	closed.Close()
	s.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
		switch host {
		case "hangs.example":
			<-ctx.Done()
			return nil, ctx.Err()
		case "unknown.example":
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		case "broken.example":
			return nil, &net.DNSError{Err: "server misbehaving", Name: host}
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	for host, reason := range map[string]egress.Reason{
		"hangs.example:443": egress.ResolveTimeout, "unknown.example:443": egress.NoSuchName, "broken.example:443": egress.ResolveFailed,
		"closed.example:" + port: egress.ConnectFailed, "ads.example:443": egress.Denied, "ADS.example.:443": egress.Denied,
	} {
		if _, status := s.connect(host); status != http.StatusBadGateway || s.client.Report().Of(host) != reason {
			t.Errorf("%s: %d, %+v", host, status, s.client.Report())
		}
	}
	if r := s.client.Report(); r.Refused != 6 || r.Count(egress.Denied) != 2 || r.Connections != 1 {
		t.Errorf("%+v", r)
	}
}

func TestTheLimitsOfACredentialHold(t *testing.T) {
	endless, port := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	t.Run("bytes", func(t *testing.T) {
		s := open(t, egress.Limits{Bytes: 1 << 20})
		if got, err := s.get(endless); err == nil || len(got) > 2<<20 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if _, status := s.connect("more.example:" + port); status != http.StatusBadGateway || s.client.Report().Count(egress.TooLarge) == 0 {
			t.Errorf("%d, %+v", status, s.client.Report())
		}
	})
	t.Run("open connections", func(t *testing.T) {
		s := open(t, egress.Limits{Open: 3})
		for n := range 5 {
			if _, status := s.connect("target.example:" + port); (status == http.StatusOK) != (n < 3) {
				t.Errorf("connection %d: %d", n, status)
			}
		}
		if r := s.client.Report(); r.Count(egress.TooMany) != 2 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("names", func(t *testing.T) {
		s := open(t, egress.Limits{Names: 2})
		for n := range 4 {
			if _, status := s.connect(fmt.Sprintf("%d.example:%s", n, port)); (status == http.StatusOK) != (n < 2) {
				t.Errorf("name %d: %d", n, status)
			}
		}
	})
}

func TestClosingACredentialEndsItsConnections(t *testing.T) {
	s := open(t, egress.Limits{})
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	address, port := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-hold:
		}
	})
	tunnel, status := s.connect("target.example:" + port)
	if status != http.StatusOK {
		t.Fatal(status)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.get(address)
		ended <- err
	}()
	for s.client.Report().Connections < 2 {
		select {
		case err := <-ended:
			t.Fatalf("it ended early: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	s.client.Close()
	if err := <-ended; err == nil {
		t.Error("a request was answered")
	}
	if _, err := tunnel.Read(make([]byte, 1)); err == nil {
		t.Error("the tunnel is still open")
	}
}

func TestALocalPageIsServedWithoutANetwork(t *testing.T) {
	s := open(t, egress.Limits{LocalHost: "page.invalid", Local: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "local ", r.URL.Path) })})
	s.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		return nil, fmt.Errorf("%s was resolved", host)
	}
	if got, err := s.get("http://page.invalid/a"); err != nil || got != "local /a" {
		t.Error(got, err)
	}
	if r := s.client.Report(); r.Connections != 0 || r.Refused != 0 {
		t.Errorf("%+v", r)
	}
}
