package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/store"
)

const namespaceBudget = "budget"

// ownerBudgets keep the retries of owners within the budgets that the policy gives them, across all processes. It is safe for concurrent use.
type ownerBudgets struct {
	*core
	policy   *activePolicy
	unsaved  unsavedSpend
	accounts accounts
}

// An account is the body of a record of namespace "budget": what an owner's attempts have used up.
type account struct {
	Day       string  `json:"day"`
	Retries   int     `json:"retries"`
	Cost      float64 `json:"cost"`
	Month     string  `json:"month"`
	MonthSum  int     `json:"month_retries"`
	Exhausted string  `json:"exhausted,omitempty"` // which part of the budget is used up

	Until time.Time `json:"until,omitzero"` // the owner's retries are held until then
}

// unsavedSpend is what owners with a budget have used up and what is not written to their accounts yet.
type unsavedSpend struct {
	mu  sync.Mutex
	all map[string]spend
}

// spend is a number of retries and their cost; negative if they are given back.
type spend struct {
	retries int
	cost    float64
}

// reserve counts a retry of an owner with a budget before it starts. The account is changed by compare-and-set, so the budget is never exceeded, however
// many workers there are. A retry that the budget does not allow is released at no cost, and waits behind the hold that was placed when the
// budget was used up. So is a retry whose account cannot be read or written. First attempts and owners without a budget are not affected.
func (b *ownerBudgets) reserve(a *attempt) (o failure.Outcome, refused bool) {
	if !b.policy.hasBudgets.Load() || a.lease.Owner == "" || a.lease.Failures == 0 {
		return o, false
	}
	set := b.policy.set.Load()
	if _, limited := set.OwnerBudget(a.lease.Owner); !limited {
		return o, false
	}
	why, err := b.chargeOwner(a.lease.Owner, spend{retries: 1, cost: set.Cost(a.lease.Kind)}, true)
	switch {
	case err != nil:
		return failure.Outcome{Event: failure.Held, Err: fmt.Errorf("the budget of its owner could not be read or updated: %w", err), Wait: breakerInterval}, true
	case why != "":
		return failure.Outcome{Event: failure.Held, Err: errors.New("its owner has used up its retry budget: " + why)}, true
	}
	a.retryReserved = true
	return o, false
}

// charge counts an attempt against its owner's budget, if it has one. An attempt that was released or never started costs nothing. A retry that was reserved is
// already counted; if it turns out to cost nothing, it is given back.
func (b *ownerBudgets) charge(o *outcome) {
	lease, set := o.attempt.lease, b.policy.set.Load()
	free := o.attempt.began.IsZero() || o.verdict.Charge == store.ChargeRelease
	if !b.policy.hasBudgets.Load() || o.attempt.retryReserved != free { // reserved and used, or neither: the account is right
		return
	}
	if _, limited := set.OwnerBudget(lease.Owner); !limited {
		return
	}
	one := spend{cost: set.Cost(lease.Kind)}
	if lease.Failures > 0 {
		one.retries = 1
	}
	if o.attempt.retryReserved {
		one = spend{-1, -one.cost}
	}
	s := &b.unsaved
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(lease.Owner, one)
}

// add adds to what an owner has used up. The caller holds the lock.
func (s *unsavedSpend) add(owner string, one spend) {
	if s.all == nil {
		s.all = make(map[string]spend)
	}
	was := s.all[owner]
	s.all[owner] = spend{was.retries + one.retries, was.cost + one.cost}
}

// write writes what owners have used up, besides reserved retries, to their accounts, and what was given back. It holds the retries of owners that have used
// up their budget until the next day or month.
func (b *ownerBudgets) write(context.Context) error {
	b.unsaved.mu.Lock()
	all := b.unsaved.all
	b.unsaved.all = nil
	b.unsaved.mu.Unlock()
	for _, owner := range sortedKeys(all) {
		_, err := b.chargeOwner(owner, all[owner], false)
		if errors.Is(err, holdfast.ErrConflict) {
			continue // it was not written: keep it for the next run
		}
		delete(all, owner)
		if err != nil { // it may have been written; counting it never is better than counting it twice
			b.giveBack(all)
			return err
		}
	}
	if b.giveBack(all); len(all) > 0 {
		return fmt.Errorf("the accounts of %d owners could not be updated: other processes changed them at the same time", len(all))
	}
	return nil
}

// giveBack keeps what was not written for the next run.
func (b *ownerBudgets) giveBack(all map[string]spend) {
	b.unsaved.mu.Lock()
	defer b.unsaved.mu.Unlock()
	for owner, one := range all {
		b.unsaved.add(owner, one)
	}
}

