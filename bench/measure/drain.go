package measure

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// A child is a worker process, as seen by its parent process.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// A line is one line of a child's output. At the end of the output err is set; it is io.EOF after a clean end.
type line struct {
	child int
	word  string
	value json.RawMessage
	err   error
}

// start starts a worker process and waits until it is ready. Only the first one writes a profile.
func (r run) start(ctx context.Context, number int) (*child, error) {
	arguments := []string{"-worker", "-workload", r.workload, "-store", r.Store, "-slots", strconv.Itoa(r.Slots), "-defaults=" + strconv.FormatBool(r.Defaults), "-far=" + strconv.FormatBool(r.Far)}
	if number == 0 {
		arguments = append(arguments, "-profile", r.profile)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self, arguments...)}
	c.cmd.Stderr = os.Stderr
	endWithParent(c.cmd)
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	c.lines = bufio.NewScanner(out)
	if l := c.next(); l.word != wordReady {
		return nil, errors.Join(errors.New("a worker process did not become ready"), c.end())
	}
	return c, nil
}

func (c *child) next() line {
	if !c.lines.Scan() {
		if err := c.lines.Err(); err != nil {
			return line{err: err}
		}
		return line{err: io.EOF}
	}
	word, value, _ := strings.Cut(c.lines.Text(), " ")
	return line{word: word, value: json.RawMessage(value)}
}

// end closes the child's input, which tells it to stop, and waits for it.
func (c *child) end() error {
	c.in.Close()
	for c.lines.Scan() {
	}
	return c.cmd.Wait()
}

// drain adds jobs and runs worker processes until all jobs have ended. The time runs from "go" until all workers have stopped cleanly, so that all counted jobs are settled.
func (s *session) drain(ctx context.Context) (Result, error) {
	if err := s.c.Add(ctx, s.jobs); err != nil {
		return Result{}, err
	}
	before, err := s.c.Complete(ctx)
	if err != nil {
		return Result{}, err
	}
	result, err := s.exclusively(ctx, func() (Result, error) { return s.runWorkers(ctx) })
	if err != nil {
		return Result{}, err
	}
	after, err := s.c.Complete(ctx)
	if err != nil {
		return Result{}, err
	}
	if after-before != s.jobs {
		return Result{}, fmt.Errorf("%d jobs were handled but the store contains %d more complete ones: this run does not count", s.jobs, after-before)
	}
	return result, nil
}

// exclusively closes a store that is a file during the work, so that only the worker processes have it open, and opens it again afterwards.
func (s *session) exclusively(ctx context.Context, work func() (Result, error)) (Result, error) {
	if c, ok := s.c.(Server); ok {
		release := func() {}
		if s.snapshot {
			var err error
			if release, err = c.Snapshot(ctx); err != nil {
				return Result{}, err
			}
		}
		defer release()
		return work()
	}
	if s.snapshot {
		return Result{}, unsupported("-snapshot")
	}
	if err := s.c.Close(); err != nil {
		return Result{}, err
	}
	result, failed := work()
	c, err := s.open(ctx, s.Options)
	if err == nil {
		s.c = c
	}
	return result, errors.Join(failed, err)
}

// runWorkers runs the worker processes.
func (s *session) runWorkers(ctx context.Context) (Result, error) {
	var workers []*child
	defer func() {
		for _, c := range workers {
			c.end()
		}
	}()
	for i := range s.processes {
		c, err := s.start(ctx, i)
		if err != nil {
			return Result{}, err
		}
		workers = append(workers, c)
	}
	result, end := s.begin(ctx)
	for _, c := range workers {
		if _, err := fmt.Fprintln(c.in, wordGo); err != nil {
			return Result{}, err
		}
	}
	err := listen(workers, s.jobs, &result)
	return end(result, err)
}

// listen adds up the counts of the children, closes their inputs when all jobs have ended, and waits until all have stopped.
func listen(workers []*child, jobs int, result *Result) error {
	output := make(chan line)
	for i, c := range workers {
		go func() {
			for {
				l := c.next()
				l.child = i
				output <- l
				if l.err != nil || l.word == wordStopped {
					return
				}
			}
		}()
	}
	ended, sum := make([]int, len(workers)), 0
	var failed error
	for running := len(workers); running > 0; {
		l := <-output
		switch {
		case l.word == wordStopped:
			running--
			failed = errors.Join(failed, result.add(l.value))
		case l.err != nil:
			running--
			failed = errors.Join(failed, fmt.Errorf("worker process %d ended unexpectedly: %w", l.child+1, l.err))
		case l.word == wordEnded:
			sum -= ended[l.child]
			failed = errors.Join(failed, json.Unmarshal(l.value, &ended[l.child]))
			sum += ended[l.child]
		}
		if sum >= jobs || failed != nil {
			for _, c := range workers {
				c.in.Close()
			}
		}
	}
	return failed
}

func (r *Result) add(value json.RawMessage) error {
	var usage workerUsage
	err := json.Unmarshal(value, &usage)
	r.CPU += usage.CPU
	r.Idle = max(r.Idle, usage.Idle)
	r.Peak = max(r.Peak, usage.Peak)
	return err
}
