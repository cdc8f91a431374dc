package proxy

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/internal/testprograms"
)

// A network is two sources, one of them encrypted, and pools of proxies. Names end in .test and lead to this machine, those in .private.test to a private network.
type network struct {
	*testing.T
	plain, secure *httptest.Server
	roots         *x509.CertPool
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{T: t, roots: x509.NewCertPool()}
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = fmt.Fprint(w, "resource of "+r.Host)
	})
	n.plain, n.secure = httptest.NewServer(answer), httptest.NewTLSServer(answer)
	n.roots.AddCert(n.secure.Certificate())
	t.Cleanup(func() {
		n.plain.Close()
		n.secure.Close()
	})
	return n
}

func (n *network) pools(members ...Member) *Pools {
	n.Helper()
	lookup := func(_ context.Context, host string) ([]netip.Addr, error) {
		switch {
		case strings.HasSuffix(host, ".private.test"):
			return []netip.Addr{netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("fd00::1")}, nil
		case strings.HasSuffix(host, ".test"), host == "example.com": // the name in the certificates of httptest
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	p, err := New(Config{
		Pools:   map[string][]Member{"p": members},
		Network: safehttp.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, AnyPort: true, Lookup: lookup},
		Roots:   n.roots, ConnectTimeout: 2 * time.Second, HeaderTimeout: 5 * time.Second,
	})
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(p.Close)
	return p
}

// at returns a URL of a source under another host name.
func at(server *httptest.Server, host, path string) string {
	u, _ := url.Parse(server.URL)
	return u.Scheme + "://" + net.JoinHostPort(host, u.Port()) + path
}

// download requests a URL through the first proxy of the pool.
func download(t *testing.T, p *Pools, address string) (string, error) {
	t.Helper()
	return downloadThrough(t, p, "p", address)
}

func downloadThrough(t *testing.T, p *Pools, pool, address string) (text string, err error) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	route, err := p.Pick(Want{Pool: pool, Host: u.Host})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { route.End(Outcome{Err: err, Answered: err == nil}) }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := p.Guard().Via(route).Do(request, 5)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("HTTP %d", answer.StatusCode)
	}
	return string(body), err
}

func TestEachKindOfProxyReachesBothKindsOfSources(t *testing.T) {
	n := newNetwork(t)
	certificate := n.secure.TLS.Certificates[0]
	for name, kind := range map[string]struct {
		proxy  *testProxy
		scheme string
		user   string
	}{
		"http":                        {httpProxy(t, "", nil), "http", ""},
		"http with credentials":       {httpProxy(t, "ada:sec:ret", nil), "http", "ada:sec:ret@"},
		"https":                       {httpProxy(t, "", &certificate), "https", ""},
		"https with credentials":      {httpProxy(t, "ada:s", &certificate), "https", "ada:s@"},
		"socks5":                      {socksProxy(t, "", "", 0), "socks5", ""},
		"socks5 with credentials":     {socksProxy(t, "ada", "secret", 0), "socks5", "ada:secret@"},
		"socks5, credentials unasked": {socksProxy(t, "", "", 0), "socks5", "ada:secret@"},
	} {
		t.Run(name, func(t *testing.T) {
			p := n.pools(Member{URL: kind.scheme + "://" + kind.user + kind.proxy.address})
			for range 2 { // the second time on a kept connection
				for _, source := range []string{at(n.plain, "source.test", "/a"), at(n.secure, "example.com", "/a")} {
					if text, err := download(t, p, source); err != nil || !strings.HasPrefix(text, "resource of ") {
						t.Errorf("%s: %q, %v", source, text, err)
					}
				}
			}
			for _, target := range kind.proxy.targets() {
				plain := strings.HasPrefix(target, "GET http://source.test:") && kind.scheme != "socks5"
				if !plain && !strings.Contains(target, "127.0.0.1:") {
					t.Errorf("the proxy was asked for a name: %s", target)
				}
			}
			if len(kind.proxy.targets()) == 0 {
				t.Error("the proxy was not used")
			}
		})
	}
}

func TestAProxyGetsANameOnlyWhenItIsToResolveNames(t *testing.T) {
	n := newNetwork(t)
	socks := socksProxy(t, "", "", 0)
	p := n.pools(Member{URL: "socks5://" + socks.address, RemoteNames: true})
	if _, err := download(t, p, at(n.plain, "localhost.test", "/")); err != nil {
		t.Error(err)
	}
	if got := socks.targets(); len(got) != 1 || !strings.HasPrefix(got[0], "localhost.test:") {
		t.Errorf("%v", got)
	}
}

