package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// A pool is a set of proxies. Its lock protects the state of its members.
type pool struct {
	name    string
	members []*member

	mu   sync.Mutex
	good map[string]*sighting // sources that answered lately
}

// A sighting is the last time a source answered, and through which member.
type sighting struct {
	at      time.Time
	by      *member
	against []*member // members whose failure at this source counted since then
}

// A member is a proxy with its state.
type member struct {
	Member
	pools   *Pools
	pool    string
	name    string
	address string          // without credentials
	proxy   *url.URL        // without credentials; nil without a proxy
	user    *url.Userinfo   // credentials
	plain   *http.Transport // for http:// URLs through an HTTP proxy, which get the whole request
	tunnel  *http.Transport // for all others

	breaker   breaker.Snapshot
	cool      time.Time // not used before
	coolWhy   string
	coolHosts map[string]time.Time // sources for which it is not used before
	active    int
	good, bad int64
	share     float64       // of uses that succeeded, newer ones count more
	delay     time.Duration // to the header of an answer, newer ones count more
	failure   string
	failedAt  time.Time
}

// A Want says what a way is needed for.
type Want struct {
	Pool   string // Direct when empty
	Avoid  string // the proxy through which the resource could not be downloaded before: not used again if another can be
	Host   string // host:port of the source
	Region string // only proxies of this region; any when empty
}

// Pick chooses a proxy. The caller ends the route. The error has the code DOWNLOAD_PROXY_EXHAUSTED, with the time until one may be usable again, or
// DOWNLOAD_UNKNOWN_POOL.
func (p *Pools) Pick(w Want) (*Route, error) {
	if w.Pool == "" {
		w.Pool = Direct
	}
	if !p.Has(w.Pool, w.Region) {
		err := fmt.Errorf("there is no pool of proxies %.70q with a proxy in the region %.70q", w.Pool, w.Region)
		return nil, failure.WithCode(err, code.DownloadUnknownPool)
	}
	pool, now := p.pools[w.Pool], p.now()
	pool.mu.Lock()
	defer pool.mu.Unlock()
	usable, next := pool.usable(w, now)
	if len(usable) == 0 {
		err := fmt.Errorf("none of the proxies of pool %s is usable at the moment", w.Pool)
		err = failure.WithCode(err, code.DownloadProxyExhausted)
		if wait := next.Sub(now); wait > 0 {
			err = failure.RetryAfter(err, wait)
		}
		return nil, err
	}
	if len(usable) > 1 {
		usable = without(usable, w.Avoid)
	}
	m := pool.draw(usable, p.roll())
	m.active++
	return &Route{member: m, pool: pool, host: w.Host, second: w.Avoid != "" && w.Avoid != m.name}, nil
}

// usable returns the members that can be used now; if there are none, when the first may be.
func (q *pool) usable(w Want, now time.Time) (list []*member, next time.Time) {
	for _, m := range q.members {
		if w.Region != "" && m.Region != w.Region {
			continue
		}
		why, until := m.unusable(w.Host, now)
		if why == "" {
			list = append(list, m)
		} else if next.IsZero() || until.Before(next) {
			next = until
		}
	}
	return list, next
}

func without(list []*member, name string) (rest []*member) {
	for _, m := range list {
		if m.name != name {
			rest = append(rest, m)
		}
	}
	return rest
}

// unusable returns why a member cannot be used for a source, and when that may change.
func (m *member) unusable(host string, now time.Time) (why string, until time.Time) {
	switch at := m.coolHosts[host]; {
	case now.Before(m.cool):
		return m.coolWhy, m.cool
	case now.Before(at):
		return "the source limits the rate of requests through this proxy", at
	case m.proxy == nil: // without a proxy there is nothing that could be at fault but the source
		return "", until
	}
	rules := m.pools.cfg.Breaker
	m.breaker, _ = rules.Tick(m.breaker, now)
	flow := rules.Flow(m.breaker, now)
	switch {
	case flow.Free, flow.PerSecond > 0: // while it recovers, its score keeps its share small
		return "", until
	case m.active < flow.AtMost:
		return "", until
	case flow.AtMost > 0:
		return "it is probed", now.Add(time.Second)
	}
	return "its breaker is open: " + m.failure, m.breaker.Until
}

// draw chooses a member by weight and score. roll is at least 0 and below 1.
func (q *pool) draw(list []*member, roll float64) *member {
	fastest := q.fastest()
	total := 0.0
	for _, m := range list {
		total += m.chance(fastest)
	}
	roll *= total
	for _, m := range list {
		if roll -= m.chance(fastest); roll < 0 {
			return m
		}
	}
	return list[len(list)-1]
}

// chance is the share of a member in the uses of its pool. It never is zero: a member must be used to become better.
func (m *member) chance(fastest time.Duration) float64 {
	return float64(m.Weight) * max(m.score(fastest), 0.02)
}

