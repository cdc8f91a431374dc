//go:build unix

package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// service is FetchBox as it is delivered: a process with the API, the job engine on SQLite, the stream and the ledger. Its time is that from the request with the manifest to the
// end of the job; its memory is that of the process.
func service(binary string) func(*testing.T, [][]string, string, int64, time.Duration) run {
	return func(t *testing.T, lines [][]string, place string, most int64, within time.Duration) run {
		t.Helper()
		data := t.TempDir()
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), "DATA_DIR="+data, "ADDR=127.0.0.1:0", "NATS_ADDR=off", "ALLOW_PRIVATE=on", "BUCKET="+place, "HOST_CONCURRENCY="+strconv.Itoa(atOnce),
			"WORKER_CONCURRENCY="+strconv.Itoa(atOnce), "DOWNLOAD_RETRY_LIMIT=1", "DOWNLOAD_MAX_BYTES="+strconv.FormatInt(most, 10), "SPOOL_BYTES="+strconv.Itoa(100<<30))
		said := &strings.Builder{}
		cmd.Stderr = said
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		end := time.AfterFunc(within+time.Minute, func() { _ = cmd.Process.Kill() })
		defer end.Stop()
		r := submit(out, data, lines, within)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); r.err == nil {
			r.err = err
		}
		if r.memory = resident(cmd.ProcessState); r.err != nil {
			r.err = fmt.Errorf("%w: %.2000s", r.err, said)
		}
		return r
	}
}

// submit submits a job to a process and waits until all of its resources have ended.
func submit(out interface{ Read([]byte) (int, error) }, data string, lines [][]string, within time.Duration) (r run) {
	at := ""
	said := bufio.NewScanner(out)
	for key := false; at == "" || !key; {
		if !said.Scan() {
			r.err = fmt.Errorf("the process did not start")
			return r
		}
		if address, ok := strings.CutPrefix(said.Text(), "The page is at "); ok {
			at = strings.TrimSuffix(strings.Fields(address)[0], "/")
		}
		key = key || strings.HasPrefix(said.Text(), "An API key for this machine is in ")
	}
	go func() {
		for said.Scan() { // the process must not wait for a reader
		}
	}()
	key, err := os.ReadFile(filepath.Join(data, "key"))
	if err != nil {
		r.err = err
		return r
	}
	type resource struct {
		URL string `json:"url"`
		Key string `json:"key"`
	}
	var manifest struct {
		Resources []resource `json:"resources"`
	}
	for _, line := range lines {
		manifest.Resources = append(manifest.Resources, resource{line[0], line[1]})
	}
	body, _ := json.Marshal(manifest)
	ask := func(method, path string, body []byte, into any) error {
		request, err := http.NewRequest(method, at+path, bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
		request.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode >= 300 {
			return fmt.Errorf("%s %s: %s", method, path, answer.Status)
		}
		return json.NewDecoder(answer.Body).Decode(into)
	}
	began := time.Now()
	var accepted struct {
		ID string `json:"id"`
	}
	if r.err = ask("POST", "/api/jobs", body, &accepted); r.err != nil {
		return r
	}
	for {
		var job struct {
			Complete  int `json:"resources_complete"`
			Failed    int `json:"resources_failed"`
			Cancelled int `json:"resources_cancelled"`
		}
		r.err = ask("GET", "/api/jobs/"+accepted.ID, nil, &job)
		r.took = time.Since(began)
		switch {
		case r.err != nil || job.Complete+job.Failed+job.Cancelled == len(lines):
			return r
		case r.took > within:
			r.err = fmt.Errorf("the job did not end within %s", within)
			return r
		}
		<-time.After(10 * time.Millisecond)
	}
}
