package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// testTimeout is the time limit of waits.
const testTimeout = time.Minute

// A process is a running command.
type process struct {
	cmd *exec.Cmd
	url string
	mu  sync.Mutex
	out strings.Builder
}

// startServe starts a server and waits until it prints its address.
func startServe(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	ctx, enough := context.WithTimeout(context.Background(), 2*testTimeout)
	p := &process{cmd: exec.CommandContext(ctx, os.Args[0], append([]string{"serve"}, args...)...)}
	p.cmd.Env = append(os.Environ(), append([]string{"HOLDFAST_TEST_AS_COMMAND=1", "HOLDFAST_LISTEN=127.0.0.1:0"}, env...)...)
	pipe, err := p.cmd.StdoutPipe()
	ok(t, err)
	p.cmd.Stderr = os.Stderr
	ok(t, p.cmd.Start())
	t.Cleanup(func() {
		enough()
		_ = p.cmd.Wait()
	})
	lines := bufio.NewScanner(pipe)
	for p.url == "" && lines.Scan() {
		p.out.WriteString(lines.Text() + "\n")
		if _, url, found := strings.Cut(lines.Text(), " at http://"); found {
			p.url = "http://" + strings.Fields(url)[0]
		}
	}
	if p.url == "" {
		t.Fatalf("the server did not print its address: %s", p.out.String())
	}
	go func() {
		for lines.Scan() {
			p.mu.Lock()
			p.out.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
		}
	}()
	return p
}

// stop asks the server to stop and returns its exit code.
func (p *process) stop(t *testing.T) int {
	t.Helper()
	ok(t, p.cmd.Process.Signal(syscall.SIGTERM))
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// waitUntil polls until a condition is true.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); ; {
		if is() {
			return
		}
		if time.Now().After(end) {
			t.Fatal("timed out waiting: " + what)
		}
		<-time.After(50 * time.Millisecond)
	}
}

func TestHTTPJobsRunWithCommandsOnly(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	well := false
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !well {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer gateway.Close()
	data := t.TempDir()
	p := startServe(t, []string{"XDG_DATA_HOME=" + data, "STATE_DIRECTORY=", "DATABASE_URL=", "RETRY_BASE_DELAY_MS=10", "RETRY_JITTER_MAX_MS=1", "HOLDFAST_LOG_LEVEL=error"}, "--http-allow", "127.0.0.0/8", "--http-ports", "*")
	far := func(line string) (int, string) {
		code, out, stderr := command(t, append(splitArgs(line), "--server", p.url)...)
		return code, out + stderr
	}
	if code, out := far(`enqueue http --args '{"url": "` + gateway.URL + `"}' --max-attempts 2`); code != exitOK {
		t.Fatal(out)
	}
	waitUntil(t, "a dead letter", func() bool { _, out := far("dead-letters"); return strings.Contains(out, "HTTP_5XX") })
	_, out := far("jobs --json")
	var page struct {
		Jobs []struct{ ID, Queue, Dependency string }
	}
	ok(t, json.Unmarshal([]byte(out), &page))
	if page.Jobs[0].Queue != "default" || page.Jobs[0].Dependency != strings.TrimPrefix(gateway.URL, "http://") {
		t.Error(out)
	}
	near := filepath.Join(data, "holdfast", "jobs.db")
	for _, line := range []string{"story " + page.Jobs[0].ID, "breakers", "dead-letters", "redrive preview --code HTTP_5XX --actor ada"} {
		_, farSays := far(line)
		_, nearSays, stderr := command(t, append(splitArgs(line), "--store", near)...)
		if farSays != nearSays+stderr {
			t.Errorf("holdfast %s\nnear: %s\nfar: %s", line, nearSays+stderr, farSays)
		}
	}
	mu.Lock()
	well = true
	mu.Unlock()
	if code, out := far("redrive start --code HTTP_5XX --yes --watch --actor ada --reason repaired"); code != exitOK || !strings.Contains(out, "1 complete") {
		t.Error(out)
	}
	if code := p.stop(t); code != exitOK {
		t.Errorf("it stopped with %d", code)
	}
	if code, out, stderr := command(t, "doctor", "--store", near); code != exitOK {
		t.Error(out, stderr)
	}
}

func TestExecJobsRunListedPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address, list := filepath.Join(dir, "jobs.db"), filepath.Join(dir, "programs.json")
	ok(t, os.WriteFile(filepath.Join(dir, "greet"), []byte("#!/bin/sh\necho \"hello $1\"\n"), 0o700))
	ok(t, os.WriteFile(list, []byte(`{"programs": {"greet": {"path": "`+filepath.Join(dir, "greet")+`", "timeout": "1m", "limits": {"cpu": "10s"}}}}`), 0o600))
	p := startServe(t, []string{"HOLDFAST_LOG_LEVEL=error"}, "--store", address, "--exec-config", list)
	for _, line := range []string{`enqueue exec --args '{"program": "greet", "args": ["$(id)"]}'`, `enqueue exec --args '{"program": "rm"}'`} {
		if code, out, stderr := command(t, append(splitArgs(line), "--server", p.url)...); code != exitOK {
			t.Fatal(out, stderr)
		}
	}
	waitUntil(t, "one complete, one refused", func() bool {
		_, complete, _ := command(t, "jobs", "--state", "complete", "--json", "--server", p.url)
		_, failed, _ := command(t, "jobs", "--state", "failed", "--json", "--server", p.url)
		return strings.Contains(complete, "hello $(id)") && strings.Contains(failed, `"program": "rm"`)
	})
	if code := p.stop(t); code != exitOK {
		t.Errorf("it stopped with %d", code)
	}
	for _, wrong := range []string{`{"programs": {}}`, `{"programs": {"x": {"path": "relative"}}}`, `{"programms": {}}`} {
		ok(t, os.WriteFile(list, []byte(wrong), 0o600))
		if code, _, stderr := command(t, "serve", "--store", address, "--listen", "127.0.0.1:0", "--exec-config", list); code != exitUsage || stderr == "" {
			t.Errorf("%s: exit %d, %s", wrong, code, stderr)
		}
	}
}

