package execjob_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfastdev/holdfast/kind/execjob"
)

// A process that had moved to a session of its own outlived its job, and wrote a file three seconds after the job was complete.
func TestAProcessThatLeftItsGroupEndsWithTheAttempt(t *testing.T) {
	at := filepath.Join(t.TempDir(), "pid")
	leave := script(t, `setsid sh -c 'echo $$ > `+at+`.part; mv `+at+`.part `+at+`; sleep 600' </dev/null >/dev/null 2>&1 &
		while ! test -f `+at+`; do sleep 0.01; done; echo done`)
	p := build(t, map[string]execjob.Program{"leave": {Path: leave, Env: []string{"PATH"}}})
	if r := result(t, p.run(execjob.Command{Program: "leave"})); !strings.Contains(r.Stdout, "done") {
		t.Error(r)
	}
	text, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	p.waitUntil("the end of what left", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ") // ended, perhaps not yet reaped by its new parent
	})
}

// A program could read the secrets of the server in /proc/$PPID/environ.
func TestProgramsCannotReadTheEnvironmentOfTheWorker(t *testing.T) {
	build(t, map[string]execjob.Program{"true": {Path: "/bin/true"}})
	if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || dumpable != 0 {
		t.Errorf("the process lets others of its user read its memory and environment: %d, %v", dumpable, err)
	}
}
