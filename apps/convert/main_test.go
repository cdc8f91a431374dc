package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/processtest"
	"github.com/holdfastdev/holdfast/apps/internal/web"
)

func init() {
	if processtest.AsProgram() && os.Getenv(stdinLifeline) != "" { // a gateway has to end by itself
		main()
	}
	processtest.Main(main)
}

// A process is a running program.
type process struct {
	*processtest.Process
	ended chan struct{}
}

// launch starts the program with its own environment and waits for a line of output.
func launch(t *testing.T, env []string, until string, args ...string) *process {
	t.Helper()
	p := processtest.Launch(t, env, until, args...)
	return &process{p, p.Ended}
}

func (p *process) says(begin string) string { return p.Says(begin) }
func (p *process) kill()                    { p.Kill() }
func (p *process) output() string           { return p.Output() }

func TestAWrongCommandLineSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		args []string
		env  map[string]string
		code int
		says string
	}{
		{args: []string{"help"}, code: 0, says: "convert gateway"},
		{args: []string{"help"}, code: 0, says: "RETRY_MAX_ATTEMPTS"},
		{args: []string{"fly"}, code: 2, says: `unknown command "fly"`},
		{args: []string{"web", "now"}, code: 2, says: "environment variables"},
		{args: []string{"key"}, code: 2, says: "create, list or revoke"},
		{args: []string{"key", "burn"}, code: 2, says: "convert help"},
		{args: []string{"key", "create", "--colour", "red"}, code: 2, says: "--name NAME"},
		{args: []string{"key", "create"}, code: 1, says: "name"},
		{args: []string{"key", "revoke", "missing"}, code: 1, says: "missing"},
		{args: []string{"web"}, env: map[string]string{"RETRY_MAX_ATTEMPTS": "many"}, code: 2, says: "RETRY_MAX_ATTEMPTS"},
		{args: []string{"web"}, env: map[string]string{"UPLOADS_DIR": "ftp://elsewhere"}, code: 1, says: "UPLOADS_DIR"},
	} {
		dir := t.TempDir()
		env := func(name string) string {
			if name == "DATA_DIR" {
				return dir
			}
			return c.env[name]
		}
		var said bytes.Buffer
		code := run(t.Context(), c.args, env, &said, &said)
		if code != c.code || !strings.Contains(said.String(), c.says) {
			t.Errorf("%v ends with %d and says %q; want %d and %q", c.args, code, said.String(), c.code, c.says)
		}
	}
}

func TestAPortInUseIsReported(t *testing.T) {
	busy, err := web.Listen(t.Context(), "ADDR", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	env := map[string]string{"DATA_DIR": t.TempDir(), "ADDR": busy.Addr().String(), "GATEWAY_URL": "http://127.0.0.1:1"}
	var said bytes.Buffer
	if code := run(t.Context(), []string{"web"}, func(name string) string { return env[name] }, &said, &said); code != 1 || !strings.Contains(said.String(), "choose another port") {
		t.Errorf("%d: %s", code, said.String())
	}
}

func TestAKeyIsMadeListedAndRevokedAtTheCommandLine(t *testing.T) {
	env := map[string]string{"DATA_DIR": t.TempDir()}
	do := func(args ...string) string {
		t.Helper()
		var said bytes.Buffer
		if code := run(t.Context(), append([]string{"key"}, args...), func(name string) string { return env[name] }, &said, &said); code != 0 {
			t.Fatalf("%v: %s", args, said.String())
		}
		return said.String()
	}
	made := do("create", "--name", "nightly", "--owner", "acme")
	if !strings.HasPrefix(made, "hf_") {
		t.Fatal(made)
	}
	id := strings.Split(made, "_")[1]
	if list := do("list"); !strings.Contains(list, id) || !strings.Contains(list, "acme") || !strings.Contains(list, "yes") || strings.Contains(list, strings.Split(made, "_")[2]) {
		t.Error(list)
	}
	do("revoke", id)
	if list := do("list"); !strings.Contains(list, "no") {
		t.Error(list)
	}
}

// freeAddress returns an address that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := web.Listen(t.Context(), "ADDR", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// poll waits until a condition is true.
func poll(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}

// statusOf requests an address. It returns 0 when there is no connection.
func statusOf(client *http.Client, address string) (int, string) {
	response, err := client.Get(address)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, fmt.Sprint(string(body), err)
}

// slowness is the duration of operations that tests interrupt.
const slowness = 200 * time.Millisecond

// over reports whether something has ended.
func over(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}
