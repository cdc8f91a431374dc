// Command steps runs the parts of `make test` and prints how long each took.
//
//	steps [-at 2] 'NAME: COMMAND' ...
//
// Each command runs in a shell, up to -at of them at the same time, in the order of the arguments. A part prints one line when it begins and one when it ends. The output
// of a part that fails is printed in full; that of a part that passes is not printed. At the end a table lists the parts with their times, and below a part the packages
// whose tests took longest. A failed part does not stop the others, and makes the exit code 1.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	at := flag.Int("at", 1, "how many parts run at the same time")
	flag.Parse()
	parts, err := parse(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "steps:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	r := &runner{out: os.Stdout, began: time.Now()}
	r.run(ctx, parts, *at)
	stop()
	if failed := r.table(parts); failed > 0 {
		fmt.Fprintf(os.Stderr, "steps: %d of %d parts failed\n", failed, len(parts))
		os.Exit(1)
	}
}

// A part is one command and its result.
type part struct {
	name, command string
	took          time.Duration
	cpu           time.Duration // processor time of the command and of all processes it waited for
	err           error
	packages      []tested
}

// A tested package is one whose tests passed.
type tested struct {
	name    string
	seconds float64
}

func parse(args []string) ([]*part, error) {
	var parts []*part
	for _, arg := range args {
		name, command, ok := strings.Cut(arg, ": ")
		if !ok || name == "" || strings.TrimSpace(command) == "" {
			return nil, fmt.Errorf("%q is not NAME: COMMAND", arg)
		}
		parts = append(parts, &part{name: name, command: command})
	}
	if len(parts) == 0 {
		return nil, errors.New("no part is given: steps [-at 2] 'NAME: COMMAND' ...")
	}
	return parts, nil
}

// A runner runs parts and prints what happens.
type runner struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

// run starts the parts in their order, and returns when all have ended.
func (r *runner) run(ctx context.Context, parts []*part, at int) {
	var all sync.WaitGroup
	slots := make(chan struct{}, max(at, 1))
	for _, p := range parts {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			r.part(ctx, p)
		})
	}
	all.Wait()
}

func (r *runner) part(ctx context.Context, p *part) {
	r.printf("begin   %s", p.name)
	began := time.Now()
	cmd := exec.CommandContext(ctx, "sh", "-c", p.command)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState != nil {
		p.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	p.took, p.err, p.packages = time.Since(began), cmp.Or(ctx.Err(), err), slowest(out)
	if p.err == nil {
		r.printf("ok      %s, %s", p.name, seconds(p.took))
		return
	}
	r.printf("FAILED  %s, %s: %v\n$ %s\n%s", p.name, seconds(p.took), p.err, p.command, strings.TrimRight(string(out), "\n"))
}

// printf prints a line that begins with the time since the start.
func (r *runner) printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "[%7s] %s\n", seconds(time.Since(r.began)), fmt.Sprintf(format, args...))
}

// The packages that a part lists in the table: the slowest few that took at least so long.
const (
	listed    = 8
	listedMin = 10.0
)

var passed = regexp.MustCompile(`(?m)^ok  \t(\S+)\t(?:.*\t)?([0-9.]+)s(?:\s|$)`)

// slowest returns the packages that the output of go test names with their times. The output of a cached result has no time.
func slowest(out []byte) (found []tested) {
	for _, m := range passed.FindAllSubmatch(out, -1) {
		if n, err := strconv.ParseFloat(string(m[2]), 64); err == nil && n >= listedMin {
			found = append(found, tested{string(m[1]), n})
		}
	}
	slices.SortStableFunc(found, func(a, b tested) int { return cmp.Compare(b.seconds, a.seconds) })
	return found[:min(len(found), listed)]
}

// table prints the parts with their times, and returns how many failed.
func (r *runner) table(parts []*part) (failed int) {
	fmt.Fprintf(r.out, "\n%-60s %9s %9s\n", "part", "time", "processor")
	var cpu time.Duration
	for _, p := range parts {
		result := ""
		if p.err != nil {
			failed++
			result = "  FAILED"
		}
		cpu += p.cpu
		fmt.Fprintf(r.out, "%-60s %9s %9s%s\n", p.name, seconds(p.took), seconds(p.cpu), result)
		for _, t := range p.packages {
			fmt.Fprintf(r.out, "  %-58s %9s\n", t.name, seconds(time.Duration(t.seconds*float64(time.Second))))
		}
	}
	fmt.Fprintf(r.out, "%-60s %9s %9s\n", "all, from begin to end", seconds(time.Since(r.began)), seconds(cpu))
	return failed
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
