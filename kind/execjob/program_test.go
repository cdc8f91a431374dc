//go:build unix

package execjob_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/jobkind"
	"github.com/holdfastdev/holdfast/kind/execjob"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

func TestMain(m *testing.M) {
	execjob.Main()
	os.Exit(m.Run())
}

// script writes a program.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// A harness is a real store and a real engine, in real time.
type harness struct {
	*testing.T
	store  store.Store
	engine *engine.Engine
}

func build(t *testing.T, programs map[string]execjob.Program) *harness {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "jobs.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	e, err := engine.New(db, engine.Config{Log: slog.New(slog.DiscardHandler), Poll: 20 * time.Millisecond, Grace: 10 * time.Millisecond, Lease: 6 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	cfg := execjob.Config{Programs: programs, Patience: 300 * time.Millisecond, Policy: failure.Policy{MaxAttempts: 1}}
	if err := execjob.Register(e, cfg); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(context.Background()) }()
	t.Cleanup(func() {
		_ = e.Stop(context.Background())
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return &harness{t, db, e}
}

func (p *harness) enqueue(c execjob.Command) holdfast.ID {
	p.Helper()
	receipt, err := holdfast.Enqueue(p.Context(), jobkind.Preparing(p.store, execjob.Prepare), c)
	if err != nil {
		p.Fatal(err)
	}
	return receipt.ID
}

func (p *harness) run(c execjob.Command) holdfast.Job {
	p.Helper()
	return p.waitForEnd(p.enqueue(c))
}

// waitForEnd waits until a job has ended.
func (p *harness) waitForEnd(id holdfast.ID) (job holdfast.Job) {
	p.Helper()
	p.waitUntil("its end", func() bool {
		var err error
		if job, err = p.store.Job(p.Context(), id); err != nil {
			p.Fatal(err)
		}
		return job.State.Terminal()
	})
	return job
}

func (p *harness) waitUntil(what string, true func() bool) {
	p.Helper()
	beat := time.NewTicker(10 * time.Millisecond)
	defer beat.Stop()
	for start := time.Now(); !true(); <-beat.C {
		if time.Since(start) > time.Minute {
			p.Fatalf("timed out waiting for %s", what)
		}
	}
}

func result(t *testing.T, job holdfast.Job) (r execjob.Result) {
	t.Helper()
	if job.State != holdfast.Complete {
		t.Fatalf("%s: %+v", job.State, job.LastFailure)
	}
	if err := json.Unmarshal(job.Result, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestArgumentsAndInputArriveVerbatimAndNothingElseOfTheEnvironment(t *testing.T) {
	t.Setenv("CANARY", "canary")
	t.Setenv("PASSED", "passed on")
	echo := script(t, `for a in "$@"; do printf '[%s]' "$a"; done; printf '|%s|' "$PASSED$FIXED$CANARY"; test -n "$HOLDFAST_JOB_ID" && printf '%s|' "$HOLDFAST_ATTEMPT"; cat; ls -A; pwd >&2`)
	for _, limits := range []execjob.Limits{{}, {Files: 64}} {
		p := build(t, map[string]execjob.Program{"echo": {Path: echo, Args: []string{"first", "--"}, Env: []string{"PASSED", "FIXED=, fixed", "ABSENT", "PATH"}, Verbatim: true, Limits: limits}})
		args := []string{"-rf", "--help", "$(id)", "`id`", "a b", "", "*", "'\"", "line\nbreak", "; echo no", "ä"}
		r := result(t, p.run(execjob.Command{Program: "echo", Args: args, Stdin: "the $INPUT"}))
		want := "[first][--][" + strings.Join(args, "][") + "]|passed on, fixed|1|the $INPUT"
		if r.Stdout != want || r.ExitCode != 0 {
			t.Errorf("%+v: %q, want %q", limits, r.Stdout, want)
		}
		if _, err := os.Stat(strings.TrimSpace(r.Stderr)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v: its directory %q is still there: %v", limits, r.Stderr, err)
		}
	}
}

func TestAProgramThatIsNotListedIsRefusedForGood(t *testing.T) {
	p := build(t, map[string]execjob.Program{"true": {Path: script(t, "exit 0")}})
	for _, name := range []string{"false", "/bin/sh", "../true", "TRUE"} {
		job := p.run(execjob.Command{Program: name})
		if job.State != holdfast.Failed || job.LastFailure.Code != "HANDLER_REFUSED" || job.Failures != 1 {
			t.Errorf("%s: %s %+v", name, job.State, job.LastFailure)
		}
	}
}

func TestAnExitCodeIsAFailureWithTheErrorOutputOfTheProgram(t *testing.T) {
	p := build(t, map[string]execjob.Program{"exit": {Path: script(t, `echo out; echo "cannot open it, token=s3cr3tcanary99" >&2; if [ "$1" = kill ]; then kill -9 $$; fi; exit $1`), Codes: map[int]string{65: "INVALID_INPUT"}}})
	for arg, code := range map[string]string{"3": "EXIT_CODE", "65": "INVALID_INPUT", "137": "PROCESS_KILLED", "kill": "PROCESS_KILLED"} {
		f := p.run(execjob.Command{Program: "exit", Args: []string{arg}}).LastFailure
		if f == nil || f.Code != code || !strings.Contains(f.Detail, "cannot open it") || strings.Contains(fmt.Sprint(f), "canary") || f.Context["stdout"] != "out" {
			t.Errorf("%s: %+v", arg, f)
		}
	}
}

// alive reports whether a process still runs. A process that ended and was not reaped by its parent does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestAllProcessesOfAProgramEndWhenItsTimeLimitHasPassed(t *testing.T) {
	// The program, its child and its grandchild ignore SIGTERM.
	stubborn := `trap "" TERM; (trap "" TERM; sh -c 'trap "" TERM; echo $$ >"$1"; while :; do sleep 1; done' x "$1") & while :; do sleep 1; done`
	obedient := `(echo $$ >/dev/null; sh -c 'echo $$ >"$1"; while :; do sleep 1; done' x "$1") & wait`
	slow := func(text string) execjob.Program {
		return execjob.Program{Path: script(t, text), Timeout: 6 * time.Second, Env: []string{"PATH"}}
	}
	p := build(t, map[string]execjob.Program{"stubborn": slow(stubborn), "obedient": slow(obedient)})
	notes, jobs := make(map[string]string), make(map[string]holdfast.ID)
	for _, what := range []string{"stubborn", "obedient"} {
		notes[what] = filepath.Join(t.TempDir(), "pid")
		jobs[what] = p.enqueue(execjob.Command{Program: what, Args: []string{notes[what]}})
	}
	for what, note := range notes {
		if job := p.waitForEnd(jobs[what]); job.State != holdfast.Failed || job.LastFailure.Code != "TIMEOUT" {
			t.Errorf("%s: %s %+v", what, job.State, job.LastFailure)
		}
		p.waitForProcessEnd(note)
	}
}

// waitForProcessEnd waits until the process that wrote its id to the file has ended.
func (p *harness) waitForProcessEnd(note string) {
	p.Helper()
	text, err := os.ReadFile(note)
	if err != nil {
		p.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		p.Fatal(err)
	}
	p.waitUntil("the grandchild to be gone", func() bool { return !alive(pid) })
}

func TestProcessesThatAProgramLeavesRunningAreKilled(t *testing.T) {
	p := build(t, map[string]execjob.Program{"careless": {Path: script(t, `sh -c 'echo $$ >"$1"; while :; do sleep 1; done' x "$1" & while [ ! -s "$1" ]; do sleep 0.01; done; echo done`), Env: []string{"PATH"}}})
	note := filepath.Join(t.TempDir(), "pid")
	if r := result(t, p.run(execjob.Command{Program: "careless", Args: []string{note}})); r.Stdout != "done\n" {
		t.Errorf("%+v", r)
	}
	p.waitForProcessEnd(note)
}

func TestAProgramEndsWhenItsJobIsCancelledAndWhenTheWorkerStops(t *testing.T) {
	text := `sh -c 'echo $$ >"$1.new"; mv "$1.new" "$1"; while :; do sleep 1; done' x "$1" & wait`
	for what, end := range map[string]func(p *harness, id holdfast.ID){
		"cancelled": func(p *harness, id holdfast.ID) {
			if _, err := p.store.Cancel(p.Context(), store.Intervention{Job: id, Actor: "ada"}); err != nil {
				p.Fatal(err)
			}
		},
		"stopped": func(p *harness, _ holdfast.ID) { _ = p.engine.Stop(context.Background()) },
	} {
		p := build(t, map[string]execjob.Program{"endless": {Path: script(t, text), Env: []string{"PATH"}}})
		note := filepath.Join(t.TempDir(), "pid")
		id := p.enqueue(execjob.Command{Program: "endless", Args: []string{note}})
		p.waitUntil("its start", func() bool {
			_, err := os.Stat(note)
			return err == nil
		})
		end(p, id)
		p.waitForProcessEnd(note)
		p.waitUntil(what, func() bool {
			job, err := p.store.Job(t.Context(), id)
			return err == nil && (what == "cancelled" && job.State == holdfast.Cancelled || what == "stopped" && job.State == holdfast.Queued && job.Failures == 0)
		})
	}
}

func TestALongOutputKeepsItsBeginningAndItsEnd(t *testing.T) {
	p := build(t, map[string]execjob.Program{"flood": {Path: script(t, `echo begin; head -c 50000000 /dev/zero | tr '\0' 'x'; echo; echo end; echo begin >&2; head -c 50000000 /dev/zero >&2; echo end >&2`), Env: []string{"PATH"}, MaxOutput: 4096}})
	r := result(t, p.run(execjob.Command{Program: "flood"}))
	for _, text := range []string{r.Stdout, r.Stderr} {
		if len(text) > 5000 || !strings.HasPrefix(text, "begin\n") || !strings.HasSuffix(text, "end\n") || !strings.Contains(text, "bytes left out") {
			t.Errorf("%d bytes: %.100q", len(text), text)
		}
	}
}

func TestWhatLooksLikeASecretIsHiddenUnlessTheOutputIsData(t *testing.T) {
	text := script(t, `echo "password=hunter2canary"; head -c 20000 /dev/zero | tr '\0' '\n'; echo '{"token": "canary1234567890"}'; echo '-----BEGIN PRIVATE KEY-----'; for i in $(seq 100); do echo "canary${i}canarycanarycanarycanarycanarycanarycanary"; done; echo '-----END PRIVATE KEY-----'; echo end`)
	p := build(t, map[string]execjob.Program{"shown": {Path: text, Env: []string{"PATH"}, MaxOutput: 64 << 10}, "data": {Path: text, Env: []string{"PATH"}, MaxOutput: 64 << 10, Verbatim: true}})
	if r := result(t, p.run(execjob.Command{Program: "shown"})); strings.Contains(r.Stdout, "canary") || !strings.Contains(r.Stdout, "password=") || !strings.Contains(r.Stdout, "token") || !strings.HasSuffix(r.Stdout, "end\n") {
		t.Errorf("%.200q", r.Stdout)
	}
	if r := result(t, p.run(execjob.Command{Program: "data"})); strings.Count(r.Stdout, "canary") != 802 {
		t.Errorf("%.200q", r.Stdout)
	}
}

func TestRegisterRefusesInvalidPrograms(t *testing.T) {
	good := script(t, "exit 0")
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for says, p := range map[string]execjob.Program{
		"not absolute": {Path: "sh"}, "no program": {Path: "/nowhere/at/all"}, "may not be executed": {Path: plain}, "Dir is not": {Path: good, Dir: "x"}, "Timeout": {Path: good, Timeout: -1},
		"MaxOutput": {Path: good, MaxOutput: 1 << 20}, "negative": {Path: good, Limits: execjob.Limits{Memory: -1}}, "whole seconds": {Path: good, Limits: execjob.Limits{CPU: time.Millisecond}}, "Env": {Path: good, Env: []string{"=x"}},
	} {
		if err := execjob.Register(nil, execjob.Config{Programs: map[string]execjob.Program{"p": p}}); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if err := execjob.Register(nil, execjob.Config{}); err != nil {
		t.Errorf("without programs: %v", err)
	}
}

func TestPrepareRefusesInvalidArguments(t *testing.T) {
	for args, says := range map[string]string{
		`null`: "name one", `{"program": "x", "shell": true}`: "unknown field", `{"program": "x", "args": "-v"}`: "arguments of kind exec", `{"program": "x", "args": ["a\u0000b"]}`: "zero byte",
		`{"program": "x", "args": ["` + strings.Repeat("x", 100<<10) + `"]}`: "stdin",
	} {
		if err := execjob.Prepare(&holdfast.Draft{Kind: execjob.Kind, Args: json.RawMessage(args)}); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s: %v", args, err)
		}
	}
}

func TestAProgramRunsOutsideOfAJobWithTheSameLimits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(file, []byte("from the file"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	t.Setenv("CANARY", "hidden")
	p := execjob.Program{Path: script(t, `cat; echo " $1 $2 $CANARY"; exit $3`), Args: []string{"listed"}, Env: []string{"PATH"}}
	if r, err := p.Run(t.Context(), in, "given", "0"); err != nil || r.Stdout != "from the file listed given \n" {
		t.Errorf("%+v, %v", r, err)
	}
	exit := (*failure.ExitError)(nil)
	if _, err := p.Run(t.Context(), nil, "given", "7"); !errors.As(err, &exit) || exit.Code != 7 {
		t.Errorf("%v", err)
	}
	hangs := execjob.Program{Path: script(t, "sleep 600"), Env: []string{"PATH"}, Timeout: 100 * time.Millisecond}
	if _, err := hangs.Run(t.Context(), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hangs.Run(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	limited := execjob.Program{Path: script(t, "head -c 100000 /dev/zero > out && echo written"), Env: []string{"PATH"}, Limits: execjob.Limits{FileSize: 1000}}
	if r, err := limited.Run(t.Context(), nil); err == nil {
		t.Errorf("it wrote more than it may: %+v", r)
	}
	if _, err := (execjob.Program{Path: "relative"}).Run(t.Context(), nil); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("%v", err)
	}
}
