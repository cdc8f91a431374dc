// Package chromium runs Chromium: one process with its own folder, and the connection to it. When a process ends, all processes that it started end with it, and its folder
// is deleted.
//
// The commands and events have the types of cdproto. The connection is this package's own and not that of chromedp, because chromedp keeps a copy of each page's document
// and queues all events: a page that changes its document without end would fill our memory, and delay the pages beside it.
package chromium

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/holdfastdev/holdfast/apps/internal/child"
)

// Config says how to start Chromium.
type Config struct {
	Path   string // of the program
	Folder string // in which the process gets a folder of its own; it exists
	Proxy  string // host:port, through which all connections go
	// NoSandbox turns off Chromium's sandbox. It is always off for root, because Chromium does not start with it.
	NoSandbox bool
	// WebGL lets pages draw in three dimensions, in software. Off by default, because it compiles what a page sends.
	WebGL bool
	// HeapMB limits the memory of one page's scripts, in MiB; 512 when zero.
	HeapMB int
}

// Sandboxed reports whether a process with this configuration runs in Chromium's sandbox.
func (c Config) Sandboxed() bool { return !c.NoSandbox && os.Getuid() != 0 }

// A Process is a running Chromium. It is safe for concurrent use.
type Process struct {
	Browser   *Session // commands and events of the browser itself
	Version   string   // such as Chrome/156.0.8078.79
	UserAgent string   // what it tells servers
	Started   time.Time

	cmd    *exec.Cmd
	folder string
	group  child.Group
	output *tail
	end    func()        // closes the connection
	exited chan struct{} // closed when the main process has ended and was waited for
	killed sync.Once
	gone   chan struct{} // closed when everything was cleaned up
}

// maxFolder is the longest path of a process's folder. Chromium creates a socket in it, whose path the system limits to 104 or 108 bytes.
const maxFolder = 58

// Start starts Chromium and waits until it answers, or until ctx ends.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	folder, err := os.MkdirTemp(cfg.Folder, "")
	if err != nil {
		return nil, fmt.Errorf("cannot create the folder of a browser: %w", err)
	}
	if len(folder) > maxFolder {
		_ = os.RemoveAll(folder)
		return nil, fmt.Errorf("the path of the folder %s is too long for the sockets of the browser: use one of at most %d bytes", cfg.Folder, maxFolder-len(folder)+len(cfg.Folder))
	}
	p := &Process{folder: folder, output: &tail{max: 8 << 10}, exited: make(chan struct{}), gone: make(chan struct{}), Started: time.Now()}
	if err := writeSettings(cfg, filepath.Join(folder, "profile")); err != nil {
		_ = os.RemoveAll(folder)
		return nil, fmt.Errorf("cannot write the settings of a browser: %w", err)
	}
	p.cmd = exec.Command(cfg.Path, append(flags(cfg, folder), "about:blank")...)
	p.cmd.Dir, p.cmd.Env = folder, environment(folder)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = p.output, p.output, time.Second
	if err := p.launch(); err != nil {
		_ = os.RemoveAll(folder)
		return nil, fmt.Errorf("cannot start the browser %s: %w", cfg.Path, err)
	}
	version, err := Call(ctx, p.Browser, browser.GetVersion, cdp.Empty{})
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("the browser %s did not start: %w%s", cfg.Path, err, p.output.hint())
	}
	p.Version, p.UserAgent = version.Product, version.UserAgent
	return p, nil
}

// launch starts the program and connects to it.
func (p *Process) launch() error {
	if err := os.Mkdir(filepath.Join(p.folder, "home"), 0o700); err != nil {
		return err
	}
	theirs, from, to, err := pipes(p.cmd)
	if err != nil {
		return err
	}
	p.group.Prepare(p.cmd)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // on Linux the process ends with the thread that started it, so this one lives as long
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
			close(p.exited)
		}
	}()
	err = <-started
	for _, file := range theirs {
		_ = file.Close()
	}
	if err != nil {
		_ = from.Close()
		_ = to.Close()
		return err
	}
	p.group.Started(p.cmd.Process)
	var c *conn
	c, p.end = newConn(from, to)
	p.Browser = &Session{conn: c}
	return nil
}

// Ended is closed when the process has ended or its connection was lost.
func (p *Process) Ended() <-chan struct{} { return p.Browser.conn.lost }

// Kill ends the process and all processes that it started, waits for them and deletes their folder.
func (p *Process) Kill() {
	p.killed.Do(func() {
		defer close(p.gone)
		p.group.Kill(p.cmd.Process)
		p.end()
		<-p.exited
		p.group.KillRest(p.cmd.Process)
		removeFolder(p.folder)
	})
	<-p.gone
}

// removeFolder deletes a folder. A process that is just ending may still write there, and on Windows the files of a process can be deleted only a moment after its end.
func removeFolder(folder string) {
	for range 50 {
		if os.RemoveAll(folder) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Attach opens a session with a page.
func (p *Process) Attach(ctx context.Context, page target.ID) (*Session, error) {
	flat := true
	attached, err := Call(ctx, p.Browser, target.AttachToTarget, target.AttachToTargetParams{TargetID: page, Flatten: &flat})
	if err != nil {
		return nil, err
	}
	return &Session{conn: p.Browser.conn, id: string(attached.SessionID)}, nil
}

// environment is what the browser sees of our environment: nothing that may be a secret. All files that it writes are in its folder.
func environment(folder string) []string {
	home, temporary := filepath.Join(folder, "home"), folder
	env := []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_CACHE_HOME=" + home, "TMPDIR=" + temporary, "TMP=" + temporary, "TEMP=" + temporary, "TZ=UTC", "LC_ALL=C.UTF-8"}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH", "SystemRoot", "SystemDrive", "ProgramFiles", "LOCALAPPDATA", "PATHEXT"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// A tail keeps the end of what a process printed.
type tail struct {
	mu   sync.Mutex
	text []byte
	max  int
}

func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	if extra := len(t.text) - t.max; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(text), nil
}

// hint returns what the output says about a failed start.
func (t *tail) hint() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.text))
	switch {
	case strings.Contains(text, "No usable sandbox"):
		return ". This system does not permit its sandbox: allow unprivileged user namespaces, or turn the sandbox off in the settings"
	case text == "":
		return ""
	}
	lines := strings.Split(text, "\n")
	if at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "FATAL") }); at >= 0 {
		return ". It printed: " + lines[at]
	}
	return ". It printed at last: " + lines[len(lines)-1]
}

// errNoPipes is the error of a system that gives no pipes.
func errNoPipes(err error) error {
	return fmt.Errorf("cannot create the pipes of the browser: %w", err)
}

// makePipes returns the ends of two pipes: the browser's, first for reading, and ours.
func makePipes() (read, write *os.File, from io.ReadCloser, to io.WriteCloser, err error) {
	read, ourWrite, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, nil, errNoPipes(err)
	}
	ourRead, write, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, nil, errNoPipes(errors.Join(err, read.Close(), ourWrite.Close()))
	}
	return read, write, ourRead, ourWrite, nil
}
