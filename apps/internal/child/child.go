// Package child runs another program to its end, such as FFmpeg, so that it cannot harm the process that started it: in a process group of its own that ends as a whole, with
// a time limit, a limit on standing still, bounded output, and on Linux limits of memory and of the size of files. The way it ended is an *Error with a reason.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// A Usage is what a process uses, with all processes that it started.
type Usage struct {
	Processes int
	Memory    int64 // bytes of main memory; memory that processes share counts once
}

// Limits are enforced by the system. Zero fields set none. Systems other than Linux cannot enforce them on a process that runs.
type Limits struct {
	Memory   uint64 // bytes that each process may allocate
	FileSize uint64 // bytes of each file that it writes
}

// A Command is one run of a program. Path and Time are required.
type Command struct {
	Path   string
	Args   []string
	Dir    string
	Env    []string      // replaces Environment()
	Stdin  io.Reader     // a file is passed on as it is
	Time   time.Duration // the whole run may take this long
	Stall  time.Duration // it is ended when it shows no progress for so long; 0 does not check
	Limits Limits
	// Background lets other processes of the machine go first.
	Background bool

	// Read reads stdout while the program runs; alive reports progress. An error of Read ends the program and is returned as it is. Without Read, Run keeps the output, and
	// every output counts as progress.
	Read func(stdout io.Reader, alive func()) error
	// Feed writes to stdin instead of Stdin while the program runs. It is no error if the program does not read all of it.
	Feed func(stdin io.Writer) error
}

// A Reason says why a program did not end with success.
type Reason string

// The reasons.
const (
	NotStarted Reason = "not started"     // it is missing, or the system refused to run it
	Failed     Reason = "failed"          // it ended itself, with an exit code
	Killed     Reason = "killed"          // a signal ended it, such as that of a system without free memory; exit code 137 means the same
	OutOfTime  Reason = "time limit"      // it did not end within Time
	Stalled    Reason = "no progress"     // it showed no progress for Stall
	FileLimit  Reason = "file size limit" // it wrote more than Limits.FileSize
)

