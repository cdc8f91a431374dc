package fetch_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch/hostiletest"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/store"
)

func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func TestADownloadIsDescribedAndAdoptedByTheNextProcess(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusFound)
			return
		}
		if r.Header.Get("X-Key") != "k" || r.Header.Get("Accept-Encoding") != "identity" || r.Header.Get("User-Agent") != "FetchBox" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Last-Modified", "Mon, 02 Nov 2026 10:00:00 GMT")
		_, _ = io.WriteString(w, "hello")
	})
	s := newScene(t, settings{})
	result, err := s.Fetch(t.Context(), fetch.Request{Name: "job-1", URL: address + "/old", Header: http.Header{"X-Key": {"k"}}})
	if err != nil {
		t.Fatal(err)
	}
	if result.URL != address+"/new" || result.Type != "text/plain" || result.ETag != `"v1"` || result.LastModified == "" || result.Proxy != "direct" || result.Status != 200 {
		t.Errorf("%+v", result)
	}
	_ = s.spool.Close()
	again, err := spool.Open(s.dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	next, err := fetch.New(fetch.Config{Spool: again, Proxies: s.pools})
	if err != nil {
		t.Fatal(err)
	}
	adopted, err := next.Adopt("job-1")
	if err != nil || adopted.ETag != result.ETag || adopted.Type != result.Type || adopted.File.SHA256 != hostiletest.Sum("hello") {
		t.Errorf("%+v, %v", adopted, err)
	}
	if _, err := next.Adopt("job-2"); codeOf(err) != code.StorageSpoolLost {
		t.Error(err)
	}
}

func TestAResourceThatDidNotChangeIsNotDownloaded(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v2"`)
		if r.Header.Get("If-None-Match") == `"v2"` || r.Header.Get("If-Modified-Since") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, "new")
	})
	s := newScene(t, settings{})
	for _, r := range []fetch.Request{{ETag: `"v2"`}, {LastModified: "Mon, 02 Nov 2026 10:00:00 GMT"}} {
		r.Name, r.URL = "job", address
		result, err := s.Fetch(t.Context(), r)
		if err != nil || !result.NotChanged || result.ETag != `"v2"` || result.File.Path != "" {
			t.Errorf("%+v, %v", result, err)
		}
	}
	result, err := s.Fetch(t.Context(), fetch.Request{Name: "job", URL: address, ETag: `"v1"`})
	if err != nil || result.NotChanged || result.File.Size != 3 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestRequestsThatCannotSucceedAreRefusedBeforeAnythingIsSent(t *testing.T) {
	s := newScene(t, settings{})
	for _, c := range []struct {
		request fetch.Request
		code    string
	}{
		{fetch.Request{URL: "ftp://example.org/"}, code.DownloadInvalidURL},
		{fetch.Request{URL: "http://"}, code.DownloadInvalidURL},
		{fetch.Request{URL: "::"}, code.DownloadInvalidURL},
		{fetch.Request{URL: "http://ada:secret@example.org/"}, code.DownloadInvalidURL},
		{fetch.Request{URL: "http://127.0.0.2/"}, code.DownloadAddressBlocked},
		{fetch.Request{URL: "http://169.254.169.254/latest"}, code.DownloadAddressBlocked},
		{fetch.Request{URL: "http://[::ffff:10.0.0.1]/"}, code.DownloadAddressBlocked},
		{fetch.Request{URL: "http://2130706433/"}, code.DownloadAddressBlocked},
		{fetch.Request{URL: "http://a.test/", Pool: "other"}, code.DownloadUnknownPool},
		{fetch.Request{URL: "http://a.test/", Header: http.Header{"Host": {"x"}}}, code.ValidationInvalidField},
		{fetch.Request{URL: "http://a.test/", Header: http.Header{"range": {"bytes=0-1"}}}, code.ValidationInvalidField},
		{fetch.Request{URL: "http://a.test/", Header: http.Header{"X-A": {"a\r\nB: c"}}}, code.ValidationInvalidField},
		{fetch.Request{URL: "http://a.test/", Header: http.Header{"X A": {"a"}}}, code.ValidationInvalidField},
		{fetch.Request{URL: "http://a.test/", Expect: fetch.Expect{SHA256: "x"}}, code.ValidationInvalidField},
		{fetch.Request{URL: "http://a.test/", Expect: fetch.Expect{Size: new(int64(-1))}}, code.ValidationInvalidField},
		{fetch.Request{URL: "http://a.test/", Expect: fetch.Expect{Type: "png"}}, code.ValidationInvalidField},
		{fetch.Request{URL: "http://a.test/", ETag: "a\nb"}, code.ValidationInvalidField},
		{fetch.Request{URL: "http://a.test/", Limits: fetch.Limits{Size: -1}}, code.ValidationInvalidField},
	} {
		c.request.Name = "job"
		if err := s.Check(c.request); codeOf(err) != c.code || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", c.request, err)
		}
		_, err := s.Fetch(t.Context(), c.request)
		if v := verdict(err); v.To != holdfast.Failed || v.Failure.Code != c.code {
			t.Errorf("%+v: %v", c.request, err)
		}
	}
	if err := s.Check(fetch.Request{URL: "https://a.test/", Expect: fetch.Expect{Type: "image/*"}, Header: http.Header{"Accept": {"image/*"}}}); err != nil {
		t.Error(err)
	}
}

