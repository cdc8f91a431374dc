package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ensureRedis finds redis-server, or installs Debian's package if possible, and returns its version.
func ensureRedis(ctx context.Context) (version string, err error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		if err := installRedis(ctx); err != nil {
			return "", err
		}
	}
	out, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("cannot run redis-server: %w", err)
	}
	_, rest, _ := strings.Cut(string(out), "v=")
	version, _, _ = strings.Cut(rest, " ")
	return version, nil
}

func installRedis(ctx context.Context) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Getuid() != 0 {
		return errors.New("redis-server is not in the PATH: install it (Debian: apt-get install redis-server)")
	}
	fmt.Fprintln(os.Stderr, "installing Redis for the benchmark, once")
	get := func(arguments ...string) error {
		cmd := exec.CommandContext(ctx, apt, append([]string{"-q", "-o", "DPkg::Lock::Timeout=300"}, arguments...)...)
		// RUNLEVEL keeps the package from starting a server.
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get cannot install redis-server: %w\n%s", err, out)
		}
		return nil
	}
	if get("install", "-y", "--no-install-recommends", "redis-server") == nil {
		return nil
	}
	if err := get("update"); err != nil {
		return err
	}
	return get("install", "-y", "--no-install-recommends", "redis-server")
}

// A redis is a server for one run.
type redis struct {
	address string
	cmd     *exec.Cmd
}

// startRedis starts a server on a free port of 127.0.0.1 with an append-only file and the given fsync setting.
func startRedis(ctx context.Context, dir, fsync string) (*redis, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	r := &redis{address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	r.cmd = exec.CommandContext(ctx, "redis-server", "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
		"--logfile", filepath.Join(dir, "log"), "--save", "", "--appendonly", "yes", "--appendfsync", fsync, "--auto-aof-rewrite-percentage", "0")
	endWithParent(r.cmd)
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	for range 500 {
		if r.answers() {
			return r, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	r.stop()
	return nil, errors.New("redis-server did not answer within ten seconds")
}

func (r *redis) answers() bool {
	c, err := net.DialTimeout("tcp", r.address, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	fmt.Fprint(c, "PING\r\n")
	line, _ := bufio.NewReader(c).ReadString('\n')
	return strings.HasPrefix(line, "+PONG")
}

func (r *redis) stop() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}
