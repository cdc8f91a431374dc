package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A pooler in transaction mode, such as PgBouncer, may give every transaction another session of the database. What a session keeps between
// transactions is lost there: a named prepared statement (the driver's default, and the quickest way on a connection of one's own) is unknown in
// the next session or exists there already, and LISTEN hears nothing. So every new connection is examined once. On a direct one statements are
// prepared and cached; on a pooled one only their descriptions are cached, and statements travel without a name.

const (
	modeOption = "default_query_exec_mode" // of the driver: with it the address decides how statements travel

	// Keys of a connection's custom data.
	pooledKey  = "holdfast.pooled"  // bool: examined, with this result
	retiredKey = "holdfast.retired" // prepares statements although it is pooled: must not be used

	pooledMode = pgx.QueryExecModeCacheDescribe
)

// errPooled means that notifications cannot be heard on a connection.
var errPooled = errors.New("the connection goes through a pooler")

// A pooling knows whether connections go through a pooler.
type pooling struct {
	detected atomic.Bool  // by a connection of this store
	log      *slog.Logger // slog.Default when nil
}

// sayPolling tells the operator once what a pooler costs.
func (p *pooling) logPolling() {
	log := p.log
	if log == nil {
		log = slog.Default()
	}
	log.Info("the database is reached through a connection pooler, which passes on no notifications: jobs that other processes enqueue are found by polling " +
		"(engine.Config.Poll, 1s unless set); give the database's own address to be woken at once")
}

// watch has every new connection of a pool examined, and those that prepare statements although they are pooled replaced before use.
func (p *pooling) install(config *pgxpool.Config, address string) {
	decided := strings.Contains(address, modeOption)
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if p.detected.Load() && !decided {
			c.DefaultQueryExecMode = pooledMode
		}
		return nil
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		viaPooler, err := pooled(ctx, conn.PgConn())
		if err != nil || !viaPooler {
			return err
		}
		p.detected.Store(true)
		if !decided && conn.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
			conn.PgConn().CustomData()[retiredKey] = true
		}
		return nil
	}
	config.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) {
		_, retired := conn.PgConn().CustomData()[retiredKey]
		return !retired, nil
	}
}

// pooled reports whether a connection goes through a pooler, and remembers it with the connection. At the start of a connection the server names
// the process under which a running statement can be cancelled. A database names the process that serves the connection; a pooler, which has
// to find the session that runs the statement by then, names an invention of its own. A proxy that passes the connection on as it is changes nothing.
func pooled(ctx context.Context, conn *pgconn.PgConn) (bool, error) {
	known := conn.CustomData()
	if viaPooler, examined := known[pooledKey].(bool); examined {
		return viaPooler, nil
	}
	results, err := conn.Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return false, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 1 {
		return false, errors.New("the database does not name the process that serves the connection")
	}
	serving, err := strconv.ParseUint(string(results[0].Rows[0][0]), 10, 32)
	if err != nil {
		return false, fmt.Errorf("the database does not name the process that serves the connection: %w", err)
	}
	viaPooler := uint32(serving) != conn.PID()
	known[pooledKey] = viaPooler
	return viaPooler, nil
}

// A canceller ends the statement of a caller that stops waiting. A database is asked to stop it, so that it does not keep its locks. A pooler is
// not asked, because several releases of PgBouncer end altogether when a request to cancel comes at a bad moment (pgbouncer#801, #822, #847): there
// the connection is given up, and the pooler gives up the session behind it. Before the connection is examined it may be a pooled one.
type canceller struct {
	conn      *pgconn.PgConn
	direct    *pgconn.CancelRequestContextWatcherHandler
	requested bool
}

func newCanceller(conn *pgconn.PgConn) ctxwatch.Handler {
	return &canceller{conn: conn, direct: &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: time.Second}}
}

func (c *canceller) HandleCancel(ctx context.Context) {
	viaPooler, examined := c.conn.CustomData()[pooledKey].(bool)
	if c.requested = examined && !viaPooler; c.requested {
		c.direct.HandleCancel(ctx)
		return
	}
	_ = c.conn.Conn().SetDeadline(time.Unix(1, 0)) // closing does not wait for the other side then
	_ = c.conn.Conn().Close()
}

func (c *canceller) HandleUnwatchAfterCancel() {
	if c.requested {
		c.direct.HandleUnwatchAfterCancel()
	}
}
