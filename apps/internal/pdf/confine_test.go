//go:build linux

package pdf_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
	"github.com/holdfastdev/holdfast/apps/internal/pdf/pdftest"
)

// misbehave is what the test's own program does as a confined one. It leaves with 0 only when nothing held it.
func misbehave(how string) {
	how, rest, _ := strings.Cut(how, " ")
	processor := time.Hour // no limit for those that only a slow machine could bring there
	if how == "processor" {
		processor = time.Second
	}
	if err := pdf.Confine(1<<30, processor); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(4)
	}
	switch how {
	case "memory":
		var all [][]byte
		for range 64 {
			b := make([]byte, 64<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			all = append(all, b)
			fmt.Print(len(all), " ")
		}
	case "processor":
		for n := 0; ; n++ {
			if n == -1 {
				fmt.Println(n)
			}
		}
	case "files":
		for range 1000 {
			if _, err := os.Open(os.DevNull); err != nil {
				os.Exit(5)
			}
		}
	case "read":
		file, err := os.Open(rest)
		if err != nil {
			os.Exit(6)
		}
		for _, r := range pdf.Readers() {
			if _, err := r.Read(context.Background(), file, pdf.Limits{}); err != nil {
				fmt.Fprintln(os.Stderr, r.Name(), err)
				os.Exit(7)
			}
		}
	}
	os.Exit(0)
}

func confined(t *testing.T, how string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), confinedEnv+"="+how)
	return cmd
}

func TestAConfinedProcessCannotExceedItsLimits(t *testing.T) {
	for how, held := range map[string]func(*exec.ExitError) bool{
		"memory": func(e *exec.ExitError) bool {
			return e.ExitCode() == 2 && strings.Contains(string(e.Stderr), "out of memory")
		},
		"processor": func(e *exec.ExitError) bool {
			s := e.Sys().(syscall.WaitStatus).Signal()
			return s == syscall.SIGKILL || s == syscall.SIGXCPU
		},
		"files": func(e *exec.ExitError) bool { return e.ExitCode() == 5 },
	} {
		t.Run(how, func(t *testing.T) {
			out, err := confined(t, how).Output()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !held(exit) {
				t.Errorf("it ended with %v", err)
			}
			if steps := strings.Fields(string(out)); how == "memory" && (len(steps) < 8 || len(steps) > 16) {
				t.Errorf("of 16 times 64 MiB it got %d", len(steps))
			}
		})
	}
}

func TestAConfinedProcessStillReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in.pdf")
	put(t, path, pdftest.Simple(t, manyPages(50)...))
	if out, err := confined(t, "read "+path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
