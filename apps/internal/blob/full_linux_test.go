package blob

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// fill limits files of this process to half a megabyte, so that writes fail as on a full disk.
func fill() {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 512 << 10, Max: 512 << 10}); err != nil {
		panic(err)
	}
}

func TestAFullDiskLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+dir, victim+"_FULL=yes", victim+"_WHOLE=yes")
	out, _ := cmd.CombinedOutput()
	if said := string(out); !strings.Contains(said, "ended cannot write a file") || strings.Contains(said, dir) {
		t.Errorf("the process said %q", said)
	}
	nothingLeft(t, openHere(t, dir))
}
