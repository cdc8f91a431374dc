package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast/bench/measure"
	"github.com/holdfastdev/holdfast/internal/pgtest"
)

const (
	runTimeout  = 5 * time.Minute  // also covers what is not timed: counting millions of jobs in a file that is not in memory can take minutes
	fillTimeout = 10 * time.Minute // to fill a store
)

// settings are those of a tuned server, the same for every contender; fsync and full page writes are on.
var settings = pgtest.Options{Durable: true, Settings: map[string]string{
	"shared_buffers":     "1GB",
	"synchronous_commit": "on",
	"max_wal_size":       "8GB",
}}

// collector is the same for every contender in Go. Job queues produce much short-lived garbage, and all of them gain from collecting it less often.
const collector = "GOGC=400"

// An environment gives every run its own database, which is created before the run and dropped after it. Only filled stores are kept.
type environment struct {
	dir     string
	builds  *buildSet
	server  *pgtest.Server
	version map[string]string // of the database servers
	runs    int
	filled  map[string]string // by name and database: the store's address
}

// prepare starts the database servers that the contests need.
func (g *environment) prepare(ctx context.Context, contests []*contest) (err error) {
	g.version, g.filled = map[string]string{}, map[string]string{}
	if needs(contests, func(e *entry) bool { return e.database == onPostgres }) {
		if g.server, err = pgtest.Start(filepath.Join(g.dir, "postgres"), settings); err != nil {
			return err
		}
		if g.version["PostgreSQL"], err = g.ask(ctx, "SHOW server_version"); err != nil {
			return err
		}
	}
	if needs(contests, func(e *entry) bool { return e.program == "asynq" }) {
		version, err := ensureRedis(ctx)
		if err != nil {
			g.builds.leftOut = append(g.builds.leftOut, fmt.Sprintf("asynq: %v", err))
			delete(g.builds.commands, "asynq")
		} else {
			g.version["Redis"] = version
		}
	}
	return nil
}

func (g *environment) close() {
	if g.server != nil {
		g.server.Close()
	}
}

// run measures one entry once. It also returns how many cores other programs used meanwhile.
func (g *environment) run(ctx context.Context, e *entry) (r measure.Result, others float64, err error) {
	store, server, clean, err := g.openStore(ctx, e)
	if err != nil {
		return r, 0, err
	}
	defer clean()
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	flags := append([]string{"-workload", e.workload, "-store", store, "-jobs", strconv.Itoa(e.jobs), "-server", strconv.Itoa(server)}, e.flags...)
	count := watch(server)
	r, used, err := g.start(ctx, e.program, flags)
	return r, count(used), err
}

// awaitQuiet returns when other programs have used few cores for two seconds, and after a minute at the latest.
func awaitQuiet(ctx context.Context) {
	for range 30 {
		begin, busy := time.Now(), measure.Busy()
		select {
		case <-ctx.Done():
			return
		case <-time.After(2 * time.Second):
		}
		if (measure.Busy()-busy)/time.Since(begin).Seconds() <= maxOtherCores {
			return
		}
	}
}

// watch starts to measure how many cores other programs use: all CPU time that is neither the contender's nor its database server's.
func watch(server int) func(used time.Duration) float64 {
	begin, busy, served := time.Now(), measure.Busy(), measure.ServerSeconds(server)
	return func(used time.Duration) float64 {
		rest := measure.Busy() - busy - (measure.ServerSeconds(server) - served) - used.Seconds()
		return max(0, rest/time.Since(begin).Seconds())
	}
}

// start runs a contender. It returns the result and the CPU time of all its processes.
func (g *environment) start(ctx context.Context, name string, flags []string) (r measure.Result, used time.Duration, err error) {
	command := slices.Concat(g.builds.commands[name], flags)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), collector)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = 5 * time.Second
	endWithParent(cmd)
	out, err := cmd.Output()
	if cmd.ProcessState != nil {
		used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("it took longer than %v", runTimeout)
		}
		return r, used, err
	}
	return r, used, json.Unmarshal(out, &r)
}