func TestPrivateAddressesAreRefusedAlsoAfterARedirectAndForNames(t *testing.T) {
	s := newScene(t, settings{})
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	for _, to := range []string{"http://db.private.test/", "https://db.private.test/", address + "/?to=http://127.0.0.2/", address + "/?to=http://db.private.test/"} {
		_, err := s.Fetch(t.Context(), fetch.Request{Name: "job", URL: to})
		if v := verdict(err); v.To != holdfast.Failed || v.Failure.Code != code.DownloadAddressBlocked {
			t.Errorf("%s: %v", to, err)
		}
	}
	_, err := s.Fetch(t.Context(), fetch.Request{Name: "job", URL: "http://unknown.example/"})
	if v := verdict(err); v.To != holdfast.Queued || v.Failure.Code != code.DownloadDNSError {
		t.Errorf("%v", err)
	}
	_, err = s.Fetch(t.Context(), fetch.Request{Name: "job", URL: "http://127.0.0.1:1/"})
	if v := verdict(err); v.To != holdfast.Queued || v.Failure.Code != code.DownloadConnectError {
		t.Errorf("%v", err)
	}
	_, err = s.Fetch(t.Context(), fetch.Request{Name: "job", URL: strings.Replace(address, "http:", "https:", 1)})
	if v := verdict(err); v.To != holdfast.Queued || v.Failure.Code != code.DownloadTLSError {
		t.Errorf("%v", err)
	}
}

func TestRetryAfterOf429IsHonouredAndTheHostIsLeftAlone(t *testing.T) {
	var asked atomic.Int64
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	s := newScene(t, settings{hosts: fetch.HostLimits{Concurrency: 2, Wait: time.Second}})
	_, err := s.Fetch(t.Context(), fetch.Request{Name: "job", URL: address})
	v := verdict(err)
	if v.Failure.Code != code.DownloadHTTP429 || v.Delay != 2*time.Minute || v.Charge != store.ChargeFailure || v.Failure.Context["status"] != "429" {
		t.Errorf("%+v, %v", v, err)
	}
	_, err = s.Fetch(t.Context(), fetch.Request{Name: "other", URL: address})
	if v := verdict(err); v.Charge != store.ChargeRelease || v.Delay < time.Minute || asked.Load() != 1 {
		t.Errorf("the host was asked %d times: %+v", asked.Load(), v)
	}
}

// 002 section 1: the record has code, message and context {proxy, attempt, status}.
func TestAFailureHasTheRecordOfTheSeed(t *testing.T) {
	s := newScene(t, settings{})
	address := hostiletest.Start(t, hostiletest.Status(503, ""))
	_, err := s.Fetch(t.Context(), fetch.Request{Name: "job", URL: address + "/a.png?secret=1", Attempt: 3})
	f := verdict(err).Failure
	if f.Code != "DOWNLOAD_HTTP_5XX" || f.Context["proxy"] != "direct" || f.Context["attempt"] != "3" || f.Context["status"] != "503" || !strings.Contains(f.Detail, "GET http") {
		t.Errorf("%+v", f)
	}
	if strings.Contains(f.Detail, "secret") {
		t.Error(f.Detail)
	}
}

