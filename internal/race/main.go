// Command race runs the tests of one package under the race detector, each test in a process of its own.
//
// Tests in virtual time synchronise millions of times a second. After some millions of synchronisations in one process the detector resets its own clocks, and now and then it dies of that
// (Go 1.26: "ThreadSanitizer: CHECK failed: tsan_rtl.cpp", or a segmentation violation on a system stack while a timer of a synctest bubble fires), whatever the test does. A process of its own keeps nearly every test below that number. A test during which the detector
// dies all the same runs again; a data race or a failed test is final.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const tries = 4

// plain compiles SQLite, which is translated from C, without the race detector: it is not the code under test, and with it the detector needs nine times as long.
const plain = "-gcflags=modernc.org/sqlite/lib=-race=false"

func main() {
	skip := flag.String("skip", "^$", "tests that are not run: a regular expression")
	timeout := flag.Duration("timeout", 25*time.Minute, "how long one test may take")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: race [-skip REGEXP] [-timeout DURATION] PACKAGE")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Arg(0), *skip, *timeout); err != nil {
		fmt.Fprintln(os.Stderr, "race:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, pkg, skip string, timeout time.Duration) error {
	began := time.Now()
	skipped, err := regexp.Compile(skip)
	if err != nil {
		return fmt.Errorf("-skip: %w", err)
	}
	dir, err := os.MkdirTemp("", "holdfast-race")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p := pack{binary: filepath.Join(dir, "race.test"), timeout: timeout}
	if err := p.build(ctx, pkg); err != nil {
		return err
	}
	names, err := p.list(ctx)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, skipped.MatchString)
	if len(names) == 0 {
		return fmt.Errorf("%s has no test that -skip leaves", pkg)
	}
	if failed := p.tests(ctx, names); len(failed) > 0 {
		return fmt.Errorf("%s: %d of %d tests failed: %s", pkg, len(failed), len(names), strings.Join(failed, " "))
	}
	fmt.Printf("ok  \t%s\t%d tests, each in a process of its own\t%.1fs\n", pkg, len(names), time.Since(began).Seconds())
	return nil
}

// A pack is the built tests of one package.
type pack struct {
	binary, dir string
	timeout     time.Duration
}

func (p *pack) build(ctx context.Context, pkg string) error {
	build := exec.CommandContext(ctx, "go", "test", "-race", plain, "-c", "-o", p.binary, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	home, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		return fmt.Errorf("finding %s: %w", pkg, err)
	}
	p.dir = strings.TrimSpace(string(home))
	return nil
}

func (p *pack) list(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, p.binary, "-test.list", "^(Test|Example)")
	cmd.Dir = p.dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// tests runs as many tests at once as there are processors, and returns the names of those that failed.
func (p *pack) tests(ctx context.Context, names []string) (failed []string) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		slots = make(chan struct{}, runtime.NumCPU())
	)
	for _, name := range names {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out, err := p.test(ctx, name)
			if err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, name)
			fmt.Printf("%s\n--- FAIL: %s (%v)\n", out, name, err)
		})
	}
	wg.Wait()
	return failed
}

// test runs one test, and again when nothing but the detector itself failed.
func (p *pack) test(ctx context.Context, name string) ([]byte, error) {
	for try := 1; ; try++ {
		cmd := exec.CommandContext(ctx, p.binary, "-test.run", "^"+name+"$", "-test.timeout", p.timeout.String())
		cmd.Dir = p.dir
		out, err := cmd.CombinedOutput()
		if err == nil || try == tries || !detectorDied(out) {
			return out, err
		}
		fmt.Printf("%s: the race detector itself died, try %d of %d:\n%s\n", name, try, tries, firstLine(out))
	}
}

// detectorDied tells a crash of the detector from what it found and from what the test found.
func detectorDied(out []byte) bool {
	if bytes.Contains(out, []byte("WARNING: DATA RACE")) || bytes.Contains(out, []byte("--- FAIL")) || bytes.Contains(out, []byte("panic: ")) {
		return false
	}
	return bytes.Contains(out, []byte("ThreadSanitizer: CHECK failed")) || bytes.Contains(out, []byte("ThreadSanitizer:DEADLYSIGNAL")) ||
		bytes.Contains(out, []byte("SIGSEGV: segmentation violation")) && bytes.Contains(out, []byte("goroutine 0 gp=")) && bytes.Contains(out, []byte("synctest bubble"))
}

func firstLine(out []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	return line
}