// openStore finds or creates the store of a run. It also returns the process id of the database server.
func (g *environment) openStore(ctx context.Context, e *entry) (store string, server int, clean func(), err error) {
	clean = func() {}
	if err := g.flush(ctx); err != nil {
		return "", 0, nil, err
	}
	if e.filled != "" {
		if store = g.filled[key(e)]; store == "" {
			err = fmt.Errorf("there is no store with %s; see the errors above", key(e))
		}
		return store, g.postmaster(e.database), clean, err
	}
	g.runs++
	name := fmt.Sprintf("run%d", g.runs)
	if mode, ok := strings.CutPrefix(e.database, "redis "); ok {
		dir := filepath.Join(g.dir, name)
		r, err := startRedis(ctx, dir, mode)
		if err != nil {
			return "", 0, nil, err
		}
		return r.address, r.cmd.Process.Pid, func() { r.stop(); os.RemoveAll(dir) }, nil
	}
	store, clean, err = g.fresh(ctx, e.database, name)
	return store, g.postmaster(e.database), clean, err
}

// flush writes the data of earlier runs to the disk, so that a run does not pay for the one before it.
func (g *environment) flush(ctx context.Context) error {
	_ = exec.CommandContext(ctx, "sync").Run() // without this program, the system decides
	if g.server == nil {
		return nil
	}
	return g.exec(ctx, "postgres", "CHECKPOINT")
}

// fresh creates an empty database.
func (g *environment) fresh(ctx context.Context, database, name string) (store string, clean func(), err error) {
	if database == onSQLite {
		dir := filepath.Join(g.dir, name)
		return filepath.Join(dir, "jobs.db"), func() { os.RemoveAll(dir) }, os.MkdirAll(dir, 0o755)
	}
	url, err := g.server.Create(name)
	return url, func() { _ = g.exec(context.WithoutCancel(ctx), "postgres", "DROP DATABASE "+name+" WITH (FORCE)") }, err
}

func key(e *entry) string { return e.filled + " on " + e.database }

// fill fills the stores that all rounds use. SQLite and PostgreSQL are filled concurrently, because nothing is timed.
func (g *environment) fill(ctx context.Context, c *contest) error {
	var group sync.WaitGroup
	var mutex sync.Mutex
	var failed error
	lists := map[string][]*entry{}
	for _, e := range c.entries {
		if e.filled != "" && g.filled[key(e)] == "" && g.builds.commands[e.program] != nil {
			lists[e.database] = append(lists[e.database], e)
		}
	}
	for _, list := range lists {
		group.Go(func() {
			for _, e := range list {
				store, err := g.fillOne(ctx, e)
				mutex.Lock()
				g.filled[key(e)], failed = store, errors.Join(failed, err)
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	return failed
}

func (g *environment) fillOne(ctx context.Context, e *entry) (string, error) {
	name := "filled_" + strings.ReplaceAll(e.filled, " ", "_")
	store, _, err := g.fresh(ctx, e.database, name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	r, _, err := g.start(ctx, e.program, append([]string{"-workload", "prepare", "-store", store}, fillings[e.filled]...))
	if err != nil {
		return "", fmt.Errorf("filling a store with %s: %w", key(e), err)
	}
	fmt.Fprintf(os.Stderr, "filled a store with %s in %.0f s\n", key(e), r.Seconds)
	if e.database == onPostgres { // autovacuum would have done this on a server that has run for a while
		return store, g.exec(ctx, name, "VACUUM (ANALYZE)")
	}
	return store, nil
}

func (g *environment) exec(ctx context.Context, database, statement string) error {
	c, err := pgx.Connect(ctx, g.server.URL(database))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, statement)
	return err
}

func (g *environment) ask(ctx context.Context, question string) (answer string, err error) {
	c, err := pgx.Connect(ctx, g.server.URL("postgres"))
	if err != nil {
		return "", err
	}
	defer c.Close(ctx)
	err = c.QueryRow(ctx, question).Scan(&answer)
	return answer, err
}

// postmaster returns the id of the server's first process, by which its CPU time is found; 0 for a database without a server.
func (g *environment) postmaster(database string) int {
	if database != onPostgres {
		return 0
	}
	text, _ := os.ReadFile(filepath.Join(g.dir, "postgres", "data", "postmaster.pid"))
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(strings.TrimSpace(first))
	return pid
}

func needs(contests []*contest, what func(*entry) bool) bool {
	return slices.ContainsFunc(contests, func(c *contest) bool { return slices.ContainsFunc(c.entries, what) })
}
