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

// A program describes how a contender is built and started.
type program struct {
	name   string // the name in entries
	folder string // where its module is
	module string // its version is printed; for Node contenders, the name of the package
	script string // for Node contenders
	c      bool   // the SQLite driver of its authors needs a C compiler; without one it runs with a driver in pure Go
}

// programs lists all contenders. Most have their own module, because their dependencies conflict.
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

// A buildSet is the built programs. Programs that could not be built are in leftOut, with the reason.
type buildSet struct {
	dir      string
	commands map[string][]string
	versions []string
	leftOut  []string
}

// build builds the needed programs. A contender that cannot be built does not stop the others.
func build(ctx context.Context, dir string, needed map[string]bool) *buildSet {
	y := &buildSet{dir: dir, commands: map[string][]string{}}
	npm := sync.OnceValue(func() error { return y.npm(ctx) })
	for _, p := range programs {
		if !needed[p.name] {
			continue
		}
		command, version, err := y.buildOne(ctx, p, npm)
		if err != nil {
			y.leftOut = append(y.leftOut, fmt.Sprintf("%s: %v", p.name, err))
			continue
		}
		y.commands[p.name] = command
		y.versions = append(y.versions, strings.TrimSpace(p.name+" "+version))
	}
	return y
}

func (y *buildSet) buildOne(ctx context.Context, p program, npm func() error) (command []string, version string, err error) {
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
		return nil, "", fmt.Errorf("the build failed: %w\n%s", err, out)
	}
	if p.module == "" {
		return []string{file}, "(this checkout)", nil
	}
	return []string{file}, moduleVersion(ctx, p.folder, p.module), nil
}

// npm installs the Node contenders in a copy, so that the checkout stays clean.
func (y *buildSet) npm(ctx context.Context) error {
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
		return fmt.Errorf("npm ci failed: %w\n%s", err, out)
	}
	return nil
}

func packageVersion(dir, name string) string {
	var manifest struct{ Version string }
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", name, "package.json"))
	if err != nil || json.Unmarshal(text, &manifest) != nil {
		return "(unknown version)"
	}
	return "v" + manifest.Version
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
