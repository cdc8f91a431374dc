package safehttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// near may call 127.0.0.1 on any port. Other loopback addresses stay blocked, so that a redirect to them is one to a private address.
func near(cfg safehttp.Config) safehttp.Config {
	cfg.Allow, cfg.AnyPort = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, true
	return cfg
}

func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func TestRedirectsAreNotFollowedUnlessAskedFor(t *testing.T) {
	hops := 0
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		hops++
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	g := build(t, near(safehttp.Config{}))
	for redirects, want := range map[int]int{0: 1, 2: 3, 5: 6, 99: 6} {
		hops = 0
		if status, err := ask(t, g, url, redirects); err != nil || status != http.StatusFound || hops != want {
			t.Errorf("%d redirects: status %d, %v after %d hops", redirects, status, err, hops)
		}
	}
}

func TestARedirectToAPrivateAddressIsBlocked(t *testing.T) {
	port, reached := canary(t)
	g := build(t, near(safehttp.Config{}))
	for _, to := range []string{
		"http://127.0.0.2:" + port + "/", "http://[::1]:" + port + "/", "http://169.254.169.254/latest/meta-data/", "http://0x7f000001:" + port + "/",
		"file:///etc/passwd", "gopher://127.0.0.1:" + port + "/_x", "http://ada:secret@127.0.0.1:" + port + "/", "ftp://example.org/",
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusMovedPermanently)
		})
		_, err := ask(t, g, url, 5)
		if !errors.Is(err, safehttp.ErrBlocked) || err.Error() != safehttp.ErrBlocked.Error() {
			t.Errorf("%s: %v", to, err)
		}
	}
	if reached.Load() != 0 {
		t.Errorf("reached %d times", reached.Load())
	}
}

func TestAnotherOriginGetsNoCredentialsAndNoBody(t *testing.T) {
	var got []http.Header
	var home string
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Clone())
		if r.URL.Path == "/back" {
			http.Redirect(w, r, home+"/end", http.StatusFound)
		}
	})
	home = serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/end":
			got = append(got, r.Header.Clone())
		case "/same":
			http.Redirect(w, r, "/end", http.StatusFound)
		default:
			http.Redirect(w, r, other+r.URL.Path, http.StatusTemporaryRedirect)
		}
	})
	g := build(t, near(safehttp.Config{}))
	send := func(method, path string, body io.Reader) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), method, home+path+"?token=canary", body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Authorization": {"Bearer canary"}, "X-Api-Key": {"canary"}, "Cookie": {"a=canary"}, "Accept": {"text/plain"}}
		got = nil
		answer, err := g.Do(request, 5)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer
	}
	for _, path := range []string{"/away", "/back"} {
		send(http.MethodGet, path, nil)
		for _, h := range got {
			if len(got) == 0 || h.Get("Accept") != "text/plain" || strings.Contains(strings.Join(flat(h), " "), "canary") {
				t.Errorf("%s: %v", path, h)
			}
		}
	}
	if send(http.MethodGet, "/same", nil); len(got) != 1 || got[0].Get("X-Api-Key") != "canary" || got[0].Get("Referer") != "" {
		t.Errorf("the same origin: %v", got)
	}
	if answer := send(http.MethodPost, "/away", strings.NewReader("canary")); answer.StatusCode != http.StatusTemporaryRedirect || len(got) != 0 {
		t.Errorf("a body went along: %d, %v", answer.StatusCode, got)
	}
}

func flat(h http.Header) (all []string) {
	for _, values := range h {
		all = append(all, values...)
	}
	return all
}

// read sends a request and reads the whole answer.
func read(t *testing.T, g *safehttp.Guard, url string) ([]byte, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := g.Do(request, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	return io.ReadAll(answer.Body)
}

func TestAnAnswerIsCutAtItsLimit(t *testing.T) {
	g := build(t, near(safehttp.Config{MaxBody: 1000}))
	for size, cut := range map[int]bool{0: false, 999: false, 1000: false, 1001: true, 1 << 20: true} {
		body, err := read(t, g, serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) }))
		if errors.Is(err, safehttp.ErrTooLarge) != cut || len(body) != min(size, 1000) || !cut && err != nil {
			t.Errorf("%d bytes: %d, %v", size, len(body), err)
		}
	}
}

func TestGzipIsDecompressedAndTheLimitAppliesToTheResult(t *testing.T) {
	pack := func(text []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(text)
		_ = z.Close()
		return b.Bytes()
	}
	packed := func(body []byte) string {
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "" {
				t.Error("it was asked for")
			}
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(body)
		})
	}
	g := build(t, near(safehttp.Config{MaxBody: 1000}))
	if body, err := read(t, g, packed(pack([]byte("small")))); err != nil || string(body) != "small" {
		t.Errorf("%q, %v", body, err)
	}
	if body, err := read(t, g, packed(pack(make([]byte, 8<<20)))); !errors.Is(err, safehttp.ErrTooLarge) || len(body) != 1000 {
		t.Errorf("a bomb: %d bytes, %v", len(body), err)
	}
	if body, err := read(t, g, packed(bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 100))); err == nil {
		t.Errorf("no gzip: %q", body)
	}
	empty := append(pack(nil)[:10:10], bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 1<<20)...) // empty blocks, repeated
	if body, err := read(t, g, packed(empty)); err == nil || len(body) > 0 {
		t.Errorf("an endless nothing: %d bytes, %v", len(body), err)
	}
}

func TestASlowAnswerIsEndedInTime(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		drip := time.NewTicker(10 * time.Millisecond)
		defer drip.Stop()
		for {
			if _, err := w.Write([]byte{'.'}); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-drip.C:
			case <-r.Context().Done():
				return
			}
		}
	})
	_, err := read(t, build(t, near(safehttp.Config{Timeout: 200 * time.Millisecond})), url+"/?token=canary")
	if late := net.Error(nil); !errors.As(err, &late) || !late.Timeout() || strings.Contains(err.Error(), "canary") {
		t.Error(err)
	}
}

func TestAnErrorDoesNotRepeatTheAddress(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	g := build(t, near(safehttp.Config{Lookup: func(context.Context, string) ([]netip.Addr, error) { return nil, nil }}))
	for _, address := range []string{closed.URL + "/canary?token=canary", "http://nowhere.example/canary?token=canary"} {
		if _, err := ask(t, g, address, 0); err == nil || strings.Contains(err.Error(), "canary") {
			t.Error(err)
		}
	}
}

func TestNoProxyOfTheEnvironmentIsAsked(t *testing.T) {
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") })
	for _, variable := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(variable, proxy)
	}
	if _, err := ask(t, build(t, near(safehttp.Config{})), "http://receiver.invalid/", 0); err == nil {
		t.Error("who answered?")
	}
}
