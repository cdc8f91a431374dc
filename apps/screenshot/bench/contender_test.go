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
	shoot func(context.Context, request) ([]byte, error)
	stop  func()
}

// launch starts a program in a process group of its own, and waits until it prints a line that begins with each of the texts. It returns what follows them.
func launch(t *testing.T, cmd *exec.Cmd, says ...string) (said []string, stop func()) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	complaint := &bytes.Buffer{}
	cmd.Stderr, cmd.WaitDelay = complaint, time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(20*time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		_ = cmd.Wait()
		late.Stop()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	slow := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer slow.Stop()
	lines := bufio.NewScanner(out)
	for len(said) < len(says) {
		if !lines.Scan() {
			stop()
			t.Fatalf("%s did not start: %.2000s", cmd.Path, complaint)
		}
		if rest, ok := strings.CutPrefix(lines.Text(), says[len(said)]); ok {
			said = append(said, rest)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // the program must not wait for a reader
	return said, stop
}

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
		said, end := launch(t, cmd, "The page is at ", "The first account and its API key are in ")
		text, err := os.ReadFile(filepath.Join(data, "first-account"))
		if err != nil {
			t.Fatal(err)
		}
		_, key, _ := strings.Cut(strings.TrimSpace(string(text)), "API key: ")
		api := &api{at: strings.TrimSuffix(strings.Fields(said[0])[0], "/") + "/api/v1", key: key, limit: limit}
		return &running{api.shoot, func() { end(); _ = os.RemoveAll(data) }}
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
		cmd := exec.Command("node", script, chromium, strconv.Itoa(atOnce), strconv.FormatInt(limit.Milliseconds(), 10))
		cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(folder, "node_modules"))
		said, stop := launch(t, cmd, "listening on ")
		return &running{func(ctx context.Context, r request) ([]byte, error) {
			query := url.Values{"url": {r.url}, "full": {strconv.FormatBool(r.full)}}
			ask, err := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:"+said[0]+"/?"+query.Encode(), nil)
			if err != nil {
				return nil, err
			}
			return answer(ask)
		}, stop}
	}}
}

// gotenberg is Gotenberg with its Chromium module.
func gotenberg(binary, chromium string) contender {
	return contender{"Gotenberg", func(t *testing.T, atOnce int, limit time.Duration) *running {
		t.Helper()
		port := freePort(t)
		cmd := exec.Command(binary, "--api-port="+port, "--api-bind-ip=127.0.0.1", "--api-timeout="+limit.String(), "--chromium-max-concurrency="+strconv.Itoa(atOnce), "--chromium-auto-start=true", "--log-level=error")
		cmd.Env = append(os.Environ(), "CHROMIUM_BIN_PATH="+chromium)
		_, stop := launch(t, cmd)
		g := &running{func(ctx context.Context, r request) ([]byte, error) {
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
		}, stop}
		for end := time.Now().Add(time.Minute); ; <-time.After(50 * time.Millisecond) {
			a, err := http.Get("http://127.0.0.1:" + port + "/health")
			if err == nil {
				_ = a.Body.Close()
				if a.StatusCode == http.StatusOK {
					return g
				}
			}
			if time.Now().After(end) {
				stop()
				t.Fatal("Gotenberg did not start")
			}
		}
	}}
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
