package safehttp_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// inside are hosts that are not on the public internet, or might not be.
var inside = []string{
	// Loopback and this host, as people and attackers spell it.
	"127.0.0.1", "127.0.0.1.", "127.0.0.0", "127.8.9.10", "127.255.255.255", "0.0.0.0", "0.1.2.3", "0", "0.", "[::]", "[::1]", "[0:0:0:0:0:0:0:1]",
	"[::127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0.0.0.0]", "[::ffff:0:127.0.0.1]",
	"2130706433", "2130706433.", "017700000001", "0x7f000001", "0X7F000001", "0x7f.1", "127.1", "127.0.1", "0177.0.0.1", "0x7f.0.0.1", "127.0.0.0x1", "127.0.0.01",
	"3232235777", "0xa9fea9fe", "2852039166", "169.254.43518", "0xA9.0xFE.0xA9.0xFE", "00000000.0",
	// Private networks.
	"10.0.0.0", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255", "[::ffff:10.0.0.1]", "[::ffff:192.168.1.1]",
	"[fc00::1]", "[fd00::1]", "[fdff:ffff::1]", "[fec0::1]", "[feff::1]",
	// Link-local addresses, and the metadata services of clouds.
	"169.254.0.1", "169.254.169.254", "169.254.170.2", "[::ffff:169.254.169.254]", "[fe80::1]", "[fe80::1%25eth0]", "[fe80::1%25lo]", "[2606:4700::1111%25eth0]",
	"[fd00:ec2::254]", "100.100.100.200", "192.0.0.192", "168.63.129.16", "[::ffff:168.63.129.16]",
	// Shared, reserved, benchmark, documentation and multicast addresses.
	"100.64.0.1", "100.127.255.255", "192.0.0.1", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9",
	"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.254", "255.255.255.255", "[ff02::1]", "[ff0e::1]", "[100::1]", "[2001:db8::1]", "[3fff::1]", "[5f00::1]",
	// Addresses that embed others.
	"[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[2001::1]", "[2001:0:7f00:1::]", "[::ffff:0:0]", "[::2]",
	"[::5efe:7f00:1]", "[2001:10::1]", "[2620:4f:8000::1]",
}

func build(t *testing.T, cfg safehttp.Config) *safehttp.Guard {
	t.Helper()
	g, err := safehttp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// ask sends a request and closes the answer.
func ask(t *testing.T, g *safehttp.Guard, address string, redirects int) (int, error) {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), 30*time.Second)
	defer done()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	answer, err := g.Do(request, redirects)
	if err != nil {
		return 0, err
	}
	_ = answer.Body.Close()
	return answer.StatusCode, nil
}

func resolves(answers ...string) func(context.Context, string) ([]netip.Addr, error) {
	return func(context.Context, string) (found []netip.Addr, err error) {
		for _, a := range answers {
			found = append(found, netip.MustParseAddr(a))
		}
		return found, nil
	}
}

func TestNoSpellingReachesAPrivateAddress(t *testing.T) {
	if len(inside) < 80 {
		t.Fatalf("only %d spellings", len(inside))
	}
	g := build(t, safehttp.Config{})
	for _, host := range inside {
		if _, err := g.Check("http://" + host + "/"); !errors.Is(err, safehttp.ErrBlocked) {
			t.Errorf("%s when it is saved: %v", host, err)
		}
		if _, err := ask(t, g, "http://"+host+"/?token=canary", 0); !errors.Is(err, safehttp.ErrBlocked) || err.Error() != safehttp.ErrBlocked.Error() {
			t.Errorf("%s when it is called: %v", host, err)
		}
	}
}

func TestNoNameReachesAPrivateAddress(t *testing.T) {
	for _, host := range inside {
		ip, err := netip.ParseAddr(strings.Replace(strings.Trim(host, "[]."), "%25", "%", 1))
		if err != nil {
			continue // no resolver answers that
		}
		g := build(t, safehttp.Config{Lookup: resolves(ip.String())})
		if _, err := ask(t, g, "https://harmless.example/", 0); !errors.Is(err, safehttp.ErrBlocked) || err.Error() != safehttp.ErrBlocked.Error() {
			t.Errorf("a name of %s: %v", host, err)
		}
	}
	if _, err := ask(t, build(t, safehttp.Config{}), "http://localhost/", 0); !errors.Is(err, safehttp.ErrBlocked) {
		t.Errorf("localhost: %v", err)
	}
}