// score is the share of uses that succeeded, lowered for a member that is slower than the fastest one.
func (m *member) score(fastest time.Duration) float64 {
	if fastest <= 0 || m.delay <= fastest {
		return m.share
	}
	const even = 100 * time.Millisecond // differences below this do not matter
	return m.share * max(float64(fastest+even)/float64(m.delay+even), 0.1)
}

// fastest returns the shortest delay of the members that were used.
func (q *pool) fastest() (least time.Duration) {
	for _, m := range q.members {
		if m.delay > 0 && (least == 0 || m.delay < least) {
			least = m.delay
		}
	}
	return least
}

// A Route is one use of a proxy. It is used by one goroutine, and ended once.
type Route struct {
	member *member
	pool   *pool
	host   string
	delay  time.Duration
	second bool // the resource could not be downloaded through another proxy
}

// Name returns the name of the proxy, as in the context of failures: pool#1 is the first member of a pool.
func (r *Route) Name() string { return r.member.name }

// Outcome says how a use of a proxy ended.
type Outcome struct {
	Err      error // nil, or why the download failed
	Answered bool  // the source answered
	// Either says that the proxy or the source may have caused Err: a time-out, a lost connection, an answer 5xx. An *Error of this package says that itself.
	Either bool
	// Wait is how long the source asked to wait (429): the proxy is not used for this source meanwhile.
	Wait time.Duration
}

// End reports how the use ended. What only the source can have caused counts as a success of the proxy. What either may have caused counts against the proxy only if the
// source has answered through another one since the proxy last failed there, and not if the same resource failed through another proxy before: then the resource is broken.
// So neither a dead source nor a few broken resources of a source close the proxies of the pool.
func (r *Route) End(o Outcome) {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	m, now := r.member, r.member.pools.now()
	m.active--
	failed, isOurs := errors.AsType[*Error](o.Err)
	switch {
	case errors.Is(o.Err, context.Canceled): // the caller gave up
	case o.Wait > 0:
		m.coolFor(r.host, now, min(o.Wait, maxCoolDown))
		m.observe(now, "")
	case isOurs && failed.rests():
		m.cool, m.coolWhy = now.Add(min(orDefault(failed.RetryAfter, m.pools.cfg.CoolDown), maxCoolDown)), failed.Error()
		m.observe(now, failed.Error())
	case isOurs && !failed.Either:
		m.observe(now, failed.Error())
	case isOurs, o.Either:
		if r.second {
			return
		}
		if seen := r.pool.good[r.host]; seen != nil && seen.by != m && !slices.Contains(seen.against, m) && now.Sub(seen.at) < memory {
			seen.against = append(seen.against, m)
			m.observe(now, fmt.Sprint(o.Err))
		}
	case o.Answered:
		r.pool.remember(r.host, &sighting{at: now, by: m})
		m.observe(now, "")
		m.delay = blend(m.delay, r.delay)
	}
}

const (
	memory   = 10 * time.Minute // how long an answer of a source counts
	maxHosts = 4096             // sources that a pool and a member remember
)

// remember stores that a source answered. When there are too many, the old ones are forgotten.
func (q *pool) remember(host string, s *sighting) {
	if len(q.good) >= maxHosts {
		for known, old := range q.good {
			if s.at.Sub(old.at) > memory || len(q.good) >= maxHosts {
				delete(q.good, known)
			}
		}
	}
	q.good[host] = s
}

// coolFor keeps a member from being used for a source.
func (m *member) coolFor(host string, now time.Time, d time.Duration) {
	if len(m.coolHosts) >= maxHosts {
		for known, until := range m.coolHosts {
			if !now.Before(until) || len(m.coolHosts) >= maxHosts {
				delete(m.coolHosts, known)
			}
		}
	}
	m.coolHosts[host] = now.Add(d)
}

// observe counts a use in the score and in the breaker. problem is empty for a success.
func (m *member) observe(now time.Time, problem string) {
	o := breaker.Observation{Calls: 1, Message: problem}
	if problem == "" {
		m.good++
		m.share += (1 - m.share) / 5
	} else {
		o.Failures = 1
		m.bad++
		m.share -= m.share / 5
		m.failure, m.failedAt = problem, now
	}
	if m.proxy != nil {
		m.breaker, _ = m.pools.cfg.Breaker.Observe(m.breaker, o, now)
	}
}

// blend moves an average a fifth of the way to a new value.
func blend(old, d time.Duration) time.Duration {
	if old == 0 {
		return d
	}
	return old + (d-old)/5
}

// Usable reports whether another proxy of the pool could be used now for the same source.
func (r *Route) Usable(region string) bool {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	list, _ := r.pool.usable(Want{Host: r.host, Region: region}, r.member.pools.now())
	return len(without(list, r.member.name)) > 0
}
