// Package sqltext contains every SQL statement of the stores, in files named by concern.
//
// A file without a database in its name serves both databases. Where speed or locking needs a different statement, the
// file name has the database in it (claim.postgres.sql), so that a listing of this folder shows every difference. A
// statement begins with "-- name: x" and a comment that gives the reason for its form. Parameters are written $1, $2,
// ... for both databases.
package sqltext

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast"
)

//go:embed *.sql
var texts embed.FS

//go:embed migration/*.sql
var migrations embed.FS

// gently marks an insert that comes in two forms. Under its own name it fails if the row exists, which costs nothing to
// check; under its name with " gently" appended it leaves the existing row.
const gently = "{gently}"

// Load returns the statements of a database ("sqlite" or "postgres") by name: the shared ones and its own. "-- part: x"
// begins a text that several statements share, or that a shared statement needs in a different form for each database:
// it replaces {x} in statements. A name that is defined twice is a programming error, and Load panics.
func Load(dialect string) map[string]string {
	bodies, parts := map[string]string{}, map[string]string{}
	files, _ := fs.Glob(texts, "*.sql")
	for _, file := range files {
		if words := strings.Split(file, "."); len(words) == 3 && words[1] != dialect {
			continue
		}
		text, _ := texts.ReadFile(file)
		blocks(string(text), "-- name: ", bodies)
		blocks(string(text), "-- part: ", parts)
	}
	all := map[string]string{}
	for name, body := range bodies {
		for part, shared := range parts {
			body = strings.ReplaceAll(body, "{"+part+"}", shared)
		}
		all[name] = strings.ReplaceAll(body, gently, "")
		if strings.Contains(body, gently) {
			all[name+" gently"] = strings.ReplaceAll(body, gently, "ON CONFLICT DO NOTHING")
		}
	}
	return all
}

// blocks adds the texts that begin with a line of this sort to found, by the name in that line.
func blocks(text, sort string, found map[string]string) {
	for _, block := range strings.Split("\n"+text, "\n"+sort)[1:] {
		name, body, _ := strings.Cut(block, "\n")
		for _, next := range []string{"\n-- name: ", "\n-- part: "} {
			body, _, _ = strings.Cut(body, next)
		}
		if name = strings.TrimSpace(name); found[name] != "" {
			panic(fmt.Sprintf("%s%s is defined twice", sort, name))
		}
		found[name] = strings.TrimSpace(body)
	}
}

// A Migration is one step of a database's schema: it leads from the version before to Version.
type Migration struct {
	Version int
	SQL     string
}

// Migrations returns the steps of a database's schema, oldest first. The first one creates the schema of the first release in an empty database. Steps
// only lead forward, and are never edited after their release.
func Migrations(dialect string) []Migration {
	files, _ := fs.Glob(migrations, "migration/*."+dialect+".sql")
	steps := make([]Migration, 0, len(files))
	for _, file := range files {
		text, _ := migrations.ReadFile(file)
		version, _ := strconv.Atoi(strings.SplitN(path.Base(file), ".", 2)[0])
		steps = append(steps, Migration{Version: version, SQL: string(text)})
	}
	return steps
}

// Latest returns the version of the newest step.
func Latest(steps []Migration) int { return steps[len(steps)-1].Version }

// Missing returns the steps that a database at a version still needs, and refuses a version that this program cannot use. Version 0 is an empty database.
func Missing(steps []Migration, version int) ([]Migration, error) {
	first, last := steps[0].Version, steps[len(steps)-1].Version
	switch {
	case version > last:
		return nil, &holdfast.Error{Err: holdfast.ErrUnavailable,
			Message: fmt.Sprintf("the database was written by a newer holdfast (schema %d, this binary knows %d): upgrade the binary", version, last)}
	case version > 0 && version < first:
		return nil, &holdfast.Error{Err: holdfast.ErrUnavailable,
			Message: fmt.Sprintf("the database was written by a build from before the first release (schema %d, the oldest that can be upgraded is %d): finish its jobs with that build, or use an empty database", version, first)}
	}
	return slices.DeleteFunc(slices.Clone(steps), func(m Migration) bool { return m.Version <= version }), nil
}
