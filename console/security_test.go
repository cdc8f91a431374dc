package console

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// locked returns a console that accepts the key "good".
func locked(t *testing.T, change func(*Config)) *Console {
	t.Helper()
	cfg := Config{Operator: struct{ ops.Operator }{}, Prefix: "/console", Open: func(_ context.Context, _, text string) (Visitor, error) {
		if text != "good" {
			return Visitor{}, errors.New("no such key")
		}
		return Visitor{Name: "ada", Scope: apikey.Viewer}, nil
	}}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serveOne(c *Console, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

// Earlier, each new zone made the console parse all templates again and keep them: 74 requests without a key took 645 MiB.
func TestZonesOfUnknownClientsCostNothing(t *testing.T) {
	c := locked(t, nil)
	known := len(zones.known)
	zone := func(i int) string {
		names := []string{"Europe/Berlin", "Europe/./Berlin", "Europe//Berlin", "Asia/Tokyo", "America/New_York", "posix/Europe/Berlin"}
		return names[i%len(names)]
	}
	visit := func(i int) {
		r := httptest.NewRequest("GET", "/console/sign-in", nil)
		r.AddCookie(&http.Cookie{Name: prefsCookie, Value: "zone=" + url.QueryEscape(zone(i))})
		if w := serveOne(c, r); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `data-zone=""`) {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	visit(0) // the page is escaped at its first use
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 200 {
		visit(i)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("200 pages left %d bytes", grown)
	}
	if each := (after.TotalAlloc - before.TotalAlloc) / 200; each > 1<<20 {
		t.Errorf("a page allocates %d bytes: are templates parsed for it?", each)
	}
	if len(zones.known) != known {
		t.Errorf("unknown clients added %d zones", len(zones.known)-known)
	}
}

func TestOnlyIANANamesAreZonesAndTheCacheIsBounded(t *testing.T) {
	for _, name := range []string{"Europe/./Berlin", "Europe//Berlin", "./Europe/Berlin", "Europe/Berlin/", "posix/Europe/Berlin", "right/UTC", "Local", "", "../etc/passwd", "Europe/Berl\u202ein", strings.Repeat("A", 50), "Nowhere/Land"} {
		if zone, err := zoneOf(name); err == nil {
			t.Errorf("%q is %v", name, zone)
		}
	}
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "America/Port-au-Prince", "EST5EDT"} {
		if _, err := zoneOf(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	was := zones.known
	t.Cleanup(func() { zones.known = was })
	zones.known = map[string]*time.Location{}
	for i := range maxZones {
		zones.known[fmt.Sprint(i)] = time.UTC
	}
	if zone, err := zoneOf("Europe/Berlin"); err != nil || zone.String() != "Europe/Berlin" || len(zones.known) != maxZones {
		t.Error(zone, err, len(zones.known))
	}
}

func TestTwoVisitorsSeeTheSameTemplatesInTheirOwnZones(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for name, want := range map[string]string{"Europe/Berlin": "14:00:00 CEST", "Asia/Tokyo": "21:00:00 JST"} {
		zone, err := zoneOf(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := (clock{zone: zone}).exact(at); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestOneVisitorDoesNotTakeAllStreams(t *testing.T) {
	var l listeners
	limits := map[string]int{"session x": 2, "visitor ada": 3}
	var leave []func()
	for range 2 {
		out, err := l.join(limits)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, out)
	}
	if _, err := l.join(limits); !errors.Is(err, holdfast.ErrThrottled) {
		t.Errorf("a third of the session: %v", err)
	}
	other := map[string]int{"session y": 2, "visitor ada": 3}
	out, err := l.join(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.join(other); !errors.Is(err, holdfast.ErrThrottled) {
		t.Errorf("a fourth of the visitor: %v", err)
	}
	if out, err := l.join(map[string]int{"session z": 2, "visitor bob": 3}); err != nil {
		t.Errorf("another visitor: %v", err)
	} else {
		out()
	}
	for _, out := range append(leave, out) {
		out()
	}
	if len(l.by) != 0 {
		t.Errorf("left behind: %v", l.by)
	}
}

func TestAStreamTooManyOfASessionIsRefused(t *testing.T) {
	c := locked(t, nil)
	cookie := c.sessions.begin("good", time.Now())
	visit := httptest.NewRequest("GET", "/console/live", nil)
	visit.AddCookie(&http.Cookie{Name: "holdfast_session", Value: cookie})
	q, err := c.authenticate(httptest.NewRecorder(), visit)
	if err != nil {
		t.Fatal(err)
	}
	for range maxStreamsPerSession {
		if _, err := c.listeners.join(c.limitsOf(q)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.listeners.join(c.limitsOf(q)); !errors.Is(err, holdfast.ErrThrottled) {
		t.Errorf("%v", err)
	}
}

func TestTheSessionCookieIsForTLSAloneWhereTLSIsKnown(t *testing.T) {
	for name, test := range map[string]struct {
		trust  bool
		proto  string
		tls    bool
		secure bool
	}{
		"plain": {}, "TLS": {tls: true, secure: true}, "a proxy that is trusted": {trust: true, proto: "https", secure: true},
		"a trusted proxy without TLS": {trust: true, proto: "http"}, "a visitor's own header": {proto: "https"},
	} {
		c := locked(t, func(cfg *Config) { cfg.TrustProxy = test.trust })
		r := httptest.NewRequest("POST", "/console/sign-in", strings.NewReader("key=good&back=/console/jobs"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if test.proto != "" {
			r.Header.Set("X-Forwarded-Proto", test.proto)
		}
		if test.tls {
			r.TLS = &tls.ConnectionState{}
		}
		w := serveOne(c, r)
		cookies := w.Result().Cookies()
		if len(cookies) != 1 || w.Code != http.StatusSeeOther {
			t.Fatalf("%s: %d %v", name, w.Code, cookies)
		}
		got, hsts := cookies[0], w.Header().Get("Strict-Transport-Security")
		if got.Secure != test.secure || strings.HasPrefix(got.Name, "__Host-") != test.secure || (hsts != "") != test.secure || !got.HttpOnly {
			t.Errorf("%s: %v, %q", name, got, hsts)
		}
	}
}

func TestBackStaysInsideTheConsole(t *testing.T) {
	c := locked(t, nil)
	for back, want := range map[string]string{
		"/console/jobs?q=a%2Fb": "/console/jobs?q=a%2Fb", "/console/jobs?q=../x": "/console/jobs?q=../x", "/console/": "/console/",
		"/console/../../evil": "/console/", "/console/..": "/console/", "/console/%2e%2e/evil": "/console/", "/console/.%2E/evil": "/console/", "/console/./../evil": "/console/",
		"/evil": "/console/", "//evil": "/console/", "https://evil/console/": "/console/", "/console/\\..\\evil": "/console/", "": "/console/",
	} {
		r := httptest.NewRequest("GET", "/console/sign-in?back="+url.QueryEscape(back), nil)
		if got := (&request{Request: r, c: c}).back(); got != want {
			t.Errorf("%s leads to %s", back, got)
		}
	}
}
