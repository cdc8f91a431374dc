// Package sqltext holds every SQL text of the stores, in files named by concern.
//
// Where the databases agree, one text serves both; where speed or locking needs its own text the file says so in its name
// (claim.postgres.sql), so that a listing of this folder shows every divergence. A statement begins with "-- name: x" and
// a line that says why it is the way it is. Parameters are written $1, $2, ... in both dialects.
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

// gently marks an insert that comes in two forms: its own name refuses a row that is already there, which costs nothing to
// know; its name with " gently" behind it lets that row be.
const gently = "{gently}"

// Load returns the named statements of a dialect ("sqlite" or "postgres"): the common ones and its own. "-- part: x" begins
// a text that statements share, or that a common one needs in the dialect's own words: it stands wherever one says {x}. A
// name that is defined twice is a programming error and panics at start.
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

// blocks finds the texts that begin with a line of this sort, by the name in that line.
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
