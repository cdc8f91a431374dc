package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A program is how a contender is built and started.
type program struct {
	name   string // as entries call it
	folder string // where its module is
	module string // whose version is printed; of the node contenders, the package's name
	script string // of the node contenders
	c      bool   // its authors' own choice of SQLite driver needs a C compiler; without one it runs with a driver in pure Go
}

// programs are all contenders. Most have a module of their own, because their dependencies do not agree.
var programs = []program{
	{name: "holdfast", folder: "."},
	{name: "river", folder: ".", module: "github.com/riverqueue/river"},
	{name: "riversqlite", folder: "riversqlite", module: "github.com/riverqueue/river/riverdriver/riversqlite"},
	{name: "asynq", folder: "asynq", module: "github.com/hibiken/asynq"},
	{name: "goqite", folder: "goqite", module: "maragu.dev/goqite", c: true},
	{name: "backlite", folder: "backlite", module: "github.com/mikestefanello/backlite", c: true},
	{name: "graphile-worker", folder: "node", module: "graphile-worker", script: "graphile.mjs"},
	{name: "pg-boss", folder: "node", module: "pg-boss", script: "pgboss.mjs"},
}

// A yard is where programs are built. What cannot be built is left out, and why is said.
type yard struct {
	dir      string
	commands map[string][]string
	versions []string
	leftOut  []string
}

// build makes the programs that are needed. A contender that cannot be had does not stop the others.
func build(ctx context.Context, dir string, needed map[string]bool) *yard {
	y := &yard{dir: dir, commands: map[string][]string{}}
	npm := sync.OnceValue(func() error { return y.npm(ctx) })
	for _, p := range programs {
		if !needed[p.name] {
			continue
		}
		command, version, err := y.make(ctx, p, npm)
		if err != nil {
			y.leftOut = append(y.leftOut, fmt.Sprintf("%s: %v", p.name, err))
			continue
		}
		y.commands[p.name] = command
		y.versions = append(y.versions, strings.TrimSpace(p.name+" "+version))
	}
	return y
}

func (y *yard) make(ctx context.Context, p program, npm func() error) (command []string, version string, err error) {
	if p.script != "" {
		if err := npm(); err != nil {
			return nil, "", err
		}
		return []string{"node", filepath.Join(y.dir, "node", p.script)}, packageVersion(filepath.Join(y.dir, "node"), p.module), nil
	}
	file, err := filepath.Abs(filepath.Join(y.dir, p.name))
	if err != nil {
		return nil, "", err
	}
	target := "."
	if p.folder == "." {
		target = "./" + p.name
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", file, target)
	cmd.Dir = p.folder
	cmd.Env = os.Environ()
	if _, err := exec.LookPath("gcc"); p.c && err == nil {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("it does not build: %w\n%s", err, out)
	}
	if p.module == "" {
		return []string{file}, "(this checkout)", nil
	}
	return []string{file}, moduleVersion(ctx, p.folder, p.module), nil
}

// npm installs the node contenders in a copy, so that nothing is left in the checkout.
func (y *yard) npm(ctx context.Context) error {
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%s is not in the PATH: install Node 20 or newer", name)
		}
	}
	if _, err := os.Stat("node/package.json"); err != nil {
		return errors.New("bench/node has no package.json")
	}
	dir := filepath.Join(y.dir, "node")
	if err := os.CopyFS(dir, os.DirFS("node")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--silent")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci did not work: %w\n%s", err, out)
	}
	return nil
}

func packageVersion(dir, name string) string {
	var said struct{ Version string }
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", name, "package.json"))
	if err != nil || json.Unmarshal(text, &said) != nil {
		return "(unknown version)"
	}
	return "v" + said.Version
}

func moduleVersion(ctx context.Context, folder, module string) string {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	cmd.Dir = folder
	out, err := cmd.Output()
	if err != nil {
		return "(unknown version)"
	}
	return strings.TrimSpace(string(out))
}
