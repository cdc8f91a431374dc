package main

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store/anystore"
)

func TestWaitPrintsTheResultOfAJobAndExitsAsTheJobEnded(t *testing.T) {
	address := filepath.Join(t.TempDir(), "jobs.db")
	jobs, err := anystore.Open(t.Context(), address)
	ok(t, err)
	defer jobs.Close()
	worker, err := engine.New(jobs, engine.Config{})
	ok(t, err)
	engine.HandleRaw(worker, "sum", func(_ context.Context, job *engine.Raw) error { job.Result(map[string]any{"sum": 6}); return nil })
	engine.HandleRaw(worker, "quiet", func(context.Context, *engine.Raw) error { return nil })
	engine.HandleRaw(worker, "bad", func(context.Context, *engine.Raw) error { return failure.NeverRetry(context.Canceled) })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	defer func() { stop(); ok(t, <-ended) }()
	srv, err := server.New(server.Config{Store: jobs, Operator: ops.New(jobs, ops.Config{}), Open: true, IgnoreKeys: true})
	ok(t, err)
	web := httptest.NewServer(srv)
	defer web.Close()
	defer srv.Close()

	for _, target := range [][]string{{"--store", address}, {"--server", web.URL}} {
		enqueue := func(kind string, more ...string) (int, string, string) {
			return command(t, append(append([]string{"enqueue", kind, "--wait"}, more...), target...)...)
		}
		if code, out, stderr := enqueue("sum"); code != exitOK || out != "{\"sum\":6}\n" || !strings.HasPrefix(stderr, "enqueued 0") {
			t.Errorf("%s: %d %q %q", target[0], code, out, stderr)
		}
		if code, out, _ := enqueue("quiet"); code != exitOK || out != "complete\n" {
			t.Errorf("%s, without a result: %d %q", target[0], code, out)
		}
		if code, out, stderr := enqueue("bad"); code != exitError || out != "" || !strings.Contains(stderr, "of kind bad failed: UNKNOWN") {
			t.Errorf("%s, a job that fails: %d %q %q", target[0], code, out, stderr)
		}
		code, out, _ := enqueue("bad", "--json")
		var job holdfast.Job
		if err := json.Unmarshal([]byte(out), &job); err != nil || code != exitError || job.State != holdfast.Failed {
			t.Errorf("%s, with --json: %d %q %v", target[0], code, out, err)
		}
		if code, _, stderr := enqueue("none", "--timeout", "50ms"); code != exitUnavailable || !strings.Contains(stderr, "has not ended after 50ms") {
			t.Errorf("%s, a job without a worker: %d %q", target[0], code, stderr)
		}
		receipts, err := jobs.Enqueue(t.Context(), []holdfast.Draft{{Kind: "sum", Delay: 100 * time.Millisecond}})
		ok(t, err)
		if code, out, stderr := command(t, append([]string{"wait", receipts[0].ID.String(), "--timeout", "1m"}, target...)...); code != exitOK || out != "{\"sum\":6}\n" {
			t.Errorf("%s, holdfast wait: %d %q %q", target[0], code, out, stderr)
		}
		if code, _, _ := command(t, append([]string{"wait", holdfast.NewID().String()}, target...)...); code != exitNotFound {
			t.Errorf("%s, an unknown job: %d", target[0], code)
		}
	}
	for _, args := range [][]string{{"enqueue", "sum", "--timeout", "1s"}, {"enqueue", "--ndjson", "-", "--wait"}, {"wait"}, {"wait", holdfast.NewID().String(), "--timeout", "-1s"}} {
		if code, _, _ := command(t, append(args, "--store", address)...); code != exitUsage {
			t.Errorf("%v: exit %d, want %d", args, code, exitUsage)
		}
	}
}
