//go:build unix

package rolling

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/internal/previous"
)

// patience is the time limit of every wait, for a machine that may be very busy.
const patience = 2 * time.Minute

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waitUntil polls until a condition is true.
func waitUntil(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("timed out waiting: " + what)
		}
	}
}

// A release is a build of the command. Its name is old or new.
type release struct{ name, program string }

// releases builds the command of the previous release and that of this one.
func releases(t *testing.T) (old, current release) {
	t.Helper()
	program, err := previous.Command()
	ok(t, err)
	built := filepath.Join(t.TempDir(), "holdfast")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", built, "github.com/holdfastdev/holdfast/cmd/holdfast").CombinedOutput(); err != nil {
		t.Fatalf("cannot build the command: %v\n%s", err, out)
	}
	return release{"old", program}, release{"new", built}
}

// run runs a command of the release, and returns its exit code and what it printed.
func (r release) run(args ...string) (code int, out string) {
	cmd := exec.Command(r.program, args...)
	cmd.Env = environment()
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return -1, err.Error()
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// environment returns the environment without settings of Holdfast.
func environment() (kept []string) {
	for _, one := range os.Environ() {
		if !strings.HasPrefix(one, "HOLDFAST_") && !strings.HasPrefix(one, "DATABASE_URL=") {
			kept = append(kept, one)
		}
	}
	return kept
}

// latest returns the newest schema version that the release knows.
func (r release) latest(t *testing.T, address string) int {
	t.Helper()
	_, out := r.run("migrate", "--json", "--store", address)
	var found struct{ Latest int }
	if json.Unmarshal([]byte(out), &found) != nil || found.Latest == 0 {
		t.Fatalf("%s: holdfast migrate says %s", r.name, out)
	}
	return found.Latest
}

// A server is a running 'holdfast serve'.
type server struct {
	release
	cmd  *exec.Cmd
	url  string
	gone chan struct{}
	log  bytes.Buffer // what it printed; read it after it has ended
}

// serve starts a server of a release and waits until it prints its address.
func (d *deploy) serve(r release) *server {
	d.Helper()
	s := &server{release: r, gone: make(chan struct{})}
	s.cmd = exec.Command(r.program, "serve", "--store", d.address, "--listen", "127.0.0.1:0", "--auth", "off", "--log-level", "warn", "--grace", "5s", "--lease", "2s",
		"--workers", fmt.Sprint(slots), "--exec-config", d.programs(r), "--http-allow", "127.0.0.0/8", "--http-ports", "*",
		"--retry-max-attempts", "3", "--retry-base-delay", "50ms", "--retry-jitter-max", "10ms", "--breaker-fail-threshold", "100%", "--breaker-window", "100")
	s.cmd.Env, s.cmd.Stderr = environment(), &s.log
	out, err := s.cmd.StdoutPipe()
	ok(d, err)
	ok(d, s.cmd.Start())
	d.Cleanup(func() {
		s.end(d.T, syscall.SIGKILL)
		if d.Failed() {
			printed := s.log.String()
			d.Logf("the %s server printed at its end:\n%s", r.name, printed[max(0, len(printed)-2000):])
		}
	})
	lines := bufio.NewScanner(out)
	for s.url == "" && lines.Scan() {
		if _, url, found := strings.Cut(lines.Text(), " at http://"); found {
			s.url = "http://" + strings.Fields(url)[0]
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = s.cmd.Wait()
		close(s.gone)
	}()
	if s.url == "" {
		s.end(d.T, syscall.SIGKILL)
		d.Fatalf("the %s server did not start:\n%s", r.name, s.log.String())
	}
	d.live.add(s)
	return s
}

// end sends the server a signal and waits until it has ended.
func (s *server) end(t *testing.T, signal syscall.Signal) {
	_ = s.cmd.Process.Signal(signal)
	select {
	case <-s.gone:
	case <-time.After(patience):
		t.Errorf("the %s server did not end", s.name)
	}
}

// liveServers are the servers that callers may use. It is safe for concurrent use.
type liveServers struct {
	mu  sync.Mutex
	all []*server
}

func (l *liveServers) add(s *server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
}

func (l *liveServers) remove(s *server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.all[:0:0]
	for _, one := range l.all {
		if one != s {
			kept = append(kept, one)
		}
	}
	l.all = kept
}

// pick returns one of the live servers. Numbers that follow each other pick different servers.
func (l *liveServers) pick(n int) *server {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[n%len(l.all)]
}

// ask sends one request to the server and decodes its answer into out.
func (s *server) ask(method, path string, in, out any) (status int, err error) {
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return 0, err
		}
	}
	request, err := http.NewRequest(method, s.url+"/v1"+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := caller.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	if answer.StatusCode >= 300 {
		return answer.StatusCode, fmt.Errorf("%s %s: %s %s", method, path, answer.Status, text)
	}
	if out == nil {
		return answer.StatusCode, nil
	}
	return answer.StatusCode, json.Unmarshal(text, out)
}

var caller = http.Client{Timeout: 20 * time.Second}

// insist sends a request until a server answers it. The server that it asks first is n modulo the number of servers. A server that has been killed
// may have acted without an answer, so the request must be safe to repeat.
func (d *deploy) insist(n int, route string, in, out any) {
	method, path, _ := strings.Cut(route, " ")
	for end := time.Now().Add(patience); ; n++ {
		status, err := d.live.pick(n).ask(method, path, in, out)
		if err == nil {
			return
		}
		if status >= 400 && status < 500 && status != http.StatusTooManyRequests || time.Now().After(end) {
			d.Errorf("%v", err)
			return
		}
		<-time.After(50 * time.Millisecond)
	}
}
