package fetch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// snoozed returns how long a job is sent back to its queue at no cost; 0 if it is not.
func snoozed(err error) time.Duration {
	v := failure.Decide(failure.Rules{}, store.Lease{}, failure.Outcome{Event: failure.Returned, Err: err})
	if err == nil || v.Failure != nil || v.Charge != store.ChargeRelease {
		return 0
	}
	return v.Delay
}

func TestNoMoreDownloadsThanAllowedRunAtOnceFromOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(HostLimits{Concurrency: 3, Wait: time.Hour})
		var mu sync.Mutex
		active, most := map[string]int{}, map[string]int{}
		var all sync.WaitGroup
		for n := range 60 {
			host := fmt.Sprintf("host-%d", n%2)
			all.Go(func() {
				release, err := h.acquire(t.Context(), host, "ada")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				active[host]++
				most[host] = max(most[host], active[host])
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				active[host]--
				mu.Unlock()
				release()
			})
		}
		began := time.Now()
		all.Wait()
		if most["host-0"] != 3 || most["host-1"] != 3 || time.Since(began) != 10*time.Second {
			t.Errorf("%v at once, %v", most, time.Since(began))
		}
	})
}

func TestAHostMayHaveItsOwnLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(HostLimits{Concurrency: 10, Wait: time.Hour, ByHost: map[string]HostManner{"slow.example": {Concurrency: 1, Delay: 3 * time.Second}}})
		for host, want := range map[string]time.Duration{"Slow.example.": 13 * time.Second, "other.example": time.Second} {
			began := time.Now()
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					release, err := h.acquire(t.Context(), host, "ada")
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Second)
					release()
				})
			}
			all.Wait()
			if took := time.Since(began); took != want {
				t.Errorf("%s: %v, want %v", host, took, want)
			}
		}
	})
}

func TestDownloadsFromOneHostBeginOneDelayApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(HostLimits{Concurrency: 10, Delay: 2 * time.Second, Wait: time.Hour})
		began := time.Now()
		var mu sync.Mutex
		var starts []time.Duration
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				release, err := h.acquire(t.Context(), "Host.Example.", "")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				starts = append(starts, time.Since(began))
				mu.Unlock()
				release()
			})
		}
		all.Wait()
		slices.Sort(starts)
		if fmt.Sprint(starts) != "[0s 2s 4s 6s 8s]" {
			t.Errorf("%v", starts)
		}
	})
}

func TestOwnersTakeTurnsAtOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(HostLimits{Concurrency: 1, Wait: time.Hour})
		release, err := h.acquire(t.Context(), "host", "ada")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		for _, owner := range strings.Fields("ada ada ada ada ada bob eve eve") {
			all.Go(func() {
				release, err := h.acquire(t.Context(), "host", owner)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, owner)
				mu.Unlock()
				release()
			})
			synctest.Wait() // they wait in this order
		}
		release()
		all.Wait()
		if got := strings.Join(order, " "); got != "ada bob eve ada eve ada ada ada" {
			t.Error(got)
		}
	})
}

func TestADownloadThatWaitsTooLongGoesBackToItsQueueAtNoCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(HostLimits{Concurrency: 1, Wait: 5 * time.Second})
		release, err := h.acquire(t.Context(), "host", "ada")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := h.acquire(t.Context(), "host", "bob"); snoozed(err) != 5*time.Second || time.Since(began) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		release()
		if release, err = h.acquire(t.Context(), "host", "bob"); err != nil {
			t.Errorf("the one that gave up kept its turn: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := h.acquire(ctx, "host", "eve"); err != context.Canceled {
			t.Errorf("%v", err)
		}
		release()
		if h.byName["host"].active != 0 || len(h.byName["host"].owners) != 0 {
			t.Errorf("%+v", h.byName["host"])
		}
	})
}

func TestAHostThatAskedForAPauseIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(HostLimits{Concurrency: 8, Wait: 5 * time.Second})
		h.pause("host", time.Minute)
		if _, err := h.acquire(t.Context(), "host", "ada"); snoozed(err) != time.Minute {
			t.Errorf("%v", err)
		}
		time.Sleep(57 * time.Second)
		began := time.Now()
		release, err := h.acquire(t.Context(), "host", "ada")
		if err != nil || time.Since(began) != 3*time.Second {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		release()
	})
}

func TestHostsThatNothingUsesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(HostLimits{Concurrency: 1, Wait: time.Second})
		for n := range maxHosts + 10 {
			release, err := h.acquire(t.Context(), fmt.Sprintf("host-%d", n), "")
			if err != nil {
				t.Fatal(err)
			}
			release()
			if n%1000 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		if len(h.byName) > maxHosts {
			t.Errorf("%d hosts are remembered", len(h.byName))
		}
	})
}

func TestTheSpeedIsMeasuredOverTheWholeSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			pause   time.Duration // between blocks of 1000 bytes
			slow    bool
			seconds int
		}{{950 * time.Millisecond, false, 60}, {500 * time.Millisecond, false, 60}, {1500 * time.Millisecond, true, 60}, {time.Hour, true, 60}} {
			ctx, cancel := context.WithCancelCause(t.Context())
			body := watchPace(ticking{c.pause, ctx}, Limits{MinSpeed: 1000, MinSpan: 10 * time.Second}, cancel)
			began := time.Now()
			for ctx.Err() == nil && time.Since(began) < time.Duration(c.seconds)*time.Second {
				_, _ = body.Read(make([]byte, 1000))
			}
			if ended := context.Cause(ctx) != nil; ended != c.slow || ended && time.Since(began) > 20*time.Second {
				t.Errorf("1000 bytes in %v: ended %v after %v", c.pause, context.Cause(ctx), time.Since(began))
			}
			body.end()
			cancel(nil)
		}
	})
}

// A download that waits for the disk and not for the source is not too slow.
func TestTheTimeOfOurOwnDiskDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		body := watchPace(ticking{50 * time.Millisecond, ctx}, Limits{MinSpeed: 1000, MinSpan: 10 * time.Second}, cancel)
		for range 100 {
			if _, err := body.Read(make([]byte, 1000)); err != nil {
				t.Fatal(context.Cause(ctx))
			}
			time.Sleep(5 * time.Second)
		}
		body.end()
		cancel(nil)
	})
}

// ticking returns a block after each pause.
type ticking struct {
	pause time.Duration
	ctx   context.Context
}

func (r ticking) Read(p []byte) (int, error) {
	select {
	case <-time.After(r.pause):
		return len(p), nil
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}
