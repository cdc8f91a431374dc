package fetch_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/store"
)

// A scene is a fetcher with short times that may call 127.0.0.1.
type scene struct {
	*testing.T
	*fetch.Fetcher
	spool *spool.Spool
	pools *proxy.Pools
	dir   string
}

type settings struct {
	pools  map[string][]proxy.Member
	limits fetch.Limits
	hosts  fetch.HostLimits
	quota  int64
	header time.Duration
}

func newScene(t *testing.T, set settings) *scene {
	t.Helper()
	s := &scene{T: t, dir: t.TempDir()}
	if set.quota == 0 {
		set.quota = 1 << 30
	}
	if set.hosts.Concurrency == 0 {
		set.hosts = fetch.HostLimits{Concurrency: 1000, Wait: time.Minute}
	}
	var err error
	if s.spool, err = spool.Open(s.dir, set.quota); err != nil {
		t.Fatal(err)
	}
	lookup := func(_ context.Context, host string) ([]netip.Addr, error) {
		switch {
		case strings.HasSuffix(host, ".private.test"):
			return []netip.Addr{netip.MustParseAddr("10.0.0.9")}, nil
		case strings.HasSuffix(host, ".test"):
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if s.pools, err = proxy.New(proxy.Config{
		Pools: set.pools, Network: safehttp.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, AnyPort: true, Lookup: lookup},
		ConnectTimeout: 5 * time.Second, HeaderTimeout: set.header,
	}); err != nil {
		t.Fatal(err)
	}
	if s.Fetcher, err = fetch.New(fetch.Config{Spool: s.spool, Proxies: s.pools, Limits: set.limits, Hosts: set.hosts}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.pools.Close()
		_ = s.spool.Close()
	})
	return s
}

// verdict returns what the engine decides about an error.
func verdict(err error) failure.Verdict {
	return failure.Decide(failure.Rules{Taxonomy: code.Taxonomy(), Classify: code.Classify, Policy: code.Limits{}.Policy()}, store.Lease{}, failure.Outcome{Event: failure.Returned, Err: err})
}

// codeOf returns the code that the engine records for an error; empty for none.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	if v := verdict(err); v.Failure != nil {
		return v.Failure.Code
	}
	return "no failure"
}
