package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/policy"
)

const (
	roomBudget = "budget"
	// budgetIdle is for how long after the last bad call the retries of a dependency are counted. A bucket that is full limits
	// nobody, so until something fails there is none.
	budgetIdle = 10 * time.Minute
)

// holdRetries keeps the retries of a dependency within its budget: they take tokens from a bucket that first attempts fill.
func (e *Engine) holdRetries(d *dependency, next *circuit, how howTo, c *holdfast.Change) {
	now := e.clock.now()
	troubled := !next.Failed.IsZero() && now.Sub(next.Failed) < budgetIdle || next.Budget != nil && next.Flow != nil && !next.Flow.Free
	h := holdfast.Hold{Dependency: d.name, Source: holdfast.SourceBudget, Retries: true, Actor: actorSystem}
	if how.NoBudget || !troubled {
		if next.Budget != nil {
			next.Budget = nil
			c.Lift = append(c.Lift, h)
		}
		return
	}
	due := &d.ledger.due
	perSecond, burst, level := how.Budget.Rate()
	tokens := how.Budget.Deposit(due.firsts, due.good)
	want := holdfast.Rate{PerSecond: perSecond, Burst: burst}
	if next.Budget == nil || *next.Budget != want {
		next.Budget = &want
		h.Rate = &holdfast.Rate{PerSecond: perSecond, Burst: burst, Level: min(burst, level+tokens)}
		h.Reason = "retries share a budget with first attempts"
		c.Place = append(c.Place, h)
		return
	}
	if tokens > 0 {
		c.Deposits = append(c.Deposits, holdfast.Deposit{Hold: h, Tokens: tokens})
	}
}

// An account is what an owner's attempts have used up: a record of room "budget".
type account struct {
	Day       string  `json:"day"`
	Retries   int     `json:"retries"`
	Cost      float64 `json:"cost"`
	Month     string  `json:"month"`
	MonthSum  int     `json:"month_retries"`
	Exhausted string  `json:"exhausted,omitempty"` // what was used up first

	Until time.Time `json:"until,omitzero"` // its retries wait until then
}

// spending is what owners with a budget used up since it was last written down.
type spending struct {
	mu  sync.Mutex
	all map[string]spent
}

type spent struct {
	retries int
	cost    float64
}

// charge counts an attempt against its owner's budget, if the policy gives it one.
func (e *Engine) charge(o *outcome) {
	lease, set := o.attempt.lease, e.rulings.set.Load()
	if !e.rulings.budgets.Load() || o.attempt.began.IsZero() {
		return
	}
	if _, limited := set.OwnerBudget(lease.Owner); !limited {
		return
	}
	one := spent{cost: set.Cost(lease.Kind)}
	if lease.Failures > 0 {
		one.retries = 1
	}
	s := &e.spending
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(lease.Owner, one)
}

// add counts. Caller holds the lock.
func (s *spending) add(owner string, one spent) {
	if s.all == nil {
		s.all = make(map[string]spent)
	}
	was := s.all[owner]
	s.all[owner] = spent{was.retries + one.retries, was.cost + one.cost}
}

// budgets writes down what owners used up, and holds the retries of those who have used up their budget until it is filled
// again. Attempts under way are not called back, so an owner may end a little above.
func (e *Engine) budgets(context.Context) error {
	e.spending.mu.Lock()
	all := e.spending.all
	e.spending.all = nil
	e.spending.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	err := e.bookSpending(all)
	if err != nil {
		e.spending.mu.Lock()
		defer e.spending.mu.Unlock()
		for owner, one := range all {
			e.spending.add(owner, one)
		}
	}
	return err
}

// bookSpending takes from all what it has written down.
func (e *Engine) bookSpending(all map[string]spent) error {
	for range 8 {
		records, err := e.records(roomBudget)
		if err != nil {
			return err
		}
		known := make(map[string]holdfast.Record, len(records))
		for _, r := range records {
			known[r.Name] = r
		}
		conflict := false
		for _, owner := range sortedKeys(all) {
			switch err := e.book1(known[owner], owner, all[owner]); {
			case err == nil:
				delete(all, owner)
			case errors.Is(err, holdfast.ErrConflict):
				conflict = true
			default:
				delete(all, owner) // perhaps it was written: better once too few than twice
				return err
			}
		}
		if !conflict {
			return nil
		}
	}
	return fmt.Errorf("what %d owners used up could not be written down yet: others write too", len(all))
}

// book1 writes down what one owner used up.
func (e *Engine) book1(r holdfast.Record, owner string, one spent) error {
	limit, limited := e.rulings.set.Load().OwnerBudget(owner)
	if !limited {
		return nil
	}
	var a account
	_ = json.Unmarshal(r.Body, &a) // one that cannot be read begins anew
	zone := limit.Zone
	if zone == nil {
		zone = time.UTC
	}
	now := e.clock.now().In(zone)
	a.add(one, now)
	r.Room, r.Name = roomBudget, owner
	c := holdfast.Change{}
	end, why := a.exhausted(limit, now)
	if why != "" && !end.Equal(a.Until) {
		reason := fmt.Sprintf("%s; retries wait until %s", why, end.Format(time.RFC3339))
		c.Place = []holdfast.Hold{{
			Owner: owner, Source: holdfast.SourceBudget, Retries: true, For: end.Sub(now), Actor: actorPolicy, Reason: reason,
		}}
		c.Events = []holdfast.Event{{Subject: "budget/" + owner, Name: "exhausted", Actor: actorSystem, Reason: reason}}
		a.Exhausted = why
	}
	if a.Until = end; why == "" {
		a.Exhausted = ""
	}
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	r.Body = body
	c.Records = []holdfast.Record{r}
	return e.keepChange(c)
}

// add counts what was used up, in the day and the month of now.
func (a *account) add(one spent, now time.Time) {
	if day := now.Format(time.DateOnly); a.Day != day {
		a.Day, a.Retries, a.Cost = day, 0, 0
	}
	if month := now.Format("2006-01"); a.Month != month {
		a.Month, a.MonthSum = month, 0
	}
	a.Retries, a.MonthSum, a.Cost = a.Retries+one.retries, a.MonthSum+one.retries, a.Cost+one.cost
}

// exhausted says what is used up, and when it will be filled again. The longest wait counts.
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
