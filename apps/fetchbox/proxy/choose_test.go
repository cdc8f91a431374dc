package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

// A scene is a pool "p" of proxies that are never connected to, at a time that the test sets.
type scene struct {
	*testing.T
	pools *Pools
	now   time.Time
}

func choosing(t *testing.T, members ...Member) *scene {
	t.Helper()
	pools, err := New(Config{Pools: map[string][]Member{"p": members}})
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, pools: pools, now: time.Unix(1_800_000_000, 0)}
	random := rand.New(rand.NewPCG(1, 2))
	pools.now, pools.roll = func() time.Time { return s.now }, random.Float64
	return s
}

func proxies(n int) (list []Member) {
	for i := range n {
		list = append(list, Member{URL: fmt.Sprintf("http://proxy-%d.example:3128", i+1)})
	}
	return list
}

func (s *scene) pick(w Want) *Route {
	s.Helper()
	if w.Pool == "" {
		w.Pool = "p"
	}
	if w.Host == "" {
		w.Host = "source.example:443"
	}
	r, err := s.pools.Pick(w)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// use uses a proxy by its name, with an outcome.
func (s *scene) use(name, host string, o Outcome) {
	s.Helper()
	for _, m := range s.pools.pools["p"].members {
		if m.name == name {
			m.active++
			(&Route{member: m, pool: s.pools.pools["p"], host: host, delay: time.Millisecond}).End(o)
			return
		}
	}
	s.Fatalf("there is no proxy %s", name)
}

func (s *scene) status(name string) Status {
	s.Helper()
	for _, status := range s.pools.Status() {
		if status.Name == name {
			return status
		}
	}
	s.Fatalf("there is no proxy %s", name)
	return Status{}
}

var (
	good   = Outcome{Answered: true}
	broken = Outcome{Err: &Error{Proxy: "p#1", Doing: "cannot connect to the proxy", Err: errors.New("connection refused")}}
)

func TestTheProxyOfThePreviousAttemptIsNotChosenAgainWhileAnotherIsUsable(t *testing.T) {
	s := choosing(t, proxies(3)...)
	last := ""
	for range 300 {
		r := s.pick(Want{Avoid: last})
		if r.Name() == last {
			t.Fatalf("%s was chosen twice running", last)
		}
		last = r.Name()
		r.End(good)
	}
	lone := choosing(t, proxies(1)...)
	if r := lone.pick(Want{Avoid: "p#1"}); r.Name() != "p#1" {
		t.Errorf("%s", r.Name())
	}
}

func TestMembersAreChosenByWeightAndRegion(t *testing.T) {
	members := proxies(3)
	members[0].Weight, members[1].Region, members[2].Region = 8, "de", "fr"
	s := choosing(t, members...)
	times := map[string]int{}
	for range 1000 {
		r := s.pick(Want{})
		times[r.Name()]++
		r.End(good)
	}
	if times["p#1"] < 700 || times["p#2"] < 40 || times["p#3"] < 40 {
		t.Errorf("%v", times)
	}
	for range 20 {
		if r := s.pick(Want{Region: "fr"}); r.Name() != "p#3" {
			t.Fatalf("%s is not in the region", r.Name())
		}
	}
	for _, w := range []Want{{Pool: "p", Region: "us"}, {Pool: "other"}} {
		_, err := s.pools.Pick(w)
		if v := decide(err); v.Failure.Code != code.DownloadUnknownPool || v.To != holdfast.Failed {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

func decide(err error) failure.Verdict {
	return failure.Decide(failure.Rules{Taxonomy: code.Taxonomy(), Policy: code.Limits{}.Policy()}, store.Lease{}, failure.Outcome{Event: failure.Returned, Err: err})
}

func TestADeadProxyCostsAtMostFiveUsesBeforeItsBreakerOpens(t *testing.T) {
	s := choosing(t, proxies(2)...)
	for range 30 {
		s.use("p#1", "a:443", good)
	}
	uses := 0
	for s.status("p#1").Usable {
		if uses++; uses > 5 {
			t.Fatal("the breaker is still closed")
		}
		s.use("p#1", "a:443", broken)
	}
	if st := s.status("p#1"); st.State != breaker.Open || !strings.Contains(st.Why, "connection refused") || st.Failure == "" {
		t.Errorf("%+v", st)
	}
	for range 50 {
		if r := s.pick(Want{Avoid: "p#2"}); r.Name() != "p#2" {
			t.Fatal("a proxy with an open breaker was chosen")
		} else {
			r.End(good)
		}
	}
	s.now = s.now.Add(31 * time.Second)
	if st := s.status("p#1"); !st.Usable || st.State != breaker.HalfOpen {
		t.Errorf("it is not probed: %+v", st)
	}
	s.use("p#1", "a:443", good)
	s.now = s.now.Add(time.Minute)
	if st := s.status("p#1"); st.State != breaker.Closed {
		t.Errorf("it did not recover: %+v", st)
	}
}

func TestOneUseAtATimeProbesAProxy(t *testing.T) {
	s := choosing(t, proxies(1)...)
	for range 5 {
		s.use("p#1", "a:443", broken)
	}
	s.now = s.now.Add(31 * time.Second)
	s.pick(Want{})
	if _, err := s.pools.Pick(Want{Pool: "p"}); decide(err).Failure.Code != code.DownloadProxyExhausted {
		t.Errorf("%v", err)
	}
}

func TestAnExhaustedPoolSaysWhenToTryAgain(t *testing.T) {
	s := choosing(t, proxies(3)...)
	for _, name := range []string{"p#1", "p#2", "p#3"} {
		for range 5 {
			s.use(name, "a:443", broken)
		}
		s.now = s.now.Add(10 * time.Second)
	}
	s.now = s.now.Add(-10 * time.Second)
	_, err := s.pools.Pick(Want{Pool: "p"})
	v := decide(err)
	if v.Failure.Code != code.DownloadProxyExhausted || v.To != holdfast.Queued || v.Delay != 10*time.Second {
		t.Errorf("%v, %+v", err, v)
	}
}

func TestADeadSourceClosesNoProxy(t *testing.T) {
	s := choosing(t, proxies(3)...)
	late := Outcome{Err: errors.New("timed out"), Either: true}
	for range 20 {
		for _, name := range []string{"p#1", "p#2", "p#3"} {
			s.use(name, "dead.example:443", late)
		}
	}
	for _, st := range s.pools.Status() {
		if !st.Usable || st.Bad != 0 {
			t.Errorf("%+v", st)
		}
	}
	// The same failures count while the source answers through another proxy.
	for range 5 {
		s.use("p#2", "dead.example:443", good)
		s.use("p#1", "dead.example:443", late)
	}
	if st := s.status("p#1"); st.Usable || st.Bad == 0 {
		t.Errorf("%+v", st)
	}
	if st := s.status("p#2"); !st.Usable {
		t.Errorf("%+v", st)
	}
	// An answer of long ago says nothing about the source now.
	s.now = s.now.Add(memory)
	for range 5 {
		s.use("p#3", "dead.example:443", late)
	}
	if st := s.status("p#3"); st.Bad != 0 {
		t.Errorf("%+v", st)
	}
}

// When everything else is stored, only the resources are left that the source always answers with 503.
func TestBrokenResourcesOfASourceCloseNoProxy(t *testing.T) {
	s := choosing(t, proxies(3)...)
	names := []string{"p#1", "p#2", "p#3"}
	for range 30 {
		for _, name := range names {
			s.use(name, "a:80", good)
		}
	}
	for range 20 {
		for _, name := range names {
			s.use(name, "a:80", Outcome{Err: errors.New("HTTP 503"), Answered: true, Either: true})
		}
	}
	for _, st := range s.pools.Status() {
		if !st.Usable || st.Bad > 1 {
			t.Errorf("%+v", st)
		}
	}
}

// A source answers everything but one resource in ten, which it always answers with 503. Their retries come together, when their delay has passed, while the source
// answers other requests through every proxy.
func TestRetriesOfBrokenResourcesCloseNoProxy(t *testing.T) {
	s := choosing(t, proxies(2)...)
	unavailable := Outcome{Err: errors.New("HTTP 503"), Answered: true, Either: true}
	failedThrough := []string(nil) // of each resource that waits for a retry: the proxy of its last attempt
	for n := range 2000 {
		r := s.pick(Want{Host: "a:80"})
		if n%10 > 0 {
			r.End(good)
			continue
		}
		failedThrough = append(failedThrough, r.Name())
		r.End(unavailable)
		if len(failedThrough) < 10 {
			continue
		}
		for i, last := range failedThrough {
			s.use("p#1", "a:80", good)
			s.use("p#2", "a:80", good)
			for range 2 {
				r := s.pick(Want{Avoid: last, Host: "a:80"})
				last = r.Name()
				r.End(unavailable)
			}
			failedThrough[i] = last
		}
		failedThrough = nil
	}
	for _, st := range s.pools.Status() {
		if st.Name != Direct && (!st.Usable || st.State != breaker.Closed || st.Bad > 200) {
			t.Errorf("%+v", st)
		}
	}
}

func TestAProxyRestsAfter407And429(t *testing.T) {
	s := choosing(t, proxies(2)...)
	s.use("p#1", "a:443", Outcome{Err: &Error{Status: http.StatusProxyAuthRequired, Err: errors.New("HTTP 407")}})
	if st := s.status("p#1"); st.Usable || !st.Until.Equal(s.now.Add(time.Minute)) {
		t.Errorf("%+v", st)
	}
	s.use("p#2", "a:443", Outcome{Err: &Error{Status: http.StatusTooManyRequests, RetryAfter: 20 * time.Second, Err: errors.New("HTTP 429")}})
	if st := s.status("p#2"); st.Usable || !st.Until.Equal(s.now.Add(20*time.Second)) {
		t.Errorf("%+v", st)
	}
	s.now = s.now.Add(21 * time.Second)
	if r := s.pick(Want{Avoid: "p#2"}); r.Name() != "p#2" {
		t.Errorf("%s", r.Name())
	}
}

func TestASourceThatAnswers429IsLeftAloneByThatProxyOnly(t *testing.T) {
	s := choosing(t, proxies(2)...)
	s.use("p#1", "busy:443", Outcome{Err: errors.New("429"), Answered: true, Wait: time.Minute})
	for range 20 {
		if r := s.pick(Want{Host: "busy:443"}); r.Name() != "p#2" {
			t.Fatal("the source was asked again through the same proxy")
		}
	}
	others := map[string]bool{}
	for range 50 {
		others[s.pick(Want{Host: "other:443"}).Name()] = true
	}
	if !others["p#1"] {
		t.Error("the proxy is not used for other sources")
	}
	r := s.pick(Want{Host: "busy:443"})
	if r.Usable("") {
		t.Error("another proxy is said to be usable for the source")
	}
	s.now = s.now.Add(2 * time.Minute)
	if !r.Usable("") {
		t.Error("the other proxy stays unusable")
	}
}

func TestASlowProxyIsChosenLessOften(t *testing.T) {
	s := choosing(t, proxies(2)...)
	times := map[string]int{}
	for range 500 {
		r := s.pick(Want{})
		times[r.Name()]++
		r.delay = 50 * time.Millisecond
		if r.Name() == "p#1" {
			r.delay = 3 * time.Second
		}
		r.End(good)
	}
	if times["p#1"] > 120 || times["p#1"] == 0 {
		t.Errorf("%v", times)
	}
	if st := s.status("p#1"); st.Delay != 3 || st.Score > 0.2 || st.Active != 0 {
		t.Errorf("%+v", st)
	}
}

func TestWhatTheCallerEndedOrOnlyTheSourceCausedDoesNotCount(t *testing.T) {
	s := choosing(t, proxies(2)...)
	s.use("p#2", "a:443", good)
	for range 20 {
		s.use("p#1", "a:443", Outcome{Err: context.Canceled})
		s.use("p#1", "a:443", Outcome{Err: errors.New("the name could not be resolved")})
		s.use("p#1", "a:443", Outcome{Err: errors.New("HTTP 404"), Answered: true})
	}
	if st := s.status("p#1"); st.Bad != 0 || st.Good != 20 || !st.Usable {
		t.Errorf("%+v", st)
	}
}

func TestWithoutAProxyTheSourceAloneIsAtFault(t *testing.T) {
	s := choosing(t, Member{URL: Direct}, Member{URL: "http://proxy.example:3128"})
	s.use("p#2", "a:443", good)
	for range 20 {
		s.use("p#1", "a:443", Outcome{Err: errors.New("timed out"), Either: true})
	}
	if st := s.status("p#1"); !st.Usable {
		t.Errorf("%+v", st)
	}
	if r := s.pick(Want{Pool: Direct}); r.Name() != Direct {
		t.Error(r.Name())
	}
}

func TestABadConfigurationIsRefusedWithoutPasswords(t *testing.T) {
	for _, members := range [][]Member{
		{}, {{URL: "ftp://ada:secret@proxy:21"}}, {{URL: "http://ada:secret@proxy"}}, {{URL: "http://ada:secret@proxy:3128/path"}}, {{URL: "http://ada:secret@pro xy:1"}},
		{{URL: "socks5://" + strings.Repeat("a", 300) + ":secret@proxy:1080"}}, {{URL: Direct, Weight: -1}}, {{URL: ""}},
	} {
		_, err := New(Config{Pools: map[string][]Member{"p": members}})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", members, err)
		}
	}
	if _, err := New(Config{Pools: map[string][]Member{Direct: {{URL: Direct}}}}); err == nil {
		t.Error("a pool with the name of the built-in one")
	}
	if _, err := New(Config{CoolDown: -1}); err == nil {
		t.Error("a negative cool-down")
	}
	pools, err := New(Config{Pools: map[string][]Member{"proxies/eu-primary": {{URL: "http://ada:secret@proxy:3128"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range pools.Status() {
		if text := fmt.Sprintf("%+v", st); strings.Contains(text, "secret") || strings.Contains(text, "ada") {
			t.Error(text)
		}
	}
}
