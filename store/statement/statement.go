// Package statement holds every SQL text of the stores, in files named by concern.
//
// Where the databases agree, one text serves both; where speed or locking needs its own text the file says so in its name
// (claim.postgres.sql), so that a listing of this folder shows every divergence. A statement begins with "-- name: x" and
// a line that says why it is the way it is. Parameters are written $1, $2, ... in both dialects.
package statement

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.sql
var texts embed.FS

//go:embed migration/*.sql
var migrations embed.FS

// Load returns the named statements of a dialect ("sqlite" or "postgres"): the common ones and its own. A name that is
// defined twice is a programming error and panics at start.
func Load(dialect string) map[string]string {
	all := map[string]string{}
	files, _ := fs.Glob(texts, "*.sql")
	for _, file := range files {
		if parts := strings.Split(file, "."); len(parts) == 3 && parts[1] != dialect {
			continue
		}
		text, _ := texts.ReadFile(file)
		for _, block := range strings.Split("\n"+string(text), "\n-- name: ")[1:] {
			name, body, _ := strings.Cut(block, "\n")
			name = strings.TrimSpace(name)
			if _, twice := all[name]; twice {
				panic(fmt.Sprintf("statement %q is defined twice for %s", name, dialect))
			}
			all[name] = strings.TrimSpace(body)
		}
	}
	return all
}

// Migrations returns the steps of a dialect's schema, oldest first: step n leads from version n-1 to n. They are
// forward-only, and never edited once released.
func Migrations(dialect string) []string {
	files, _ := fs.Glob(migrations, "migration/*."+dialect+".sql")
	steps := make([]string, 0, len(files))
	for _, file := range files {
		text, _ := migrations.ReadFile(file)
		steps = append(steps, string(text))
	}
	return steps
}
