//go:build unix

package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A request is a picture of a page, in PNG, of 1280 by 800 pixels.
type request struct {
	url  string
	full bool // the whole page
}

// A contender takes pictures. start starts it with so many pictures at the same time, each within a time limit.
type contender struct {
	name  string
	start func(t *testing.T, atOnce int, limit time.Duration) *running
}

// running is a contender that was started.
type running struct {
	*program
	shoot func(context.Context, request) ([]byte, error)
	stop  func()
}

// drawing are the flags of the service that change how a page is drawn. The peers get them as well, so that pictures can be compared.
var drawing = []string{
	"--hide-scrollbars", "--force-color-profile=srgb", "--font-render-hinting=none", "--disable-lcd-text", "--disable-font-subpixel-positioning", "--disable-partial-raster", "--disable-gpu", "--lang=en-US",
	"--disable-smooth-scrolling",
}

// A program is one that was started, in a process group of its own.
type program struct {
	pid   int
	said  []string      // what followed the texts that launch waited for
	ended chan struct{} // closed when it has ended
	stop  func()
	error *bytes.Buffer // what it printed to its standard error; to be read when it has ended
}

// launch starts a program, and waits until it prints a line that begins with each of the texts, in their order.
func launch(t *testing.T, cmd *exec.Cmd, says ...string) *program {
	t.Helper()
	p := &program{ended: make(chan struct{}), error: &bytes.Buffer{}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr, cmd.WaitDelay = p.error, time.Second
	out, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = to
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = to.Close()
	p.pid = cmd.Process.Pid
	go func() {
		_ = cmd.Wait() // how it ended does not matter
		close(p.ended)
	}()
	p.stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-time.After(20 * time.Second):
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its browsers, too
		<-p.ended
		_ = out.Close()
	}
	slow := time.AfterFunc(startTime, func() { _ = cmd.Process.Kill() })
	defer slow.Stop()
	lines := bufio.NewScanner(out)
	for len(p.said) < len(says) {
		if !lines.Scan() {
			p.stop()
			t.Fatalf("%s did not start: %.2000s", cmd.Path, p.error)
		}
		if rest, ok := strings.CutPrefix(lines.Text(), says[len(p.said)]); ok {
			p.said = append(p.said, rest)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // the program must not wait for a reader
	return p
}

// startTime is how long a contender may take to start.
const startTime = 2 * time.Minute

// service is the screenshot service as it is delivered: a process with the API and the job engine on SQLite. A picture is taken by its API: one request for the job, requests
// for its state until it has ended, and one for the picture.
func service(binary, chromium string) contender {
	return contender{"screenshot", func(t *testing.T, atOnce int, limit time.Duration) *running {
		t.Helper()
		data, err := os.MkdirTemp("", "b") // t.TempDir is too long for the sockets of browsers
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), "DATA_DIR="+data, "ADDR=127.0.0.1:0", "ALLOW_PRIVATE=on", "CHROMIUM="+chromium, "BROWSERS="+strconv.Itoa(atOnce), "WELCOME_CREDITS=1000000", "REQUESTS_PER_MINUTE=1000000")
		p := launch(t, cmd, "The page is at ", "The first account and its API key are in ")
		text, err := os.ReadFile(filepath.Join(data, "first-account"))
		if err != nil {
			t.Fatal(err)
		}
		_, key, _ := strings.Cut(strings.TrimSpace(string(text)), "API key: ")
		api := &api{at: strings.TrimSuffix(strings.Fields(p.said[0])[0], "/") + "/api/v1", key: key, limit: limit}
		return &running{p, api.shoot, func() { p.stop(); _ = os.RemoveAll(data) }}
	}}
}

// An api is the API of the service.
type api struct {
	at, key string
	limit   time.Duration
}

// between is the time between two requests for the state of a job.
const between = 20 * time.Millisecond

