package browser_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfastdev/holdfast/apps/internal/egress"
	"github.com/holdfastdev/holdfast/apps/screenshot/browser"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/internal/soak"
)

// A way is one in which a page makes the browser call an address. TARGET is http://host:port of the target, HOST its host:port, HERE the address of the page, and WAY the
// name of the way.
type way struct {
	name, html string
	closed     bool // the browser does not go this way at all, or not with TCP, even where it may call the address
}

// parts are ways that leave the page where it is. All of them are in one page.
var parts = []way{
	{name: "img", html: `<img src="TARGET/WAY">`},
	{name: "redirect", html: `<img src="HERE/to?TARGET/WAY">`},
	{name: "redirect-twice", html: `<img src="HERE/to?HERE/to?TARGET/WAY">`},
	{name: "iframe", html: `<iframe src="TARGET/WAY"></iframe>`},
	{name: "iframe-refresh", html: `<iframe srcdoc='<meta http-equiv=refresh content="0;url=TARGET/WAY">'></iframe>`},
	{name: "iframe-script", html: `<iframe srcdoc='<script>location = "TARGET/WAY"</script>'></iframe>`},
	{name: "form", html: `<iframe name="WAYN"></iframe><form action="TARGET/WAY" method=post target="WAYN"><input name=a value=b></form><script>document.forms[document.forms.length - 1].submit()</script>`},
	{name: "css-link", html: `<link rel=stylesheet href="TARGET/WAY">`},
	{name: "css-import", html: `<style>@import "TARGET/WAY";</style>`},
	{name: "css-url", html: `<div style="background: url(TARGET/WAY)">x</div>`},
	{name: "font", html: `<style>@font-face { font-family: fN; src: url(TARGET/WAY) } .fN { font-family: fN }</style><p class=fN>x</p>`},
	{name: "script", html: `<script async src="TARGET/WAY"></script>`},
	{name: "module", html: `<script type=module>import("TARGET/WAY").catch(() => {})</script>`},
	{name: "fetch", html: `<script>fetch("TARGET/WAY", { mode: "no-cors" }).catch(() => {})</script>`},
	{name: "xhr", html: `<script>{ const r = new XMLHttpRequest(); r.open("GET", "TARGET/WAY"); r.send() }</script>`},
	{name: "beacon", html: `<script>navigator.sendBeacon("TARGET/WAY", "x")</script>`},
	{name: "websocket", html: `<script>new WebSocket("ws://HOST/WAY")</script>`},
	{name: "eventsource", html: `<script>new EventSource("TARGET/WAY")</script>`},
	{name: "worker", html: `<script>new Worker(URL.createObjectURL(new Blob(['fetch("TARGET/WAY", { mode: "no-cors" }).catch(() => {})'])))</script>`},
	{name: "video", html: `<video src="TARGET/WAY" preload=auto></video>`},
	{name: "object", html: `<object data="TARGET/WAY"></object>`},
	{name: "svg", html: `<svg width=9 height=9><image href="TARGET/WAY" width=9 height=9 /></svg>`},
	{name: "prefetch", html: `<link rel=prefetch href="TARGET/WAY">`},
	{name: "preload", html: `<link rel=preload as=image href="TARGET/WAY">`},
	{name: "preconnect", html: `<link rel=preconnect href="TARGET"><link rel=dns-prefetch href="TARGET">`, closed: true},
	{name: "prerender", html: `<script type=speculationrules>{"prerender": [{"urls": ["TARGET/WAY"], "eagerness": "immediate"}]}</script>`, closed: true},
	{name: "window", html: `<script>open("TARGET/WAY")</script>`, closed: true},
	{name: "serviceworker", html: `<script>navigator.serviceWorker?.register("TARGET/WAY").catch(() => {})</script>`, closed: true},
	{name: "webrtc", closed: true, html: `<script>{
		const c = new RTCPeerConnection({ iceServers: [{ urls: ["stun:HOST", "turn:HOST?transport=tcp", "turn:HOST?transport=udp"], username: "a", credential: "b" }] });
		c.createDataChannel("x"); c.createOffer().then((o) => c.setLocalDescription(o)).catch(() => {});
	}</script>`},
	{name: "webtransport", html: `<script>try { new WebTransport("https://HOST/WAY").ready.catch(() => {}) } catch {}</script>`, closed: true},
}

