package child_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/child"
)

// The tests' own binary is the program.
func init() {
	if role := os.Getenv("CHILD_TEST_ROLE"); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
}

func play(role string, args []string) int {
	switch role {
	case "exit":
		code, _ := strconv.Atoi(args[0])
		fmt.Fprintln(os.Stderr, "the last words")
		return code
	case "wait":
		waitForever()
	case "talk and wait":
		fmt.Println("one")
		waitForever()
	case "talk":
		for range 200_000 {
			fmt.Println("a line of output")
		}
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "family": // starts another process that outlives it
		other := exec.Command(os.Args[0])
		other.Env = append(os.Environ(), "CHILD_TEST_ROLE=wait")
		if other.Start() != nil {
			return 1
		}
		fmt.Println(other.Process.Pid)
	case "allocate":
		var all [][]byte
		for range 4 << 10 {
			all = append(all, bytes.Repeat([]byte{1}, 1<<20))
		}
		fmt.Println(len(all))
	case "write":
		file, _ := os.Create(args[0])
		for range 100 {
			if _, err := file.Write(make([]byte, 1<<20)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
	}
	return 0
}

// waitForever ends after a time that no test reaches, so that a test that fails leaves no process.
func waitForever() { <-time.After(5 * time.Minute) }

func program(role string, args ...string) child.Command {
	return child.Command{Path: os.Args[0], Args: args, Env: append(child.Environment(), "CHILD_TEST_ROLE="+role), Time: time.Minute}
}

func reasonOf(t *testing.T, err error) *child.Error {
	t.Helper()
	e, ok := errors.AsType[*child.Error](err)
	if !ok {
		t.Fatalf("the error is %v", err)
	}
	return e
}

func TestAProgramThatFailsGivesItsExitCodeAndTheEndOfItsOutput(t *testing.T) {
	_, err := child.Run(t.Context(), program("exit", "3"))
	if e := reasonOf(t, err); e.Reason != child.Failed || e.ExitCode != 3 || !strings.Contains(e.Error(), "the last words") {
		t.Error(e)
	}
	_, err = child.Run(t.Context(), program("exit", "137"))
	if e := reasonOf(t, err); e.Reason != child.Killed {
		t.Errorf("exit code 137 is %s", e.Reason)
	}
	if _, err := child.Run(t.Context(), program("exit", "0")); err != nil {
		t.Error(err)
	}
	_, err = child.Run(t.Context(), child.Command{Path: filepath.Join(t.TempDir(), "missing"), Time: time.Minute})
	if e := reasonOf(t, err); e.Reason != child.NotStarted || !errors.Is(err, os.ErrNotExist) {
		t.Error(e)
	}
}

func TestAProgramIsEndedByItsTimeLimitByTheWatchdogAndByTheContext(t *testing.T) {
	c := program("wait")
	c.Time = 50 * time.Millisecond
	_, err := child.Run(t.Context(), c)
	if e := reasonOf(t, err); e.Reason != child.OutOfTime || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(e)
	}
	c = program("talk and wait")
	c.Stall = 300 * time.Millisecond
	out, err := child.Run(t.Context(), c)
	if e := reasonOf(t, err); e.Reason != child.Stalled || out.Stdout != "one\n" {
		t.Error(e, out)
	}
	reason := errors.New("the lease was lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	c = program("talk and wait")
	c.Read = func(stdout io.Reader, _ func()) error {
		_, _ = bufio.NewReader(stdout).ReadString('\n')
		cancel(reason)
		return nil
	}
	if _, err := child.Run(ctx, c); err != reason {
		t.Error(err)
	}
}

func TestProgressKeepsAProgramAlive(t *testing.T) {
	c := program("echo")
	c.Stall = 10 * time.Second
	steps := make(chan struct{})
	c.Feed = func(stdin io.Writer) error {
		for range 100 {
			if _, err := io.WriteString(stdin, "x\n"); err != nil {
				return err
			}
			<-steps
		}
		return nil
	}
	lines := 0
	c.Read = func(stdout io.Reader, alive func()) error {
		for s := bufio.NewScanner(stdout); s.Scan(); lines++ {
			alive()
			steps <- struct{}{}
		}
		return nil
	}
	if _, err := child.Run(t.Context(), c); err != nil || lines != 100 {
		t.Error(lines, err)
	}
}

func TestLongOutputIsCutAndNeverBlocksTheProgram(t *testing.T) {
	out, err := child.Run(t.Context(), program("talk"))
	if err != nil || len(out.Stdout) > 64<<10 || !strings.HasSuffix(out.Stdout, "a line of output\n") {
		t.Error(err, len(out.Stdout))
	}
}

func TestAReaderThatFailsEndsTheProgramWithItsError(t *testing.T) {
	refused := errors.New("this is no video")
	c := program("talk and wait")
	c.Read = func(io.Reader, func()) error { return refused }
	if _, err := child.Run(t.Context(), c); err != refused {
		t.Error(err)
	}
	c = program("exit", "2")
	c.Read = func(stdout io.Reader, _ func()) error {
		_, err := io.ReadFull(stdout, make([]byte, 1))
		return err
	}
	_, err := child.Run(t.Context(), c)
	if e := reasonOf(t, err); e.ExitCode != 2 {
		t.Error("the end of the program is the cause, not the missing output:", err)
	}
}

func TestAProgramSeesNoSecretsOfOurEnvironment(t *testing.T) {
	t.Setenv("DATABASE_PASSWORD", "secret")
	for _, variable := range child.Environment() {
		if strings.Contains(variable, "secret") {
			t.Error(variable)
		}
	}
}
