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

// A child is a worker process, seen from the one that started it.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// A line is one thing a child said. Its end is a line with err set, io.EOF after a clean one.
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
	endWithUs(c.cmd)
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
		return nil, errors.Join(errors.New("a worker process did not get ready"), c.end())
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

// drain adds jobs, then lets worker processes run until all have ended. The clock runs from "go" until all have stopped cleanly,
// so that everything counted is settled.
func (s *session) drain(ctx context.Context) (Result, error) {
	if err := s.c.Add(ctx, s.jobs); err != nil {
		return Result{}, err
	}
	before, err := s.c.Complete(ctx)
	if err != nil {
		return Result{}, err
	}
	result, err := s.alone(ctx, func() (Result, error) { return s.crew(ctx) })
	if err != nil {
		return Result{}, err
	}
	after, err := s.c.Complete(ctx)
	if err != nil {
		return Result{}, err
	}
	if after-before != s.jobs {
		return Result{}, fmt.Errorf("%d jobs were handled but the store knows %d more complete ones: this run does not count", s.jobs, after-before)
	}
	return result, nil
}

// alone lets go of a store that is a file, so that the worker processes have it for themselves, and opens it again afterwards.
func (s *session) alone(ctx context.Context, work func() (Result, error)) (Result, error) {
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
		return Result{}, refusal("-snapshot")
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

// crew runs the worker processes.
func (s *session) crew(ctx context.Context) (Result, error) {
	var crew []*child
	defer func() {
		for _, c := range crew {
			c.end()
		}
	}()
	for i := range s.processes {
		c, err := s.start(ctx, i)
		if err != nil {
			return Result{}, err
		}
		crew = append(crew, c)
	}
	result, end := s.begin(ctx)
	for _, c := range crew {
		if _, err := fmt.Fprintln(c.in, wordGo); err != nil {
			return Result{}, err
		}
	}
	err := listen(crew, s.jobs, &result)
	return end(result, err)
}

// listen adds up what the children say, closes their inputs when all jobs have ended, and waits until all have stopped.
func listen(crew []*child, jobs int, result *Result) error {
	said := make(chan line)
	for i, c := range crew {
		go func() {
			for {
				l := c.next()
				l.child = i
				said <- l
				if l.err != nil || l.word == wordStopped {
					return
				}
			}
		}()
	}
	ended, sum := make([]int, len(crew)), 0
	var failed error
	for working := len(crew); working > 0; {
		l := <-said
		switch {
		case l.word == wordStopped:
			working--
			failed = errors.Join(failed, result.add(l.value))
		case l.err != nil:
			working--
			failed = errors.Join(failed, fmt.Errorf("worker process %d ended on its own: %w", l.child+1, l.err))
		case l.word == wordEnded:
			sum -= ended[l.child]
			failed = errors.Join(failed, json.Unmarshal(l.value, &ended[l.child]))
			sum += ended[l.child]
		}
		if sum >= jobs || failed != nil {
			for _, c := range crew {
				c.in.Close()
			}
		}
	}
	return failed
}

func (r *Result) add(value json.RawMessage) error {
	var said report
	err := json.Unmarshal(value, &said)
	r.CPU += said.CPU
	r.Idle = max(r.Idle, said.Idle)
	r.Peak = max(r.Peak, said.Peak)
	return err
}
