package execjob

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/jobkind"
)

// Kind is the name of the kind.
const Kind = "exec"

// Limits of the arguments that a job may pass to a program: what every system supports.
const (
	maxArgs     = 1000
	maxArgBytes = 96 << 10
)

// A Command is the arguments of a job of kind "exec". Only Program is required.
type Command struct {
	Program string   `json:"program"` // the name of a listed program
	Args    []string `json:"args,omitempty"`
	Stdin   string   `json:"stdin,omitempty"`
}

// Kind returns "exec".
func (Command) Kind() string { return Kind }

// A Result is the result of a job of kind "exec". The middle of an output that is too long is left out.
type Result struct {
	ExitCode int    `json:"exit_code"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
}

// Prepare refuses a draft of kind "exec" that is invalid whichever programs are listed. Drafts of other kinds are not checked.
func Prepare(d *holdfast.Draft) error {
	if d.Kind != Kind {
		return nil
	}
	_, err := read(d.Args)
	return err
}

func read(args json.RawMessage) (c Command, err error) {
	if err := jobkind.Read(Kind, args, &c); err != nil {
		return c, err
	}
	size, null := 0, false
	for _, a := range c.Args {
		size += len(a) + 1
		null = null || strings.Contains(a, "\x00")
	}
	return c, errors.Join(
		refuse(c.Program == "", "program: name one of the listed programs"),
		refuse(len(c.Args) > maxArgs || size > maxArgBytes, "args: %d arguments with %d bytes: the limits are %d and %d; pass data by stdin", len(c.Args), size, maxArgs, maxArgBytes),
		refuse(null, "args: a zero byte cannot be passed to a program: leave it out"))
}

type runner struct {
	programs map[string]Program
	patience time.Duration
}

// work makes one attempt.
func (r *runner) work(ctx context.Context, job *engine.Raw) error {
	c, err := read(job.Args)
	if err != nil {
		return failure.NeverRetry(failure.WithCode(err, "INVALID_INPUT"))
	}
	p, listed := r.programs[c.Program]
	if !listed {
		return failure.NeverRetry(failure.WithCode(fmt.Errorf("the program %.60q is not listed: name a listed program, or add it to the list of the workers", c.Program), "HANDLER_REFUSED"))
	}
	var stdin io.Reader
	if c.Stdin != "" {
		stdin = strings.NewReader(c.Stdin)
	}
	result, err := r.execute(ctx, p, call{p.environment(job.ID.String(), job.Attempt(), job.Trace), stdin, c.Args})
	if err == nil {
		job.Result(result)
		return nil
	}
	return p.failed(ctx, err, result)
}

// Check returns an error that names what is wrong with the program, or nil. Register and Run check it too.
func (p Program) Check() error { return p.prepare() }

// Run runs the program once, outside of a job, with the same environment, limits and end. in is its standard input; a file is passed on as it is. The error is a
// *failure.ExitError if the program ended with another exit code than 0, and context.DeadlineExceeded if it did not end in time.
func (p Program) Run(ctx context.Context, in io.Reader, args ...string) (Result, error) {
	if err := p.prepare(); err != nil {
		return Result{}, err
	}
	hideEnvironment()
	r := &runner{patience: defaultPatience}
	result, err := r.execute(ctx, p, call{p.environment(rand.Text(), 1, ""), in, args})
	exit := (*exec.ExitError)(nil)
	switch {
	case errors.Is(err, errTimeout):
		err = fmt.Errorf("the program did not end within %v: %w", p.Timeout, context.DeadlineExceeded)
	case ctx.Err() != nil, err == nil:
	case errors.As(err, &exit):
		err = exitError(exit, result)
	default:
		err = fmt.Errorf("the program could not be run: %w", err)
	}
	return result, err
}

// A call is what one run of a program gets.
type call struct {
	env   []string // begins with the variables by which the processes of the run are found
	stdin io.Reader
	args  []string
}

// execute runs a program to its end. The error is errTimeout if that is why it ended.
func (r *runner) execute(ctx context.Context, p Program, c call) (Result, error) {
	dir := p.Dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "holdfast-exec-"); err != nil {
			return Result{}, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
	}
	bounded, done := context.WithTimeoutCause(ctx, p.Timeout, errTimeout)
	defer done()
	out, errs := newOutput(p.MaxOutput), newOutput(p.MaxOutput)
	name, args := p.command(c.args)
	cmd := exec.Command(name, args[1:]...)
	cmd.Args = args
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, c.env, c.stdin, out, errs
	err := r.run(bounded, cmd)
	if err != nil && errors.Is(context.Cause(bounded), errTimeout) {
		err = errTimeout
	}
	return Result{ExitCode: 0, Stdout: p.text(out), Stderr: p.text(errs)}, err
}

var errTimeout = errors.New("the time limit of the program has passed")

// environment returns the environment of the program.
func (p Program) environment(job string, attempt int, trace string) []string {
	env := []string{"HOLDFAST_JOB_ID=" + job, fmt.Sprintf("HOLDFAST_ATTEMPT=%d", attempt)}
	if trace != "" {
		env = append(env, "TRACEPARENT="+trace)
	}
	for _, e := range p.Env {
		if strings.Contains(e, "=") {
			env = append(env, e)
		} else if value, set := os.LookupEnv(e); set {
			env = append(env, e+"="+value)
		}
	}
	return env
}

// attemptMarkers returns the variables by which the processes of one attempt are found.
func attemptMarkers(cmd *exec.Cmd) []string { return cmd.Env[:min(2, len(cmd.Env))] }

// run runs the program until it ends, or ends it when ctx ends: with SIGTERM, and after Patience with SIGKILL. When run returns, all processes of its group have
// ended.
func (r *runner) run(ctx context.Context, cmd *exec.Cmd) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// A process that left the group may hold the outputs open: they are closed after this time.
	cmd.WaitDelay = time.Second
	newProcessGroup(cmd)
	ended := make(chan error, 1)
	started := make(chan error, 1)
	go func() {
		// Linux kills the program when the thread that started it ends (see killWithParent), so this thread must live as long as the program.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		ended <- waitAndCleanUp(cmd)
	}()
	if err := <-started; err != nil {
		return err
	}
	select {
	case err := <-ended:
		if errors.Is(err, exec.ErrWaitDelay) { // the program succeeded; a process that left its group held its outputs open
			err = nil
		}
		return err
	case <-ctx.Done():
	}
	stopGroup(cmd)
	patience := time.NewTimer(r.patience)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
		killGroup(cmd)
		<-ended
	}
	return context.Cause(ctx)
}

// failed returns the error of a program that was ended or that exited with an error.
func (p Program) failed(ctx context.Context, err error, r Result) error {
	exit := (*exec.ExitError)(nil)
	switch {
	case errors.Is(err, errTimeout):
		err = failure.WithCode(fmt.Errorf("the program did not end within %v", p.Timeout), "TIMEOUT")
	case ctx.Err() != nil:
		return err // the engine attributes it to the cause of the context's end
	case errors.As(err, &exit):
		code := exit.ExitCode()
		err = exitError(exit, r)
		if code < 0 {
			err = failure.With(err, "signal", exit.String())
		}
		if named := p.Codes[code]; named != "" {
			err = failure.WithCode(err, named)
		}
	default:
		err = fmt.Errorf("the program could not be run: %w", err)
	}
	return failure.With(failure.With(err, "stdout", last(r.Stdout, 200)), "stderr", last(r.Stderr, 200))
}

// exitError returns the error of a program that ended with an exit code, with the end of its stderr.
func exitError(exit *exec.ExitError, r Result) error {
	message := last(r.Stderr, 2<<10)
	if message == "" {
		message = exit.String()
	}
	return &failure.ExitError{Code: exit.ExitCode(), Err: errors.New(message)}
}

// last returns at most limit bytes from the end of a text.
func last(text string, limit int) string {
	if len(text) > limit {
		text = strings.ToValidUTF8(text[len(text)-limit:], "")
	}
	return strings.TrimSpace(text)
}
