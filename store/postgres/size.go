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

// sizeAge is how long the size of the database is believed.
const sizeAge = 10 * time.Second

// A gauge keeps new jobs out while the database is larger than it may be, so that there is room left for those it has.
type sizeLimit struct {
	limit int64 // bytes; 0: no limit

	mu        sync.Mutex
	checkedAt time.Time
	full      error
}

// check refuses new jobs when there is no room for them. A database that does not tell its size takes them: it may say no itself.
func (g *sizeLimit) check(ctx context.Context, s *Store) error {
	if g.limit <= 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.checkedAt.IsZero() && time.Since(g.checkedAt) < sizeAge {
		return g.full
	}
	var size int64
	if err := s.work.QueryRow(ctx, s.sql["read_database_size"]).Scan(&size); err != nil {
		return nil
	}
	g.checkedAt, g.full = time.Now(), nil
	if size >= g.limit {
		g.full = &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: fmt.Sprintf(
			"could not enqueue: the database has %d MiB, and max_size is %d MiB: delete what nobody needs, or raise max_size", size>>20, g.limit>>20)}
	}
	return g.full
}

// maxSize takes the limit from the address, where the server would not know it.
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
		return 0, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "max_size: give the bytes that the database may have, or 0 for no limit"}
	}
	return given, nil
}
