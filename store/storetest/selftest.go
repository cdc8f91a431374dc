package storetest

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// SelfTest shows that the model check finds defects: it wraps a correct store with one deliberate defect after another, and fails if a defect is not
// noticed. It tries every n-th defect by name: 1 tries them all.
func SelfTest(t *testing.T, h Harness, every int) {
	subject := h.Open(t)
	good := subject.Store
	t.Run("a correct store passes", func(t *testing.T) { runCheck(t, subject, 20) })
	maps.Copy(defects, controlDefects)
	maps.Copy(defects, groupDefects)
	for i, name := range slices.Sorted(maps.Keys(defects)) {
		if i%every != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			subject.Store = defects[name](good)
			defer func() { subject.Store = good }()
			complaint := complaintOf(t, subject)
			if complaint == "" {
				t.Error("the model check did not notice")
			}
			t.Logf("noticed: %s", firstLine(complaint))
		})
	}
}

// complaintOf runs the model check where it may fail, and returns its failure.
func complaintOf(t *testing.T, subject *Subject) string {
	before := flag.Lookup("rapid.shrinktime").Value.String()
	_ = flag.Set("rapid.shrinktime", "1ms")
	defer func() { _ = flag.Set("rapid.shrinktime", before) }()
	r := &recorder{TB: t}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		runCheck(r, subject, 2000)
	}()
	<-finished
	return strings.Join(r.said, "\n")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// A recorder is a testing.TB that records failures instead of failing.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Log(...any)          {}
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Error(args ...any)   { r.said = append(r.said, fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatal(args ...any)                 { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); runtime.Goexit() }
func (r *recorder) Fail()                             { r.Error("failed") }
func (r *recorder) FailNow()                          { r.Error("failed"); runtime.Goexit() }
func (r *recorder) Failed() bool                      { return len(r.said) > 0 }

// defects are typical defects of stores.
var defects = map[string]func(store.Store) store.Store{
	"the same jobs claimed twice": func(s store.Store) store.Store { return &claimsTwice{Store: s} },
	"no fence: any token settles": func(s store.Store) store.Store {
		return &noFence{Store: s, held: map[holdfast.ID]store.Lease{}}
	},
	"acknowledged and never written": func(s store.Store) store.Store { return losesOne{s} },
	"retries at once": func(s store.Store) store.Store {
		return settlesAs{s, func(e *store.Settlement) { e.Delay = 0 }}
	},
	"a crash counted as a failure": func(s store.Store) store.Store { return settlesAs{s, crashAsFailure} },
	"a result that is dropped": func(s store.Store) store.Store {
		return settlesAs{s, func(e *store.Settlement) { e.Result = nil }}
	},
	"a late result without evidence": func(s store.Store) store.Store {
		return &noEvidence{noFence{Store: s, held: map[holdfast.ID]store.Lease{}}}
	},
	"nothing is ever reclaimed":      func(s store.Store) store.Store { return neverReclaims{s} },
	"a renewal that renews nothing":  func(s store.Store) store.Store { return neverRenews{s} },
	"a cancel request that is lost":  func(s store.Store) store.Store { return forgetsCancel{s} },
	"a retry that ignores the owner": func(s store.Store) store.Store { return noOwner{s} },
	"a hold that holds nothing":      func(s store.Store) store.Store { return neverHolds{s} },
	"a hold that cannot be lifted":   func(s store.Store) store.Store { return neverResumes{s} },
	"a promotion of one job only":    func(s store.Store) store.Store { return promotesLess{s} },
	"a claim that ignores its kinds": func(s store.Store) store.Store {
		return claimsAs{s, func(c *store.Claim) {
			if len(c.Queues) > 0 {
				c.Kinds = nil
			}
		}}
	},
	"a claim that ignores an owner's slots": func(s store.Store) store.Store {
		return claimsAs{s, func(c *store.Claim) { c.OwnerSlots, c.Busy = 0, nil }}
	},
}

type claimsAs struct {
	store.Store
	change func(*store.Claim)
}

func (s claimsAs) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	s.change(&c)
	return s.Store.Claim(ctx, c)
}

