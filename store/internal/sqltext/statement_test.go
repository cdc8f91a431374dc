package sqltext_test

import (
	"regexp"
	"testing"

	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

func TestEveryPartOfAStatementIsDefinedInBothDialects(t *testing.T) {
	hole := regexp.MustCompile(`\{[a-z][a-z_ ]*\}`)
	for _, dialect := range []string{"sqlite", "postgres"} {
		for name, text := range sqltext.Load(dialect) {
			if missing := hole.FindString(text); missing != "" {
				t.Errorf("%s: %q asks for %s, and no file of the dialect says it", dialect, name, missing)
			}
		}
	}
}

// stops matches what makes the statements of older programs fail at once: the table that they claim from, or the one that they settle in, has another name.
var stops = regexp.MustCompile(`(?i)\bALTER TABLE holdfast_(ready|batch) RENAME TO\b`)

// A program reads the version of the tables only when it opens a store. A step that programs of the step before cannot use must make their statements fail, so
// that a process that runs on does no damage. Most steps are additive instead, and say so: "-- needs: N" in their head.
func TestAStepThatOlderProgramsCannotUseStopsTheirStatements(t *testing.T) {
	needs := map[int]int{}
	for _, dialect := range []string{"sqlite", "postgres"} {
		steps := sqltext.Migrations(dialect)
		for i, step := range steps[1:] {
			if step.Needs == step.Version && !stops.MatchString(step.SQL) {
				t.Errorf("%s: programs of version %d cannot use step %d, and continue to run on its tables: if they can use them, add the line '-- needs: %d' to the head of the step; otherwise rename holdfast_ready or holdfast_batch in it",
					dialect, steps[i].Version, step.Version, steps[i].Version)
			}
			if other, there := needs[step.Version]; there && other != step.Needs {
				t.Errorf("step %d needs version %d on one database and version %d on the other", step.Version, other, step.Needs)
			}
			needs[step.Version] = step.Needs
		}
	}
}

func TestStepsOfANewerReleaseAreUsableOrRefused(t *testing.T) {
	steps := []sqltext.Migration{{Version: 5, Needs: 5}, {Version: 6, Needs: 5}}
	for _, c := range []struct {
		found   sqltext.Applied
		missing int
		usable  bool
	}{
		{sqltext.Applied{}, 2, true},
		{sqltext.Applied{Version: 5, Needs: 5}, 1, true},
		{sqltext.Applied{Version: 6, Needs: 5}, 0, true},
		{sqltext.Applied{Version: 7, Needs: 5}, 0, true},
		{sqltext.Applied{Version: 7, Needs: 6}, 0, true},
		{sqltext.Applied{Version: 7, Needs: 7}, 0, false},
		{sqltext.Applied{Version: 9, Needs: 7}, 0, false},
		{sqltext.Applied{Version: 4, Needs: 4}, 0, false},
	} {
		missing, err := sqltext.Missing(steps, c.found)
		if len(missing) != c.missing || (err == nil) != c.usable {
			t.Errorf("%+v: %d steps and %v; wanted %d, usable: %v", c.found, len(missing), err, c.missing, c.usable)
		}
	}
}
