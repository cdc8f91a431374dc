package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
	"github.com/holdfastdev/holdfast/internal/testprograms"
)

// TestMain lets the test program be the child process of the gateway, with additional readers that misbehave.
func TestMain(m *testing.M) {
	usual := readers
	readers = func() []pdf.Reader { return append(usual(), odd...) }
	Main()
	os.Exit(m.Run())
}

// An oddReader misbehaves. The file that it reads contains the name of a folder, through which it communicates with the test.
type oddReader struct {
	name string
	read func(ctx context.Context, folder string) (*pdf.Document, error)
}

func (o oddReader) Name() string { return o.name }

func (o oddReader) Read(ctx context.Context, file *os.File, _ pdf.Limits) (*pdf.Document, error) {
	folder, err := io.ReadAll(io.LimitReader(file, 4096))
	if err != nil {
		return nil, err
	}
	return o.read(ctx, string(folder))
}

var onePage = &pdf.Document{Version: "1.7", Pages: []pdf.Page{{Number: 1, Width: 100, Height: 100}}}

var odd = []pdf.Reader{
	oddReader{"quick", func(context.Context, string) (*pdf.Document, error) { return onePage, nil }},
	oddReader{"patient", func(_ context.Context, folder string) (*pdf.Document, error) {
		if err := leave(folder, "begun-", strconv.Itoa(os.Getpid())); err != nil {
			return nil, err
		}
		return onePage, await(func() bool { return has(folder, "go") })
	}},
	oddReader{"parent", func(ctx context.Context, folder string) (*pdf.Document, error) {
		below := exec.Command("sleep", "3600") // not by the context: it has to be killed from outside
		if err := below.Start(); err != nil {
			return nil, err
		}
		if err := leave(folder, "begun-", strconv.Itoa(below.Process.Pid)); err != nil {
			return nil, err
		}
		return nil, below.Wait()
	}},
	oddReader{"spinner", func(context.Context, string) (*pdf.Document, error) {
		for n := 1; n > 0; n |= 1 { // for ever
		}
		return nil, nil
	}},
	oddReader{"glutton", func(context.Context, string) (*pdf.Document, error) {
		var all [][]byte
		for {
			all = append(all, bytes.Repeat([]byte{1}, 16<<20))
			if len(all) > 1000 {
				return nil, errors.New("16 GB were given to a process that may have 1")
			}
		}
	}},
	oddReader{"diver", func(context.Context, string) (*pdf.Document, error) { return nil, dive(1) }},
	oddReader{"crasher", func(context.Context, string) (*pdf.Document, error) { panic("/a/secret/path") }},
	oddReader{"mute", func(context.Context, string) (*pdf.Document, error) { os.Exit(0); return nil, nil }},
	oddReader{"failing", func(context.Context, string) (*pdf.Document, error) {
		return nil, errors.New("/a/secret/path")
	}},
	oddReader{"teller", func(_ context.Context, folder string) (*pdf.Document, error) {
		return onePage, leave(folder, "environment-", strings.Join(os.Environ(), "\n"))
	}},
}

// dive overflows the stack. Its result keeps the compiler from turning it into a loop.
func dive(depth int) error {
	if depth == 0 {
		return nil
	}
	if err := dive(depth + 1); err != nil {
		return fmt.Errorf("%d: %w", depth, err)
	}
	return nil
}

// leave writes a file for the test, atomically.
func leave(folder, prefix, text string) error {
	name := filepath.Join(folder, prefix+strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(name+".part", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".part", name)
}

func has(folder, name string) bool {
	_, err := os.Stat(filepath.Join(folder, name))
	return err == nil
}

// await waits until a condition is true, for at most two minutes.
func await(so func() bool) error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		if so() {
			return nil
		}
	}
	return errors.New("timed out after two minutes")
}

func mustAwait(t *testing.T, what string, so func() bool) {
	t.Helper()
	if err := await(so); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// left returns the files in a folder with a prefix.
func left(t *testing.T, folder, prefix string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, prefix+"*[0-9]"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A scene is a running gateway.
type scene struct {
	*httptest.Server
	temp string
}

// serve starts a gateway. At the end of the test its folder for temporary files must be empty.
func serve(t *testing.T, cfg Config) scene {
	t.Helper()
	cfg.Temp = t.TempDir()
	handler, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := scene{httptest.NewServer(handler), cfg.Temp}
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		if err := await(func() bool { return s.empty(t) }); err != nil {
			t.Errorf("temporary files were left")
		}
	})
	return s
}

func (s scene) empty(t *testing.T) bool {
	t.Helper()
	entries, err := os.ReadDir(s.temp)
	return err == nil && len(entries) == 0
}

// An answer is a response with its body.
type answer struct {
	*http.Response
	body []byte
}

// convert sends a PDF.
func (s scene) convert(t *testing.T, mapping string, document []byte) answer {
	t.Helper()
	return s.send(t, "POST", "/convert?mapping="+mapping, "application/pdf", bytes.NewReader(document))
}

func (s scene) send(t *testing.T, method, path, kind string, body io.Reader) answer {
	t.Helper()
	r, err := http.NewRequest(method, s.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	return s.do(t, r)
}

func (s scene) do(t *testing.T, r *http.Request) answer {
	t.Helper()
	got, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{got, text}
}

// refused checks that an answer is a refusal in JSON without internal details.
func (a answer) refused(t *testing.T, status int, code string) {
	t.Helper()
	var got refusal
	if err := json.Unmarshal(a.body, &got); err != nil {
		t.Errorf("the answer is not the JSON of a refusal: %d %.200s", a.StatusCode, a.body)
		return
	}
	if a.StatusCode != status || got.Code != code || got.Message == "" {
		t.Errorf("the answer is %d %s (%s), not %d %s", a.StatusCode, got.Code, got.Message, status, code)
	}
	if strings.ContainsAny(got.Message, "\n\\") || strings.Contains(got.Message, os.TempDir()) || strings.Contains(got.Message, "secret/path") {
		t.Errorf("the message contains internal details: %s", got.Message)
	}
}

// valid checks XML against the schema that the gateway serves.
func (s scene) valid(t *testing.T, mapping string, a answer) {
	t.Helper()
	if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "application/xml; charset=utf-8" {
		t.Fatalf("there is no XML: %d %.300s", a.StatusCode, a.body)
	}
	schema := s.send(t, "GET", "/schemas/"+mapping+".xsd", "", nil)
	if schema.StatusCode != http.StatusOK {
		t.Fatalf("there is no schema: %d %s", schema.StatusCode, schema.body)
	}
	valid(t, schema.body, a.body)
}

// valid checks XML with xmllint.
func valid(t *testing.T, schema, document []byte) {
	t.Helper()
	xmllint, err := testprograms.Xmllint.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range map[string][]byte{"schema.xsd": schema, "document.xml": document} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(xmllint, "--nonet", "--noout", "--huge", "--schema", "schema.xsd", "document.xml")
	cmd.Dir = folder
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the XML is not valid: %v\n%s\n%.2000s", err, output, document)
	}
}
