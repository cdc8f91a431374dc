package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/policy"
)

const roomEnqueue = "enqueue"

// A Ledger keeps records. Every store is one.
type Ledger interface {
	Records(ctx context.Context, room string) ([]holdfast.Record, error)
	Keep(ctx context.Context, c holdfast.Change) error
}

// Limits keeps owners to the rate at which their policy lets them enqueue, in all processes together: an owner's bucket is a
// record, and a process takes tokens from it before it spends them. So nobody gets more than rate × time + burst, whatever
// crashes; a process that is killed takes along a few tokens at most.
type Limits struct {
	ledger Ledger

	mu      sync.Mutex
	rulings *rulings
	looked  time.Time // when the policy in the store was last looked at
	owners  map[string]*allowance
}

// NewLimits makes the limits of one process. A policy that was applied to the store replaces the one given here, within
// seconds. A policy that says nothing of an owner does not limit it.
func NewLimits(ledger Ledger, policies *policy.Set) *Limits {
	return &Limits{ledger: ledger, rulings: newRulings(policies, nil), owners: make(map[string]*allowance)}
}

// policies are those in force. While the store's cannot be read the last ones stay.
func (l *Limits) policies(ctx context.Context) *policy.Set {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.looked.IsZero() || time.Since(l.looked) >= policyBeat {
		l.looked = time.Now()
		if records, err := l.ledger.Records(ctx, roomPolicy); err == nil {
			_, _ = l.rulings.read(records) // engines complain of a bad one
		}
	}
	return l.rulings.set.Load()
}

// Limited answers with an enqueuer that refuses, with ErrThrottled and RetryAfter, the drafts of owners who ask too often. to
// is a store, or what it bound to a transaction.
func (l *Limits) Limited(to holdfast.Enqueuer) holdfast.Enqueuer { return &limited{l, to} }

type limited struct {
	limits *Limits
	to     holdfast.Enqueuer
}

// Enqueue takes a token for every draft, then passes them on. Drafts that are refused for another reason, or that meet a twin, have
// cost theirs.
func (l *limited) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	wanted := make(map[string]int)
	for i := range drafts {
		if owner := drafts[i].Owner; owner != "" {
			wanted[owner]++
		}
	}
	if err := l.limits.takeAll(ctx, wanted); err != nil {
		return nil, err
	}
	return l.to.Enqueue(ctx, drafts)
}

// takeAll takes tokens of several owners, all or none: what was taken before a refusal stays at hand for the next time.
func (l *Limits) takeAll(ctx context.Context, wanted map[string]int) error {
	set := l.policies(ctx)
	took := make(map[string]int)
	for _, owner := range sortedKeys(wanted) {
		rate, limited := set.EnqueueRate(owner)
		if !limited {
			continue
		}
		if err := l.of(owner).take(ctx, wanted[owner], bucketRate{owner, rate.PerSecond, rate.Burst}); err != nil {
			for before, n := range took {
				l.of(before).putBack(n)
			}
			return err
		}
		took[owner] = wanted[owner]
	}
	return nil
}

func (l *Limits) of(owner string) *allowance {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.owners[owner]
	if a == nil {
		a = &allowance{ledger: l.ledger}
		l.owners[owner] = a
	}
	return a
}

// An allowance is one owner's bucket as this process knows it, and the tokens it has at hand.
type allowance struct {
	ledger Ledger

	mu      sync.Mutex
	known   bool
	version int
	bucket  bucket
	clock   clock
	reserve float64
}

// A bucket is the body of a record: so many tokens at that instant of the store's clock.
type bucket struct {
	Level float64   `json:"level"`
	At    time.Time `json:"at,omitzero"` // when the record was kept, if zero
}

type bucketRate struct {
	owner            string
	perSecond, burst float64
}

func (a *allowance) putBack(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reserve += float64(n)
}

// take takes n tokens, from what is at hand or else from the owner's bucket.
func (a *allowance) take(ctx context.Context, n int, r bucketRate) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if float64(n) > math.Floor(r.burst) {
		return refuse(true, "%d jobs of %q at once: its limit lets %v through together; enqueue fewer at a time", n, r.owner, math.Floor(r.burst))
	}
	for tries := 0; a.reserve < float64(n); tries++ {
		err := a.withdraw(ctx, float64(n)-a.reserve, r)
		if err == nil {
			break
		}
		if !errors.Is(err, holdfast.ErrConflict) || tries >= 50 {
			return err
		}
		a.known = false // somebody else was faster
	}
	a.reserve -= float64(n)
	return nil
}

// withdraw moves tokens from the bucket to this process: what is needed, and a little more so that the next ones cost no
// write.
func (a *allowance) withdraw(ctx context.Context, need float64, r bucketRate) error {
	if err := a.read(ctx, r); err != nil {
		return err
	}
	now := a.clock.now()
	level := a.bucket.Level
	at := a.bucket.At
	if now.After(at) {
		level, at = min(r.burst, level+now.Sub(at).Seconds()*r.perSecond), now
	}
	if level < need {
		wait := time.Minute
		if r.perSecond > 0 {
			wait = time.Duration(min((need-level)/r.perSecond, 86400) * float64(time.Second))
		}
		return &holdfast.Error{
			Kind: holdfast.ErrThrottled, RetryAfter: max(wait, time.Millisecond),
			Message: fmt.Sprintf("%q has enqueued as much as its limit of %v a second allows: ask again in %v", r.owner, r.perSecond, wait.Round(time.Millisecond)),
		}
	}
	taken := min(level, need+min(r.perSecond, r.burst)/20)
	next := bucket{Level: level - taken, At: at}
	if err := a.keep(ctx, next, r.owner); err != nil {
		a.known = false
		return err
	}
	a.reserve += taken
	return nil
}

// read finds the owner's bucket, and makes a full one if there is none. The time of a new one is the store's word.
func (a *allowance) read(ctx context.Context, r bucketRate) error {
	for range 2 {
		if a.known {
			return nil
		}
		records, err := a.ledger.Records(ctx, roomEnqueue)
		if err != nil {
			return err
		}
		a.version = 0
		for _, record := range records {
			if record.Name != r.owner {
				continue
			}
			a.version, a.bucket = record.Version, bucket{}
			if json.Unmarshal(record.Body, &a.bucket) != nil || a.bucket.At.IsZero() {
				a.bucket.At = record.KeptAt
			}
			a.clock.set(record.AsOf)
			a.known = true
		}
		if a.known {
			return nil
		}
		if err := a.keep(ctx, bucket{Level: r.burst}, r.owner); err != nil && !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
		a.known = false
	}
	return &holdfast.Error{Kind: holdfast.ErrConflict, Message: "the enqueue limit of " + r.owner + " is being changed: ask again"}
}

func (a *allowance) keep(ctx context.Context, b bucket, owner string) error {
	body, err := json.Marshal(b)
	if err != nil {
		return err
	}
	record := holdfast.Record{Room: roomEnqueue, Name: owner, Version: a.version, Body: body}
	if err := a.ledger.Keep(ctx, holdfast.Change{Records: []holdfast.Record{record}}); err != nil {
		return err
	}
	a.version++
	a.bucket, a.known = b, true
	return nil
}

// Gather passes the group on: what is limited are jobs.
func (l *limited) Gather(ctx context.Context, g holdfast.Group) (holdfast.Group, error) {
	return l.to.Gather(ctx, g)
}

// Seal passes it on.
func (l *limited) Seal(ctx context.Context, group holdfast.ID) error { return l.to.Seal(ctx, group) }
