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

// errGone is that nobody waits for the answer any more.
var errGone = errors.New("whoever asked has gone")

// stragglers is how long a killed process may keep its pipes open, by those below it.
const stragglers = 2 * time.Second

// order makes the order for one PDF. The processor's time is less than the time in all: what uses it up is a document that needs too much, while one that only
// waited (for a machine that has much to do) is worth another try.
func (g *gateway) order(at sheet, m mapping) order {
	return order{Sheet: at, Reader: g.cfg.Reader, Mapping: m.Name, Own: m.own, CPU: max(time.Second, g.cfg.Timeout*2/3), Timeout: g.cfg.Timeout}
}

// run has a process of its own do what the order says. When it returns nil the result lies on the sheet.
func (g *gateway) run(ctx context.Context, o order) (report, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return report{}, err
	}
	cmd := exec.CommandContext(ctx, g.program, childArgument)
	cmd.Dir, cmd.Env, cmd.WaitDelay = string(o.Sheet), childEnv(o.Sheet), stragglers
	said := &capped{left: 16 << 10}
	cmd.Stderr = said
	ownGroup(cmd)
	order, err := cmd.StdinPipe()
	if err != nil {
		return report{}, err
	}
	if err := cmd.Start(); err != nil {
		return report{}, fmt.Errorf("a process for the PDF could not be started: %w", err)
	}
	_, err = order.Write(text)
	if err != nil { // it ended before it listened, and how it ended says more
		err = fmt.Errorf("the process for the PDF did not take its order: %w", err)
	}
	ended := cmd.Wait()
	endGroup(cmd)
	if r, ok := o.heard(); ok {
		return r, r.refusal()
	}
	if reason := context.Cause(ctx); reason != nil {
		return report{}, reason
	}
	return report{}, errors.Join(err, autopsy(o, cmd.ProcessState, said.String(), ended))
}

// heard reads the report, if there is one.
func (o order) heard() (r report, ok bool) {
	f, err := os.Open(o.Sheet.report())
	if err != nil {
		return report{}, false
	}
	defer f.Close()
	return r, json.NewDecoder(io.LimitReader(f, 64<<10)).Decode(&r) == nil
}

func (r report) refusal() error {
	if r.Code == "" {
		return nil
	}
	return fmt.Errorf("%w (%s)", refuse(r.Code, r.Message), r.Cause)
}

// autopsy says what a process died of that could not say it itself. A limit is the document's fault. Anything else is ours.
func autopsy(o order, state *os.ProcessState, said string, ended error) error {
	for _, sign := range []string{"out of memory", "cannot allocate memory", "stack overflow", "goroutine stack exceeds"} {
		if strings.Contains(said, sign) {
			return fmt.Errorf("%w (%s)", refuse(codeTooMuch, ""), sign)
		}
	}
	if state != nil && state.ExitCode() < 0 && state.UserTime()+state.SystemTime() >= o.CPU-time.Second/2 {
		return fmt.Errorf("%w (the processor's time was used up)", refuse(codeTooMuch, ""))
	}
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n\n")
	return fmt.Errorf("the process for the PDF ended without a word (%w): %s", errors.Join(ended, errEnded), first)
}

var errEnded = errors.New("no report")

// childEnv is all that a process with a stranger's PDF knows of where it runs: no address of a database, no key.
func childEnv(at sheet) []string {
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

// capped keeps the beginning of what is written, and takes the rest without a word.
type capped struct {
	bytes.Buffer
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	c.Buffer.Write(p[:n])
	return len(p), nil
}