// An Error is the end of a program without success. It wraps context.DeadlineExceeded if the reason is OutOfTime or Stalled.
type Error struct {
	Reason   Reason
	Program  string
	ExitCode int    // -1 if it has none
	Signal   int    // that ended it, or 0
	Stderr   string // its end
	Err      error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %v", e.Program, e.Err)
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Output is what a program printed, without the middle if it was too long.
type Output struct{ Stdout, Stderr string }

const keptOutput = 64 << 10 // bytes of stdout and of stderr

var (
	errTime  = fmt.Errorf("it did not end within its time limit: %w", context.DeadlineExceeded)
	errStall = fmt.Errorf("it made no progress for too long: %w", context.DeadlineExceeded)
)

// Run runs the program to its end. When it returns, all processes of its group have ended. If ctx ends first, the program is killed and the error is the cause of ctx.
func Run(ctx context.Context, c Command) (Output, error) {
	if ctx.Err() != nil {
		return Output{}, context.Cause(ctx)
	}
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(c.Time, func() { cancel(errTime) })
	defer timer.Stop()
	alive := func() {}
	if c.Stall > 0 {
		stall := time.AfterFunc(c.Stall, func() { cancel(errStall) })
		defer stall.Stop()
		alive = func() { stall.Reset(c.Stall) }
	}
	r := &run{Command: c, alive: alive, cancel: cancel, stdout: &Tail{Max: keptOutput}, stderr: &Tail{Max: keptOutput}}
	if c.Read == nil {
		r.stdout.wrote, r.stderr.wrote = alive, alive
	}
	err := r.execute(bounded)
	out := Output{r.stdout.String(), r.stderr.String()}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	return out, err
}

type run struct {
	Command
	alive          func()
	cancel         context.CancelCauseFunc
	stdout, stderr *Tail
	group          Group
}

// errOurs ends a program because our own reader or writer failed.
var errOurs = errors.New("its output could not be used")

func (r *run) execute(ctx context.Context) error {
	cmd := exec.Command(r.Path, r.Args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.Dir, r.Env, r.Stdin, r.stdout, r.stderr
	if cmd.Env == nil {
		cmd.Env = Environment()
	}
	cmd.WaitDelay = time.Second // a process that left the group may hold the output open
	reading, closeRead, err := r.connect(cmd)
	if err != nil {
		return r.failed(NotStarted, err)
	}
	r.group.Prepare(cmd)
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // on Linux the program ends with the thread that started it, so this one lives as long
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		closeRead()
		started <- err
		if err == nil {
			ended <- waitForEnd(cmd, &r.group)
		}
	}()
	if err := <-started; err != nil {
		r.cancel(nil)
		<-reading
		return r.failed(NotStarted, err)
	}
	r.group.Started(cmd.Process)
	r.Limits.apply(cmd.Process)
	if r.Background {
		lowPriority(cmd.Process)
	}
	var end error
	select {
	case end = <-ended:
	case <-ctx.Done():
		r.group.Kill(cmd.Process)
		end = <-ended
	}
	readErr := <-reading
	if readErr != nil && (context.Cause(ctx) == errOurs || end == nil) {
		return readErr
	}
	return r.errorOf(ctx, cmd, end)
}

// connect sets up the pipes of Read and Feed. The channel has the first error of the two when both have returned. closeTheirs is called after the start.
func (r *run) connect(cmd *exec.Cmd) (reading <-chan error, closeTheirs func(), err error) {
	var theirs []*os.File
	closeTheirs = func() {
		for _, f := range theirs {
			_ = f.Close()
		}
	}
	work := []func() error{}
	if r.Read != nil {
		ours, out, err := os.Pipe()
		if err != nil {
			return nil, nil, err
		}
		theirs, cmd.Stdout = append(theirs, out), out
		work = append(work, func() error {
			defer func() { _ = ours.Close() }()
			err := r.Read(ours, r.alive)
			if err == nil {
				_, err = io.Copy(io.Discard, ours)
			}
			return err
		})
	}
	if r.Feed != nil {
		in, ours, err := os.Pipe()
		if err != nil {
			closeTheirs()
			return nil, nil, err
		}
		theirs, cmd.Stdin = append(theirs, in), in
		work = append(work, func() error {
			err := errors.Join(r.Feed(ours), ours.Close())
			if errors.Is(err, syscall.EPIPE) {
				return nil // the program needs no more
			}
			return err
		})
	}
	done := make(chan error, len(work)+1)
	for _, do := range work {
		go func() {
			err := do()
			if err != nil && !closedByProgram(err) {
				r.cancel(errOurs)
			}
			done <- err
		}()
	}
	all := make(chan error, 1)
	go func() {
		var first error
		for range work {
			if err := <-done; err != nil && first == nil {
				first = err
			}
		}
		all <- first
	}()
	return all, closeTheirs, nil
}

// closedByProgram reports whether an error of Read only says that the program has closed its output, as it does when it ends.
func closedByProgram(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// errorOf says how the program ended.
func (r *run) errorOf(ctx context.Context, cmd *exec.Cmd, end error) error {
	cause := context.Cause(ctx)
	exit, isExit := errors.AsType[*exec.ExitError](end)
	switch {
	case end == nil, errors.Is(end, exec.ErrWaitDelay):
		return nil
	case cause == errTime:
		return r.failed(OutOfTime, cause)
	case cause == errStall:
		return r.failed(Stalled, cause)
	case !isExit:
		return r.failed(Failed, end)
	}
	e := &Error{Reason: Failed, Program: r.name(), ExitCode: exit.ExitCode(), Signal: signalOf(cmd.ProcessState), Stderr: r.lastLines(), Err: end}
	switch {
	case e.Signal == fileSizeSignal:
		e.Reason = FileLimit
	case e.Signal != 0 || e.ExitCode == exitKilled:
		e.Reason = Killed
	}
	return e
}

const (
	exitKilled     = 137 // what shells and containers report for a program that SIGKILL ended
	fileSizeSignal = 25  // SIGXFSZ
)

func (r *run) failed(reason Reason, err error) *Error {
	return &Error{Reason: reason, Program: r.name(), ExitCode: -1, Stderr: r.lastLines(), Err: err}
}

func (r *run) name() string {
	path := strings.ReplaceAll(r.Path, `\`, "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// lastLines returns the end of what the program printed to stderr.
func (r *run) lastLines() string {
	text := strings.TrimSpace(strings.ToValidUTF8(r.stderr.String(), "\uFFFD"))
	if len(text) > 2<<10 {
		text = strings.ToValidUTF8(text[len(text)-2<<10:], "")
	}
	return text
}

// Environment is what a program sees of our environment: nothing that may be a secret.
func Environment() []string {
	env := []string{"LC_ALL=C.UTF-8", "TZ=UTC", "HOME=" + os.TempDir()}
	for _, name := range []string{"PATH", "TMPDIR", "TMP", "TEMP", "LD_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH", "SystemRoot", "SystemDrive", "PATHEXT"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
