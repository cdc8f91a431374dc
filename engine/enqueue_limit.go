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
	"github.com/holdfastdev/holdfast/store"
)

const namespaceEnqueue = "enqueue"

// A LimitStore reads and writes records. Every store is one.
type LimitStore interface {
	Records(ctx context.Context, namespace string) ([]store.Record, error)
	Apply(ctx context.Context, c store.Change) error
}

// Limits enforces the rate at which the policy allows each owner to enqueue, across all processes. The token bucket of an owner is a record; a process takes tokens
// from it, by compare-and-set, before it uses them. So no owner enqueues more than rate × time + burst jobs, even if processes crash; a process that is killed
// loses a few tokens at most. It is safe for concurrent use.
type Limits struct {
	ledger LimitStore

	mu           sync.Mutex
	policy       *activePolicy
	policyReadAt time.Time // when the policy in the store was last read
	owners       map[string]*ownerBucket
}

// NewLimits creates the limits of one process. A policy that an operator applies to the store replaces policies within seconds. An owner without a limit in the
// policy is not limited.
func NewLimits(ledger LimitStore, policies *policy.Set) *Limits {
	return &Limits{ledger: ledger, policy: newActivePolicy(policies, nil), owners: make(map[string]*ownerBucket)}
}

// policies returns the policy in force. While the policy in the store cannot be read, the last one stays in force.
func (l *Limits) policies(ctx context.Context) *policy.Set {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.policyReadAt.IsZero() || time.Since(l.policyReadAt) >= policyInterval {
		l.policyReadAt = time.Now()
		if records, err := l.ledger.Records(ctx, namespacePolicy); err == nil {
			_, _ = l.policy.read(records) // engines log an invalid one
		}
	}
	return l.policy.set.Load()
}

// Limited returns an enqueuer that passes drafts on to to, and refuses those of owners that have reached their limit with ErrThrottled and RetryAfter. to is a
// store, or a store bound to a transaction.
func (l *Limits) Limited(to holdfast.Enqueuer) holdfast.Enqueuer { return &limited{l, to} }

type limited struct {
	limits *Limits
	to     holdfast.Enqueuer
}

// Enqueue takes a token for every draft with an owner, then enqueues the drafts. Drafts that the store refuses, or that are duplicates by their key, use up their
// tokens too.
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

// takeAll takes tokens of several owners, all or none. On a refusal the tokens already taken stay with this process for later calls.
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

func (l *Limits) of(owner string) *ownerBucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.owners[owner]
	if a == nil {
		a = &ownerBucket{ledger: l.ledger}
		l.owners[owner] = a
	}
	return a
}

// An ownerBucket is the token bucket of one owner as this process knows it, and the tokens that this process has taken from it.
type ownerBucket struct {
	ledger LimitStore

	mu      sync.Mutex
	known   bool
	version int
	bucket  bucket
	clock   clock
	tokens  float64 // taken from the bucket and not used yet
}

// A bucket is the body of a record of namespace "enqueue": how many tokens it had at that time of the store's clock.
type bucket struct {
	Level float64   `json:"level"`
	At    time.Time `json:"at,omitzero"` // zero: when the record was written
}

type bucketRate struct {
	owner            string
	perSecond, burst float64
}

func (a *ownerBucket) putBack(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens += float64(n)
}

// take takes n tokens, from those of this process or else from the owner's bucket. On a version conflict it re-reads the bucket, up to 50 times.
func (a *ownerBucket) take(ctx context.Context, n int, r bucketRate) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if float64(n) > math.Floor(r.burst) {
		return refuse(true, "%d jobs of owner %q at once: its limit allows %v; enqueue fewer at a time", n, r.owner, math.Floor(r.burst))
	}
	for tries := 0; a.tokens < float64(n); tries++ {
		err := a.refill(ctx, float64(n)-a.tokens, r)
		if err == nil {
			break
		}
		if !errors.Is(err, holdfast.ErrConflict) || tries >= 50 {
			return err
		}
		a.known = false // another process changed the bucket
	}
	a.tokens -= float64(n)
	return nil
}

// refill moves tokens from the owner's bucket to this process: what is needed, plus a twentieth of the rate or burst, so that the next drafts need no write.
func (a *ownerBucket) refill(ctx context.Context, need float64, r bucketRate) error {
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
			Err: holdfast.ErrThrottled, RetryAfter: max(wait, time.Millisecond),
			Message: fmt.Sprintf("owner %q has reached its enqueue limit of %v jobs a second: try again in %v", r.owner, r.perSecond, wait.Round(time.Millisecond)),
		}
	}
	taken := min(level, need+min(r.perSecond, r.burst)/20)
	next := bucket{Level: level - taken, At: at}
	if err := a.keep(ctx, next, r.owner); err != nil {
		a.known = false
		return err
	}
	a.tokens += taken
	return nil
}

// read reads the owner's bucket, and creates a full one if there is none. The time of a new bucket is when the store wrote it.
func (a *ownerBucket) read(ctx context.Context, r bucketRate) error {
	for range 2 {
		if a.known {
			return nil
		}
		records, err := a.ledger.Records(ctx, namespaceEnqueue)
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
	return &holdfast.Error{Err: holdfast.ErrConflict, Message: "other processes are changing the enqueue limit of " + r.owner + ": try again"}
}

func (a *ownerBucket) keep(ctx context.Context, b bucket, owner string) error {
	body, err := json.Marshal(b)
	if err != nil {
		return err
	}
	record := store.Record{Namespace: namespaceEnqueue, Name: owner, Version: a.version, Body: body}
	if err := a.ledger.Apply(ctx, store.Change{Records: []store.Record{record}}); err != nil {
		return err
	}
	a.version++
	a.bucket, a.known = b, true
	return nil
}

// CreateGroup creates the group. Only jobs are limited.
func (l *limited) CreateGroup(ctx context.Context, g holdfast.Group) (holdfast.Group, error) {
	return l.to.CreateGroup(ctx, g)
}

// SealGroup seals the group.
func (l *limited) SealGroup(ctx context.Context, group holdfast.ID) error {
	return l.to.SealGroup(ctx, group)
}
