package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mostModules is how many modules may be in the module graph of a program that runs jobs on SQLite, with Holdfast and without the program itself. Each one is a
// dependency that users of the library download, review and update.
const mostModules = 40

// smallProgram imports what such a program needs.
const smallProgram = `package main

import (
	_ "` + module + `"
	_ "` + module + `/engine"
	_ "` + module + `/failure"
	_ "` + module + `/store/sqlite"
)

func main() {}
`

func TestASmallProgramHasAtMostFortyModules(t *testing.T) {
	dir := t.TempDir()
	sums, err := os.ReadFile(filepath.Join(root(t), "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main.go": smallProgram,
		"go.mod":  "module example.org/small\n\ngo 1.26.0\n\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root(t) + "\n",
		"go.sum":  string(sums), // nothing has to be downloaded that a build of Holdfast does not need
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	goIn(t, dir, "build", "-o", os.DevNull, ".")                                             // adds the modules of all imported packages to go.mod
	modules := strings.Split(strings.TrimSpace(goIn(t, dir, "list", "-m", "all")), "\n")[1:] // the first is the program
	if len(modules) > mostModules {
		t.Errorf("a program that imports the root, engine, failure and store/sqlite has %d modules, the limit is %d: move the dependency to a nested module, such as internal/interop for tests\n%s",
			len(modules), mostModules, strings.Join(modules, "\n"))
	}
	t.Logf("%d modules", len(modules))
}

// goIn runs a go command that may change go.mod, and returns its output.
func goIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, complaint.String())
	}
	return string(out)
}
