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
	"github.com/holdfastdev/holdfast/failure/breaker"
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
	probing := next.State == breaker.HalfOpen // the circuit itself lets so few through that no budget is needed, and a job that waits for its turn to probe would spend tokens
	if how.NoBudget || !troubled || probing {
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

// ration asks for a retry of an owner with a budget before it starts, so that the budget is never exceeded however many workers there are: the account is
// changed by compare-and-set. A retry that the budget does not allow goes back for free, and waits behind the hold that was placed when the budget was used up.
func (e *Engine) ration(a *attempt) (o failure.Outcome, refused bool) {
	if !e.rulings.budgets.Load() || a.lease.Owner == "" || a.lease.Failures == 0 {
		return o, false
	}
	set := e.rulings.set.Load()
	if _, limited := set.OwnerBudget(a.lease.Owner); !limited {
		return o, false
	}
	why, err := e.book1(a.lease.Owner, spent{retries: 1, cost: set.Cost(a.lease.Kind)}, true)
	switch {
	case err != nil:
		return failure.Outcome{Event: failure.Held, Err: fmt.Errorf("the budget of its owner could not be asked: %w", err), Wait: circuitBeat}, true
	case why != "":
		return failure.Outcome{Event: failure.Held, Err: errors.New("its owner has used up its budget: " + why)}, true
	}
	a.rationed = true
	return o, false
}

// Ration asks for the retries among jobs that were claimed for a worker elsewhere, as the engine does for its own. It answers with the leases that may be
// worked on, and hands the others back for free. The reports of these attempts say Rationed. An engine that does not run lets all through.
func (e *Engine) Ration(ctx context.Context, leases []holdfast.Lease) []holdfast.Lease {
	if !e.rulings.budgets.Load() || !e.jury.enter() {
		return leases
	}
	defer e.jury.under.Done()
	var allowed []holdfast.Lease
	var refused []Report
	for i := range leases {
		if o, no := e.ration(&attempt{lease: &leases[i]}); no {
			refused = append(refused, Report{Lease: leases[i], Outcome: o})
		} else {
			allowed = append(allowed, leases[i])
		}
	}
	if len(refused) == 0 {
		return leases
	}
	if _, err := e.Judge(ctx, refused); err != nil {
		e.cfg.Log.Warn("retries beyond a budget could not be handed back; their leases run out", "jobs", len(refused), "error", err)
	}
	return allowed
}

// charge counts an attempt against its owner's budget, if the policy gives it one. What was released, or never started, spends nothing. A retry that was rationed
// was counted before it started, and is given back then.
func (e *Engine) charge(o *outcome) {
	lease, set := o.attempt.lease, e.rulings.set.Load()
	free := o.attempt.began.IsZero() || o.verdict.Charge == holdfast.ChargeInterrupt
	if !e.rulings.budgets.Load() || o.attempt.rationed != free { // counted and spent, or neither
		return
	}
	if _, limited := set.OwnerBudget(lease.Owner); !limited {
		return
	}
	one := spent{cost: set.Cost(lease.Kind)}
	if lease.Failures > 0 {
		one.retries = 1
	}
	if o.attempt.rationed {
		one = spent{-1, -one.cost}
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

// budgets writes down what owners used up besides rationed retries, and what of these was given back. It holds the retries of those who have used up their
// budget until it is filled again.
func (e *Engine) budgets(context.Context) error {
	e.spending.mu.Lock()
	all := e.spending.all
	e.spending.all = nil
	e.spending.mu.Unlock()
	for _, owner := range sortedKeys(all) {
		_, err := e.book1(owner, all[owner], false)
		if errors.Is(err, holdfast.ErrConflict) {
			continue // it was not written: next time
		}
		delete(all, owner)
		if err != nil { // perhaps it was written: better once too few than twice
			e.giveBack(all)
			return err
		}
	}
	if e.giveBack(all); len(all) > 0 {
		return fmt.Errorf("what %d owners used up could not be written down yet: others write too", len(all))
	}
	return nil
}

// giveBack keeps for the next round what was not written down.
func (e *Engine) giveBack(all map[string]spent) {
	e.spending.mu.Lock()
	defer e.spending.mu.Unlock()
	for owner, one := range all {
		e.spending.add(owner, one)
	}
}

// accounts are the records of budgets as this process has last read or written them.
type accounts struct {
	mu    sync.Mutex
	known map[string]holdfast.Record // nil: to be read
}

// book1 writes down what one owner uses up. When it asks, nothing is written if the budget is used up already, and the answer says by what.
func (e *Engine) book1(owner string, one spent, asks bool) (refusal string, err error) {
	limit, limited := e.rulings.set.Load().OwnerBudget(owner)
	if !limited {
		return "", nil
	}
	s := &e.accounts
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 16 {
		if s.known == nil {
			records, err := e.records(roomBudget)
			if err != nil {
				return "", err
			}
			s.known = make(map[string]holdfast.Record, len(records))
			for _, r := range records {
				s.known[r.Name] = r
			}
		}
		var c holdfast.Change
		r := s.known[owner]
		r.Room, r.Name = roomBudget, owner
		if c, refusal, err = account1(r, limit, one, e.clock.now(), asks); err != nil || refusal != "" {
			return refusal, err
		}
		if err = e.keepChange(c); err == nil {
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

// account1 is the change that writes down, in the record of its name, what an owner uses up, and places or lifts the hold on its retries.
func account1(r holdfast.Record, limit policy.OwnerBudget, one spent, now time.Time, asks bool) (c holdfast.Change, refusal string, err error) {
	var a account
	_ = json.Unmarshal(r.Body, &a) // one that cannot be read begins anew
	if limit.Zone == nil {
		limit.Zone = time.UTC
	}
	now = now.In(limit.Zone)
	a.add(spent{}, now)
	if _, why := a.exhausted(limit, now); asks && why != "" {
		return c, why, nil
	}
	a.add(one, now)
	hold := holdfast.Hold{Owner: r.Name, Source: holdfast.SourceBudget, Retries: true, Actor: actorPolicy}
	end, why := a.exhausted(limit, now)
	switch {
	case why != "" && !end.Equal(a.Until):
		hold.For, hold.Reason = end.Sub(now), fmt.Sprintf("%s; retries wait until %s", why, end.Format(time.RFC3339))
		c.Place = []holdfast.Hold{hold}
		c.Events = []holdfast.Event{{Subject: "budget/" + r.Name, Name: "exhausted", Actor: actorSystem, Reason: hold.Reason}}
		a.Exhausted = why
	case why == "" && a.Until.After(now): // a retry that did not start was given back
		c.Lift = []holdfast.Hold{hold}
	}
	if a.Until = end; why == "" {
		a.Exhausted = ""
	}
	if r.Body, err = json.Marshal(a); err != nil {
		return c, "", err
	}
	c.Records = []holdfast.Record{r}
	return c, "", nil
}

// add counts what was used up, in the day and the month of now.
func (a *account) add(one spent, now time.Time) {
	if day := now.Format(time.DateOnly); a.Day != day {
		a.Day, a.Retries, a.Cost = day, 0, 0
	}
	if month := now.Format("2006-01"); a.Month != month {
		a.Month, a.MonthSum = month, 0
	}
	// What is given back may have been taken the day before.
	a.Retries, a.MonthSum, a.Cost = max(0, a.Retries+one.retries), max(0, a.MonthSum+one.retries), max(0, a.Cost+one.cost)
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
