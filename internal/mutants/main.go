// Command mutants shows that the tests would notice. It breaks a copy of the module in one deliberate way at a time and
// runs the narrowest test that must then fail: a defect that survives is a promise nobody checks.
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
	only := flag.String("only", "", "names of mutants, separated by commas; all of them when empty")
	verbose := flag.Bool("v", false, "show what the tests said")
	flag.Parse()
	if err := run(context.Background(), *only, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// A fate is what became of a mutant.
type fate string

const (
	caught   fate = "caught"
	survived fate = "SURVIVED"
	useless  fate = "USELESS" // it no longer applies, or does not build: it proves nothing
)

func run(ctx context.Context, only string, verbose bool) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "holdfast-mutants-")
	if err != nil {
		return fmt.Errorf("no folder for the copy: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := copyModule(root, dir); err != nil {
		return err
	}
	bad, sound := 0, map[string]string{}
	for _, m := range chosen {
		start := time.Now()
		f, said := m.try(ctx, dir, sound)
		if f != caught {
			bad++
		}
		fmt.Printf("%-9s %-34s %6.1fs  %s\n", f, m.Name, time.Since(start).Seconds(), strings.Join(m.Test, " "))
		if verbose || f == useless {
			fmt.Println(indent(said))
		}
	}
	fmt.Printf("%d of %d mutants caught\n", len(chosen)-bad, len(chosen))
	if bad > 0 {
		return fmt.Errorf("%d mutants were not caught: write the test that fails with them, or mend the patch", bad)
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
			return nil, fmt.Errorf("no mutant is called %q", name)
		}
		chosen = append(chosen, mutants[i])
	}
	return chosen, nil
}

// try runs the test on the copy as it is, where it must pass: a test that fails anyway catches nothing. Then it breaks the
// copy, runs the test again, and mends the copy. What is sound was found out before, by the test's arguments.
func (m Mutant) try(ctx context.Context, dir string, sound map[string]string) (fate, string) {
	name := strings.Join(m.Test, " ")
	if _, known := sound[name]; !known {
		out, err := goCommand(ctx, dir, m.command()...)
		if err == nil && (strings.Contains(out, "no tests to run") || strings.Contains(out, "[no test files]")) {
			err = errors.New("there is no such test")
		}
		if sound[name] = ""; err != nil {
			sound[name] = fmt.Sprintf("its test fails without it: %v\n%s", err, out)
		}
	}
	if sound[name] != "" {
		return useless, sound[name]
	}
	mend, err := m.apply(dir)
	defer mend()
	if err != nil {
		return useless, err.Error()
	}
	out, err := goCommand(ctx, dir, m.command()...)
	switch {
	case err == nil:
		return survived, out
	case strings.HasPrefix(out, "# ") || strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return useless, "it does not build: " + out
	}
	return caught, out
}

// command is the test that must fail, or a program that must.
func (m Mutant) command() []string {
	if m.Test[0] == "run" {
		return m.Test
	}
	return append([]string{"test", "-count=1", "-vet=off", "-timeout=5m"}, m.Test...)
}

// apply patches the files of a module and answers how to undo that.
func (m Mutant) apply(dir string) (mend func(), err error) {
	before := map[string][]byte{}
	mend = func() {
		for path, text := range before {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				fmt.Fprintln(os.Stderr, "mutants: the copy cannot be mended:", err)
			}
		}
	}
	for _, p := range m.Patches {
		path := filepath.Join(dir, filepath.FromSlash(p.File))
		text, err := os.ReadFile(path)
		if err != nil {
			return mend, fmt.Errorf("%s: %w", m.Name, err)
		}
		if n := strings.Count(string(text), p.Old); n != 1 {
			return mend, fmt.Errorf("%s: %s contains what it replaces %d times, not once: mend the patch in internal/mutants", m.Name, p.File, n)
		}
		if _, seen := before[path]; !seen {
			before[path] = text
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), p.Old, p.New, 1)), 0o644); err != nil {
			return mend, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return mend, nil
}

func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// moduleRoot is the nearest folder above that has a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("this folder has no name: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("no go.mod here or above: run this inside the module")
		}
		dir = filepath.Dir(dir)
	}
}

// copyModule copies what the module needs to build and test itself: no history, no modules nested in it.
func copyModule(from, to string) error {
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
			if name != "." && (strings.HasPrefix(entry.Name(), ".") || nested(path)) {
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

func nested(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