// journeys are ways that lead the page itself away, each in a shot of its own. An empty page means that the address of the shot is the target.
var journeys = []way{
	{name: "direct"},
	{name: "location"}, // of an HTTP redirect
	{name: "refresh", html: `<meta http-equiv=refresh content="0;url=TARGET/WAY">`},
	{name: "assign", html: `<script>location = "TARGET/WAY"</script>`},
	{name: "submit", html: `<form action="TARGET/WAY"></form><script>document.forms[0].submit()</script>`},
}

func (w way) to(text, here, target string, n int) string {
	return strings.NewReplacer("WAYN", fmt.Sprint(w.name, n), "fN", fmt.Sprint("f", n), "TARGET", target, "HOST", strings.TrimPrefix(target, "http://"), "HERE", here, "WAY", w.name).Replace(text)
}

// canary listens on an address and counts what arrives. It says which ways led to it.
type canary struct {
	reached atomic.Int64
	mu      sync.Mutex
	ways    map[string]bool
}

func (c *canary) arrived(what string) {
	c.reached.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ways[what] = true
}

// listen opens the port for TCP and UDP on addresses. Those that the system does not have cannot be called.
func (c *canary) listen(t *testing.T, addresses ...string) (port string) {
	t.Helper()
	c.ways = map[string]bool{}
	port = "0"
	for _, address := range addresses {
		tcp, err := net.Listen("tcp", net.JoinHostPort(address, port))
		if err != nil && port != "0" {
			t.Logf("no canary on %s: %v", address, err)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tcp.Close() })
		_, port, _ = net.SplitHostPort(tcp.Addr().String())
		go func() {
			for {
				conn, err := tcp.Accept()
				if err != nil {
					return
				}
				go c.answer(conn)
			}
		}()
		if udp, err := net.ListenPacket("udp", net.JoinHostPort(address, port)); err == nil {
			t.Cleanup(func() { _ = udp.Close() })
			go func() {
				for buffer := make([]byte, 2048); ; {
					if _, _, err := udp.ReadFrom(buffer); err != nil {
						return
					}
					c.arrived("a packet")
				}
			}()
		}
	}
	return port
}

// answer counts a connection, and each request on it.
func (c *canary) answer(conn net.Conn) {
	defer conn.Close()
	c.arrived("a connection")
	from := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(from)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		c.arrived(strings.Trim(r.URL.Path, "/"))
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 9\r\n\r\n<p>secret"); err != nil {
			return
		}
	}
}

// A trap is a host with pages that lead to targets.
type trap struct {
	pages sync.Map // by path
	at    string   // its address
}

// newTrap serves pages on an address that stands for a public one.
func newTrap(t *testing.T, address string) *trap {
	t.Helper()
	served := &trap{}
	listener, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Fatalf("the test needs another loopback address (macOS: ifconfig lo0 alias %s): %v", address, err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/to" {
			http.Redirect(w, r, r.URL.RawQuery, http.StatusFound)
			return
		}
		page, _ := served.pages.Load(r.URL.Path)
		text, _ := page.(string)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!doctype html><title>Trap</title><p>Trap %s", text)
	})}}
	server.Start()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	served.at = "http://page.example:" + port
	return served
}

// everyPart returns a page with all parts for all targets.
func (p *trap) everyPart(targets []string) string {
	var text strings.Builder
	for n, target := range targets {
		for _, w := range parts {
			text.WriteString(w.to(w.html, p.at, target, n))
		}
	}
	return text.String()
}

// journey returns the address of a shot that leads to a target.
func (p *trap) journey(w way, target string, n int) string {
	switch {
	case w.html != "":
		path := fmt.Sprintf("/%s/%d", w.name, n)
		p.pages.Store(path, w.to(w.html, p.at, target, n))
		return p.at + path
	case w.name == "location":
		return p.at + "/to?" + target + "/" + w.name
	}
	return target + "/" + w.name
}

