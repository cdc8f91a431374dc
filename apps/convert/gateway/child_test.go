package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var quiet = slog.New(slog.DiscardHandler)

func newServer(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// running reports whether the process whose id is in a file still runs.
func running(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile("/proc/" + string(text) + "/stat") // a zombie counts as ended
	if err == nil && strings.Contains(string(stat), ") Z ") {
		return false
	}
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}

func TestTheWayAProcessEndsDecidesTheAnswer(t *testing.T) {
	for _, c := range []struct {
		reader  string
		timeout time.Duration
		status  int
		code    string
	}{
		{"glutton", time.Minute, 413, codeTooMuch},
		{"diver", time.Minute, 413, codeTooMuch},
		{"patient", time.Second, 504, codeTimeout},
		{"crasher", time.Minute, 500, codeFailed},
		{"failing", time.Minute, 500, codeFailed},
		{"mute", time.Minute, 500, codeFailed},
	} {
		t.Run(c.reader, func(t *testing.T) {
			s := serve(t, Config{Reader: c.reader, Timeout: c.timeout})
			s.convert(t, "text", []byte(t.TempDir())).refused(t, c.status, c.code)
			if got := s.send(t, "GET", "/healthz", "", nil); got.StatusCode != http.StatusOK {
				t.Errorf("the gateway did not survive it: %s", got.body)
			}
		})
	}
}

// TestADocumentThatUsesUpTheCPUTimeIsRefused has a short CPU limit and a long timeout, so that a busy machine does not change the result.
func TestADocumentThatUsesUpTheCPUTimeIsRefused(t *testing.T) {
	g, err := open(Config{Reader: "spinner", Temp: t.TempDir(), Timeout: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	at, _, err := g.temp.create()
	if err != nil {
		t.Fatal(err)
	}
	o := g.request(at, builtin[0])
	if o.CPU >= o.Timeout {
		t.Errorf("the CPU limit is %s, the timeout %s", o.CPU, o.Timeout)
	}
	o.CPU = time.Second
	if err := os.WriteFile(at.source(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := g.run(t.Context(), o); refusalOf(err).Code != codeTooMuch {
		t.Errorf("the answer is %v", err)
	}
}

func TestAClientThatDisconnectsEndsItsProcesses(t *testing.T) {
	for _, reader := range []string{"patient", "parent"} {
		t.Run(reader, func(t *testing.T) {
			s := serve(t, Config{Reader: reader, Slots: 1})
			folder := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/convert?mapping=text", strings.NewReader(folder))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/pdf")
			ended := make(chan error, 1)
			go func() {
				got, err := s.Client().Do(r)
				if err == nil {
					got.Body.Close()
				}
				ended <- err
			}()
			mustAwait(t, "nothing was begun", func() bool { return len(left(t, folder, "begun-")) == 1 })
			process := left(t, folder, "begun-")[0]
			if !running(t, process) {
				t.Fatal("the process ended too early")
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the request ended with %v", err)
			}
			mustAwait(t, "the process still runs", func() bool { return !running(t, process) })
			mustAwait(t, "the PDF is still there", func() bool { return s.empty(t) })
		})
	}
}

// TestTheProcessesOfAKilledGatewayEnd closes the standard input of a child process, which is what happens when the gateway is killed.
func TestTheProcessesOfAKilledGatewayEnd(t *testing.T) {
	folder, temp := t.TempDir(), t.TempDir()
	at := workspace(filepath.Join(temp, workspacePrefix+"killed"))
	if err := os.Mkdir(string(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at.source(), []byte(folder), 0o600); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], childArgument)
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	setProcessGroup(child)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(stdin, `{"sheet":`+strconv.Quote(string(at))+`,"reader":"parent","mapping":"text","cpu":60000000000,"timeout":60000000000}`); err != nil {
		t.Fatal(err)
	}
	mustAwait(t, "nothing was begun", func() bool { return len(left(t, folder, "begun-")) == 1 })
	stdin.Close() // which is all that a killed parent does
	if err := child.Wait(); err == nil {
		t.Error("the process ended as if all were well")
	}
	mustAwait(t, "the program that it started still runs", func() bool { return !running(t, left(t, folder, "begun-")[0]) })

	handler, err := New(Config{Temp: temp, Reader: "quick"})
	if err != nil || handler == nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(string(at)); err != nil {
		t.Error("a workspace that may belong to another gateway was deleted")
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(string(at), long, long); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(temp, "other-program"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(temp, "other-program"), long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Temp: temp, Reader: "quick"}); err != nil {
		t.Fatal(err)
	}
	if has(temp, workspacePrefix+"killed") || !has(temp, "other-program") {
		t.Error("the wrong folders were deleted")
	}
}

func TestOnlySlotsRequestsRunAtOnceAndOthersWaitOrAreRefused(t *testing.T) {
	s := serve(t, Config{Reader: "patient", Slots: 2, Timeout: 5 * time.Minute})
	folder := t.TempDir()
	const asked = 2*(1+waitingPerSlot) + 4
	statuses := make(chan int, asked)
	for range asked {
		go func() {
			r, err := http.NewRequest("POST", s.URL+"/convert?mapping=text", strings.NewReader(folder))
			if err != nil {
				statuses <- -1
				return
			}
			r.Header.Set("Content-Type", "application/pdf")
			got, err := s.Client().Do(r)
			if err != nil {
				statuses <- -1
				return
			}
			got.Body.Close()
			if got.StatusCode == http.StatusServiceUnavailable && got.Header.Get("Retry-After") != strconv.Itoa(busySeconds) {
				statuses <- -2
				return
			}
			statuses <- got.StatusCode
		}()
	}
	count := make(map[int]int)
	for range 4 { // beyond the queue
		count[<-statuses]++
	}
	mustAwait(t, "nothing was begun", func() bool { return len(left(t, folder, "begun-")) == 2 })
	for range asked - 4 - 2 { // those that time out in the queue
		count[<-statuses]++
	}
	if n := len(left(t, folder, "begun-")); n != 2 {
		t.Errorf("%d ran at once", n)
	}
	if err := os.WriteFile(filepath.Join(folder, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		count[<-statuses]++
	}
	if count[200] != 2 || count[503] != asked-2 {
		t.Errorf("the answers were %v", count)
	}
	if got := s.convert(t, "text", []byte(folder)); got.StatusCode != http.StatusOK {
		t.Errorf("the slots were not given back: %d", got.StatusCode)
	}
}

func TestAWaitingRequestGetsTheNextFreeSlot(t *testing.T) {
	s := serve(t, Config{Reader: "patient", Slots: 1, Timeout: 5 * time.Minute})
	first, second := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(second, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan int, 2)
	go func() { done <- s.convert(t, "text", []byte(first)).StatusCode }()
	mustAwait(t, "nothing was begun", func() bool { return len(left(t, first, "begun-")) == 1 })
	go func() { done <- s.convert(t, "text", []byte(second)).StatusCode }()
	mustAwait(t, "the second has not come", func() bool { entries, err := os.ReadDir(s.temp); return err == nil && len(entries) == 2 })
	if len(left(t, second, "begun-")) != 0 {
		t.Error("two run in one slot")
	}
	if err := os.WriteFile(filepath.Join(first, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if status := <-done; status != http.StatusOK {
			t.Errorf("the answer is %d", status)
		}
	}
}

func TestASlowUploadIsRefused(t *testing.T) {
	s := serve(t, Config{Reader: "quick", Timeout: time.Second})
	body, writer := io.Pipe()
	defer writer.Close()
	go func() { _, _ = writer.Write([]byte("%PDF-")) }()
	s.send(t, "POST", "/convert?mapping=text", "application/pdf", body).refused(t, 408, codeSlow)
}

func TestAChildProcessGetsNoSecrets(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://secret")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	s := serve(t, Config{Reader: "teller"})
	folder := t.TempDir()
	if got := s.convert(t, "text", []byte(folder)); got.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", got.StatusCode, got.body)
	}
	text, err := os.ReadFile(left(t, folder, "environment-")[0])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret") || !strings.Contains(string(text), "PATH=") {
		t.Errorf("it knows\n%s", text)
	}
}
