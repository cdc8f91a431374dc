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

// A pooler in transaction mode, such as PgBouncer, may run every transaction in another session of the database. Session state is lost between
// transactions: a statement that was prepared by name (the driver's default, and the fastest way on a direct connection) does not exist in the next
// session, or exists there already, and LISTEN receives nothing. So every new connection is examined once. On a direct connection statements are
// prepared and cached. On a pooled one only their descriptions are cached, and statements are sent without a name.

const (
	modeOption = "default_query_exec_mode" // pgx option: if the address sets it, the store does not choose a mode

	// Keys of a connection's custom data.
	pooledKey  = "holdfast.pooled"  // bool: result of the examination
	retiredKey = "holdfast.retired" // set on a pooled connection that prepares statements: must not be used

	pooledMode = pgx.QueryExecModeCacheDescribe
)

// errPooled means that a connection cannot receive notifications.
var errPooled = errors.New("the connection goes through a pooler")

// A pooling detects connections that go through a pooler.
type pooling struct {
	detected atomic.Bool  // a connection of this store went through a pooler
	log      *slog.Logger // slog.Default when nil
}

// logPolling logs once what a pooler costs.
func (p *pooling) logPolling() {
	log := p.log
	if log == nil {
		log = slog.Default()
	}
	log.Info("the database is reached through a connection pooler, which does not forward notifications: jobs that other processes enqueue are found by polling " +
		"(engine.Config.Poll, 1s unless set); use the database's own address to be notified at once")
}

// install makes a pool examine every new connection, and replace pooled connections that prepare statements before they are used.
func (p *pooling) install(config *pgxpool.Config, address string) {
	decided := strings.Contains(address, modeOption) || config.ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement
	before, after, prepare := config.BeforeConnect, config.AfterConnect, config.PrepareConn // of a pool of the application: credentials, types
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		if p.detected.Load() && !decided {
			c.DefaultQueryExecMode = pooledMode
		}
		if before != nil {
			return before(ctx, c)
		}
		return nil
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if after != nil {
			if err := after(ctx, conn); err != nil {
				return err
			}
		}
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
	config.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		if _, retired := conn.PgConn().CustomData()[retiredKey]; retired {
			return false, nil
		}
		if prepare != nil {
			return prepare(ctx, conn)
		}
		return true, nil
	}
}

// pooled reports whether a connection goes through a pooler, and stores the result in the connection. At the start of a connection the server sends
// the id of the process under which a running statement can be cancelled. A database sends the id of the process that serves the connection. A pooler
// sends an id of its own, because only it knows in which session a statement runs later. A proxy that forwards the connection unchanged makes no
// difference.
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

// A canceller ends the statement of a caller whose context ends. On a direct connection it sends a cancel request, so that the statement does not
// keep its locks. Through a pooler it closes the connection instead, and the pooler closes the session behind it: several releases of PgBouncer crash
// when a cancel request arrives at a bad moment (pgbouncer#801, #822, #847). A connection that was not examined yet is treated as pooled.
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
	_ = c.conn.Conn().SetDeadline(time.Unix(1, 0)) // so that Close does not wait for the peer
	_ = c.conn.Conn().Close()
}

func (c *canceller) HandleUnwatchAfterCancel() {
	if c.requested {
		c.direct.HandleUnwatchAfterCancel()
	}
}