func (a *api) shoot(ctx context.Context, r request) ([]byte, error) {
	body, err := json.Marshal(map[string]any{"url": r.url, "fullPage": r.full, "timeoutMs": a.limit.Milliseconds(), "maxRetries": 0, "allowBlank": true})
	if err != nil {
		return nil, err
	}
	var job struct{ JobID, Status, ErrorCode string }
	if err := a.json(ctx, "POST", "/screenshots", body, &job); err != nil {
		return nil, err
	}
	for {
		select {
		case <-time.After(between):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := a.json(ctx, "GET", "/screenshots/"+job.JobID, nil, &job); err != nil {
			return nil, err
		}
		switch job.Status {
		case "COMPLETED":
			return a.ask(ctx, "GET", "/screenshots/"+job.JobID+"/result", nil)
		case "FAILED", "CANCELLED":
			return nil, errors.New(job.ErrorCode)
		}
	}
}

func (a *api) json(ctx context.Context, method, path string, body []byte, into any) error {
	text, err := a.ask(ctx, method, path, body)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (a *api) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.at+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+a.key)
	r.Header.Set("Content-Type", "application/json")
	return answer(r)
}

// answer returns the body of a good answer.
func answer(r *http.Request) ([]byte, error) {
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode >= 300 {
		err = fmt.Errorf("%s: %.200s", a.Status, text)
	}
	return text, err
}

// puppeteer is puppeteer-cluster, in a folder in which npm has installed it, behind a small HTTP server.
func puppeteer(folder, chromium string) contender {
	return contender{"puppeteer-cluster", func(t *testing.T, atOnce int, limit time.Duration) *running {
		t.Helper()
		script, err := filepath.Abs("peer_puppeteer.cjs")
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("node", append([]string{script, chromium, strconv.Itoa(atOnce), strconv.FormatInt(limit.Milliseconds(), 10), "--no-sandbox"}, drawing...)...)
		cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(folder, "node_modules"))
		p := launch(t, cmd, "listening on ")
		return &running{p, func(ctx context.Context, r request) ([]byte, error) {
			query := url.Values{"url": {r.url}, "full": {strconv.FormatBool(r.full)}}
			ask, err := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:"+p.said[0]+"/?"+query.Encode(), nil)
			if err != nil {
				return nil, err
			}
			return answer(ask)
		}, p.stop}
	}}
}

// gotenberg is Gotenberg with its Chromium module.
func gotenberg(binary, chromium string) contender {
	return contender{"Gotenberg", func(t *testing.T, atOnce int, limit time.Duration) *running {
		t.Helper()
		port := freePort(t)
		cmd := exec.Command(binary, "--api-port="+port, "--api-bind-ip=127.0.0.1", "--api-timeout="+limit.String(), "--chromium-max-concurrency="+strconv.Itoa(atOnce), "--chromium-auto-start=true", "--log-level=error")
		cmd.Env = append(os.Environ(), "CHROMIUM_BIN_PATH="+withFlags(t, chromium), "CHROMIUM_HYPHEN_DATA_DIR_PATH="+t.TempDir(), "OTEL_LOGS_EXPORTER=none", "OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=none")
		p := launch(t, cmd)
		g := &running{p, func(ctx context.Context, r request) ([]byte, error) {
			var form bytes.Buffer
			to := multipart.NewWriter(&form)
			for name, value := range map[string]string{"url": r.url, "width": "1280", "height": "800", "clip": strconv.FormatBool(!r.full), "format": "png"} {
				_ = to.WriteField(name, value) // into memory
			}
			_ = to.Close()
			ask, err := http.NewRequestWithContext(ctx, "POST", "http://127.0.0.1:"+port+"/forms/chromium/screenshot/url", &form)
			if err != nil {
				return nil, err
			}
			ask.Header.Set("Content-Type", to.FormDataContentType())
			return answer(ask)
		}, p.stop}
		for end := time.Now().Add(startTime); ; {
			select {
			case <-p.ended:
				t.Fatalf("Gotenberg has ended: %.2000s", p.error)
			case <-time.After(50 * time.Millisecond):
			}
			a, err := http.Get("http://127.0.0.1:" + port + "/health")
			if err == nil {
				_ = a.Body.Close()
				if a.StatusCode == http.StatusOK {
					return g
				}
			}
			if time.Now().After(end) {
				p.stop()
				t.Fatalf("Gotenberg did not start: %.2000s", p.error)
			}
		}
	}}
}

// withFlags returns a program that runs Chromium with the flags of drawing: Gotenberg has no setting for them.
func withFlags(t *testing.T, chromium string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chromium")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec '"+chromium+"' "+strings.Join(drawing, " ")+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