// The addresses of this machine, of a private network, of the metadata service of clouds, and a name that leads there: no way of a page reaches one of them with a single
// connection. 127.0.0.9 stands for a public address.
func TestNoWayOfAPageReachesAPrivateAddress(t *testing.T) {
	var bird canary
	port := bird.listen(t, "127.0.0.1", "::1", "127.0.0.2", "169.254.169.254", "10.0.0.1")
	names := map[string]string{"page.example": "127.0.0.9", "home.example": "127.0.0.1", "metadata.example": "169.254.169.254", "localhost": "127.0.0.1"}
	var rebinds sync.Map
	s := open(t, func(cfg *browser.Config) {
		g, err := safehttp.New(safehttp.Config{
			AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")},
			Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
				address := names[host]
				if strings.HasSuffix(host, ".rebinds.example") { // first a public address, then one of this machine
					if address = "127.0.0.9"; !first(&rebinds, host) {
						address = "127.0.0.1"
					}
				}
				if address == "" {
					return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
				}
				return []netip.Addr{netip.MustParseAddr(address)}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Guard = g
	})
	trap := newTrap(t, "127.0.0.9")
	hosts := []string{"127.0.0.1", "[::1]", "localhost", "169.254.169.254", "10.0.0.1", "home.example"}
	spelled := []string{"127.0.0.2", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "2130706433", "0177.0.0.1", "0x7f.1", "127.1", "0.0.0.0", "0", "LOCALHOST", "localhost.", "metadata.example", "[64:ff9b::7f00:1]"}
	target := func(host string) string { return "http://" + host + ":" + port }

	for _, list := range [][]string{hosts, spelled, {"1.rebinds.example"}} {
		var targets []string
		for _, host := range list {
			targets = append(targets, target(host))
		}
		trap.pages.Store("/", trap.everyPart(targets))
		p, err := s.try(shot.Options{URL: trap.at, DelayMS: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range p.Facts.Blocked {
			if one.Reason != egress.Blocked && one.Reason != egress.ConnectFailed && one.Reason != egress.NoSuchName {
				t.Errorf("%+v", one)
			}
		}
		for _, host := range hosts {
			if slices.Contains(list, host) && !slices.ContainsFunc(p.Facts.Blocked, func(one egress.Refusal) bool { return one.Reason == egress.Blocked && one.Host == host+":"+port }) {
				t.Errorf("%s was not refused: the page did not ask for it", host)
			}
		}
	}
	for n, host := range append(hosts, spelled...)[:soak.Pick("targets to which a page goes itself", 3, 19)] {
		for _, w := range journeys {
			p, err := s.try(shot.Options{URL: trap.journey(w, target(host), n), DelayMS: 300})
			if err == nil && w.name == "refresh" && p.Facts.Title == "Trap" {
				continue // the picture was taken before
			}
			if got := code.Name(err); got != code.PageAddressBlocked && (got != code.Validation || w.name != "direct") && got != code.PageDNSError {
				t.Errorf("%s to %s: %s %v", w.name, host, got, err)
			}
		}
	}
	if n := bird.reached.Load(); n > 0 {
		t.Errorf("%d connections, packets and requests reached private addresses: %v", n, bird.ways)
	}
}

// first reports whether a name is asked for the first time.
func first(asked *sync.Map, name string) bool {
	_, again := asked.LoadOrStore(name, true)
	return !again
}

// The same ways lead to the same address where the configuration allows it. So they are ways.
func TestTheWaysOfAPageLeadToAnAddressThatIsAllowed(t *testing.T) {
	var bird canary
	port := bird.listen(t, "127.0.0.1")
	s := open(t, func(cfg *browser.Config) { cfg.Guard = guard(t, hangsAtTimes) })
	trap := newTrap(t, "127.0.0.1")
	target := "http://127.0.0.1:" + port
	trap.pages.Store("/", trap.everyPart([]string{target}))
	s.take(shot.Options{URL: trap.at, DelayMS: 2000})
	for n, w := range journeys {
		s.take(shot.Options{URL: trap.journey(w, target, n), DelayMS: 500})
	}
	for _, w := range slices.Concat(parts, journeys) {
		bird.mu.Lock()
		arrived := bird.ways[w.name]
		bird.mu.Unlock()
		if arrived == w.closed {
			t.Errorf("%s: arrived is %v", w.name, arrived)
		}
	}
	if bird.ways["a packet"] {
		t.Error("a packet arrived: UDP does not go through the proxy")
	}
}
