package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
	"github.com/holdfastdev/holdfast/store"
)

// A Priority is the order in which shots of an organisation are taken.
type Priority string

// The priorities.
const (
	High   Priority = "HIGH"
	Normal Priority = "NORMAL"
	Low    Priority = "LOW"
)

var priorities = map[Priority]int16{High: -10, Normal: 0, Low: 10}

// A Budget limits the manual retries of a user, or of all users of an organisation together. Zero limits are none.
type Budget struct {
	User     string   `json:"userId,omitempty"`  // empty: of the organisation
	Daily    int      `json:"dailyRetryLimit"`   // retries in a day, UTC
	Monthly  int      `json:"monthlyRetryLimit"` // in a calendar month
	Cost     int64    `json:"costLimit"`         // credits for retries in a calendar month
	Priority Priority `json:"priorityLevel"`     // of the shots of the user; NORMAL when empty
	Today    int      `json:"retriesToday"`      // used so far
	Month    int      `json:"retriesThisMonth"`  // likewise
	Spent    int64    `json:"creditsThisMonth"`  // likewise
}

// A Plan is what the service promises an organisation.
type Plan struct {
	RetryWithin  time.Duration // a shot that failed is tried again within this time; 0: no promise
	Compensation int64         // credits for each retry that began later
}

var budgetSchema = database.Schema{Name: "screenshot budgets", Steps: []string{`
CREATE TABLE screenshot_budget (owner TEXT NOT NULL, user_id TEXT NOT NULL, daily BIGINT NOT NULL, monthly BIGINT NOT NULL, cost BIGINT NOT NULL, priority TEXT NOT NULL, PRIMARY KEY (owner, user_id));
CREATE TABLE screenshot_retry (job TEXT NOT NULL, generation BIGINT NOT NULL, owner TEXT NOT NULL, user_id TEXT NOT NULL, at BIGINT NOT NULL, cost BIGINT NOT NULL, PRIMARY KEY (job, generation));
CREATE INDEX screenshot_retry_owner ON screenshot_retry (owner, at);
CREATE TABLE screenshot_plan (owner TEXT PRIMARY KEY, retry_within BIGINT NOT NULL, compensation BIGINT NOT NULL);
`}}

// SetBudget sets the budget of a user of an organisation, or that of the organisation.
func (s *Service) SetBudget(ctx context.Context, owner string, b Budget) error {
	if b.Priority == "" {
		b.Priority = Normal
	}
	if _, ok := priorities[b.Priority]; !ok {
		return invalid("priorityLevel", "%.20q: use HIGH, NORMAL or LOW", string(b.Priority))
	}
	if b.Daily < 0 || b.Monthly < 0 || b.Cost < 0 {
		return invalid("dailyRetryLimit", "limits are 0 or more; 0 is none")
	}
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		return tx.Exec(ctx, `INSERT INTO screenshot_budget (owner, user_id, daily, monthly, cost, priority) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (owner, user_id) DO UPDATE SET daily = excluded.daily, monthly = excluded.monthly, cost = excluded.cost, priority = excluded.priority`, owner, b.User, b.Daily, b.Monthly, b.Cost, string(b.Priority))
	})
}

// Budgets returns the budgets of an organisation with what is used of them.
func (s *Service) Budgets(ctx context.Context, owner string) (list []Budget, err error) {
	err = s.cfg.DB.Each(ctx, `SELECT user_id, daily, monthly, cost, priority FROM screenshot_budget WHERE owner = ? ORDER BY user_id`, []any{owner}, func(scan func(...any) error) error {
		var b Budget
		err := scan(&b.User, &b.Daily, &b.Monthly, &b.Cost, &b.Priority)
		list = append(list, b)
		return err
	})
	for i := range list {
		if err == nil {
			err = s.used(ctx, s.cfg.DB, owner, &list[i])
		}
	}
	return list, err
}

// A reader reads one row, in a transaction or outside of one.
type reader interface {
	One(ctx context.Context, query string, args []any, into ...any) error
}

// used reads what is used of a budget.
func (s *Service) used(ctx context.Context, from reader, owner string, b *Budget) error {
	now := time.Now().UTC()
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	where, args := "", []any{day.UnixMicro(), owner, month.UnixMicro()}
	if b.User != "" {
		where, args = " AND user_id = ?", append(args, b.User)
	}
	return from.One(ctx, `SELECT coalesce(sum(CASE WHEN at >= ? THEN 1 ELSE 0 END), 0), count(*), coalesce(sum(cost), 0) FROM screenshot_retry WHERE owner = ? AND at >= ?`+where, args, &b.Today, &b.Month, &b.Spent)
}

