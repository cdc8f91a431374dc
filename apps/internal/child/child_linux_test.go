package child_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apps/internal/child"
)

func TestProcessesThatAProgramLeavesAreEnded(t *testing.T) {
	out, err := child.Run(t.Context(), program("family"))
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(out.Stdout)
	state, err := os.ReadFile("/proc/" + pid + "/stat")
	if err == nil && !strings.Contains(string(state), ") Z ") {
		t.Errorf("process %s still runs: %s", pid, state)
	}
}

func TestLimitsOfMemoryAndFilesEndTheProgram(t *testing.T) {
	c := program("allocate")
	c.Limits.Memory = 1 << 30
	_, err := child.Run(t.Context(), c)
	if e := reasonOf(t, err); e.Reason != child.Failed {
		t.Error(e)
	}
	file := filepath.Join(t.TempDir(), "big")
	c = program("write", file)
	c.Limits.FileSize = 10 << 20
	_, err = child.Run(t.Context(), c)
	reasonOf(t, err)
	if info, err := os.Stat(file); err != nil || info.Size() > 10<<20 {
		t.Error(info.Size(), err)
	}
}
