// Package credit keeps the credits of organisations in a ledger: every change is an entry that is never changed, and the balance of an organisation is the sum of its
// entries.
//
// Credits are granted, reserved when a shot is enqueued, captured when it is complete, and released when it has failed for good or was cancelled. A shot is a job; each
// generation of it has a reservation of its own, except that a manual retry that replaces an automatic one continues with the reservation that there is. All
// functions work in the caller's transaction, so that a reservation and its job exist together or not at all, and may be repeated: what is done is not done twice.
package credit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
)

// A Kind is the kind of an entry.
type Kind string

// The kinds. A compensation gives credits without a payment: because a promise was not kept, or because a shot was cancelled after it had been captured.
const (
	Grant      Kind = "grant"
	Reserve    Kind = "reserve"
	Capture    Kind = "capture"
	Release    Kind = "release"
	Compensate Kind = "compensate"
)

// The states of a reservation.
const (
	open     = "open"
	captured = "captured"
	released = "released"
)

// ErrReserved: the generation of the job has a reservation already.
var ErrReserved = errors.New("credits are reserved already")

// An Insufficient is the error of a reservation for which there are not enough credits.
type Insufficient struct{ Required, Available int64 }

func (e *Insufficient) Error() string {
	needed := "1 credit is"
	if e.Required != 1 {
		needed = fmt.Sprintf("%d credits are", e.Required)
	}
	return fmt.Sprintf("%s needed and %d are available", needed, e.Available)
}

// A Balance is how many credits an organisation has.
type Balance struct {
	Available int64 `json:"available"`
	Reserved  int64 `json:"reserved"` // for shots that have not ended
	Spent     int64 `json:"spent"`
}

// An Entry is a line of the ledger.
type Entry struct {
	ID         string      `json:"id"`
	At         time.Time   `json:"at"`
	Kind       Kind        `json:"kind"`
	Amount     int64       `json:"amount"`
	Available  int64       `json:"available"` // after it
	Reserved   int64       `json:"reserved"`
	Job        holdfast.ID `json:"job,omitzero"`
	Generation int         `json:"generation,omitempty"`
	Note       string      `json:"note,omitempty"`
}

// A Reservation asks for credits for a generation of a job.
type Reservation struct {
	Owner      string // the organisation
	Job        holdfast.ID
	Generation int
	Amount     int64
	Note       string
}

// A Ledger writes and reads entries. It is safe for concurrent use.
type Ledger struct {
	DB  *database.DB
	Now func() time.Time
}

// Open makes the tables.
func Open(ctx context.Context, db *database.DB) (*Ledger, error) {
	return &Ledger{DB: db, Now: time.Now}, db.Migrate(ctx, schema)
}

var schema = database.Schema{Name: "credit", Steps: []string{`
CREATE TABLE credit_balance (owner TEXT PRIMARY KEY, available BIGINT NOT NULL, reserved BIGINT NOT NULL, spent BIGINT NOT NULL);
CREATE TABLE credit_reservation (
  job TEXT NOT NULL, generation BIGINT NOT NULL, owner TEXT NOT NULL, amount BIGINT NOT NULL, state TEXT NOT NULL, changed_at BIGINT NOT NULL,
  PRIMARY KEY (job, generation)
);
CREATE INDEX credit_reservation_open ON credit_reservation (changed_at) WHERE state = 'open';
CREATE TABLE credit_entry (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, at BIGINT NOT NULL, kind TEXT NOT NULL, amount BIGINT NOT NULL, available BIGINT NOT NULL, reserved BIGINT NOT NULL,
  job TEXT NOT NULL, generation BIGINT NOT NULL, note TEXT NOT NULL, once TEXT UNIQUE
);
CREATE INDEX credit_entry_owner ON credit_entry (owner, id);
CREATE INDEX credit_entry_job ON credit_entry (job);
`}}

// A change is what an entry does to a balance.
type change struct {
	owner                      string
	kind                       Kind
	amount                     int64
	available, reserved, spent int64 // how they change
	job                        holdfast.ID
	generation                 int
	note, once                 string
}

