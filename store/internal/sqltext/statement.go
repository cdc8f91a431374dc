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
	"strings"
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

// Migrations returns the steps of a database's schema, oldest first: step n leads from version n-1 to n. Steps only
// lead forward, and are never edited after their release.
func Migrations(dialect string) []string {
	files, _ := fs.Glob(migrations, "migration/*."+dialect+".sql")
	steps := make([]string, 0, len(files))
	for _, file := range files {
		text, _ := migrations.ReadFile(file)
		steps = append(steps, string(text))
	}
	return steps
}
