// Package store opens a store by its address: a file for SQLite, a URL for PostgreSQL. Nothing that uses the store can
// tell which one it got.
package store

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/postgres"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// Open opens the store at an address and brings its schema up to date. "jobs.db", "sqlite:jobs.db" and any other path is an
// SQLite file, made when it is not there; "jobs.db?min_free=1073741824" says how much of the disk it leaves free.
// "postgres://user@host/database" is PostgreSQL. An address that is neither is ErrInvalid; the error does not repeat it, because
// there may be a password in it. When the error is not nil the store is nil.
func Open(ctx context.Context, address string) (holdfast.Store, error) {
	path, err := File(address)
	if err != nil {
		return nil, err
	}
	// A nil *sqlite.Store or *postgres.Store must not be returned as holdfast.Store: that interface would not be nil.
	if path == "" {
		s, err := postgres.Open(ctx, postgres.Config{URL: address})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	cfg, err := sqlite.Parse(fileOf(address))
	if err != nil {
		return nil, err
	}
	s, err := sqlite.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// File is the path of the SQLite file that an address names, without its options; empty when the address is a PostgreSQL database. It refuses
// what Open refuses because of its form.
func File(address string) (path string, err error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch scheme = strings.ToLower(scheme); {
	case address == "":
		return "", refuse("no store given")
	case scheme == "postgres" || scheme == "postgresql":
		if !strings.HasPrefix(rest, "//") {
			return "", refuse("the address of a PostgreSQL database begins with postgres://")
		}
		return "", nil
	case scheme == "sqlite" || scheme == "file":
	case strings.Contains(address, "://"):
		return "", refuse(fmt.Sprintf("no store is called %.40q", scheme+"://"))
	case keywords.MatchString(address):
		return "", refuse("the words of libpq (host=... password=...) are no address of a store")
	case credentials.MatchString(address):
		return "", refuse("this looks like a user and a password, and is no address of a store; a file whose name looks so is given as sqlite:NAME")
	}
	cfg, err := sqlite.Parse(fileOf(address))
	return cfg.Path, err
}

var (
	// keywords finds a connection string of keywords. A file whose name looks so is given as sqlite:NAME.
	keywords = regexp.MustCompile(`(?i)(^|\s)(host|hostaddr|port|user|password|passfile|dbname|database|service|sslmode|sslpassword|application_name)\s*=`)
	// credentials finds user:password@host. A single letter before the colon is a drive on Windows.
	credentials = regexp.MustCompile(`^[^/\\:]{2,}:.*@`)
)

// fileOf is an address of a file without its scheme.
func fileOf(address string) string {
	if scheme, rest, found := strings.Cut(address, ":"); found && (strings.EqualFold(scheme, "sqlite") || strings.EqualFold(scheme, "file")) {
		return strings.TrimPrefix(rest, "//")
	}
	return address
}

func refuse(why string) error {
	return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: why + ": name a file (jobs.db) or a database (postgres://user:password@host:port/name)"}
}
