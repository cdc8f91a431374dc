package upload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/apps/fetchbox/upload"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/s3test"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// spooled returns a spool file.
func spooled(t *testing.T, text string) spool.File {
	t.Helper()
	s, err := spool.Open(t.TempDir(), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w, err := s.Create("job", -1)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte(text))
	f, err := w.Commit(nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func uploaderTo(t *testing.T, place string) (*upload.Uploader, blob.Store) {
	t.Helper()
	to, err := blob.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	return upload.New(to), to
}

func verdict(err error) failure.Verdict {
	return failure.Decide(failure.Rules{Taxonomy: code.Taxonomy(), Policy: code.Limits{}.Policy()}, store.Lease{}, failure.Outcome{Event: failure.Returned, Err: err})
}

func content(t *testing.T, from blob.Store, key string) string {
	t.Helper()
	file, err := from.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAnObjectIsStoredOnceAndReplacedOnlyOnRequest(t *testing.T) {
	server := s3test.Start(t)
	for name, place := range map[string]string{"folder": t.TempDir(), "bucket": server.Use(t) + "/prefix"} {
		t.Run(name, func(t *testing.T) {
			u, to := uploaderTo(t, place)
			first, second := spooled(t, "first"), spooled(t, "another")
			object := upload.Object{Key: "a/b.txt", File: first, Type: "text/plain", Meta: map[string]string{"source": "test"}}
			for range 2 { // the second time as after a crash between upload and settlement
				if err := u.Put(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			object.File = second
			if v := verdict(u.Put(t.Context(), object)); v.To != holdfast.Failed || v.Failure.Code != code.UploadConflict {
				t.Errorf("%+v", v)
			}
			if got := content(t, to, "a/b.txt"); got != "first" {
				t.Errorf("%q", got)
			}
			object.Replace = true
			if err := u.Put(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			if got := content(t, to, "a/b.txt"); got != "another" {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestASpoolFileThatIsGoneOrDamagedIsDownloadedAgain(t *testing.T) {
	server := s3test.Start(t)
	for _, place := range []string{t.TempDir(), server.Use(t)} {
		u, to := uploaderTo(t, place)
		for _, damage := range []func(path string) error{os.Remove, func(path string) error { return os.WriteFile(path, []byte("other"), 0o600) }, func(path string) error { return os.Truncate(path, 2) }} {
			f := spooled(t, "whole")
			if err := damage(f.Path); err != nil {
				t.Fatal(err)
			}
			err := u.Put(t.Context(), upload.Object{Key: "x", File: f})
			if v := verdict(err); v.Failure == nil || v.Failure.Code != code.StorageSpoolLost || v.To != holdfast.Queued {
				t.Errorf("%v: %+v", err, v)
			}
			if _, err := to.Stat(t.Context(), "x"); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("something was stored: %v", err)
			}
		}
	}
}

// A faultyS3 is a real server with faults in front of it.
type faultyS3 struct {
	fault atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool] // reports whether it answered
	asked atomic.Int64
}

func (f *faultyS3) set(fault func(w http.ResponseWriter, r *http.Request) bool) {
	f.fault.Store(&fault)
}

func faulty(t *testing.T) (*faultyS3, string) {
	t.Helper()
	server := s3test.Start(t)
	place := server.Use(t)
	behind, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	f := &faultyS3{}
	to := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.Host = r.In.Host // it is part of the signature
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		if fault := f.fault.Load(); fault != nil && (*fault)(w, r) {
			return
		}
		to.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	t.Setenv("S3_ENDPOINT", front.URL)
	return f, place
}

// refuses answers a PUT of an object as S3 refuses one.
func refuses(status int, name string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>m</Message></Error>", name)
		return true
	}
}

// closes ends the connection without an answer.
func closes(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPut {
		return false
	}
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
	return true
}

// 002 section 2, storage upload: network errors, 5xx and throttling are retried; AccessDenied and an invalid bucket are not.
func TestEachFaultOfTheStorageHasItsCode(t *testing.T) {
	f, place := faulty(t)
	u, to := uploaderTo(t, place)
	file := spooled(t, "resource")
	if err := u.Put(t.Context(), upload.Object{Key: "warm", File: file}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fault   func(http.ResponseWriter, *http.Request) bool
		want    string
		retried bool
	}{
		{refuses(500, "InternalError"), code.UploadS3Error, true},
		{refuses(502, "BadGateway"), code.UploadS3Error, true},
		{refuses(503, "SlowDown"), code.UploadThrottled, true},
		{refuses(429, "TooManyRequests"), code.UploadThrottled, true},
		{closes, code.UploadNetworkError, true},
		{refuses(400, "RequestTimeout"), code.UploadTimeout, true},
		{refuses(507, "XMinioStorageFull"), code.UploadStorageFull, true},
		{refuses(403, "AccessDenied"), code.UploadAccessDenied, false},
		{refuses(403, "InvalidAccessKeyId"), code.UploadAccessDenied, false},
		{refuses(404, "NoSuchBucket"), code.UploadInvalidBucket, false},
		{refuses(400, "InvalidArgument"), code.UploadRefused, false},
	} {
		f.set(c.fault)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		err := u.Put(ctx, upload.Object{Key: "x", File: file})
		cancel()
		if err == nil {
			t.Fatalf("%s: no error", c.want)
		}
		v := verdict(err)
		if v.Failure.Code != c.want || (v.To == holdfast.Queued) != c.retried || v.Failure.Dependency != upload.Dependency {
			t.Errorf("want %s, retried %v: %s, %s: %v", c.want, c.retried, v.Failure.Code, v.To, err)
		}
		if strings.Contains(err.Error(), "x-amz") || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("the message names what it should not: %v", err)
		}
	}
	f.set(func(http.ResponseWriter, *http.Request) bool { return false })
	if _, err := to.Stat(t.Context(), "x"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a refused object exists: %v", err)
	}
	if err := u.Put(t.Context(), upload.Object{Key: "x", File: file}); err != nil {
		t.Errorf("after the faults: %v", err)
	}
}

func TestBadKeysAndMetadataAreFinal(t *testing.T) {
	u, _ := uploaderTo(t, t.TempDir())
	file := spooled(t, "resource")
	for _, o := range []upload.Object{{Key: "../x"}, {Key: ""}, {Key: "x", Meta: map[string]string{"Bad Name": "x"}}, {Key: "x", Meta: map[string]string{"a": "line\nline"}},
		{Key: "x", Meta: map[string]string{"a": strings.Repeat("x", 3000)}}} {
		o.File = file
		if v := verdict(u.Put(t.Context(), o)); v.To != holdfast.Failed || v.Failure.Code != code.UploadInvalidKey {
			t.Errorf("%+v: %+v", o, v)
		}
	}
}

func TestAFolderThatMayNotBeWrittenIsAccessDenied(t *testing.T) {
	if v := verdict(upload.New(brokenStore{err: fs.ErrPermission}).Put(t.Context(), upload.Object{Key: "x", File: spooled(t, "text")})); v.To != holdfast.Failed || v.Failure.Code != code.UploadAccessDenied {
		t.Errorf("%+v", v)
	}
}

func TestACancelledUploadIsNoFailureOfTheStorage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	u, _ := uploaderTo(t, t.TempDir())
	if err := u.Put(ctx, upload.Object{Key: "x", File: spooled(t, "text")}); err != context.Canceled {
		t.Errorf("%v", err)
	}
}

type brokenStore struct {
	blob.Store
	err error
}

func (b brokenStore) PutFile(context.Context, string, blob.Content) (blob.Info, error) {
	return blob.Info{}, fmt.Errorf("cannot create a file: %w", b.err)
}

func TestASweepDeletesWhatAKilledProcessLeft(t *testing.T) {
	dir := t.TempDir()
	u, _ := uploaderTo(t, dir)
	if err := u.Put(t.Context(), upload.Object{Key: "whole", File: spooled(t, "text")}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "le", ".whole.abcdefgh12345678"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := u.Sweep(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := u.Sweep(t.Context(), -time.Hour); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