func TestAProxyIsNeverAskedForAPrivateAddress(t *testing.T) {
	n := newNetwork(t)
	web, socks := httpProxy(t, "", nil), socksProxy(t, "", "", 0)
	for _, proxyURL := range []string{"http://" + web.address, "socks5://" + socks.address} {
		for _, remote := range []bool{false, true} {
			p := n.pools(Member{URL: proxyURL, RemoteNames: remote})
			for _, host := range []string{"db.private.test", "10.0.0.9", "[::ffff:10.0.0.9]", "169.254.169.254", "[::1]", "127.0.0.2", "2130706433", "0x7f.1"} {
				n.isRefused(p, "http://"+host+":8080/")
				n.isRefused(p, "https://"+host+":8080/")
			}
		}
	}
	for _, target := range append(web.targets(), socks.targets()...) {
		if strings.Contains(target, ":8080") {
			t.Errorf("a proxy was asked for %s", target)
		}
	}
}

// isRefused checks that an address is called neither at once nor after a redirect.
func (n *network) isRefused(p *Pools, address string) {
	n.Helper()
	if _, err := download(n.T, p, address); !errors.Is(err, safehttp.ErrBlocked) {
		n.Errorf("%s through %s: %v", address, p.Status()[1].Address, err)
	}
	if _, err := download(n.T, p, at(n.plain, "source.test", "/?to="+url.QueryEscape(address))); !errors.Is(err, safehttp.ErrBlocked) {
		n.Errorf("a redirect to %s through %s: %v", address, p.Status()[1].Address, err)
	}
}

func TestFailuresOfProxiesAreDistinguished(t *testing.T) {
	n := newNetwork(t)
	status := func(code int, header string) string {
		return listen(t, func(conn net.Conn) {
			_, _ = io.WriteString(conn, fmt.Sprintf("HTTP/1.1 %d X\r\n%sContent-Length: 0\r\n\r\n", code, header))
			buffer := make([]byte, 1024)
			_, _ = conn.Read(buffer)
		})
	}
	dead := listen(t, func(net.Conn) {})
	silent := listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	for name, c := range map[string]struct {
		proxy  string
		status int
		wait   time.Duration
		either bool
	}{
		"no proxy":                {"http://127.0.0.1:1", 0, 0, false},
		"closes":                  {"http://" + dead, 0, 0, false},
		"silent":                  {"http://" + silent, 0, 0, false},
		"407":                     {"http://" + status(407, ""), 407, 0, false},
		"wrong credentials":       {"http://ada:wrong@" + httpProxy(t, "ada:right", nil).address, 407, 0, false},
		"429":                     {"http://" + status(429, "Retry-After: 7\r\n"), 429, 7 * time.Second, false},
		"503":                     {"http://" + status(503, ""), 503, 0, true},
		"403":                     {"http://" + status(403, ""), 403, 0, true},
		"not a proxy":             {"http://" + listen(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "SSH-2.0-OpenSSH\r\n") }), 0, 0, false},
		"no tls":                  {"https://" + httpProxy(t, "", nil).address, 0, 0, false},
		"socks: no proxy":         {"socks5://127.0.0.1:1", 0, 0, false},
		"socks: not socks":        {"socks5://" + status(400, ""), 0, 0, false},
		"socks: closes":           {"socks5://" + dead, 0, 0, false},
		"socks: silent":           {"socks5://" + silent, 0, 0, false},
		"socks: wrong password":   {"socks5://ada:wrong@" + socksProxy(t, "ada", "right", 0).address, 407, 0, false},
		"socks: no credentials":   {"socks5://" + socksProxy(t, "ada", "right", 0).address, 407, 0, false},
		"socks: refused":          {"socks5://" + socksProxy(t, "", "", 5).address, 0, 0, true},
		"socks: general failure":  {"socks5://" + socksProxy(t, "", "", 1).address, 0, 0, true},
		"socks: cannot do it":     {"socks5://" + socksProxy(t, "", "", 7).address, 0, 0, false},
		"socks: not in the norms": {"socks5://" + socksProxy(t, "", "", 99).address, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := n.pools(Member{URL: c.proxy})
			p.cfg.ConnectTimeout = 300 * time.Millisecond
			_, err := download(t, p, at(n.secure, "example.com", "/"))
			got, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("%v", err)
			}
			if got.Status != c.status || got.RetryAfter != c.wait || got.Either != c.either || got.Proxy != "p#1" {
				t.Errorf("%+v", got)
			}
			if strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "wrong") {
				t.Errorf("the message names the proxy's address or password: %v", err)
			}
		})
	}
}

// An HTTP proxy answers 407 to a whole request as well.
func TestAPlainRequestThatTheProxyRefusesIsAFailureOfTheProxy(t *testing.T) {
	n := newNetwork(t)
	p := n.pools(Member{URL: "http://" + httpProxy(t, "ada:right", nil).address})
	_, err := download(t, p, at(n.plain, "source.test", "/"))
	if got, ok := errors.AsType[*Error](err); !ok || got.Status != http.StatusProxyAuthRequired {
		t.Errorf("%v", err)
	}
	if st := p.Status()[1]; st.Name != "p#1" || st.Usable {
		t.Errorf("%+v", st)
	}
}

