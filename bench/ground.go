package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast/bench/measure"
	"github.com/holdfastdev/holdfast/internal/pgtest"
)

// A ground gives every run a database of its own, made just before it and gone right after.
type ground struct {
	dir    string
	server *pgtest.Server
	runs   int
}

func (g *ground) startServer() (err error) {
	g.server, err = pgtest.Start(filepath.Join(g.dir, "postgres"), settings)
	return err
}

// build makes one program of each contender. River's SQLite driver lives in a module of its own.
func build(ctx context.Context, bin string) error {
	for name, folder := range map[string]string{"holdfast": ".", "river": ".", "riversqlite": "riversqlite"} {
		target := "./" + name
		if folder != "." {
			target = "."
		}
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(bin, name), target)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("the contender %s does not build: %w\n%s", name, err, out)
		}
	}
	return nil
}

// run measures one contender once.
func (g *ground) run(ctx context.Context, database, workload string, e entry) (measure.Result, error) {
	g.runs++
	name := fmt.Sprintf("run%d", g.runs)
	store, clean, err := g.fresh(ctx, database, name)
	if err != nil {
		return measure.Result{}, err
	}
	defer clean()
	cmd := exec.CommandContext(ctx, filepath.Join(g.dir, "bin", e.program), "-workload", workload, "-store", store,
		"-jobs", strconv.Itoa(e.jobs), "-waiting", strconv.Itoa(e.waiting), "-server", strconv.Itoa(g.postmaster(database)))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return measure.Result{}, fmt.Errorf("%s, %s on %s: %w", e.name, workload, database, err)
	}
	var r measure.Result
	return r, json.Unmarshal(out, &r)
}

// fresh makes an empty database. What earlier runs left to be written is written before this one begins.
func (g *ground) fresh(ctx context.Context, database, name string) (store string, clean func(), err error) {
	if database == "sqlite" {
		dir := filepath.Join(g.dir, name)
		return filepath.Join(dir, "jobs.db"), func() { os.RemoveAll(dir) }, os.MkdirAll(dir, 0o755)
	}
	url, err := g.server.Create(name)
	if err != nil {
		return "", nil, err
	}
	return url, func() { _ = g.exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)") }, g.exec(ctx, "CHECKPOINT")
}

func (g *ground) exec(ctx context.Context, statement string) error {
	c, err := pgx.Connect(ctx, g.server.URL("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, statement)
	return err
}

// postmaster is the server's first process, by whose number its CPU time is found; 0 for a database without a server.
func (g *ground) postmaster(database string) int {
	if database == "sqlite" {
		return 0
	}
	text, _ := os.ReadFile(filepath.Join(g.dir, "postgres", "data", "postmaster.pid"))
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(strings.TrimSpace(first))
	return pid
}

// versions says what was compared.
func (g *ground) versions(ctx context.Context) string {
	said := []string{"River " + version(ctx, ".", "github.com/riverqueue/river"), "its SQLite driver " + version(ctx, "riversqlite", "github.com/riverqueue/river/riverdriver/riversqlite")}
	if g.server == nil {
		return strings.Join(said, ", ")
	}
	c, err := pgx.Connect(ctx, g.server.URL("postgres"))
	if err != nil {
		return strings.Join(said, ", ")
	}
	defer c.Close(ctx)
	var v string
	_ = c.QueryRow(ctx, "SHOW server_version").Scan(&v)
	return strings.Join(append(said, "PostgreSQL "+v), ", ")
}

func version(ctx context.Context, folder, module string) string {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	cmd.Dir = folder
	out, err := cmd.Output()
	if err != nil {
		return "(unknown)"
	}
	return strings.TrimSpace(string(out))
}