func TestPublicAddressesPass(t *testing.T) {
	g := build(t, safehttp.Config{})
	for _, host := range []string{
		"example.org", "example.org.", "xn--bcher-kva.example", "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.1", "126.255.255.255", "128.0.0.1",
		"169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.1", "192.167.255.255", "192.169.0.1", "198.17.255.255", "198.20.0.1", "223.255.255.255",
		"168.63.129.17", "[2606:4700:4700::1111]", "[2a00:1450:4001::1]", "[::ffff:8.8.8.8]", "2130706433.example.org", "0x7f.example", "a1.b2",
	} {
		if _, err := g.Check("https://" + host + "/path?q=1"); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// canary is a server on loopback that must not be reached.
func canary(t *testing.T) (port string, reached *atomic.Int64) {
	t.Helper()
	reached = new(atomic.Int64)
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
			reached.Add(1)
			_ = conn.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port, reached
}

func TestAListenerOnLoopbackSeesNoConnection(t *testing.T) {
	port, reached := canary(t)
	system := build(t, safehttp.Config{AnyPort: true})
	for _, host := range append([]string{"localhost", "localhost.", "LOCALHOST", "ip6-localhost", "a.localhost"}, inside...) {
		_, err := ask(t, system, "http://"+host+":"+port+"/", 5)
		if err == nil {
			t.Errorf("%s was called", host)
		}
	}
	for _, answers := range [][]string{{"127.0.0.1"}, {"::1", "127.0.0.1"}, {"::ffff:127.0.0.1"}, {"192.0.2.1", "127.0.0.1"}, {"2001:db8::1", "127.0.0.1"}} {
		g := build(t, safehttp.Config{AnyPort: true, Lookup: resolves(answers...)})
		if _, err := ask(t, g, "http://harmless.example:"+port+"/", 5); !errors.Is(err, safehttp.ErrBlocked) {
			t.Errorf("%v: %v", answers, err)
		}
	}
	if reached.Load() != 0 {
		t.Errorf("reached %d times", reached.Load())
	}
}

func TestANameWithGoodAndBadAddressesIsCalledOnlyAtTheGoodOnes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	allowed := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} // stands for the public address
	g := build(t, safehttp.Config{AnyPort: true, Allow: allowed, Lookup: resolves("::1", "10.0.0.1", "127.0.0.1")})
	if status, err := ask(t, g, "http://both.example:"+port+"/", 0); err != nil || status != 200 {
		t.Error(status, err)
	}
}

func TestASecondDNSAnswerIsCheckedToo(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Connection", "close") // so that the next request dials again
	}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	var asked atomic.Int64
	g := build(t, safehttp.Config{AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Lookup: func(context.Context, string) ([]netip.Addr, error) {
		if asked.Add(1) == 1 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil // stands for the public address
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
	}})
	if _, err := ask(t, g, "http://rebinds.example:"+port+"/", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, g, "http://rebinds.example:"+port+"/", 0); !errors.Is(err, safehttp.ErrBlocked) || calls.Load() != 1 || asked.Load() != 2 {
		t.Errorf("%v after %d calls and %d questions", err, calls.Load(), asked.Load())
	}
}