func TestACancelledDownloadIsNoFailureAndLeavesNothing(t *testing.T) {
	s := newScene(t, settings{})
	began := make(chan struct{}, 1)
	address := hostiletest.Start(t, func(conn net.Conn, r *http.Request) {
		hostiletest.Send(conn, hostiletest.OK("Content-Length: 1000\r\n", "half"))
		began <- struct{}{}
		hostiletest.Silent(conn, r)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	_, err := s.Fetch(ctx, fetch.Request{Name: "job", URL: address})
	if err == nil || codeOf(err) == code.DownloadConnectionLost || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("%v", err)
	}
	s.nothingElse()
	if st := s.pools.Status(); st[0].Bad != 0 || st[0].Active != 0 {
		t.Errorf("%+v", st)
	}
}

func TestTheTimeLimitOfADownloadHolds(t *testing.T) {
	s := newScene(t, settings{limits: fetch.Limits{Time: 300 * time.Millisecond, MinSpeed: -1}})
	address := hostiletest.Start(t, func(conn net.Conn, _ *http.Request) {
		hostiletest.Send(conn, hostiletest.OK("", ""))
		for hostiletest.Send(conn, strings.Repeat("x", 1000)) {
			<-time.After(10 * time.Millisecond)
		}
	})
	_, err := s.Fetch(t.Context(), fetch.Request{Name: "job", URL: address})
	if codeOf(err) != code.DownloadTimeout || !strings.Contains(err.Error(), "300ms") {
		t.Errorf("%v", err)
	}
}

func TestARequestCannotRaiseALimit(t *testing.T) {
	s := newScene(t, settings{limits: fetch.Limits{Size: 10}})
	address := hostiletest.Start(t, hostiletest.Says(hostiletest.Sized("", "hello, world")))
	_, err := s.Fetch(t.Context(), fetch.Request{Name: "job", URL: address, Limits: fetch.Limits{Size: 1000}})
	if codeOf(err) != code.DownloadTooLarge {
		t.Errorf("%v", err)
	}
	if result, err := s.Fetch(t.Context(), fetch.Request{Name: "job", URL: hostiletest.Start(t, hostiletest.Says(hostiletest.Sized("", "hello"))), Limits: fetch.Limits{Size: 5}}); err != nil || result.File.Size != 5 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestAFullSpoolCostsNoAttempt(t *testing.T) {
	s := newScene(t, settings{quota: 1000})
	address := hostiletest.Start(t, hostiletest.Says(hostiletest.Sized("", strings.Repeat("x", 600))))
	if _, err := s.Fetch(t.Context(), fetch.Request{Name: "a", URL: address}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Fetch(t.Context(), fetch.Request{Name: "b", URL: address})
	if v := verdict(err); v.Failure.Code != code.StorageSpoolFull || v.Charge != store.ChargeRelease {
		t.Errorf("%+v", v)
	}
}

// Memory: a body of 1 GiB is never in memory, nor a large part of it. In `make test` it is smaller.
func TestALargeBodyIsNotBuffered(t *testing.T) {
	const size = 256 << 20
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		block := make([]byte, 1<<20)
		for range size >> 20 {
			_, _ = w.Write(block)
		}
	})
	s := newScene(t, settings{})
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	result, err := s.Fetch(t.Context(), fetch.Request{Name: "job", URL: address})
	if err != nil || result.File.Size != size {
		t.Fatalf("%+v, %v", result, err)
	}
	runtime.ReadMemStats(&now)
	if allocated := now.TotalAlloc - before.TotalAlloc; allocated > 16<<20 {
		t.Errorf("%d bytes were allocated for a body of %d", allocated, size)
	}
	if info, err := os.Stat(filepath.Join(s.dir, "job.body")); err != nil || info.Size() != size {
		t.Error(err)
	}
}

func TestABadConfigurationIsRefused(t *testing.T) {
	s := newScene(t, settings{})
	for _, cfg := range []fetch.Config{
		{}, {Spool: s.spool}, {Spool: s.spool, Proxies: s.pools, Limits: fetch.Limits{Redirects: 100}}, {Spool: s.spool, Proxies: s.pools, Hosts: fetch.HostLimits{Concurrency: -1}},
	} {
		if _, err := fetch.New(cfg); err == nil {
			t.Errorf("%+v", cfg)
		}
	}
}
