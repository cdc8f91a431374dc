// Package processtest runs an application as processes of its own in tests, and kills them.
package processtest

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// variable makes the test's own binary into the program, so that tests run real processes without building another.
const variable = "APP_TEST_AS_PROGRAM"

// AsProgram reports whether this process was started by Launch, or by a process that was.
func AsProgram() bool { return os.Getenv(variable) != "" }

// Main runs the program instead of the tests if this process was started by Launch. Call it in an init function. A process whose test was cut off ends by itself.
func Main(program func()) {
	if AsProgram() {
		go orphaned(os.Getppid())
		program()
	}
}

// orphaned ends a process whose test was cut off: it leaves no processes behind.
func orphaned(parent int) {
	for range time.Tick(time.Second) {
		if os.Getppid() != parent {
			os.Exit(3)
		}
	}
}

// A Process is a running program.
type Process struct {
	*exec.Cmd
	Ended chan struct{}

	t     testing.TB
	mu    sync.Mutex
	said  bytes.Buffer // stdout and stderr
	heard *sync.Cond
}

// Launch starts the program with its own environment and waits for a line of output that begins with until.
func Launch(t testing.TB, env []string, until string, args ...string) *Process {
	t.Helper()
	p := &Process{Cmd: exec.Command(os.Args[0], args...), t: t, Ended: make(chan struct{})}
	p.heard = sync.NewCond(&p.mu)
	p.Env = append(append(os.Environ(), variable+"=1"), env...)
	p.Stdout, p.Stderr = p, p
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Wait() // most of them are killed
		p.mu.Lock()
		defer p.mu.Unlock()
		close(p.Ended)
		p.heard.Broadcast()
	}()
	t.Cleanup(p.Kill)
	if until != "" {
		p.Says(until)
	}
	return p
}

// Write collects the output of the process.
func (p *Process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard.Broadcast()
	return p.said.Write(text)
}

// Says waits for a line with a prefix and returns the rest of it.
func (p *Process) Says(begin string) string {
	p.t.Helper()
	late := time.AfterFunc(time.Minute, p.Kill)
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		lines := bufio.NewScanner(bytes.NewReader(p.said.Bytes()))
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), begin); ok {
				return rest
			}
		}
		select {
		case <-p.Ended:
			p.t.Fatalf("the program never said %q:\n%s", begin, p.said.String())
		default:
		}
		p.heard.Wait()
	}
}

// Output returns all output so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// Kill is kill -9.
func (p *Process) Kill() {
	_ = p.Process.Kill() // it may have ended
	<-p.Ended
}