func TestABackupBecomesAStoreAgain(t *testing.T) {
	address, failed, _ := newTestStore(t)
	dir := t.TempDir()
	copied, restored := filepath.Join(dir, "copy.db"), filepath.Join(dir, "new.db")
	runSteps(t, address, []step{
		{"backup " + copied, exitOK, "copied into"},
		{"backup " + copied, exitConflict, ""},
	})
	runSteps(t, restored, []step{
		{"restore " + copied, exitOK, "restored into"},
		{"restore " + copied, exitConflict, ""},
		{"story " + failed.String(), exitOK, "gave up"},
		{"doctor", exitOK, "no invariant is broken in 3 jobs"},
	})
	if code, _, stderr := command(t, "backup", filepath.Join(dir, "far.db"), "--server", startTestServer(t, address)); code != exitUsage || !strings.Contains(stderr, "--store") {
		t.Error(code, stderr)
	}
}

func TestAServerForOtherMachinesNeedsKeys(t *testing.T) {
	dir := t.TempDir()
	address := filepath.Join(dir, "jobs.db")
	for _, refused := range [][]string{
		{"--listen", "0.0.0.0:0"}, {"--listen", "0.0.0.0:0", "--auth", "keys"}, {"--listen", ":0"}, {"--auth", "keys"}, {"--listen", "[::]:0", "--auth", "off"}, {"--listen", "192.0.2.1:80", "--auth", "off"},
	} {
		code, out, stderr := command(t, append([]string{"serve", "--store", address}, refused...)...)
		if code != exitUsage || out != "" || !strings.Contains(oneLine(stderr), "key") {
			t.Errorf("serve %v: exit %d\n%s%s", refused, code, out, stderr)
		}
	}
	for _, refused := range [][]string{{"--server", "http://x"}, {"--lease", "1y"}, {"--workers", "-1"}, {"--queues", "mail=0"}, {"--queues", "mail=five"}, {"--queues", "*=5"}, {"--queues", "mail=5", "--workers", "2"}, {"--http-allow", "10.0.0.0/99"}, {"--http-ports", "70000"}, {"--policy", dir + "/none"}, {"--demo"}, {"--auth", "maybe"}} {
		code, out, stderr := command(t, append([]string{"serve", "--store", address, "--listen", "127.0.0.1:0"}, refused...)...)
		if code != exitUsage || out != "" || stderr == "" {
			t.Errorf("serve %v: exit %d\n%s%s", refused, code, out, stderr)
		}
	}
}

