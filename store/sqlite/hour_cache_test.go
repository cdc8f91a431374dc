package sqlite_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// A chronicle is a store that is used for days, by a clock that the test sets, and what was settled in it.
type chronicle struct {
	testing.TB
	path    string
	clock   atomic.Int64 // microseconds
	store   *sqlite.Store
	settled int
	failed  []failedAt
}

type failedAt struct {
	fingerprint, kind, queue string
	step                     time.Time
}

func newChronicle(t testing.TB) *chronicle {
	c := &chronicle{TB: t, path: filepath.Join(t.TempDir(), "jobs.db")}
	c.clock.Store(time.Date(2026, 5, 4, 9, 58, 30, 0, time.UTC).UnixMicro())
	c.store = c.open()
	c.Cleanup(func() { _ = c.store.Close() })
	return c
}

func (c *chronicle) now() time.Time { return time.UnixMicro(c.clock.Load()).UTC() }

func (c *chronicle) pass(d time.Duration) { c.clock.Add(d.Microseconds()) }

func (c *chronicle) open() *sqlite.Store {
	c.Helper()
	db, err := sqlite.Open(c.Context(), sqlite.Config{Path: c.path, Clock: c.now})
	c.must(err)
	return db
}

func (c *chronicle) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// settle ends a job now: in turn it fails, for one of three reasons, or completes.
func (c *chronicle) settle() {
	c.Helper()
	n := c.settled
	c.settled++
	kind, queue := fmt.Sprint("kind", n%5), fmt.Sprint("q", n%3)
	_, err := c.store.Enqueue(c.Context(), []holdfast.Draft{{Kind: kind, Queue: queue}})
	c.must(err)
	leases, err := c.store.Claim(c.Context(), store.Claim{Worker: "w", Queues: []string{queue}, Limit: 1, Start: 1, Lease: time.Minute})
	c.must(err)
	if len(leases) != 1 {
		c.Fatalf("claimed %d jobs", len(leases))
	}
	s := store.Settlement{Batch: leases[0].Batch, Job: leases[0].ID, Token: leases[0].Token, To: holdfast.Complete, Queue: queue, Version: fmt.Sprint("v", n/20)}
	if n%4 != 3 {
		name := fmt.Sprint("f", n%4)
		s.To, s.Charge, s.Limit = holdfast.Failed, store.ChargeFailure, 9
		s.Failure = &holdfast.Failure{Code: "TIMEOUT", Category: "timeout", Message: "it took too long", Fingerprint: name}
		c.failed = append(c.failed, failedAt{name, kind, queue, c.now().Truncate(5 * time.Minute)})
	}
	answers, err := c.store.Settle(c.Context(), []store.Settlement{s})
	c.must(err)
	c.must(answers[0])
}

// agree compares the store's answers with those of a store that was just opened and has cached nothing.
func (c *chronicle) agree(when string) {
	c.Helper()
	fresh := c.open()
	defer func() { _ = fresh.Close() }()
	if diff := cmp.Diff(c.tell(fresh), c.tell(c.store)); diff != "" {
		c.Errorf("%s, at %v: %s", when, c.now(), diff)
	}
}

type retold struct {
	Groups   []store.ErrorGroup
	One, Two []store.ErrorTrend
	Trends   []store.Trend
}

func (c *chronicle) tell(db *sqlite.Store) (all retold) {
	c.Helper()
	var errs [4]error
	names := []string{"f0", "f1", "f2"}
	const week = 7 * 24 * time.Hour
	all.Groups, _, errs[0] = db.ErrorGroups(c.Context(), store.ErrorFilter{})
	all.One, errs[1] = db.ErrorTrends(c.Context(), names, week, time.Hour)
	all.Two, errs[2] = db.ErrorTrends(c.Context(), names, week, 2*time.Hour)
	all.Trends, errs[3] = db.Trends(c.Context(), week, 2*time.Hour)
	for _, err := range errs {
		c.must(err)
	}
	return all
}

// counted compares the store's error groups with what was settled.
func (c *chronicle) counted() {
	c.Helper()
	for _, g := range c.tell(c.store).Groups {
		want := store.ErrorGroup{}
		for _, f := range c.failed {
			if f.fingerprint != g.Fingerprint {
				continue
			}
			age := c.now().Sub(f.step.Add(5 * time.Minute))
			for lasts, n := range map[time.Duration]*int{1: &want.LastHour, 3: &want.Last3Hours, 24: &want.LastDay, 168: &want.LastWeek} {
				if age < lasts*time.Hour {
					*n++
				}
			}
			want.Kinds, want.Queues = append(want.Kinds, f.kind), append(want.Queues, f.queue)
		}
		slices.Sort(want.Kinds)
		slices.Sort(want.Queues)
		got := store.ErrorGroup{LastHour: g.LastHour, Last3Hours: g.Last3Hours, LastDay: g.LastDay, LastWeek: g.LastWeek, Kinds: g.Kinds, Queues: g.Queues}
		want.Kinds, want.Queues = slices.Compact(want.Kinds), slices.Compact(want.Queues)
		if diff := cmp.Diff(want, got); diff != "" {
			c.Errorf("%s at %v: %s", g.Fingerprint, c.now(), diff)
		}
	}
}

func TestAStoreThatLivesLongCountsAsOneThatWasJustOpened(t *testing.T) {
	c := newChronicle(t)
	for n := range 100 {
		c.settle()
		if n%3 == 0 {
			c.agree("day after day")
			c.counted()
		}
		c.pass([]time.Duration{time.Second, 37 * time.Minute, 4 * time.Minute, 56 * time.Minute}[n%4] + time.Duration(n)*time.Millisecond)
	}
	for _, by := range []time.Duration{-20 * time.Minute, -150 * time.Minute, 10 * time.Minute, 55 * time.Minute, 3 * time.Hour, -150 * time.Minute, 160 * time.Minute, 26 * time.Hour} {
		c.pass(by)
		c.settle()
		c.settle()
		c.agree("after the clock stepped by " + by.String())
	}
	c.counted()
	forgotten, err := c.store.DeleteHistory(c.Context(), store.HistoryCounts, 30*time.Hour, 1_000)
	if err != nil || forgotten == 0 {
		t.Fatalf("forgot %d, error %v", forgotten, err)
	}
	c.pass(time.Hour)
	c.agree("an hour after counts were deleted")
	c.pass(8 * 24 * time.Hour)
	c.agree("after a week of nothing")
}
