package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// errClientGone means that the client has closed the connection.
var errClientGone = errors.New("the client has closed the connection")

// pipeTimeout is how long the programs that a killed process started may keep its pipes open.
const pipeTimeout = 2 * time.Second

// request returns the request for one PDF. The limit of CPU time is lower than the timeout: a document that uses up its CPU time needs too much and is refused, while one
// that mostly waited, on a busy machine, is worth a retry.
func (g *gateway) request(at workspace, m mapping) childRequest {
	return childRequest{Sheet: at, Reader: g.cfg.Reader, Mapping: m.Name, Own: m.custom, CPU: max(time.Second, g.cfg.Timeout*2/3), Timeout: g.cfg.Timeout}
}

// run executes a request in a child process. When it returns nil, the result is in the workspace.
func (g *gateway) run(ctx context.Context, o childRequest) (childReply, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return childReply{}, err
	}
	cmd := exec.CommandContext(ctx, g.program, childArgument)
	cmd.Dir, cmd.Env, cmd.WaitDelay = string(o.Sheet), childEnv(o.Sheet), pipeTimeout
	stderr := &cappedBuffer{left: 16 << 10}
	cmd.Stderr = stderr
	setProcessGroup(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return childReply{}, err
	}
	if err := cmd.Start(); err != nil {
		return childReply{}, fmt.Errorf("cannot start a process for the PDF: %w", err)
	}
	_, err = stdin.Write(text)
	if err != nil { // the process ended early; its exit status has the reason
		err = fmt.Errorf("the process for the PDF did not read its request: %w", err)
	}
	ended := cmd.Wait()
	killGroup(cmd)
	if r, ok := o.readReply(); ok {
		return r, r.refusal()
	}
	if reason := context.Cause(ctx); reason != nil {
		return childReply{}, reason
	}
	return childReply{}, errors.Join(err, exitError(o, cmd.ProcessState, stderr.String(), ended))
}

// readReply reads the reply, if there is one.
func (o childRequest) readReply() (r childReply, ok bool) {
	f, err := os.Open(o.Sheet.reply())
	if err != nil {
		return childReply{}, false
	}
	defer f.Close()
	return r, json.NewDecoder(io.LimitReader(f, 64<<10)).Decode(&r) == nil
}

func (r childReply) refusal() error {
	if r.Code == "" {
		return nil
	}
	return fmt.Errorf("%w (%s)", refuse(r.Code, r.Message), r.Cause)
}

// exitError returns why a process ended without a reply. If it reached a limit, the document is to blame; any other reason is an error of the gateway.
func exitError(o childRequest, state *os.ProcessState, stderr string, ended error) error {
	for _, sign := range []string{"out of memory", "cannot allocate memory", "stack overflow", "goroutine stack exceeds"} {
		if strings.Contains(stderr, sign) {
			return fmt.Errorf("%w (%s)", refuse(codeTooMuch, ""), sign)
		}
	}
	if state != nil && state.ExitCode() < 0 && state.UserTime()+state.SystemTime() >= o.CPU-time.Second/2 {
		return fmt.Errorf("%w (the CPU time was used up)", refuse(codeTooMuch, ""))
	}
	first, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n\n")
	return fmt.Errorf("the process for the PDF ended without a reply (%w): %s", errors.Join(ended, errNoReply), first)
}

var errNoReply = errors.New("no reply")

// childEnv returns the environment of a child process. It reads an untrusted PDF, so it gets no database address and no key.
func childEnv(at workspace) []string {
	env := []string{"TMPDIR=" + string(at), "TMP=" + string(at), "TEMP=" + string(at), "HOME=" + string(at), "LC_ALL=C.UTF-8", "GOMAXPROCS=2", "GOTRACEBACK=single"}
	names := []string{"PATH"}
	if runtime.GOOS == "windows" {
		names = append(names, "SystemRoot", "PATHEXT")
	}
	for _, name := range names {
		if text, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+text)
		}
	}
	return env
}

// A cappedBuffer keeps the beginning of what is written and discards the rest.
type cappedBuffer struct {
	bytes.Buffer
	left int
}

func (c *cappedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	c.Buffer.Write(p[:n])
	return len(p), nil
}
