// Package anystore opens a store by its address: a file name for SQLite, a URL for PostgreSQL. Both stores implement the
// same interfaces, so callers cannot distinguish them.
package anystore

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
	"github.com/holdfastdev/holdfast/store/postgres"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// Open opens the store at an address and migrates its schema to this binary's version.
//
// "jobs.db", "sqlite:jobs.db" and any other path name an SQLite file, which Open creates if it does not exist.
// "jobs.db?min_free=1073741824" also sets how many bytes of the disk the store leaves free.
// "postgres://user@host/database" names a PostgreSQL database; "postgres://user@host/database?schema=jobs" keeps the tables in that schema.
//
// An address in another form is ErrInvalid. The error does not repeat the address, because it may contain a password.
// If the error is not nil, the store is nil.
func Open(ctx context.Context, address string) (store.Store, error) {
	return open(ctx, address, false)
}

// OpenExisting is Open for programs that only look at a store or operate it: it changes no schema and creates no file. If the tables are missing or of an
// older version, it returns ErrUnavailable, and the message says what to do.
func OpenExisting(ctx context.Context, address string) (store.Store, error) {
	return open(ctx, address, true)
}

// ReadSchema returns the version of the tables at an address, and the statements that are missing. It changes nothing.
func ReadSchema(ctx context.Context, address string) (store.Schema, error) {
	path, err := File(address)
	if err != nil {
		return store.Schema{}, err
	}
	if path == "" {
		return postgres.ReadSchema(ctx, postgres.Config{URL: address})
	}
	return sqlite.ReadSchema(ctx, sqlite.Config{Path: path})
}

// NewestSchema returns the schema that this program knows, without looking at a store. Version and Latest are the version of the tables that it makes, and
// Needs is the lowest version that a program must know to use them. All databases have the same versions.
func NewestSchema() store.Schema {
	var newest store.Schema
	for _, step := range sqltext.Migrations("sqlite") {
		newest.Version, newest.Latest, newest.Needs = step.Version, step.Version, max(newest.Needs, step.Needs)
	}
	return newest
}

func open(ctx context.Context, address string, noMigrate bool) (store.Store, error) {
	path, err := File(address)
	if err != nil {
		return nil, err
	}
	// Return an untyped nil on failure: a nil *sqlite.Store or *postgres.Store inside the interface would not compare
	// equal to nil.
	if path == "" {
		s, err := postgres.Open(ctx, postgres.Config{URL: address, NoMigrate: noMigrate})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	cfg, err := sqlite.Parse(fileOf(address))
	if err != nil {
		return nil, err
	}
	cfg.NoMigrate = noMigrate
	s, err := sqlite.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// File returns the path of the SQLite file that an address names, without its options, and an empty path if the address
// names a PostgreSQL database. It refuses the same malformed addresses as Open.
func File(address string) (path string, err error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch scheme = strings.ToLower(scheme); {
	case address == "":
		return "", refuse("no store address given")
	case scheme == "postgres" || scheme == "postgresql":
		if !strings.HasPrefix(rest, "//") {
			return "", refuse("a PostgreSQL address begins with postgres://")
		}
		return "", nil
	case scheme == "sqlite" || scheme == "file":
	case strings.Contains(address, "://"):
		return "", refuse(fmt.Sprintf("there is no store for the scheme %.40q", scheme+"://"))
	case keywords.MatchString(address):
		return "", refuse("a libpq connection string (host=... password=...) is not a store address")
	case credentials.MatchString(address):
		return "", refuse("this looks like a user and a password, not a store address (a file with such a name is given as sqlite:NAME)")
	}
	cfg, err := sqlite.Parse(fileOf(address))
	return cfg.Path, err
}

var (
	// keywords matches a libpq connection string of keyword=value pairs. A file with such a name is given as
	// sqlite:NAME.
	keywords = regexp.MustCompile(`(?i)(^|\s)(host|hostaddr|port|user|password|passfile|dbname|database|service|sslmode|sslpassword|application_name)\s*=`)
	// credentials matches user:password@host, also after two slashes. A single letter before a colon and a path is a drive on
	// Windows.
	credentials = regexp.MustCompile(`^[^/\\:]{2,}:.*@|^[^/\\:]:[^/\\]*@|//[^/\\:@]+:.*@`)
)

// fileOf returns the address of an SQLite file without its scheme.
func fileOf(address string) string {
	if scheme, rest, found := strings.Cut(address, ":"); found && (strings.EqualFold(scheme, "sqlite") || strings.EqualFold(scheme, "file")) {
		return strings.TrimPrefix(rest, "//")
	}
	return address
}

func refuse(why string) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: why + ": name a file (jobs.db) or a database (postgres://user:password@host:port/name)"}
}