// accounts are the account records as this process last read or wrote them. The lock is held during a write, so that calls of one process do not conflict with
// each other.
type accounts struct {
	mu    sync.Mutex
	known map[string]store.Record // nil: they must be read
}

// chargeOwner writes what one owner uses up to its account. With refuseIfUsedUp nothing is written if the budget is used up already, and refusal says which part
// of it. On a version conflict it re-reads the accounts and tries again, up to 16 times; then it returns ErrConflict.
func (b *ownerBudgets) chargeOwner(owner string, one spend, refuseIfUsedUp bool) (refusal string, err error) {
	limit, limited := b.policy.set.Load().OwnerBudget(owner)
	if !limited {
		return "", nil
	}
	s := &b.accounts
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 16 {
		if s.known == nil {
			records, err := b.records(namespaceBudget)
			if err != nil {
				return "", err
			}
			s.known = make(map[string]store.Record, len(records))
			for _, r := range records {
				s.known[r.Name] = r
			}
		}
		var c store.Change
		r := s.known[owner]
		r.Namespace, r.Name = namespaceBudget, owner
		if c, refusal, err = accountChange(r, limit, one, b.clock.now(), refuseIfUsedUp); err != nil || refusal != "" {
			return refusal, err
		}
		if err = b.keepChange(c); err == nil {
			r = c.Records[0]
			r.Version++
			s.known[owner] = r
			return "", nil
		}
		if s.known = nil; !errors.Is(err, holdfast.ErrConflict) {
			return "", err
		}
	}
	return "", err
}

// accountChange returns the change that adds to the account in r and places or lifts the hold on the retries of its owner.
func accountChange(r store.Record, limit policy.OwnerBudget, one spend, now time.Time, refuseIfUsedUp bool) (c store.Change, refusal string, err error) {
	var a account
	_ = json.Unmarshal(r.Body, &a) // an account that cannot be decoded starts at zero
	if limit.Zone == nil {
		limit.Zone = time.UTC
	}
	now = now.In(limit.Zone)
	a.add(spend{}, now)
	if _, why := a.exhausted(limit, now); refuseIfUsedUp && why != "" {
		return c, why, nil
	}
	a.add(one, now)
	hold := store.Hold{Owner: r.Name, Source: store.SourceBudget, Retries: true, Actor: actorPolicy}
	end, why := a.exhausted(limit, now)
	switch {
	case why != "" && !end.Equal(a.Until):
		hold.For, hold.Reason = end.Sub(now), fmt.Sprintf("%s; retries wait until %s", why, end.Format(time.RFC3339))
		c.Place = []store.Hold{hold}
		c.Events = []store.Event{{Subject: "budget/" + r.Name, Name: "exhausted", Actor: actorSystem, Reason: hold.Reason}}
		a.Exhausted = why
	case why == "" && a.Until.After(now): // a reserved retry was given back
		c.Lift = []store.Hold{hold}
	}
	if a.Until = end; why == "" {
		a.Exhausted = ""
	}
	if r.Body, err = json.Marshal(a); err != nil {
		return c, "", err
	}
	c.Records = []store.Record{r}
	return c, "", nil
}

// add adds to the day and the month of now. A new day or month starts at zero.
func (a *account) add(one spend, now time.Time) {
	if day := now.Format(time.DateOnly); a.Day != day {
		a.Day, a.Retries, a.Cost = day, 0, 0
	}
	if month := now.Format("2006-01"); a.Month != month {
		a.Month, a.MonthSum = month, 0
	}
	// What is given back may have been counted the day before.
	a.Retries, a.MonthSum, a.Cost = max(0, a.Retries+one.retries), max(0, a.MonthSum+one.retries), max(0, a.Cost+one.cost)
}

// exhausted returns which part of the budget is used up and until when; why is empty if none is. If both are used up, the month counts, because it ends later.
func (a *account) exhausted(limit policy.OwnerBudget, now time.Time) (until time.Time, why string) {
	year, month, day := now.Date()
	switch {
	case limit.RetriesPerMonth > 0 && a.MonthSum >= limit.RetriesPerMonth:
		return time.Date(year, month+1, 1, 0, 0, 0, 0, now.Location()), fmt.Sprintf("%d of %d retries this month", a.MonthSum, limit.RetriesPerMonth)
	case limit.RetriesPerDay > 0 && a.Retries >= limit.RetriesPerDay:
		why = fmt.Sprintf("%d of %d retries today", a.Retries, limit.RetriesPerDay)
	case limit.CostPerDay > 0 && a.Cost >= limit.CostPerDay:
		why = fmt.Sprintf("a cost of %.6g of %.6g today", a.Cost, limit.CostPerDay)
	default:
		return until, ""
	}
	return time.Date(year, month, day+1, 0, 0, 0, 0, now.Location()), why
}
