// Bench runs Holdfast and River side by side: the same workloads on the same throw-away PostgreSQL and on SQLite files on
// the same disk, one process a run, the contenders taking turns, so that whatever else the machine does hurts both. It
// prints medians, ratios and whether the floors are met. A missed floor is news, not an error: the exit code is 1 only
// when a run did not work.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/holdfastdev/holdfast/internal/pgtest"
)

func main() {
	quick := os.Getenv("QUICK") != ""
	rounds := flag.Int("rounds", 5, "how often each contender runs each workload")
	only := flag.String("only", "", "only workloads whose name contains this")
	flag.BoolVar(&quick, "quick", quick, "fewer jobs, one round: a look, not a measurement (also QUICK=1)")
	flag.Parse()
	if quick {
		*rounds = 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench(ctx, plan(*only, quick), *rounds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func bench(ctx context.Context, contests []contest, rounds int) error {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // the database server runs as a user of its own and lives in here
		return err
	}
	fmt.Fprintln(os.Stderr, "building the contenders")
	if err := build(ctx, filepath.Join(dir, "bin")); err != nil {
		return err
	}
	g := &ground{dir: dir}
	if needs(contests, "postgres") {
		if err := g.startServer(); err != nil {
			return err
		}
		defer g.server.Close()
	}
	fmt.Printf("%d cores, %s/%s, Go %s, %d rounds, %s\n\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, strings.TrimPrefix(runtime.Version(), "go"), rounds, g.versions(ctx))
	failed := 0
	for i := range contests {
		failed += contests[i].run(ctx, g, rounds)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	table(os.Stdout, contests)
	if failed > 0 {
		return fmt.Errorf("%d runs did not work; see above", failed)
	}
	return nil
}

func needs(contests []contest, database string) bool {
	for _, c := range contests {
		if c.database == database {
			return true
		}
	}
	return false
}

// settings are those of a server somebody cares for; fsync and full page writes are on.
var settings = pgtest.Options{Durable: true, Settings: map[string]string{
	"shared_buffers":     "1GB",
	"synchronous_commit": "on",
	"max_wal_size":       "8GB",
}}
