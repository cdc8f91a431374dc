package postgres

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfastdev/holdfast"
)

// sizeAge is how long the measured size of the database is used.
const sizeAge = 10 * time.Second

// A sizeLimit refuses new jobs while the database is larger than its limit, so that space is left to finish the jobs it has.
type sizeLimit struct {
	limit int64 // bytes; 0: no limit

	mu        sync.Mutex
	checkedAt time.Time
	full      error
}

// check returns ErrUnavailable if the database is too large. If its size cannot be read, new jobs are accepted: the database may still refuse them.
func (g *sizeLimit) check(ctx context.Context, via connections, sql map[string]string) error {
	if g.limit <= 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.checkedAt.IsZero() && time.Since(g.checkedAt) < sizeAge {
		return g.full
	}
	var size int64
	if err := via.queryRow(ctx, sql["read_database_size"], nil, &size); err != nil {
		return nil
	}
	g.checkedAt, g.full = time.Now(), nil
	if size >= g.limit {
		g.full = &holdfast.Error{Err: holdfast.ErrUnavailable, Message: fmt.Sprintf(
			"could not enqueue: the database has %d MiB, and max_size is %d MiB: delete data that is no longer needed, or raise max_size", size>>20, g.limit>>20)}
	}
	return g.full
}

// maxSize returns the limit, from the configuration or from the address. It removes max_size from the address, because the server does not know that
// parameter.
func maxSize(config *pgxpool.Config, given int64) (int64, error) {
	text, there := config.ConnConfig.RuntimeParams["max_size"]
	delete(config.ConnConfig.RuntimeParams, "max_size")
	if there && given == 0 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			n = -1
		}
		given = n
	}
	if given < 0 {
		return 0, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "max_size: give the maximum size of the database in bytes, or 0 for no limit"}
	}
	return given, nil
}
