package limit_test

import (
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast/internal/limit"
)

func TestEachNameHasItsOwnRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := limit.Rates{Burst: 3, Every: 2 * time.Second}
		for range 3 {
			if !r.Allow("a") {
				t.Fatal("refused within the burst")
			}
		}
		if r.Allow("a") || !r.Exhausted("a") || r.Exhausted("b") || !r.Allow("b") {
			t.Error("one name's calls count for another, or not at all")
		}
		time.Sleep(2 * time.Second)
		if r.Exhausted("a") || !r.Allow("a") || r.Allow("a") {
			t.Error("one more is allowed after each 2 s")
		}
	})
}

func TestFewNamesAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := limit.Rates{Burst: 2, Every: time.Second}
		for i := range 3 * limit.MostNames {
			r.Allow(i)
		}
		if n := r.Names(); n > limit.MostNames {
			t.Errorf("%d names are remembered", n)
		}
	})
}

func TestSharesAreCountedTogetherAndGivenBack(t *testing.T) {
	var a limit.AtOnce
	join := func(owner, address string) (func(), bool) {
		return a.Join(limit.Share{Name: "owner " + owner, Most: 1}, limit.Share{Name: "address " + address, Most: 2})
	}
	first, ok := join("a", "x")
	if !ok {
		t.Fatal("refused the first")
	}
	if _, ok := join("a", "y"); ok {
		t.Error("an owner has two")
	}
	second, ok := join("b", "x")
	if !ok {
		t.Error("refused the second of an address")
	}
	if _, ok := join("c", "x"); ok {
		t.Error("an address has three")
	}
	first()
	second()
	if _, ok := join("a", "x"); !ok {
		t.Error("what was given back is not free")
	}
}

func TestAddresses(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::", "[fe80::1%eth0]:1": "fe80::",
	} {
		if at := limit.Network(remote); at != netip.MustParseAddr(want) {
			t.Errorf("%s: %v", remote, at)
		}
	}
	if limit.Network("@").IsValid() {
		t.Error("an address that cannot be read is one")
	}
}

func TestTheAddressBehindATrustedProxyIsItsLastEntry(t *testing.T) {
	for said, want := range map[string]string{"198.51.100.7": "198.51.100.7", "1.2.3.4, 198.51.100.7": "198.51.100.7", "6.6.6.6,2001:db8::7": "2001:db8::", "junk": "127.0.0.1", "": "127.0.0.1"} {
		r := &http.Request{RemoteAddr: "127.0.0.1:5", Header: http.Header{"X-Forwarded-For": {"10.0.0.1", said}}}
		if at := limit.Network(limit.FromProxy(r).RemoteAddr); at != netip.MustParseAddr(want) {
			t.Errorf("%q: %s", said, at)
		}
	}
}
