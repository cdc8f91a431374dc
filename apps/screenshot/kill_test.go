package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/processtest"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/internal/soak"
)

func init() { processtest.Main(main) }

// Victims are processes of the service that are killed. They work on the same store and folder of pictures.
type victims struct {
	*testing.T
	origin *origin
	env    []string
	key    string

	mu    sync.Mutex
	p     []*processtest.Process
	at    []string // their addresses; empty while one is down
	shots map[holdfast.ID]string
}

func newVictims(t *testing.T, processes int, env ...string) *victims {
	t.Helper()
	path, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	policies := filepath.Join(data, "policies.yaml")
	if err := os.WriteFile(policies, []byte("retry: {policies: [{jobType: SCREENSHOT, maxRetries: 20, backoffStrategy: FIXED, baseDelay: 100ms}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := &victims{T: t, origin: newOrigin(t), p: make([]*processtest.Process, processes), at: make([]string, processes), shots: map[holdfast.ID]string{}}
	v.env = append([]string{
		"DATA_DIR=" + data, "ADDR=127.0.0.1:0", "ALLOW_PRIVATE=on", "CHROMIUM=" + path, "BROWSERS=1", "RETRY_POLICIES=" + policies, "WORKER_LEASE_TTL_SEC=2", "WORKER_LOST_LIMIT=1000", "WELCOME_CREDITS=1000000",
		"REQUESTS_PER_MINUTE=1000000", "STOP_GRACE_SEC=20",
	}, env...)
	for i := range processes {
		v.start(i)
	}
	text, err := os.ReadFile(filepath.Join(data, "first-account"))
	if err != nil {
		t.Fatal(err)
	}
	_, v.key, _ = strings.Cut(strings.TrimSpace(string(text)), "API key: ")
	return v
}

func (v *victims) start(i int) {
	v.Helper()
	p := processtest.Launch(v.T, v.env, "The first account and its API key are in ")
	at := p.Says("The page is at ")
	v.mu.Lock()
	defer v.mu.Unlock()
	v.p[i], v.at[i] = p, at
}

// kill is kill -9 of a process, or of one of its browsers.
func (v *victims) kill(i int) {
	if pids := children(v.p[i].Process.Pid); len(pids) > 0 && rand.IntN(2) == 0 {
		if victim, err := os.FindProcess(pids[rand.IntN(len(pids))]); err == nil {
			_ = victim.Kill() // it may have ended
			return
		}
	}
	v.mu.Lock()
	v.at[i] = ""
	v.mu.Unlock()
	v.p[i].Kill()
	v.start(i)
}

// children returns the processes that a process has started; none on systems without /proc.
func children(pid int) (list []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is valid
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, one := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(one); err == nil {
				list = append(list, n)
			}
		}
	}
	return list
}

// request sends a request to any process that is up, until one answers.
func (v *victims) request(method, path, key string, body any) answer {
	v.Helper()
	text, _ := json.Marshal(body)
	for end := time.Now().Add(2 * patience); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		v.mu.Lock()
		at := v.at[rand.IntN(len(v.at))]
		v.mu.Unlock()
		if at == "" {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		r, err := http.NewRequestWithContext(ctx, method, at+path, bytes.NewReader(text))
		if err != nil {
			cancel()
			v.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+v.key)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		a, err := http.DefaultClient.Do(r)
		if err == nil {
			all, bad := io.ReadAll(a.Body)
			_ = a.Body.Close()
			if err = bad; err == nil && a.StatusCode < 500 {
				cancel()
				return answer{a.StatusCode, a.Header, all}
			}
		}
		cancel()
	}
	v.Fatalf("no process answers %s %s", method, path)
	return answer{}
}

func TestNoShotAndNoCreditIsLostWhenProcessesAndBrowsersAreKilled(t *testing.T) {
	kills, shots := soak.Pick("kills of a process of the screenshot service or of a browser", 3, 100), soak.Pick("shots while processes of the screenshot service are killed", 12, 600)
	t.Run("sqlite", func(t *testing.T) { newVictims(t, 1).suffer(kills, shots) })
	t.Run("postgres", func(t *testing.T) { newVictims(t, 2, "DATABASE_URL="+pgtest.Database(t)).suffer(kills, shots) })
}

func (v *victims) suffer(kills, shots int) {
	v.Helper()
	var wait sync.WaitGroup
	wait.Go(func() {
		for n := range shots {
			key := "shot " + strconv.Itoa(n)
			a := v.request("POST", "/api/v1/screenshots", key, map[string]any{"url": v.origin.URL + "/ok/" + strconv.Itoa(n), "width": 200, "height": 100})
			var job service.Job
			if a.into(v, &job); a.Status > 202 {
				v.Errorf("%d %s", a.Status, a.Body)
			}
			v.mu.Lock()
			v.shots[job.ID] = key
			v.mu.Unlock()
		}
	})
	for range kills {
		<-time.After(time.Duration(500+rand.IntN(2500)) * time.Millisecond)
		v.kill(rand.IntN(len(v.p)))
	}
	wait.Wait()
	if len(v.shots) != shots {
		v.Errorf("%d shots instead of %d", len(v.shots), shots)
	}
	for id := range v.shots {
		v.completes(id)
	}
	var b credit.Balance
	v.request("GET", "/api/v1/credits", "", nil).into(v, &b)
	if b.Available != 1_000_000-int64(shots) || b.Reserved != 0 || b.Spent != int64(shots) {
		v.Errorf("%+v after %d shots", b, shots)
	}
	for _, p := range v.p {
		p.Kill()
	}
	var said, problem bytes.Buffer
	env := map[string]string{}
	for _, one := range v.env {
		name, value, _ := strings.Cut(one, "=")
		env[name] = value
	}
	if status := run(context.Background(), []string{"doctor"}, func(name string) string { return env[name] }, &said, &problem); status != 0 {
		v.Errorf("doctor: %s%s", said.String(), problem.String())
	}
}

// completes waits until a shot is complete and its picture can be read.
func (v *victims) completes(id holdfast.ID) {
	v.Helper()
	path := "/api/v1/screenshots/" + id.String()
	var job service.Job
	for end := time.Now().Add(2 * patience); job.Status != service.Completed; <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) || job.Status == service.Failed {
			v.Fatalf("shot %s: %+v", id, job)
		}
		v.request("GET", path, "", nil).into(v, &job)
	}
	if a := v.request("GET", path+"/result", "", nil); a.Status != 200 || len(a.Body) != job.Result.Bytes {
		v.Errorf("the picture of %s: %d, %d bytes instead of %d", id, a.Status, len(a.Body), job.Result.Bytes)
	}
}
