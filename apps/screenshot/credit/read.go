package credit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
)

// Balance returns the balance of an organisation.
func (l *Ledger) Balance(ctx context.Context, owner string) (b Balance, err error) {
	err = l.DB.One(ctx, `SELECT available, reserved, spent FROM credit_balance WHERE owner = ?`, []any{owner}, &b.Available, &b.Reserved, &b.Spent)
	if errors.Is(err, database.ErrNoRow) {
		err = nil
	}
	return b, err
}

// Entries returns the entries of an organisation, the newest first. before is the id of the last entry of the page before, or empty.
func (l *Ledger) Entries(ctx context.Context, owner, before string, limit int) (list []Entry, err error) {
	if before == "" {
		before = "~" // sorts after every id
	}
	err = l.DB.Each(ctx, `SELECT id, at, kind, amount, available, reserved, job, generation, note FROM credit_entry WHERE owner = ? AND id < ? ORDER BY id DESC LIMIT ?`, []any{owner, before, limit}, collect(&list))
	return list, err
}

// OfJob returns the entries of a job, the oldest first.
func (l *Ledger) OfJob(ctx context.Context, job holdfast.ID) (list []Entry, err error) {
	err = l.DB.Each(ctx, `SELECT id, at, kind, amount, available, reserved, job, generation, note FROM credit_entry WHERE job = ? ORDER BY id`, []any{job.String()}, collect(&list))
	return list, err
}

func collect(list *[]Entry) func(scan func(...any) error) error {
	return func(scan func(...any) error) error {
		var e Entry
		var at int64
		job := ""
		if err := scan(&e.ID, &at, &e.Kind, &e.Amount, &e.Available, &e.Reserved, &job, &e.Generation, &e.Note); err != nil {
			return err
		}
		e.At = database.Time(at)
		if job != "" {
			e.Job, _ = holdfast.ParseID(job) // written by this package
		}
		*list = append(*list, e)
		return nil
	}
}

// SpentOnRetries returns how many credits shots needed that were captured in a later generation than the first: what users paid for manual retries.
func (l *Ledger) SpentOnRetries(ctx context.Context, owner string) (amount int64, err error) {
	where, args := "", []any(nil)
	if owner != "" {
		where, args = " AND owner = ?", []any{owner}
	}
	err = l.DB.One(ctx, `SELECT coalesce(sum(amount), 0) FROM credit_reservation WHERE state = 'captured' AND generation > 1`+where, args, &amount)
	return amount, err
}

// A Stale is an open reservation that was not changed lately.
type Stale struct {
	Job        holdfast.ID
	Generation int
	Owner      string
}

// Stale returns open reservations that were not changed for a time, at most limit, the oldest first, after the one that an earlier call returned last.
func (l *Ledger) Stale(ctx context.Context, age time.Duration, after string, limit int) (list []Stale, err error) {
	err = l.DB.Each(ctx, `SELECT job, generation, owner FROM credit_reservation WHERE state = 'open' AND changed_at <= ? AND job > ? ORDER BY job, generation LIMIT ?`, []any{l.Now().Add(-age).UnixMicro(), after, limit}, func(scan func(...any) error) error {
		var s Stale
		job := ""
		err := scan(&job, &s.Generation, &s.Owner)
		if err == nil {
			s.Job, err = holdfast.ParseID(job)
		}
		list = append(list, s)
		return err
	})
	return list, err
}

// A State is what a job is, for the check.
type State struct {
	Exists     bool
	Generation int
	Ended      bool // complete, failed or cancelled
	Complete   bool
}

