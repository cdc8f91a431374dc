// Bench runs Holdfast and its peers side by side: the same workloads on the same throw-away PostgreSQL, on SQLite files on the
// same disk and on a Redis of their own, one process a run, the contenders taking turns, so that whatever else the machine does
// hurts all of them. It prints medians, spreads and whether the targets are met, and writes results.json and charts. A missed
// target is news, not an error: the exit code is 1 only when a run did not work.
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

// A report is one whole benchmark.
type report struct {
	quick    bool
	part     bool // of the plan: what was not chosen is not spoken of
	rounds   int
	contests []*contest
	ground   *ground
	verdicts []verdict
}

func main() {
	r := &report{quick: os.Getenv("QUICK") != ""}
	flag.IntVar(&r.rounds, "rounds", 0, "how often each contender runs each workload; 3, or 1 when quick")
	only := flag.String("only", "", "only what answers to all these words: a workload, a contender, a database")
	out := flag.String("out", "", "the folder for results.json and the charts; results, or results/quick, unless -only is given")
	flag.BoolVar(&r.quick, "quick", r.quick, "fewer jobs, one round: a look, not a measurement (also QUICK=1)")
	from := flag.String("from", "", "judge and draw an earlier results.json again instead of measuring")
	flag.Parse()
	if r.rounds <= 0 {
		r.rounds = 3
		if r.quick {
			r.rounds = 1
		}
	}
	if *from != "" {
		if err := again(*from, os.Stdout); err != nil {
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

// folder is where the results go. What is only a part of the benchmark does not replace the whole.
func folder(out, only string, quick bool) string {
	switch {
	case out != "" || only != "":
		return out
	case quick:
		return filepath.Join("results", "quick")
	}
	return "results"
}

func (r *report) run(ctx context.Context, to io.Writer, out string) error {
	begin := time.Now()
	if len(r.contests) == 0 {
		return errors.New("nothing answers to all words of -only: see the plan in bench/README.md")
	}
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // the database server runs as a user of its own and lives in here
		return err
	}
	fmt.Fprintln(os.Stderr, "building the contenders")
	r.ground = &ground{dir: dir, yard: build(ctx, filepath.Join(dir, "bin"), r.needed())}
	if r.ground.yard.commands["holdfast"] == nil && r.needed()["holdfast"] {
		return errors.New("without Holdfast there is nothing to compare: " + strings.Join(r.ground.yard.leftOut, "\n"))
	}
	if err := r.ground.prepare(ctx, r.contests); err != nil {
		return err
	}
	defer r.ground.close()
	for _, line := range r.ground.yard.leftOut {
		fmt.Fprintln(os.Stderr, "left out:", line)
	}
	for _, c := range r.contests {
		c.run(ctx, r.ground, r.rounds)
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
	return r.trouble()
}

func (r *report) needed() map[string]bool {
	all := map[string]bool{}
	for _, c := range r.contests {
		for _, e := range c.entries {
			all[e.program] = true
		}
	}
	return all
}

// print is the whole answer on the terminal.
func (r *report) print(to io.Writer, took time.Duration) {
	m := thisMachine()
	fmt.Fprintf(to, "\n%d cores, %s/%s, %s, rounds: %d (half as many for peers that no target names), took %v\n", m.Cores, m.System, m.Chip, m.Go, r.rounds, took.Round(time.Second))
	if r.quick {
		fmt.Fprintln(to, "QUICK: fewer jobs, one round, and 200k jobs where a full run has millions. Read it as a look, not as a measurement.")
	}
	fmt.Fprintln(to, strings.Join(r.ground.yard.versions, ", "))
	for _, name := range slices.Sorted(maps.Keys(r.ground.version)) {
		fmt.Fprintf(to, "%s %s\n", name, r.ground.version[name])
	}
	fmt.Fprintf(to, "every contender in Go runs with %s\n", collector)
	fmt.Fprintf(to, "PostgreSQL settings: fsync=on full_page_writes=on %s; all else default, the same for all\n", listed(settings.Settings))
	for _, line := range r.ground.yard.leftOut {
		fmt.Fprintln(to, "LEFT OUT:", line)
	}
	fmt.Fprintln(to, disturbance(r.contests))
	fmt.Fprintln(to)
	table(to, r.contests)
	spoken(to, r.contests)
	judgement(to, r.verdicts)
}

func listed(settings map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		list = append(list, name+"="+settings[name])
	}
	return strings.Join(list, " ")
}

func (r *report) trouble() error {
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