// apply changes a balance and writes the entry. The row of the balance is locked until the transaction ends.
func (l *Ledger) apply(ctx context.Context, tx *database.Tx, c change) error {
	var available, reserved int64
	err := tx.One(ctx, `INSERT INTO credit_balance (owner, available, reserved, spent) VALUES (?, ?, ?, ?)
		ON CONFLICT (owner) DO UPDATE SET available = credit_balance.available + excluded.available, reserved = credit_balance.reserved + excluded.reserved, spent = credit_balance.spent + excluded.spent
		RETURNING available, reserved`, []any{c.owner, c.available, c.reserved, c.spent}, &available, &reserved)
	if err != nil {
		return err
	}
	var once any
	if c.once != "" {
		once = c.once
	}
	job := ""
	if !c.job.IsZero() {
		job = c.job.String()
	}
	return tx.Exec(ctx, `INSERT INTO credit_entry (id, owner, at, kind, amount, available, reserved, job, generation, note, once) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		holdfast.NewID().String(), c.owner, l.Now().UnixMicro(), string(c.kind), c.amount, available, reserved, job, c.generation, c.note, once)
}

// Grant gives an organisation credits. A grant with the same once is made once; an empty one always. It reports whether it was made now.
func (l *Ledger) Grant(ctx context.Context, tx *database.Tx, g Gift) (bool, error) {
	return l.give(ctx, tx, Grant, g)
}

// Compensate gives an organisation credits because a promise was not kept.
func (l *Ledger) Compensate(ctx context.Context, tx *database.Tx, g Gift) (bool, error) {
	return l.give(ctx, tx, Compensate, g)
}

// A Gift is credits for an organisation.
type Gift struct {
	Owner      string
	Amount     int64
	Once       string // what is given for; see Grant
	Note       string
	Job        holdfast.ID // that it is about, if there is one
	Generation int
}

func (l *Ledger) give(ctx context.Context, tx *database.Tx, kind Kind, g Gift) (bool, error) {
	if g.Amount <= 0 {
		return false, fmt.Errorf("%d credits cannot be given: use a positive number", g.Amount)
	}
	if g.Once != "" {
		g.Once = g.Owner + " " + g.Once
		// The row of the balance is the lock: of two that give for the same, the second sees the entry of the first.
		if err := tx.Exec(ctx, `INSERT INTO credit_balance (owner, available, reserved, spent) VALUES (?, 0, 0, 0) ON CONFLICT (owner) DO UPDATE SET available = credit_balance.available`, g.Owner); err != nil {
			return false, err
		}
		n := 0
		if err := tx.One(ctx, `SELECT count(*) FROM credit_entry WHERE once = ?`, []any{g.Once}, &n); err != nil || n > 0 {
			return false, err
		}
	}
	err := l.apply(ctx, tx, change{owner: g.Owner, kind: kind, amount: g.Amount, available: g.Amount, job: g.Job, generation: g.Generation, note: g.Note, once: g.Once})
	return err == nil, err
}

// Reserve reserves credits for a generation of a job. The error is *Insufficient if there are not enough, and ErrReserved if the generation has a reservation or is
// paid. A reservation that was released can be made again.
func (l *Ledger) Reserve(ctx context.Context, tx *database.Tx, r Reservation) error {
	var available int64
	// An update of the row, so that reservations of the same organisation wait for each other.
	err := tx.One(ctx, `UPDATE credit_balance SET available = available WHERE owner = ? RETURNING available`, []any{r.Owner}, &available)
	if err != nil && !errors.Is(err, database.ErrNoRow) {
		return err
	}
	if available < r.Amount {
		return &Insufficient{r.Amount, available}
	}
	return l.reserve(ctx, tx, r)
}

// reserve reserves credits, also such that there are not.
func (l *Ledger) reserve(ctx context.Context, tx *database.Tx, r Reservation) error {
	n, err := tx.Changed(ctx, `INSERT INTO credit_reservation (job, generation, owner, amount, state, changed_at) VALUES (?, ?, ?, ?, 'open', ?)
		ON CONFLICT (job, generation) DO UPDATE SET state = 'open', changed_at = excluded.changed_at WHERE credit_reservation.state = 'released'`, r.Job.String(), r.Generation, r.Owner, r.Amount, l.Now().UnixMicro())
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrReserved
	}
	return l.apply(ctx, tx, change{owner: r.Owner, kind: Reserve, amount: r.Amount, available: -r.Amount, reserved: r.Amount, job: r.Job, generation: r.Generation, note: r.Note})
}

// A row is a stored reservation.
type row struct {
	Reservation
	state string
}

// rows returns the reservations of a job up to a generation, the newest first.
func (l *Ledger) rows(ctx context.Context, tx *database.Tx, job holdfast.ID, generation int) (list []row, err error) {
	err = tx.Each(ctx, `SELECT generation, owner, amount, state FROM credit_reservation WHERE job = ? AND generation <= ? ORDER BY generation DESC`, []any{job.String(), generation}, func(scan func(...any) error) error {
		r := row{Reservation: Reservation{Job: job}}
		err := scan(&r.Generation, &r.Owner, &r.Amount, &r.state)
		list = append(list, r)
		return err
	})
	return list, err
}

// move changes the state of a reservation. It reports whether it was in the state from.
func (l *Ledger) move(ctx context.Context, tx *database.Tx, r Reservation, from, to string) (bool, error) {
	n, err := tx.Changed(ctx, `UPDATE credit_reservation SET state = ?, changed_at = ? WHERE job = ? AND generation = ? AND state = ?`, to, l.Now().UnixMicro(), r.Job.String(), r.Generation, from)
	return n == 1, err
}

// Capture takes the credits of a job that is complete in this generation. If the job has no open reservation, because the retry was not made by a user of this
// service or its reservation was released meanwhile, the credits are taken from the available ones, below zero if need be: each picture is paid once. r.Amount is
// used then only.
func (l *Ledger) Capture(ctx context.Context, tx *database.Tx, r Reservation) error {
	list, err := l.rows(ctx, tx, r.Job, r.Generation)
	if err != nil {
		return err
	}
	for _, one := range list {
		switch one.state {
		case captured:
			return nil // an earlier call
		case open:
			if ok, err := l.move(ctx, tx, one.Reservation, open, captured); err != nil || ok {
				return errors.Join(err, l.entry(ctx, tx, one.Reservation, Capture, r.Note))
			}
		}
	}
	if err := l.reserve(ctx, tx, r); err != nil {
		return err
	}
	if _, err := l.move(ctx, tx, r, open, captured); err != nil {
		return err
	}
	return l.entry(ctx, tx, r, Capture, r.Note)
}

// Release gives back what is reserved for a job up to a generation, after that generation has failed for good or was cancelled. If it was captured, because it was
// cancelled at the moment of its end, the credits are compensated. It returns how many credits were given back.
func (l *Ledger) Release(ctx context.Context, tx *database.Tx, job holdfast.ID, generation int, why string) (amount int64, err error) {
	list, err := l.rows(ctx, tx, job, generation)
	if err != nil {
		return 0, err
	}
	for _, one := range list {
		n, err := l.releaseOne(ctx, tx, one, why)
		if err != nil {
			return 0, err
		}
		amount += n
	}
	return amount, nil
}

func (l *Ledger) releaseOne(ctx context.Context, tx *database.Tx, one row, why string) (int64, error) {
	if one.state == released {
		return 0, nil
	}
	moved, err := l.move(ctx, tx, one.Reservation, one.state, released)
	if err != nil || !moved {
		return 0, err
	}
	kind := Release
	if one.state == captured {
		kind = Compensate
	}
	return one.Amount, l.entry(ctx, tx, one.Reservation, kind, why)
}

// entry writes the entry of a reservation that was moved.
func (l *Ledger) entry(ctx context.Context, tx *database.Tx, r Reservation, kind Kind, note string) error {
	c := change{owner: r.Owner, kind: kind, amount: r.Amount, job: r.Job, generation: r.Generation, note: note}
	switch kind {
	case Capture:
		c.reserved, c.spent = -r.Amount, r.Amount
	case Release:
		c.reserved, c.available = -r.Amount, r.Amount
	case Compensate:
		c.available = r.Amount
	}
	return l.apply(ctx, tx, c)
}
