package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/inspect"
)

// A pool lends connections: a pool of pgx, or a database of the application that is opened with database/sql. Everything else in this package is the
// same for both, because both lend connections of pgx.
type pool interface {
	// lend calls use with a connection that belongs to this call until use returns. An error in front of the call of use is a rolledBack.
	lend(ctx context.Context, use func(*pgx.Conn) error) error
	// connConfig returns how to open a connection beside the pool.
	connConfig(ctx context.Context) (*pgx.ConnConfig, error)
}

// connections sends single statements over the connections of a pool. It is a session in which each statement is a transaction of its own.
type connections struct{ pool }

var _ session = connections{}

func (c connections) exec(ctx context.Context, sql string, args ...any) error {
	return c.lend(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql, args...)
		return err
	})
}

func (c connections) query(ctx context.Context, sql string, args []any, each func(scan func(...any) error) error) error {
	return c.lend(ctx, func(conn *pgx.Conn) error { return pgxSession{conn}.query(ctx, sql, args, each) })
}

func (c connections) rows(ctx context.Context, sql string, args []any, each func(inspect.Row) error) error {
	return c.lend(ctx, func(conn *pgx.Conn) error { return pgxSession{conn}.rows(ctx, sql, args, each) })
}

// queryRow scans the only row of a query.
func (c connections) queryRow(ctx context.Context, sql string, args []any, into ...any) error {
	return c.lend(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, sql, args...).Scan(into...) })
}

// send sends a batch in one round trip and runs its result callbacks.
func (c connections) send(ctx context.Context, b *pgx.Batch) error {
	return c.lend(ctx, func(conn *pgx.Conn) error { return conn.SendBatch(ctx, b).Close() })
}

// A pgxPool is a pool of pgx.
type pgxPool struct{ *pgxpool.Pool }

func (p pgxPool) lend(ctx context.Context, use func(*pgx.Conn) error) error {
	conn, err := p.Acquire(ctx)
	if err != nil {
		return &rolledBack{err}
	}
	defer conn.Release() // closes a connection that is still in a transaction
	return use(conn.Conn())
}

func (p pgxPool) connConfig(ctx context.Context) (*pgx.ConnConfig, error) {
	pool := p.Config()
	config := pool.ConnConfig.Copy()
	if pool.BeforeConnect != nil { // of an application whose credentials change
		if err := pool.BeforeConnect(ctx, config); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// A sqlPool is a database of the application, opened with the driver of pgx for database/sql.
//
// The configuration of the database is private to database/sql. So connections beside it, for renewals and notifications, are configured like the
// connection of the database that was opened last. That is enough for credentials that change, if the application replaces its connections before they
// expire.
type sqlPool struct {
	db     *sql.DB
	newest atomic.Pointer[openedConfig] // of the connection that was opened last
}

// An openedConfig is the configuration of a connection. It is kept in the connection, because several stores can share a database.
type openedConfig struct {
	*pgx.ConnConfig
	serial int64 // larger than those of all connections that were seen earlier
}

// openedKey is the key of the openedConfig in a connection's custom data.
const openedKey = "holdfast.opened"

var openedSerial atomic.Int64

func (p *sqlPool) lend(ctx context.Context, use func(*pgx.Conn) error) (err error) {
	held, err := p.db.Conn(ctx)
	if err != nil {
		return &rolledBack{err}
	}
	defer func() { _ = held.Close() }() // returns the connection to the database
	err = &rolledBack{driver.ErrBadConn}
	failed := held.Raw(func(given any) error {
		conn, refusal := connOf(given)
		if refusal != nil {
			err = refusal
			return nil
		}
		p.remember(conn)
		err = use(conn)
		if conn.IsClosed() || conn.PgConn().TxStatus() != 'I' {
			return driver.ErrBadConn // the database closes it
		}
		return nil
	})
	if failed != nil && !errors.Is(failed, driver.ErrBadConn) {
		return &rolledBack{failed}
	}
	return err
}

// connOf returns the connection of pgx in a connection of database/sql. A driver that wraps another one, for instance to trace it, is asked for what it
// wraps.
func connOf(given any) (*pgx.Conn, error) {
	for {
		switch conn := given.(type) {
		case interface{ Conn() *pgx.Conn }: // *stdlib.Conn. Importing its package would register its drivers in every program
			return conn.Conn(), nil
		case interface{ Raw() driver.Conn }:
			given = conn.Raw()
		default:
			return nil, &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("a database whose connections are of type %T: the store needs the driver of pgx: "+
				`import _ "github.com/jackc/pgx/v5/stdlib" and open the database with sql.Open("pgx", address), or give URL instead of DB`, given)}
		}
	}
}

// remember keeps the configuration of a connection that is newer than the one it has.
func (p *sqlPool) remember(conn *pgx.Conn) {
	data := conn.PgConn().CustomData()
	opened, seen := data[openedKey].(*openedConfig)
	if !seen {
		opened = &openedConfig{conn.Config(), openedSerial.Add(1)}
		opened.OnNotification = nil // pgx has set it to deliver to this connection
		data[openedKey] = opened
	}
	if newest := p.newest.Load(); newest == nil || newest.serial < opened.serial {
		p.newest.CompareAndSwap(newest, opened) // if a concurrent call was first, the next call decides again
	}
}

func (p *sqlPool) connConfig(ctx context.Context) (*pgx.ConnConfig, error) {
	if p.newest.Load() == nil {
		if err := p.lend(ctx, func(*pgx.Conn) error { return nil }); err != nil {
			return nil, err
		}
	}
	return p.newest.Load().Copy(), nil
}

// poolConfig returns the configuration of the pools that the store opens beside the database.
func (p *sqlPool) poolConfig(ctx context.Context) (*pgxpool.Config, error) {
	ctx, cancel := withDeadline(ctx, defaultDeadline)
	defer cancel()
	like, err := p.connConfig(ctx)
	if err != nil {
		return nil, explain("connect", err)
	}
	config, err := pgxpool.ParseConfig(like.ConnString())
	if err != nil {
		return nil, explain("connect", err)
	}
	config.ConnConfig = like
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		newest, err := p.connConfig(ctx)
		if err == nil {
			*c = *newest
		}
		return err
	}
	return config, nil
}

// checkLike refuses a database whose connections are prepared in a way that the store cannot repeat on its own: another role or search_path.
func (p *sqlPool) checkLike(ctx context.Context, own connections, in schema) error {
	const describe = "SELECT current_database() || ' as ' || current_user, current_schemas(false)::text"
	var theirs, ours [2]string
	if err := (connections{p}).queryRow(ctx, describe, nil, &theirs[0], &theirs[1]); err != nil {
		return explain("connect", err)
	}
	if err := own.queryRow(ctx, describe, nil, &ours[0], &ours[1]); err != nil {
		return explain("connect", err)
	}
	if theirs[0] == ours[0] && (in != "" || theirs[1] == ours[1]) {
		return nil
	}
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("connections of the database use %s with the schemas %s, and connections that the store opens with "+
		"the same configuration use %s with the schemas %s: set the role and the search_path in the address of the database instead of after connecting, or give Pool instead of DB",
		theirs[0], theirs[1], ours[0], ours[1])}
}