func TestCheckRefusesBadURLsWithoutRepeatingThem(t *testing.T) {
	g := build(t, safehttp.Config{})
	for address, says := range map[string]string{
		"ftp://example.org/canary": "https:", "file:///etc/canary": "https:", "gopher://example.org/canary": "https:", "javascript:canary": "https:", "data:,canary": "https:",
		"example.org/canary": "https:", "//example.org/canary": "https:", "": "https:", "https://": "no host", "https:///canary": "no host", "https:canary": "no host", "http://:80/": "no host",
		"https://ada:canary@example.org/": "header", "https://canary@example.org/": "header", "https://exa mple.org/canary": "not a URL", "https://example.org:canary/": "not a URL",
		"https://example.org:0/canary": "port", "https://example.org:99999/canary": "port", "https://bücher.example/canary": "xn--", "https://①②⑦.⓪.⓪.①/canary": "xn--",
		"https://127。0。0。1/canary": "xn--", "https://[::1/canary": "not a URL",
		"https://example.org:22/canary": "may not be called", "https://example.org:6379/canary": "may not be called", "http://example.org:8080/canary": "may not be called",
	} {
		_, err := g.Check(address)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAllowedHostsAllowNothingElse(t *testing.T) {
	g := build(t, safehttp.Config{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, Hosts: []string{"gateway.internal", "metrics.internal:9090"}, Ports: []uint16{443}, Lookup: resolves("10.9.9.9")})
	for address, passes := range map[string]bool{
		"https://10.1.2.3/": true, "https://[::ffff:10.1.2.3]/": true, "https://10.2.0.1/": false, "https://10.1.2.3:8443/": false,
		"https://gateway.internal/": true, "https://Gateway.Internal./": true, "https://gateway.internal:8443/": false, "http://metrics.internal:9090/": true, "https://metrics.internal:9091/": false,
	} {
		if _, err := g.Check(address); (err == nil) != passes {
			t.Errorf("%s: %v", address, err)
		}
	}
	// These names are not allowed by name, so their addresses count.
	for _, address := range []string{"https://x.gateway.internal/", "https://metrics.internal/"} {
		if _, err := ask(t, g, address, 0); !errors.Is(err, safehttp.ErrBlocked) {
			t.Errorf("%s: %v", address, err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	named := build(t, safehttp.Config{Hosts: []string{"near.internal:" + port}, Lookup: resolves("127.0.0.1")})
	if status, err := ask(t, named, "http://near.internal:"+port+"/", 0); err != nil || status != 200 {
		t.Error(status, err)
	}
}

func TestOnlyTheLogLearnsWhyAnAddressWasBlocked(t *testing.T) {
	var log strings.Builder
	g := build(t, safehttp.Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Lookup: resolves("10.0.0.9")})
	_, err := ask(t, g, "https://harmless.example/?token=canary", 0)
	if !errors.Is(err, safehttp.ErrBlocked) || strings.Contains(err.Error(), "10.0.0.9") {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "10.0.0.9") || strings.Contains(log.String(), "canary") {
		t.Error(log.String())
	}
}

func TestABadConfigIsRefused(t *testing.T) {
	for _, cfg := range []safehttp.Config{{Allow: []netip.Prefix{{}}}, {Timeout: -1}, {MaxBody: -1}} {
		if _, err := safehttp.New(cfg); err == nil {
			t.Errorf("%+v", cfg)
		}
	}
}

func TestOnlyAddressesThatMayBeCalledAreResolvedForAProxy(t *testing.T) {
	var answers []netip.Addr
	g := build(t, safehttp.Config{Hosts: []string{"internal.example"}, Lookup: func(context.Context, string) ([]netip.Addr, error) { return answers, nil }})
	for _, host := range inside {
		if found, err := g.Resolve(t.Context(), host+":443"); err == nil {
			t.Errorf("%s: %v, %v", host, found, err)
		}
		text := strings.ReplaceAll(strings.Trim(host, "[]"), "%25", "%")
		ip, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		answers = []netip.Addr{ip}
		if found, err := g.Resolve(t.Context(), "harmless.example:443"); !errors.Is(err, safehttp.ErrBlocked) {
			t.Errorf("a name with the address %s: %v, %v", ip, found, err)
		}
	}
	answers = []netip.Addr{netip.MustParseAddr("2606:4700::1111"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::ffff:1.1.1.1")}
	if found, err := g.Resolve(t.Context(), "mixed.example:443"); err != nil || len(found) != 2 || found[0].String() != "1.1.1.1:443" {
		t.Errorf("%v, %v", found, err)
	}
	if found, err := g.Resolve(t.Context(), "internal.example:443"); err != nil || len(found) != 3 {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := g.Resolve(t.Context(), "mixed.example:25"); !errors.Is(err, safehttp.ErrBlocked) {
		t.Errorf("another port: %v", err)
	}
	answers = nil
	if _, err := g.Resolve(t.Context(), "none.example:443"); err == nil || errors.Is(err, safehttp.ErrBlocked) {
		t.Errorf("%v", err)
	}
	for _, address := range []string{"", "host", "host:", "host:x", "host:70000"} {
		if _, err := g.Resolve(t.Context(), address); err == nil {
			t.Errorf("%q", address)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTheRulesHoldForRequestsThroughAnotherTransport(t *testing.T) {
	var asked []string
	g := build(t, safehttp.Config{Redirects: 7}).Via(transport(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.Host)
		answer := httptest.NewRecorder()
		http.Redirect(answer, r, r.URL.Query().Get("to"), http.StatusFound)
		return answer.Result(), nil
	}))
	if _, err := ask(t, g, "http://127.0.0.1/", 5); !errors.Is(err, safehttp.ErrBlocked) || len(asked) != 0 {
		t.Errorf("%v, %v", err, asked)
	}
	if _, err := ask(t, g, "https://public.example/?to=https://10.0.0.1/", 5); !errors.Is(err, safehttp.ErrBlocked) || len(asked) != 1 {
		t.Errorf("%v, %v", err, asked)
	}
	asked = nil
	if _, err := ask(t, g, "https://public.example/?to=/circle", 99); err != nil || len(asked) != 1+7 {
		t.Errorf("%v, %v", err, asked)
	}
	g.Close()
}
