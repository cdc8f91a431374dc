// Package s3test gives tests a real S3 server: versitygw, which stores its objects in a folder. It is built from source once and cached in the user's cache folder.
// A test is never skipped: if the server cannot run, the test fails.
package s3test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	version      = "v1.8.0" // as in tools/versitygw/go.mod
	program      = "github.com/versity/versitygw/cmd/versitygw"
	startTimeout = 2 * time.Minute  // normally a moment
	buildTimeout = 20 * time.Minute // minutes if nothing is cached
)

// A Server is a running server for one test.
type Server struct {
	Endpoint string // http://127.0.0.1:port
	Access   string
	Secret   string
	Dir      string // below it each bucket is a folder, and each object a file
	process  *os.Process
	ended    chan struct{}
	output   *strings.Builder // of the server; read after it has ended
}

// Start starts a server that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Access: "test" + rand.Text()[:12], Secret: rand.Text(), Dir: t.TempDir()}
	for try := 1; ; try++ { // another process may take the port between finding it and using it
		err := s.run(t, binary)
		if err == nil {
			return s
		}
		if try == 5 {
			t.Fatal(err)
		}
	}
}

// Use sets the environment of the test to the server and returns the address of a new bucket, as s3://bucket.
func (s *Server) Use(t *testing.T) string {
	t.Helper()
	t.Setenv("S3_ENDPOINT", s.Endpoint)
	t.Setenv("AWS_ACCESS_KEY_ID", s.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.Secret)
	t.Setenv("AWS_REGION", "us-east-1")
	return "s3://" + s.Bucket(t)
}

// Bucket creates a bucket with a new name.
func (s *Server) Bucket(t testing.TB) string {
	t.Helper()
	name := "test-" + strings.ToLower(rand.Text())
	if err := os.Mkdir(filepath.Join(s.Dir, name), 0o755); err != nil { // versitygw needs nothing else
		t.Fatalf("cannot create a bucket: %v", err)
	}
	return name
}

// Stop ends the server, as a crash would. Its files stay.
func (s *Server) Stop() {
	_ = s.process.Kill()
	<-s.ended
}

func (s *Server) run(t testing.TB, binary string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	_ = listener.Close()
	ended := make(chan struct{})
	s.Endpoint, s.output, s.ended = "http://"+address, &strings.Builder{}, ended
	// Metadata is stored in files: not every file system has extended attributes.
	cmd := exec.Command(binary, "--port", address, "--health", "/health", "--quiet", "posix", "--sidecar", t.TempDir(), s.Dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID="+s.Access, "ROOT_SECRET_ACCESS_KEY="+s.Secret)
	cmd.Stdout, cmd.Stderr = s.output, s.output
	endWithParent(cmd)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the server ends with the thread that started it
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(ended)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("cannot start versitygw: %w", err)
	}
	s.process = cmd.Process
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	return s.await()
}

// await returns when the server answers.
func (s *Server) await() error {
	deadline := time.After(startTimeout)
	for {
		if answer, err := http.Get(s.Endpoint + "/health"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.ended:
			return fmt.Errorf("versitygw ended unexpectedly:\n%s", s.output)
		case <-deadline:
			return errors.New("versitygw runs but does not answer")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// build returns the path of the program, and builds it if needed. Concurrent processes each build it; the last rename wins, and all results are the same.
var build = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("there is no cache folder for versitygw: %w", err)
	}
	binary := filepath.Join(cache, "holdfast-tools", "versitygw-"+version)
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	module, err := find()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, "building versitygw for the tests, once; this takes minutes")
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	made := binary + "." + rand.Text()
	cmd := exec.CommandContext(ctx, "go", "build", "-C", module, "-o", made, program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build versitygw (%w); its module is tools/versitygw:\n%s", err, out)
	}
	return binary, os.Rename(made, binary)
})

// find returns the folder of the server's module, searching from the test's folder upwards.
func find() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		module := filepath.Join(dir, "tools", "versitygw")
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
			return module, nil
		}
		if filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	return "", errors.Join(errors.New("tools/versitygw was not found above this folder: run the tests inside the repository"), err)
}