type claimsTwice struct {
	store.Store
	last []store.Lease
}

func (s *claimsTwice) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	leases, err := s.Store.Claim(ctx, c)
	if len(leases) > 0 {
		s.last = leases
	}
	return s.last, err
}

// noFence settles by the lease that is held now, whatever lease the caller had: the state is the only fence.
type noFence struct {
	store.Store
	held map[holdfast.ID]store.Lease
}

func (s *noFence) hold(leases []store.Lease, err error) ([]store.Lease, error) {
	for _, l := range leases {
		s.held[l.ID] = l
	}
	return leases, err
}

func (s *noFence) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	return s.hold(s.Store.Claim(ctx, c))
}

func (s *noFence) Reclaim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	return s.hold(s.Store.Reclaim(ctx, c))
}

func (s *noFence) Expire(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	return s.hold(s.Store.Expire(ctx, c))
}

func (s *noFence) Settle(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	forged := slices.Clone(settlements)
	for i, e := range forged {
		if l, ok := s.held[e.Job]; ok {
			forged[i].Batch, forged[i].Token = l.Batch, l.Token
		}
	}
	return s.Store.Settle(ctx, forged)
}

// noEvidence refuses a stale settlement without keeping evidence.
type noEvidence struct{ noFence }

func (s *noEvidence) Settle(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	answers := make([]error, len(settlements))
	for i, e := range settlements {
		if l := s.held[e.Job]; l.Batch != e.Batch || l.Token != e.Token {
			answers[i] = holdfast.ErrLeaseLost
			continue
		}
		one, err := s.Store.Settle(ctx, settlements[i:i+1])
		if err != nil {
			return nil, err
		}
		answers[i] = one[0]
	}
	return answers, nil
}

type losesOne struct{ store.Store }

func (s losesOne) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	if len(drafts) < 3 {
		return s.Store.Enqueue(ctx, drafts)
	}
	receipts, err := s.Store.Enqueue(ctx, drafts[:2])
	return append(receipts, holdfast.Receipt{ID: drafts[2].ID}), err
}

type settlesAs struct {
	store.Store
	change func(*store.Settlement)
}

func (s settlesAs) Settle(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	changed := slices.Clone(settlements)
	for i := range changed {
		s.change(&changed[i])
	}
	return s.Store.Settle(ctx, changed)
}

func crashAsFailure(e *store.Settlement) {
	if e.Charge == store.ChargeCrash {
		e.Charge = store.ChargeFailure
	}
}

type neverReclaims struct{ store.Store }

func (neverReclaims) Reclaim(context.Context, store.Claim) ([]store.Lease, error) {
	return nil, nil
}

type neverRenews struct{ store.Store }

func (neverRenews) Renew(context.Context, []store.Renewal, time.Duration) (store.RenewResult, error) {
	return store.RenewResult{}, nil
}

type forgetsCancel struct{ store.Store }

func (s forgetsCancel) Cancel(ctx context.Context, i store.Intervention) (holdfast.State, error) {
	if job, err := s.Store.Job(ctx, i.Job); err == nil && job.State == holdfast.Processing && i.Actor != "" && i.Owner == "" {
		return holdfast.Processing, nil
	}
	return s.Store.Cancel(ctx, i)
}

type noOwner struct{ store.Store }

func (s noOwner) Retry(ctx context.Context, i store.Intervention) (int, error) {
	i.Owner = ""
	return s.Store.Retry(ctx, i)
}

type neverHolds struct{ store.Store }

func (neverHolds) Pause(context.Context, store.Hold) error { return nil }

type neverResumes struct{ store.Store }

func (neverResumes) Resume(context.Context, store.Hold) error { return nil }

type promotesLess struct{ store.Store }

func (s promotesLess) Promote(ctx context.Context, _ int) (int, error) {
	return s.Store.Promote(ctx, 1)
}
