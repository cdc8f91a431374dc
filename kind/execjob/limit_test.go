//go:build linux

package execjob_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/kind/execjob"
)

func TestLimitsAreEnforced(t *testing.T) {
	const mega = 1 << 20
	for what, c := range map[string]struct {
		text   string
		limits execjob.Limits
		code   string
	}{
		"memory":    {`x=$(head -c 300000000 /dev/zero | tr '\0' 'x'); echo ${#x}`, execjob.Limits{Memory: 128 * mega}, ""}, // shells fail in different ways
		"processor": {`while :; do :; done`, execjob.Limits{CPU: time.Second}, "PROCESS_KILLED"},
		"file size": {`head -c 10000000 /dev/zero >big || exit 9`, execjob.Limits{FileSize: mega}, "EXIT_CODE"},
		"files":     {`exec 3</dev/null 4</dev/null 5</dev/null 6</dev/null 7</dev/null 8</dev/null 9</dev/null`, execjob.Limits{Files: 6}, "EXIT_CODE"},
	} {
		path := script(t, c.text)
		limited := execjob.Program{Path: path, Env: []string{"PATH"}, Limits: c.limits, Timeout: time.Minute}
		p := build(t, map[string]execjob.Program{"limited": limited})
		if job := p.run(execjob.Command{Program: "limited"}); job.State != holdfast.Failed || c.code != "" && job.LastFailure.Code != c.code {
			t.Errorf("%s: %s %+v %s", what, job.State, job.LastFailure, job.Result)
		}
	}
}

func TestAProgramThatNeedsLittleRunsUnderTightLimits(t *testing.T) {
	path := script(t, `ulimit -t; ulimit -v; ulimit -n; ulimit -f`)
	p := build(t, map[string]execjob.Program{"small": {Path: path, Limits: execjob.Limits{CPU: 7 * time.Second, Memory: 32 << 20, Files: 32, FileSize: 1 << 20}}})
	for range 10 {
		r := result(t, p.run(execjob.Command{Program: "small"}))
		if got := strings.Fields(r.Stdout); len(got) != 4 || got[0] != "7" || got[1] != "32768" || got[2] != "32" || got[3] != "2048" && got[3] != "1024" {
			t.Fatalf("%q %q", r.Stdout, r.Stderr)
		}
	}
}

func TestAProgramUnderOtherLimitsKeepsTheUsualNumberOfFiles(t *testing.T) {
	p := build(t, map[string]execjob.Program{"small": {Path: script(t, `ulimit -n`), Limits: execjob.Limits{CPU: 7 * time.Second}}})
	r := result(t, p.run(execjob.Command{Program: "small"}))
	if n, err := strconv.Atoi(strings.TrimSpace(r.Stdout)); err != nil || n > 1024 {
		t.Errorf("%q", r.Stdout)
	}
}