// Check verifies the ledger: the balance of each organisation is the sum of its entries, each reservation has the entries that its state needs, and, if stateOf is
// given, each reservation fits the state of its job. It returns a line for each thing that is wrong. Run it while nothing is written: otherwise a shot that ends during the check
// may be reported.
func (l *Ledger) Check(ctx context.Context, stateOf func(holdfast.ID) (State, error)) (findings []string, err error) {
	add := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	err = l.DB.Each(ctx, `SELECT b.owner, b.available, b.reserved, b.spent,
		coalesce(sum(CASE WHEN e.kind IN ('grant', 'compensate', 'release') THEN e.amount WHEN e.kind = 'reserve' THEN -e.amount ELSE 0 END), 0),
		coalesce(sum(CASE WHEN e.kind = 'reserve' THEN e.amount WHEN e.kind IN ('capture', 'release') THEN -e.amount ELSE 0 END), 0),
		coalesce(sum(CASE WHEN e.kind = 'capture' THEN e.amount ELSE 0 END), 0)
		FROM credit_balance b LEFT JOIN credit_entry e ON e.owner = b.owner GROUP BY b.owner, b.available, b.reserved, b.spent`, nil, func(scan func(...any) error) error {
		var owner string
		var b, sum Balance
		if err := scan(&owner, &b.Available, &b.Reserved, &b.Spent, &sum.Available, &sum.Reserved, &sum.Spent); err != nil {
			return err
		}
		if b != sum {
			add("organisation %s: the balance is %+v and its entries sum up to %+v", owner, b, sum)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = l.DB.Each(ctx, `SELECT b.owner, b.reserved, (SELECT coalesce(sum(r.amount), 0) FROM credit_reservation r WHERE r.owner = b.owner AND r.state = 'open') FROM credit_balance b`, nil, func(scan func(...any) error) error {
		var owner string
		var reserved, sum int64
		if err := scan(&owner, &reserved, &sum); err != nil {
			return err
		}
		if reserved != sum {
			add("organisation %s: %d credits are reserved and its open reservations sum up to %d", owner, reserved, sum)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return findings, errors.Join(l.checkEntries(ctx, add), l.checkJobs(ctx, stateOf, add))
}

// checkEntries compares each reservation with its entries.
func (l *Ledger) checkEntries(ctx context.Context, add func(string, ...any)) error {
	return l.DB.Each(ctx, `SELECT r.job, r.generation, r.state, r.amount,
		coalesce(sum(CASE WHEN e.kind = 'reserve' THEN e.amount WHEN e.kind IN ('capture', 'release') THEN -e.amount ELSE 0 END), 0),
		coalesce(sum(CASE WHEN e.kind = 'capture' THEN 1 ELSE 0 END), 0), coalesce(sum(CASE WHEN e.kind = 'compensate' AND e.once IS NULL THEN 1 ELSE 0 END), 0)
		FROM credit_reservation r LEFT JOIN credit_entry e ON e.job = r.job AND e.generation = r.generation GROUP BY r.job, r.generation, r.state, r.amount`, nil, func(scan func(...any) error) error {
		var job, state string
		var generation, captures, refunds int
		var amount, reserved int64
		if err := scan(&job, &generation, &state, &amount, &reserved, &captures, &refunds); err != nil {
			return err
		}
		want := int64(0)
		if state == open {
			want = amount
		}
		if reserved != want || captures-refunds != map[string]int{captured: 1}[state] {
			add("shot %s generation %d is %s: %d credits are reserved, %d times captured, %d times given back", job, generation, state, reserved, captures, refunds)
		}
		return nil
	})
}

// checkJobs compares reservations with their jobs.
func (l *Ledger) checkJobs(ctx context.Context, stateOf func(holdfast.ID) (State, error), add func(string, ...any)) error {
	if stateOf == nil {
		return nil
	}
	paid, open := map[holdfast.ID]int{}, map[holdfast.ID]int{}
	err := l.DB.Each(ctx, `SELECT job, sum(CASE WHEN state = 'captured' THEN 1 ELSE 0 END), sum(CASE WHEN state = 'open' THEN 1 ELSE 0 END) FROM credit_reservation GROUP BY job`, nil, func(scan func(...any) error) error {
		text := ""
		var c, o int
		if err := scan(&text, &c, &o); err != nil {
			return err
		}
		id, err := holdfast.ParseID(text)
		paid[id], open[id] = c, o
		return err
	})
	if err != nil {
		return err
	}
	for id := range paid {
		job, err := stateOf(id)
		switch {
		case err != nil:
			return err
		case !job.Exists: // deleted by retention
			if open[id] > 0 {
				add("shot %s does not exist any more, and credits are reserved for it", id)
			}
		case job.Complete && (paid[id] != 1 || open[id] != 0):
			add("shot %s is complete: %d times paid, %d reservations are open", id, paid[id], open[id])
		case job.Ended && !job.Complete && (paid[id] != 0 || open[id] != 0):
			add("shot %s has ended without a picture: %d times paid, %d reservations are open", id, paid[id], open[id])
		case !job.Ended && (paid[id] != 0 || open[id] != 1):
			add("shot %s has not ended: %d times paid, %d reservations are open", id, paid[id], open[id])
		}
	}
	return nil
}