// takeBudget counts a manual retry against the budgets of its user and organisation, in the transaction that reserves its credits. The row of a budget is the lock: of two
// retries for which one is left, the second is refused.
func (s *Service) takeBudget(ctx context.Context, tx *database.Tx, c Caller, job *holdfast.Job, cost int64) error {
	var budgets []Budget
	err := tx.Each(ctx, `UPDATE screenshot_budget SET daily = daily WHERE owner = ? AND user_id IN (?, '') RETURNING user_id, daily, monthly, cost, priority`, []any{job.Owner, c.User}, func(scan func(...any) error) error {
		var b Budget
		err := scan(&b.User, &b.Daily, &b.Monthly, &b.Cost, &b.Priority)
		budgets = append(budgets, b)
		return err
	})
	if err != nil {
		return err
	}
	for i := range budgets {
		b := &budgets[i]
		if err := s.used(ctx, tx, job.Owner, b); err != nil {
			return err
		}
		if err := b.allows(cost); err != nil {
			return err
		}
	}
	return tx.Exec(ctx, `INSERT INTO screenshot_retry (job, generation, owner, user_id, at, cost) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (job, generation) DO NOTHING`,
		job.ID.String(), job.Generation+1, job.Owner, c.User, time.Now().UnixMicro(), cost)
}

// allows refuses a retry that the budget does not permit.
func (b *Budget) allows(cost int64) error {
	of := "of the organisation"
	if b.User != "" {
		of = "of this user"
	}
	refuse := func(limit int64, what string) error {
		return &Error{Code: code.RateLimited, Message: fmt.Sprintf("The budget of manual retries %s is used up: %d %s. An admin of the organisation can change it.", of, limit, what), After: time.Hour}
	}
	switch {
	case b.Daily > 0 && b.Today >= b.Daily:
		return refuse(int64(b.Daily), "a day")
	case b.Monthly > 0 && b.Month >= b.Monthly:
		return refuse(int64(b.Monthly), "a month")
	case b.Cost > 0 && b.Spent+cost > b.Cost:
		return refuse(b.Cost, "credits a month")
	}
	return nil
}

// returnBudget takes back a retry that was not made.
func (s *Service) returnBudget(ctx context.Context, tx *database.Tx, job holdfast.ID, generation int) error {
	return tx.Exec(ctx, `DELETE FROM screenshot_retry WHERE job = ? AND generation = ?`, job.String(), generation)
}

// priorityOf returns the priority of the shots of a user.
func (s *Service) priorityOf(ctx context.Context, c Caller) (int16, error) {
	p := Normal
	err := s.cfg.DB.One(ctx, `SELECT priority FROM screenshot_budget WHERE owner = ? AND user_id IN (?, '') ORDER BY user_id DESC LIMIT 1`, []any{c.Owner, c.User}, &p)
	if errors.Is(err, database.ErrNoRow) {
		err = nil
	}
	return priorities[p], err
}

const maxPromise = 24 * time.Hour

// SetPlan sets what an organisation is promised.
func (s *Service) SetPlan(ctx context.Context, owner string, p Plan) error {
	if p.RetryWithin < 0 || p.RetryWithin > maxPromise || p.RetryWithin > 0 && p.RetryWithin < time.Second {
		return invalid("retryWithin", "use a duration from 1s to 24h, or leave it out")
	}
	if p.Compensation < 0 || p.Compensation > 1000 {
		return invalid("compensation", "use 0 to 1000 credits")
	}
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		return tx.Exec(ctx, `INSERT INTO screenshot_plan (owner, retry_within, compensation) VALUES (?, ?, ?) ON CONFLICT (owner) DO UPDATE SET retry_within = excluded.retry_within, compensation = excluded.compensation`, owner, int64(p.RetryWithin), p.Compensation)
	})
}

// Plan returns what an organisation is promised.
func (s *Service) Plan(ctx context.Context, owner string) (p Plan, err error) {
	err = s.cfg.DB.One(ctx, `SELECT retry_within, compensation FROM screenshot_plan WHERE owner = ?`, []any{owner}, &p.RetryWithin, &p.Compensation)
	if errors.Is(err, database.ErrNoRow) {
		err = nil
	}
	return p, err
}

// eventMissed is the event of a retry that began later than its job asks for.
const eventMissed = "deadline missed"

// keepPromise compensates a retry that began later than promised, once for each generation of a shot.
func (s *Service) keepPromise(ctx context.Context, tx *database.Tx, e *store.Event, job *holdfast.Job) error {
	p := Plan{}
	err := tx.One(ctx, `SELECT retry_within, compensation FROM screenshot_plan WHERE owner = ?`, []any{job.Owner}, &p.RetryWithin, &p.Compensation)
	if errors.Is(err, database.ErrNoRow) || err == nil && p.Compensation == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = s.ledger.Compensate(ctx, tx, credit.Gift{
		Owner: job.Owner, Amount: p.Compensation, Once: fmt.Sprintf("promise %s %d", e.Job, e.Generation), Job: e.Job, Generation: e.Generation,
		Note: fmt.Sprintf("a retry began later than %v after the failure", p.RetryWithin),
	})
	return err
}
