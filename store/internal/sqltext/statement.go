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
	"github.com/holdfastdev/holdfast/store"
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
	Needs   int // the lowest version that a program must know to use tables with this step
	SQL     string
}

// Applied is what the table of migrations of a database says.
type Applied struct {
	Version int // the newest step; 0: none
	Needs   int // the lowest version that a program must know to use the tables
}

// Migrations returns the steps of a database's schema, oldest first. The first one creates the schema of the first release in an empty database. Steps
// only lead forward, and are never edited after their release.
//
// The comment at the head of a step may have the line "-- needs: N": programs that know version N can use the tables with this step, beside programs that know
// the step itself. Without the line only programs that know the step can. A line that makes no sense is a programming error, and Migrations panics.
func Migrations(dialect string) []Migration {
	files, _ := fs.Glob(migrations, "migration/*."+dialect+".sql")
	steps := make([]Migration, 0, len(files))
	for _, file := range files {
		text, _ := migrations.ReadFile(file)
		version, _ := strconv.Atoi(strings.SplitN(path.Base(file), ".", 2)[0])
		needs, err := readNeeds(string(text), version)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", file, err))
		}
		steps = append(steps, Migration{Version: version, Needs: needs, SQL: string(text)})
	}
	return steps
}

// readNeeds returns which version the step with this text and version needs.
func readNeeds(text string, version int) (int, error) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") {
			break
		}
		if number, found := strings.CutPrefix(line, "-- needs:"); found {
			needs, err := strconv.Atoi(strings.TrimSpace(number))
			if err != nil || needs < 1 || needs > version {
				return 0, fmt.Errorf("needs:%s is not a version up to %d", strings.TrimRight(number, "\n"), version)
			}
			return needs, nil
		}
	}
	return version, nil
}

// Latest returns the version of the newest step.
func Latest(steps []Migration) int { return steps[len(steps)-1].Version }

// Missing returns the steps that a database still needs, and refuses tables that this program cannot use. Tables with newer steps can be used if each of
// those steps needs at most the newest step of this program; then nothing is missing.
func Missing(steps []Migration, found Applied) ([]Migration, error) {
	first, last := steps[0].Version, Latest(steps)
	switch {
	case found.Version > last:
		return nil, store.Schema{Version: found.Version, Needs: found.Needs, Latest: last}.Current()
	case found.Version > 0 && found.Version < first:
		return nil, &holdfast.Error{Err: holdfast.ErrUnavailable,
			Message: fmt.Sprintf("the database was written by a build from before the first release (schema %d, the oldest that can be upgraded is %d): finish its jobs with that build, or use an empty database", found.Version, first)}
	}
	return slices.DeleteFunc(slices.Clone(steps), func(m Migration) bool { return m.Version <= found.Version }), nil
}