func TestAServerWithKeysRequiresOneAndNotifiesSystemd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address, socket := filepath.Join(dir, "jobs.db"), filepath.Join(dir, "notify")
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	ok(t, err)
	defer systemd.Close()
	heard := make(chan string, 1000)
	go func() {
		for buffer := make([]byte, 1000); ; {
			n, err := systemd.Read(buffer)
			if err != nil {
				return
			}
			heard <- string(buffer[:n])
		}
	}()
	hear := func(what string) {
		t.Helper()
		for {
			select {
			case said := <-heard:
				if said == what {
					return
				}
			case <-time.After(testTimeout):
				t.Fatalf("systemd did not get %s", what)
			}
		}
	}
	p := startServe(t, []string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=300000", "HOLDFAST_STORE=" + address})
	hear("READY=1")
	hear("WATCHDOG=1")
	_, key, _ := command(t, "keys", "create", "--name", "ada", "--scope", "viewer", "--server", p.url)
	if code := p.stop(t); code != exitOK {
		t.Errorf("it stopped with %d", code)
	}
	hear("STOPPING=1")

	p = startServe(t, []string{"HOLDFAST_STORE=" + address})
	file := filepath.Join(dir, "key")
	ok(t, os.WriteFile(file, []byte(key), 0o600))
	for _, asked := range []struct {
		code int
		args []string
	}{
		{exitForbidden, []string{"jobs"}}, {exitForbidden, []string{"jobs", "--key", "hf_nonsense"}},
		{exitOK, []string{"jobs", "--key", strings.TrimSpace(key)}}, {exitOK, []string{"jobs", "--key-file", file}},
		{exitForbidden, []string{"pause", "--queue", "default", "--actor", "ada", "--key-file", file}},
	} {
		code, out, stderr := command(t, append(asked.args, "--server", p.url)...)
		if code != asked.code || code != exitOK && oneLine(stderr) == "" {
			t.Errorf("%v: exit %d, want %d\n%s%s", asked.args, code, asked.code, out, stderr)
		}
	}
	if code := p.stop(t); code != exitOK {
		t.Errorf("it stopped with %d", code)
	}
}

func TestTheLiveDemoShowsEveryState(t *testing.T) {
	t.Parallel()
	scratch := t.TempDir()
	p := startServe(t, []string{"TMPDIR=" + scratch}, "--demo")
	for _, seen := range []struct{ line, words string }{
		{"breakers", "billing open"}, {"dead-letters --limit 200", "NOT_FOUND DEPENDENCY_DOWN INK_MISSING SYSTEM_PANIC"}, {"errors", "acknowledged ignored resolved"},
		{"groups", "partial ready processing"}, {"queues", "paused images invoices"}, {"redrive list", "done"}, {"schedules", "running paused"}, {"deliveries", "complete"},
		{"workers", "crew-harbour crew-mill deliveries"}, {"jobs --state cancelled", "report"}, {"jobs --state processing", "report"},
	} {
		waitUntil(t, seen.line+" tells of "+seen.words, func() bool {
			_, out, _ := command(t, append(strings.Fields(seen.line), "--server", p.url)...)
			return !slices.ContainsFunc(strings.Fields(seen.words), func(word string) bool { return !strings.Contains(out, word) })
		})
	}
	if first := newVisitor(t, p).get("/console/"); first.location() != "/console/failures" {
		t.Error("during an outage the console starts at", first.location())
	}
	if code := p.stop(t); code != exitOK {
		t.Errorf("it stopped with %d", code)
	}
	if left, _ := os.ReadDir(scratch); len(left) > 0 {
		t.Errorf("the demo left %v behind", left)
	}
}

func TestAServerThatIsAskedToStopBeforeItServesEndsWithZero(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, stderr strings.Builder
	if code := run(ctx, []string{"serve", "--store", filepath.Join(t.TempDir(), "jobs.db"), "--listen", "127.0.0.1:0"}, &out, &stderr); code != exitOK {
		t.Errorf("%d %s %s", code, out.String(), stderr.String())
	}
}
