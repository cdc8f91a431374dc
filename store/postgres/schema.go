package postgres

import (
	"fmt"
	"regexp"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// A schema is the name of the PostgreSQL schema that has the store's tables. When it is empty, statements name no schema, and the search_path of each
// connection decides: by default that is the schema public.
//
// With a name, every statement names it. The store sets no search_path, because that is state of a session, which a pooler in transaction mode does not
// keep, and because statements in a caller's transaction (In) run on a connection whose search_path belongs to the caller.
type schema string

// schemaName allows names that need no care anywhere: in statements, in texts and as a part of the name of a channel.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)

// check refuses a name that is not supported.
func (s schema) check() error {
	if s == "" || schemaName.MatchString(string(s)) {
		return nil
	}
	return &holdfast.Error{Err: holdfast.ErrInvalid,
		Message: fmt.Sprintf("the schema %.60q: use up to 48 lower case letters, digits and _, and do not begin with a digit", string(s))}
}

var (
	word    = regexp.MustCompile(`\bholdfast_[a-z_]+\b`)
	created = regexp.MustCompile(`(?m)^\s*CREATE (?:TABLE|VIEW|FUNCTION) (?:IF NOT EXISTS )?(holdfast_[a-z_]+)`)

	// relations are the tables, views and functions that the migrations create. Indexes and triggers belong to the schema of their table and are
	// never named with a schema.
	relations = sync.OnceValue(func() map[string]bool {
		names := map[string]bool{"holdfast_migration": true}
		for _, step := range sqltext.Migrations("postgres") {
			for _, match := range created.FindAllStringSubmatch(step.SQL, -1) {
				names[match[1]] = true
			}
		}
		return names
	})
)

// qualify writes the schema before the name of every table, view and function in a statement.
func (s schema) qualify(text string) string {
	if s == "" {
		return text
	}
	return word.ReplaceAllStringFunc(text, func(name string) string {
		if relations()[name] {
			return s.prefix() + name
		}
		return name
	})
}

// prefix is what is written before a name.
func (s schema) prefix() string {
	if s == "" {
		return ""
	}
	return `"` + string(s) + `".`
}

// channel is the name of the channel for notifications. Stores in different schemas of one database do not wake each other.
func (s schema) channel() string {
	if s == "" {
		return "holdfast"
	}
	return "holdfast_" + string(s)
}

// schemaOf returns the schema, from the configuration or from the address. It removes it from the address, because the server does not know that parameter.
func schemaOf(config *pgxpool.Config, given string) (schema, error) {
	text, there := config.ConnConfig.RuntimeParams["schema"]
	delete(config.ConnConfig.RuntimeParams, "schema")
	if there && given == "" {
		given = text
	}
	return schema(given), schema(given).check()
}
