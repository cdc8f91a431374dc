package fetch_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch/hostiletest"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/internal/soak"
)

// A pathway is a proxy of the test that forwards whole requests, and counts them.
type pathway struct {
	address string
	asked   atomic.Int64
}

// startProxy starts a proxy that does something to each answer of the source before it passes it on.
func startProxy(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, forward func())) *pathway {
	t.Helper()
	p := &pathway{}
	p.address = strings.TrimPrefix(serve(t, func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		answer(w, r, func() {
			out, err := http.NewRequestWithContext(r.Context(), r.Method, r.RequestURI, nil)
			if err != nil {
				return
			}
			from, err := http.DefaultTransport.RoundTrip(out)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer func() { _ = from.Body.Close() }()
			w.Header().Set("Content-Length", from.Header.Get("Content-Length"))
			w.WriteHeader(from.StatusCode)
			_, _ = io.Copy(w, from.Body)
		})
	}), "http://")
	return p
}

func forwards(_ http.ResponseWriter, _ *http.Request, forward func()) { forward() }

// deadProxy accepts connections, counts them, and closes them.
func deadProxy(t *testing.T) *pathway {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	p := &pathway{address: listener.Addr().String()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.asked.Add(1)
			_ = conn.Close()
		}
	}()
	return p
}

// ten returns 10 proxies: 3 dead, 2 slow, 1 that answers 407.
func ten(t *testing.T) (members []proxy.Member, dead []*pathway) {
	t.Helper()
	var all []*pathway
	for range 4 {
		all = append(all, startProxy(t, forwards))
	}
	for range 2 {
		all = append(all, startProxy(t, func(_ http.ResponseWriter, _ *http.Request, forward func()) {
			<-time.After(300 * time.Millisecond)
			forward()
		}))
	}
	all = append(all, startProxy(t, func(w http.ResponseWriter, _ *http.Request, _ func()) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	for range 3 {
		dead = append(dead, deadProxy(t))
	}
	for _, p := range append(all, dead...) {
		members = append(members, proxy.Member{URL: "http://" + p.address})
	}
	return members, dead
}

// retry downloads as the engine does: again after a failure, with the proxy that failed, until it succeeds. It returns the number of attempts.
func (s *scene) retry(r fetch.Request) int {
	s.Helper()
	last := ""
	for attempt := 1; attempt <= 5; attempt++ {
		r.Attempt, r.AvoidProxy = attempt, last
		result, err := s.Fetch(s.Context(), r)
		used := result.Proxy
		if err != nil {
			used = verdict(err).Failure.Context["proxy"]
		}
		if used == last {
			s.Errorf("%s was used twice running", used)
		}
		if err == nil {
			return attempt
		}
		last = used
	}
	s.Errorf("%s failed 5 times, last through %s", r.Name, last)
	return 5
}

// 10 proxies, 3 dead, 2 slow, 1 with 407: all downloads succeed, with 1.4 attempts in the mean at most, at most 5 requests to a dead proxy
// before its breaker opens, and never the same proxy twice running.
func TestTenProxiesOfWhichSixAreBroken(t *testing.T) {
	source := hostiletest.Start(t, hostiletest.Says(hostiletest.Sized("", strings.Repeat("x", 20_000))))
	members, dead := ten(t)
	s := newScene(t, settings{pools: map[string][]proxy.Member{"p": members}})
	downloads := soak.Pick("downloads through broken proxies", 150, 2000)
	attempts := atomic.Int64{}
	var all sync.WaitGroup
	work := make(chan int)
	for range 4 {
		all.Go(func() {
			for n := range work {
				attempts.Add(int64(s.retry(fetch.Request{Name: fmt.Sprintf("job-%d", n), URL: source + "/" + strconv.Itoa(n), Pool: "p"})))
			}
		})
	}
	for n := range downloads {
		work <- n
	}
	close(work)
	all.Wait()
	mean := float64(attempts.Load()) / float64(downloads)
	t.Logf("%d downloads, %.2f attempts in the mean", downloads, mean)
	if mean > 1.4 {
		t.Errorf("%.2f attempts in the mean", mean)
	}
	for _, p := range dead {
		// Without its breaker a dead proxy would get a tenth of all requests. The 4 workers may be on their way to it when it opens.
		if asked := p.asked.Load(); asked > 5+4 && !soak.Deep() {
			t.Errorf("a dead proxy was asked %d times", asked)
		}
	}
	for _, st := range s.pools.Status() {
		t.Logf("%-8s usable %-5v score %.2f good %d bad %d delay %.3f s %s", st.Name, st.Usable, st.Score, st.Good, st.Bad, st.Delay, st.Why)
	}
}

func TestASourceThatBlocksOneProxyIsReachedThroughAnother(t *testing.T) {
	source := hostiletest.Start(t, hostiletest.Says(hostiletest.Sized("", "hello")))
	limited := startProxy(t, func(w http.ResponseWriter, _ *http.Request, _ func()) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	s := newScene(t, settings{pools: map[string][]proxy.Member{"p": {{URL: "http://" + limited.address, Weight: 1000}, {URL: "http://" + startProxy(t, forwards).address}}}})
	_, err := s.Fetch(t.Context(), fetch.Request{Name: "job", URL: source, Pool: "p", AvoidProxy: "p#2"})
	if v := verdict(err); v.Failure.Code != code.DownloadHTTP429 || v.Delay > time.Minute {
		t.Errorf("the job waits although another proxy is usable: %+v", v)
	}
	for range 5 {
		if _, err := s.Fetch(t.Context(), fetch.Request{Name: "job", URL: source, Pool: "p"}); err != nil {
			t.Error(err)
		}
	}
	if limited.asked.Load() != 1 {
		t.Errorf("the proxy that is limited was asked %d times", limited.asked.Load())
	}
}

func TestAProxyThatAnswersWithItsOwnPageIsNotTheSource(t *testing.T) {
	source := hostiletest.Start(t, hostiletest.Says(hostiletest.Sized("Content-Type: image/png\r\n", hostiletest.PNG)))
	captive := startProxy(t, func(w http.ResponseWriter, _ *http.Request, _ func()) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, hostiletest.Page)
	})
	s := newScene(t, settings{pools: map[string][]proxy.Member{"p": {{URL: "http://" + captive.address}, {URL: "http://" + startProxy(t, forwards).address}}}})
	for n := range 20 {
		s.retry(fetch.Request{Name: fmt.Sprintf("job-%d", n), URL: source, Pool: "p", Expect: hostiletest.PNGExpected})
	}
	if st := s.pools.Status()[1]; st.Name != "p#1" || st.Usable {
		t.Errorf("the proxy is still used: %+v", st)
	}
}

func TestAPoolWithoutAUsableProxyIsExhausted(t *testing.T) {
	s := newScene(t, settings{pools: map[string][]proxy.Member{"p": {{URL: "http://" + deadProxy(t).address}}}})
	source := hostiletest.Start(t, hostiletest.Says(hostiletest.Sized("", "hello")))
	seen := map[string]int{}
	for range 8 {
		_, err := s.Fetch(t.Context(), fetch.Request{Name: "job", URL: source, Pool: "p", Attempt: 1})
		v := verdict(err)
		seen[v.Failure.Code]++
		if v.Failure.Code == code.DownloadProxyExhausted && (v.Delay < 20*time.Second || v.Delay > time.Minute) {
			t.Errorf("%+v", v)
		}
	}
	if seen[code.DownloadProxyExhausted] < 3 || seen[code.DownloadProxyError] == 0 || len(seen) != 2 {
		t.Errorf("%v", seen)
	}
}
