package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options shape a server. The zero value is made for ordinary tests: it forgets everything when the machine loses power.
type Options struct {
	Durable  bool              // fsync and full page writes on, as in production
	Settings map[string]string // further settings, which win over the package's own
}

// A Server is a PostgreSQL of our own, with its own data, on a port of 127.0.0.1 that stays the same over restarts.
// Its methods are for one goroutine at a time.
type Server struct {
	dir       string
	temporary bool
	port      int
	options   Options
	found     binaries
	process   *process
}

// A process is the running postmaster. Gone is closed when it has ended.
type process struct {
	cmd  *exec.Cmd
	gone chan struct{}
}

// Start runs a server that keeps its data in dir, which is made and initialised if need be; an empty dir means a
// temporary one. It returns when the server answers.
//
// The server ends with the process that started it. On Linux the kernel sees to that, even after a kill -9. Elsewhere a
// server whose starter died without a Stop ends within a minute of the next Start by any process, which removes its data.
func Start(dir string, o Options) (*Server, error) {
	found, err := Ensure()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, options: o, found: found}
	if dir == "" {
		if s.dir, err = temporaryDir(); err != nil {
			return nil, err
		}
		s.temporary = true
	}
	if err := s.initialise(); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.startOnFreePort(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// URL is where the database of that name is found on this server.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Create makes an empty database and answers its URL.
func (s *Server) Create(database string) (string, error) {
	return s.URL(database), run(s.URL("postgres"), "CREATE DATABASE "+pgx.Identifier{database}.Sanitize()+" TEMPLATE template0 ENCODING 'UTF8'")
}

// Stop ends the server and returns when it is gone. An immediate stop is a crash: connections break, nothing is
// flushed, and the next start goes through recovery. Stopping a stopped server does nothing.
func (s *Server) Stop(immediate bool) error {
	p := s.process
	if p == nil {
		return nil
	}
	s.process = nil
	if err := end(p.cmd.Process, immediate); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("pgtest: stopping the server: %w", err)
	}
	select {
	case <-p.gone:
		return nil
	case <-time.After(patience):
		p.cmd.Process.Kill()
		<-p.gone
		return fmt.Errorf("pgtest: the server did not stop in %v and was killed; its log ends:\n%s", patience, s.logTail())
	}
}

// Restart stops the server, if it runs, and starts it again on the same data and port.
func (s *Server) Restart(immediate bool) error {
	if err := s.Stop(immediate); err != nil {
		return err
	}
	return s.start()
}

// Close stops the server, and removes its data if Start chose where to put them.
func (s *Server) Close() error {
	err := s.Stop(true)
	if s.temporary {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }
func (s *Server) log() string  { return filepath.Join(s.dir, "log") }

// initialise makes the cluster, unless the folder has one.
func (s *Server) initialise() error {
	if _, err := os.Stat(filepath.Join(s.data(), "PG_VERSION")); err == nil {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("pgtest: no folder for the server: %w", err)
	}
	if err := handOver(s.dir); err != nil {
		return fmt.Errorf("pgtest: the server's folder cannot be handed to the user it runs as: %w", err)
	}
	cmd := exec.Command(s.found.initdb, "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	cmd.Dir = s.dir
	cmd.Env = environment()
	if err := asServerUser(cmd); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: %s in %s failed: %w\n%s(the folder and those above it must be open to the user that runs the server)", s.found.initdb, s.dir, err, out)
	}
	return nil
}

// startOnFreePort tries ports until one is free. They lie below the range from which systems draw the ports of
// outgoing connections, so that no client can sit on the server's port while it is down.
func (s *Server) startOnFreePort() error {
	var err error
	for range 10 {
		s.port = 12000 + rand.IntN(18000)
		l, taken := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(s.port))
		if taken != nil {
			err = taken
			continue
		}
		l.Close()
		if err = s.start(); err == nil || !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
	}
	return fmt.Errorf("pgtest: no free port for the server: %w", err)
}

func (s *Server) start() error {
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("pgtest: no log for the server: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(s.found.postgres, s.arguments()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = s.dir, log, log, environment()
	if err := asServerUser(cmd); err != nil {
		return err
	}
	endWithUs(cmd)
	if s.process, err = launch(cmd); err != nil {
		return fmt.Errorf("pgtest: %s does not start: %w", s.found.postgres, err)
	}
	if err := s.awaitAnswer(); err != nil {
		s.Stop(true)
		return err
	}
	return nil
}

func (s *Server) arguments() []string {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(s.port),
		"unix_socket_directories": s.socketDir(),
		"max_connections":         "200",
		"timezone":                "UTC",
		"log_min_messages":        "warning",
	}
	if !s.options.Durable {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
	}
	maps.Copy(settings, s.options.Settings)
	arguments := []string{"-D", s.data()}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		arguments = append(arguments, "-c", name+"="+settings[name])
	}
	return arguments
}

// socketDir is none where the path would be longer than a socket's may be, or where there are none.
func (s *Server) socketDir() string {
	if len(s.dir) > 80 || runtime.GOOS == "windows" {
		return ""
	}
	return s.dir
}

// launch starts the server from a thread that lives as long as the server does: the kernel's promise to end a child
// with its parent is about the parent's thread.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, gone: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
		}
		close(p.gone)
	}()
	return p, <-started
}

func (s *Server) awaitAnswer() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		c, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-s.process.gone:
			return fmt.Errorf("pgtest: the server ended before it answered; its log ends:\n%s", s.logTail())
		case <-ctx.Done():
			return fmt.Errorf("pgtest: the server did not answer in %v: %w; its log ends:\n%s", patience, err, s.logTail())
		case <-again.C:
		}
	}
}

func (s *Server) logTail() string {
	text, _ := os.ReadFile(s.log())
	return string(text[max(0, len(text)-4000):])
}

// environment keeps the caller's language and the variables meant for clients away from the server.
func environment() []string {
	kept := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "LC_") || strings.HasPrefix(v, "LANG")
	})
	return append(kept, "LC_ALL=C")
}
