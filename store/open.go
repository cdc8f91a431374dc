// Package store opens a store by its address: a file for SQLite, a URL for PostgreSQL. Nothing that uses the store can
// tell which one it got.
package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/postgres"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// Open opens the store at an address and brings its schema up to date. "jobs.db", "sqlite:jobs.db" and any other path is an
// SQLite file, made when it is not there; "jobs.db?min_free=1073741824" says how much of the disk it leaves free.
// "postgres://user@host/database" is PostgreSQL.
func Open(ctx context.Context, address string) (holdfast.Store, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch {
	case address == "":
		return nil, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "no store given: name a file (jobs.db) or a database (postgres://user@host/name)"}
	case scheme == "postgres" || scheme == "postgresql":
		return postgres.Open(ctx, postgres.Config{URL: address})
	case scheme == "sqlite" || scheme == "file":
		return openFile(ctx, strings.TrimPrefix(rest, "//"))
	case strings.Contains(address, "://"):
		return nil, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf("no store is called %q: name a file (jobs.db) or a database (postgres://user@host/name)", scheme+"://")}
	}
	return openFile(ctx, address)
}

func openFile(ctx context.Context, address string) (holdfast.Store, error) {
	cfg, err := sqlite.Parse(address)
	if err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, cfg)
}
