// Command mutants checks that the tests detect defects. It makes one deliberate defect at a time in a copy of the repository and runs the narrowest test that must fail. A
// defect that is not detected shows a guarantee that no test checks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	only := flag.String("only", "", "names of mutants, separated by commas; all if empty")
	verbose := flag.Bool("v", false, "print the output of the tests")
	flag.Parse()
	if err := run(context.Background(), *only, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// A result says whether a mutant was detected.
type result string

const (
	caught   result = "caught"
	survived result = "SURVIVED"
	useless  result = "USELESS" // the patch does not apply, or the mutant does not build
)

func run(ctx context.Context, only string, verbose bool) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "holdfast-mutants-")
	if err != nil {
		return fmt.Errorf("cannot create a folder for the copy: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := copyRepository(root, dir); err != nil {
		return err
	}
	bad, failsWithout := 0, map[string]string{}
	for _, m := range chosen {
		start := time.Now()
		r, output := m.try(ctx, dir, failsWithout)
		if r != caught {
			bad++
		}
		fmt.Printf("%-9s %-34s %6.1fs  %s\n", r, m.Name, time.Since(start).Seconds(), strings.Join(m.Test, " "))
		if verbose || r == useless {
			fmt.Println(indent(output))
		}
	}
	fmt.Printf("%d of %d mutants caught\n", len(chosen)-bad, len(chosen))
	if bad > 0 {
		return fmt.Errorf("%d mutants were not caught: write a test that detects them, or fix the patch", bad)
	}
	return nil
}

func choose(only string) ([]Mutant, error) {
	if only == "" {
		return mutants, nil
	}
	var chosen []Mutant
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(mutants, func(m Mutant) bool { return m.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no mutant %q", name)
		}
		chosen = append(chosen, mutants[i])
	}
	return chosen, nil
}

// try runs the test on the unchanged copy, where it must pass. Then it applies the patches, runs the test again, where it must fail, and restores the copy. failsWithout
// caches the first step, by the arguments of the test: an error text, or empty if the test passed.
func (m Mutant) try(ctx context.Context, dir string, failsWithout map[string]string) (result, string) {
	name := strings.Join(m.Test, " ")
	if _, known := failsWithout[name]; !known {
		out, err := m.test(ctx, dir)
		if err == nil && (strings.Contains(out, "no tests to run") || strings.Contains(out, "[no test files]")) {
			err = errors.New("the test does not exist")
		}
		if failsWithout[name] = ""; err != nil {
			failsWithout[name] = fmt.Sprintf("its test fails without the mutant: %v\n%s", err, out)
		}
	}
	if failsWithout[name] != "" {
		return useless, failsWithout[name]
	}
	restore, err := m.apply(dir)
	defer restore()
	if err != nil {
		return useless, err.Error()
	}
	out, err := m.test(ctx, dir)
	switch {
	case err == nil:
		return survived, out
	case strings.HasPrefix(out, "# ") || strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return useless, "it does not build: " + out
	}
	return caught, out
}

// test runs the go command that must fail, in the module of the package that it names.
func (m Mutant) test(ctx context.Context, dir string) (string, error) {
	module, args, err := m.command(dir)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = module
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// command returns the go command that must fail, and the folder of its module: the nearest one with a go.mod above the package. Test names the package by its path
// in the repository.
func (m Mutant) command(dir string) (module string, args []string, err error) {
	args = slices.Clone(m.Test)
	if args[0] != "run" {
		args = append([]string{"test", "-count=1", "-vet=off", "-timeout=5m"}, args...)
	}
	for i, arg := range args {
		if !strings.HasPrefix(arg, "./") {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(arg))
		if module, err = moduleOf(path); err != nil {
			return "", nil, err
		}
		within, err := filepath.Rel(module, path)
		if err != nil {
			return "", nil, err
		}
		args[i] = "./" + filepath.ToSlash(within)
	}
	return module, args, nil
}

// apply patches the files and returns a function that restores them.
func (m Mutant) apply(dir string) (restore func(), err error) {
	before := map[string][]byte{}
	restore = func() {
		for path, text := range before {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				fmt.Fprintln(os.Stderr, "mutants: the copy cannot be restored:", err)
			}
		}
	}
	for _, p := range m.Patches {
		path := filepath.Join(dir, filepath.FromSlash(p.File))
		text, err := os.ReadFile(path)
		if err != nil {
			return restore, fmt.Errorf("%s: %w", m.Name, err)
		}
		if n := strings.Count(string(text), p.Old); n != 1 {
			return restore, fmt.Errorf("%s: %s contains the replaced text %d times, not once: fix the patch in internal/mutants", m.Name, p.File, n)
		}
		if _, seen := before[path]; !seen {
			before[path] = text
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), p.Old, p.New, 1)), 0o644); err != nil {
			return restore, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return restore, nil
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// repositoryRoot returns the folder of the root module, from the working directory upwards.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("the working directory is not known: %w", err)
	}
	return moduleOf(dir)
}

// moduleOf returns the nearest folder with a go.mod, from a folder upwards.
func moduleOf(dir string) (string, error) {
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("no go.mod here or above: run this inside the repository")
		}
		dir = filepath.Dir(dir)
	}
}

// copyRepository copies the repository with its nested modules, and without hidden folders, such as its history.
func copyRepository(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if entry.IsDir() {
			if name != "." && strings.HasPrefix(entry.Name(), ".") || name == "bin" {
				return filepath.SkipDir
			}
			return os.MkdirAll(target, 0o755)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644)
	})
}
