package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A patch that no longer applies is found here at once, and not when all mutants are run.
func TestEveryMutantStillApplies(t *testing.T) {
	root, err := repositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range mutants {
		if names[m.Name] || m.Name == "" || m.Breaks == "" || len(m.Patches) == 0 || len(m.Test) == 0 {
			t.Errorf("mutant %q needs a unique name, a guarantee that it violates, a patch and a test", m.Name)
		}
		names[m.Name] = true
		for _, p := range m.Patches {
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.File)))
			if err != nil {
				t.Errorf("mutant %q: %v", m.Name, err)
				continue
			}
			if n := strings.Count(string(text), p.Old); n != 1 || p.Old == p.New {
				t.Errorf("mutant %q: %s contains the replaced text %d times, not once: fix the patch", m.Name, p.File, n)
			}
		}
	}
}

func TestEveryMutantNamesATestThatExists(t *testing.T) {
	root, err := repositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		at := strings.TrimPrefix(m.Test[len(m.Test)-1], "./")
		for i, flag := range m.Test {
			if flag != "-run" {
				continue
			}
			for name := range strings.SplitSeq(m.Test[i+1], "|") {
				if !declared(t, filepath.Join(root, filepath.FromSlash(at)), strings.Trim(strings.Split(name, "/")[0], "^$")) {
					t.Errorf("mutant %q: no test of ./%s begins with %s", m.Name, at, name)
				}
			}
		}
	}
}

func TestATestRunsInTheModuleOfItsPackage(t *testing.T) {
	root, err := repositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		test, args []string
		module     string
	}{
		{[]string{"-run", "TestX", "./store/sqlite"}, []string{"test", "-count=1", "-vet=off", "-timeout=5m", "-run", "TestX", "./store/sqlite"}, "."},
		{[]string{"-run", "TestX", "./cmd/internal/chaos"}, []string{"test", "-count=1", "-vet=off", "-timeout=5m", "-run", "TestX", "./internal/chaos"}, "cmd"},
		{[]string{"run", "./cmd/internal/chaos/powerloss", "-points", "50"}, []string{"run", "./internal/chaos/powerloss", "-points", "50"}, "cmd"},
	} {
		module, args, err := Mutant{Test: c.test}.command(root)
		if err != nil || module != filepath.Join(root, c.module) || !slices.Equal(args, c.args) {
			t.Errorf("%q: %q in %s, %v", c.test, args, module, err)
		}
	}
}

func declared(t *testing.T, dir, prefix string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(prefix))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if pattern.Match(text) {
			return true
		}
	}
	return false
}