func TestAKeptConnectionDoesNotDefeatTheRotation(t *testing.T) {
	n := newNetwork(t)
	first, second := socksProxy(t, "", "", 0), socksProxy(t, "", "", 0)
	p := n.pools(Member{URL: "socks5://" + first.address}, Member{URL: "socks5://" + second.address})
	last, connections := "", 0
	for range 10 {
		source := at(n.plain, "source.test", "/")
		route, err := p.Pick(Want{Pool: "p", Avoid: last, Host: "source.test:80"})
		if err != nil || route.Name() == last {
			t.Fatalf("%v, %v", route, err)
		}
		last = route.Name()
		trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
			if !got.Reused {
				connections++
			}
		}}
		request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, source, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := p.Guard().Via(route).Do(request, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		route.End(Outcome{Answered: true})
	}
	if connections > 4 || len(first.targets()) == 0 || len(second.targets()) == 0 {
		t.Errorf("%d connections, %v, %v", connections, first.targets(), second.targets())
	}
}

func TestMoreBytesThanAnnouncedAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   bool
	}{
		"as announced":              {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false},
		"one more":                  {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!", true},
		"one more, then closed":     {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello!", true},
		"after an interim answer":   {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false},
		"more after interim answer": {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!", true},
		"large":                     {"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 200_000), false},
		"large and more":            {"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 200_100), true},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t)
			address := listen(t, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, c.answer)
				_, _ = conn.Read(make([]byte, 1)) // until the client closes
			})
			p := n.pools(Member{URL: Direct})
			route, err := p.Pick(Want{Pool: "p", Host: address})
			if err != nil {
				t.Fatal(err)
			}
			var counted *Answer
			trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { counted = Watch(got.Conn) }}
			request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, "http://"+address+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := p.Guard().Via(route).Do(request, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, answer.Body); err != nil {
				t.Fatal(err)
			}
			if got := counted.Excess(answer.ContentLength); got != c.want {
				t.Errorf("%v", got)
			}
			_ = answer.Body.Close()
		})
	}
}

// A connection is used again as soon as a body was read, before Excess is asked about it.
func TestTheNextAnswerOnAConnectionIsNoExcess(t *testing.T) {
	n := newNetwork(t)
	p := n.pools(Member{URL: Direct})
	route, err := p.Pick(Want{Pool: "p", Host: "source.test:80"})
	if err != nil {
		t.Fatal(err)
	}
	var answers []*Answer
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { answers = append(answers, Watch(got.Conn)) }}
	var lengths []int64
	for _, path := range []string{"/", "/longer-than-the-first", "/"} {
		request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, at(n.plain, "source.test", path), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := p.Guard().Via(route).Do(request, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		lengths = append(lengths, answer.ContentLength)
	}
	for i, a := range answers {
		if a.Excess(lengths[i]) || !a.Excess(lengths[i]-1) {
			t.Errorf("the answer %d", i)
		}
	}
}

// realProxy starts a program that is a proxy, and waits until it listens.
func realProxy(t *testing.T, program testprograms.Program, args func(port string) []string) string {
	t.Helper()
	path, err := program.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.Command(path, args(port)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(30 * time.Second); ; {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return address
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not listen: %v", program.Name, err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func TestRealProxiesReachBothKindsOfSources(t *testing.T) {
	n := newNetwork(t)
	tiny := realProxy(t, testprograms.Tinyproxy, func(port string) []string {
		file := filepath.Join(t.TempDir(), "tinyproxy.conf")
		text := "Port " + port + "\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\nBasicAuth ada secret\nLogLevel Critical\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"-d", "-c", file}
	})
	micro := realProxy(t, testprograms.Microsocks, func(port string) []string {
		return []string{"-i", "127.0.0.1", "-p", port, "-u", "ada", "-P", "secret"}
	})
	for name, address := range map[string]string{"tinyproxy": "http://ada:secret@" + tiny, "microsocks": "socks5://ada:secret@" + micro} {
		p := n.pools(Member{URL: address})
		for _, source := range []string{at(n.plain, "127.0.0.1", "/a"), at(n.secure, "example.com", "/a")} {
			if text, err := download(t, p, source); err != nil || !strings.HasPrefix(text, "resource of ") {
				t.Errorf("%s, %s: %q, %v", name, source, text, err)
			}
		}
		wrong := n.pools(Member{URL: strings.Replace(address, "secret", "wrong", 1)})
		_, err := download(t, wrong, at(n.secure, "example.com", "/a"))
		if got, ok := errors.AsType[*Error](err); !ok || got.Status != http.StatusProxyAuthRequired {
			t.Errorf("%s, wrong password: %v", name, err)
		}
		_, err = download(t, p, "https://127.0.0.1:1/")
		if got, ok := errors.AsType[*Error](err); !ok || !got.Either {
			t.Errorf("%s, a source that does not listen: %v", name, err)
		}
	}
}
