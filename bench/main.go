// Bench compares Holdfast with other job queues: the same workloads on the same temporary PostgreSQL, on SQLite files on the same disk and on a temporary Redis. Each run
// is one process, and the contenders take turns, so that other load on the machine affects all of them. It prints medians, spreads and whether the targets are met, and
// writes results.json and charts. A missed target is not an error: the exit code is 1 only if a run did not work.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A benchmark is one whole run of the benchmark.
type benchmark struct {
	quick    bool
	part     bool // only a part of the plan: entries that were not chosen are not printed
	rounds   int
	contests []*contest
	env      *environment
	verdicts []verdict
}

func main() {
	r := &benchmark{quick: os.Getenv("QUICK") != ""}
	flag.IntVar(&r.rounds, "rounds", 0, "how often each contender runs each workload; default 3, or 1 with -quick")
	only := flag.String("only", "", "run only entries that match all these words: workload, contender, database")
	out := flag.String("out", "", "the folder for results.json and the charts; default results, or results/quick with -quick, or none with -only")
	flag.BoolVar(&r.quick, "quick", r.quick, "fewer jobs, one round: a first look, not a measurement (also QUICK=1)")
	from := flag.String("from", "", "evaluate and draw an earlier results.json again instead of measuring")
	flag.Parse()
	if r.rounds <= 0 {
		r.rounds = 3
		if r.quick {
			r.rounds = 1
		}
	}
	if *from != "" {
		if err := redraw(*from, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	r.part = *only != ""
	r.contests = choose(plan(r.quick), strings.Fields(*only))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := r.run(ctx, os.Stdout, folder(*out, *only, r.quick)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

// folder returns the folder for the results. A partial run does not replace the results of a full one.
func folder(out, only string, quick bool) string {
	switch {
	case out != "" || only != "":
		return out
	case quick:
		return filepath.Join("results", "quick")
	}
	return "results"
}

func (r *benchmark) run(ctx context.Context, to io.Writer, out string) error {
	begin := time.Now()
	if len(r.contests) == 0 {
		return errors.New("no entry matches all words of -only: see the workloads and contenders in bench/README.md")
	}
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // the database server runs as another user and has its data here
		return err
	}
	fmt.Fprintln(os.Stderr, "building the contenders")
	r.env = &environment{dir: dir, builds: build(ctx, filepath.Join(dir, "bin"), r.needed())}
	if r.env.builds.commands["holdfast"] == nil && r.needed()["holdfast"] {
		return errors.New("Holdfast cannot be built: " + strings.Join(r.env.builds.leftOut, "\n"))
	}
	if err := r.env.prepare(ctx, r.contests); err != nil {
		return err
	}
	defer r.env.close()
	for _, line := range r.env.builds.leftOut {
		fmt.Fprintln(os.Stderr, "left out:", line)
	}
	for _, c := range r.contests {
		c.run(ctx, r.env, r.rounds)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.verdicts = judge(r.contests, targets(r.quick))
	if r.part {
		r.verdicts = slices.DeleteFunc(r.verdicts, func(v verdict) bool { return v.state == notMeasured })
	}
	r.print(to, time.Since(begin))
	if out != "" {
		if err := r.write(out); err != nil {
			return err
		}
		fmt.Fprintf(to, "results.json and charts are in %s\n", out)
	}
	return r.failure()
}

func (r *benchmark) needed() map[string]bool {
	all := map[string]bool{}
	for _, c := range r.contests {
		for _, e := range c.entries {
			all[e.program] = true
		}
	}
	return all
}

// print prints the results.
func (r *benchmark) print(to io.Writer, took time.Duration) {
	m := thisMachine()
	fmt.Fprintf(to, "\n%d cores, %s/%s, %s, rounds: %d (half as many for contenders without a target), took %v\n", m.Cores, m.System, m.Chip, m.Go, r.rounds, took.Round(time.Second))
	if r.quick {
		fmt.Fprintln(to, "QUICK: fewer jobs, one round, and 200k jobs where a full run has millions. This is a first look, not a measurement.")
	}
	fmt.Fprintln(to, strings.Join(r.env.builds.versions, ", "))
	for _, name := range slices.Sorted(maps.Keys(r.env.version)) {
		fmt.Fprintf(to, "%s %s\n", name, r.env.version[name])
	}
	fmt.Fprintf(to, "every contender in Go runs with %s\n", collector)
	fmt.Fprintf(to, "PostgreSQL settings: fsync=on full_page_writes=on %s; all else default, the same for all\n", listed(settings.Settings))
	for _, line := range r.env.builds.leftOut {
		fmt.Fprintln(to, "LEFT OUT:", line)
	}
	fmt.Fprintln(to, otherLoad(r.contests))
	fmt.Fprintln(to)
	table(to, r.contests)
	printSettings(to, r.contests)
	printTargets(to, r.verdicts)
}

func listed(settings map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		list = append(list, name+"="+settings[name])
	}
	return strings.Join(list, " ")
}

func (r *benchmark) failure() error {
	n := 0
	for _, c := range r.contests {
		for _, e := range c.entries {
			n += len(e.failures)
		}
	}
	if n > 0 {
		return fmt.Errorf("%d runs did not work; see above", n)
	}
	return nil
}
