package execjob

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/internal/jobkind"
)

// Config lists the programs that jobs may run.
type Config struct {
	Programs map[string]Program
	// Patience is how long a program may take to end after SIGTERM before it is killed; 3 s when zero. Keep it below the engine's Patience.
	Patience time.Duration
	Policy   failure.Policy // of the kind; zero fields as engine.KindOptions.Policy
}

// A Program is a program that jobs may run. Only Path is required.
type Program struct {
	Path string   // absolute
	Args []string // precede the arguments of the job
	// Env is the environment of the program: NAME passes on the variable of this process, NAME=value sets it. Besides these there are only HOLDFAST_JOB_ID,
	// HOLDFAST_ATTEMPT and TRACEPARENT.
	Env []string
	Dir string // the working directory; if empty, a new temporary directory for each attempt

	Timeout   time.Duration  // 10 min when zero
	MaxOutput int            // bytes kept of stdout and of stderr each, half from the beginning and half from the end; 16 KiB when zero
	Verbatim  bool           // the output is data: it is stored unchanged, even if it contains what looks like a secret or a path
	Codes     map[int]string // failure codes by exit code; others get EXIT_CODE
	Limits    Limits
}

// Limits are enforced by the operating system. Zero means no limit.
type Limits struct {
	CPU      time.Duration // processor time, in whole seconds
	Memory   int64         // bytes of address space
	Files    int64         // open files
	FileSize int64         // bytes of one written file
}

const (
	maxTimeout      = 24 * time.Hour
	maxOutput       = 64 << 10
	defaultTimeout  = 10 * time.Minute
	defaultOutput   = 16 << 10
	defaultPatience = 3 * time.Second
)

// ready is set by Main: this process can start itself under limiterName to set limits.
var ready atomic.Bool

// Register registers the kind "exec" with an engine. It must be called before Run. Without programs it does nothing. The error names every problem.
func Register(e *engine.Engine, cfg Config) error {
	if len(cfg.Programs) == 0 {
		return nil
	}
	hideEnvironment()
	r := &runner{programs: make(map[string]Program), patience: cfg.Patience}
	if r.patience == 0 {
		r.patience = defaultPatience
	}
	problems := []error{refuse(cfg.Patience < 0 || cfg.Patience > time.Minute, "Patience is %v: give a duration up to a minute, or 0 for %v", cfg.Patience, defaultPatience)}
	var longest time.Duration
	for name, p := range cfg.Programs {
		if err := p.prepare(); err != nil {
			problems = append(problems, fmt.Errorf("program %q: %w", name, err))
		}
		probe := holdfast.Draft{Kind: name}
		problems = append(problems, refuse(probe.Prepare() != nil, "program %q: use 1 to %d letters, digits and _ - . : /", name, check.MaxName))
		r.programs[name], longest = p, max(longest, p.Timeout)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	engine.HandleRaw(e, Kind, r.work, engine.KindOptions{Timeout: longest + 2*r.patience + 10*time.Second, Policy: cfg.Policy})
	return nil
}

// prepare sets the defaults and validates the rest.
func (p *Program) prepare() error {
	info, err := os.Stat(p.Path)
	limited := p.Limits != Limits{}
	problems := []error{
		refuse(!filepath.IsAbs(p.Path), "its path is not absolute: give an absolute path"),
		refuse(err != nil || info.IsDir(), "there is no program at its path: check the path"),
		refuse(err == nil && !executable(info), "the file at its path may not be executed: chmod +x"),
		refuse(p.Dir != "" && !filepath.IsAbs(p.Dir), "Dir is not absolute: give an absolute path"),
		refuse(p.Timeout < 0 || p.Timeout > maxTimeout, "Timeout is %v: give a duration up to %v, or 0 for %v", p.Timeout, maxTimeout, defaultTimeout),
		refuse(p.MaxOutput < 0 || p.MaxOutput > maxOutput, "MaxOutput is %d: give up to %d, or 0 for %d", p.MaxOutput, maxOutput, defaultOutput),
		refuse(min(p.Limits.CPU, time.Duration(p.Limits.Memory), time.Duration(p.Limits.Files), time.Duration(p.Limits.FileSize)) < 0, "a limit is negative: give a positive one, or 0 for none"),
		refuse(p.Limits.CPU%time.Second != 0, "Limits.CPU is %v: give whole seconds", p.Limits.CPU),
		refuse(limited && !canLimit, "limits are not available on this system: leave out Limits"),
		refuse(limited && canLimit && !ready.Load(), "limits need execjob.Main: call it at the beginning of main"),
	}
	for _, e := range p.Env {
		name, _, _ := strings.Cut(e, "=")
		problems = append(problems, refuse(name == "" || strings.Contains(e, "\x00"), "Env contains %.40q: give NAME or NAME=value", name))
	}
	if p.Timeout == 0 {
		p.Timeout = defaultTimeout
	}
	if p.MaxOutput == 0 {
		p.MaxOutput = defaultOutput
	}
	return errors.Join(problems...)
}

func refuse(bad bool, format string, args ...any) error {
	if !bad {
		return nil
	}
	return jobkind.Refuse(format, args...)
}
