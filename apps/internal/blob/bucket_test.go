package blob

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/s3test"
)

func openThere(t *testing.T, place string) *bucket {
	t.Helper()
	s, err := Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*bucket)
}

func TestABucketKeepsTheLaws(t *testing.T) {
	server := s3test.Start(t)
	keepLaws(t, func(t *testing.T) Store { return openThere(t, server.Use(t)) })
}

func TestABucketKeepsTheLawsUnderAPrefix(t *testing.T) {
	server := s3test.Start(t)
	place := server.Use(t)
	other := openThere(t, place+"/other")
	put(t, other, "there.pdf", []byte("another prefix's"))
	n := 0
	keepLaws(t, func(t *testing.T) Store {
		n++
		return openThere(t, place+"/some/prefix"+strings.Repeat("-", n))
	})
	if got := all(t, other, ""); len(got) != 1 {
		t.Errorf("under another prefix there are %v", got)
	}
}

func TestAFileOfFiftyMegabytesNeedsNoMemoryInABucket(t *testing.T) {
	flat(t, openThere(t, s3test.Start(t).Use(t)), 32<<20)
}

func TestAProcessThatIsKilledLeavesNothingInABucket(t *testing.T) {
	server := s3test.Start(t)
	place := server.Use(t)
	killed(t, place, nil)
	b := openThere(t, place)
	nothingLeft(t, b)

	slow, middle := stall(t, server.Endpoint, 1<<20)
	killed(t, place, middle, victim+"_WHOLE=yes", "S3_ENDPOINT="+slow)
	nothingLeft(t, b)
	if _, err := b.Stat(t.Context(), "victim.pdf"); !errors.Is(err, ErrNotFound) {
		t.Errorf("half a file is there: %v", err)
	}
	put(t, b, "victim.pdf", []byte("the key is free"))
}

// stall passes so many bytes of a connection on, then says so and passes no more.
func stall(t *testing.T, endpoint string, most int64) (address string, stalled <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	said := make(chan struct{})
	var once sync.Once
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "http://"))
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(near, far) }()
			go func() {
				defer far.Close()
				if n, _ := io.CopyN(far, near, most); n == most {
					once.Do(func() { close(said) })
					_, _ = io.Copy(io.Discard, near)
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String(), said
}

// between is a proxy between a test and the server that can change requests.
func between(t *testing.T, server *s3test.Server, instead func(w http.ResponseWriter, r *http.Request, pass http.Handler)) {
	t.Helper()
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { instead(w, r, pass) }))
	t.Cleanup(proxy.Close)
	t.Setenv("S3_ENDPOINT", proxy.URL)
}

func TestAFileWhoseAnswerWasLostIsRecognised(t *testing.T) {
	server := s3test.Start(t)
	place := server.Use(t)
	var lost atomic.Int32
	between(t, server, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method != http.MethodPut || strings.HasSuffix(r.URL.Path, marker) {
			pass.ServeHTTP(w, r)
			return
		}
		pass.ServeHTTP(httptest.NewRecorder(), r)
		lost.Add(1)
		panic(http.ErrAbortHandler) // hangs up
	})
	b := openThere(t, place)
	put(t, b, "mine.pdf", []byte("text"))
	if got := read(t, b, "mine.pdf"); string(got) != "text" || lost.Load() == 0 {
		t.Errorf("%q, and %d answers were lost", got, lost.Load())
	}
	if _, err := b.Put(t.Context(), "mine.pdf", strings.NewReader("other")); !errors.Is(err, ErrExists) {
		t.Errorf("a file of another writer: %v", err)
	}
}

func TestOnlyTheBytesThatAreReadAreRequested(t *testing.T) {
	server := s3test.Start(t)
	place := server.Use(t)
	var mu sync.Mutex
	var ranges []string
	between(t, server, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method == http.MethodGet {
			mu.Lock()
			ranges = append(ranges, r.Header.Get("Range"))
			mu.Unlock()
		}
		pass.ServeHTTP(w, r)
	})
	b := openThere(t, place)
	want := content(500_000, 6)
	put(t, b, "long.xml", want)
	serve := func(span string) *httptest.ResponseRecorder {
		ranges = nil
		file, err := b.Open(t.Context(), "long.xml")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		if span != "" {
			request.Header.Set("Range", span)
		}
		answer := httptest.NewRecorder()
		http.ServeContent(answer, request, "long.xml", file.MadeAt, file)
		return answer
	}
	if answer := serve(""); !bytes.Equal(answer.Body.Bytes(), want) || len(ranges) != 1 {
		t.Errorf("the whole file took %q", ranges)
	}
	if answer := serve("bytes=400000-400009"); !bytes.Equal(answer.Body.Bytes(), want[400000:400010]) || len(ranges) != 2 || ranges[1] != "bytes=400000-" {
		t.Errorf("ten bytes took %q", ranges)
	}
}

func TestAStorageThatOverwritesIsRefused(t *testing.T) {
	careless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("ETag", `"1"`)
	}))
	defer careless.Close()
	t.Setenv("S3_ENDPOINT", careless.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "unknown")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	b := openThere(t, "s3://bucket")
	if _, err := b.Put(t.Context(), "a.pdf", strings.NewReader("text")); err == nil || !strings.Contains(err.Error(), "conditional writes") {
		t.Errorf("a file was given to it: %v", err)
	}
}

// C13: no error contains a secret.
func TestErrorsOfABucketSayWhatToDoAndContainNoKeys(t *testing.T) {
	server := s3test.Start(t)
	place := server.Use(t)
	b := openThere(t, place)
	check := func(err error, word string) {
		t.Helper()
		if err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), server.Access) ||
			strings.Contains(err.Error(), server.Secret) || strings.Contains(strings.ToLower(err.Error()), "signature=") {
			t.Errorf("expected %q, and no keys: %v", word, err)
		}
	}
	_, err := Open(t.Context(), "s3://no-such-bucket")
	check(err, "the bucket does not exist")
	gone := openThere(t, place)
	gone.name = "no-such-bucket" // as if it had been deleted
	_, err = gone.Stat(t.Context(), "a.pdf")
	check(err, "the bucket does not exist")
	_, err = gone.Open(t.Context(), "a.pdf")
	check(err, "the bucket does not exist")
	_, err = gone.Put(t.Context(), "a.pdf", strings.NewReader("text"))
	check(err, "the bucket does not exist")

	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	_, err = Open(t.Context(), place)
	check(err, "AWS_SECRET_ACCESS_KEY")

	server.Stop()
	_, err = b.Put(t.Context(), "a.pdf", strings.NewReader("text"))
	check(err, "check that it runs")
	_, err = b.Stat(t.Context(), "a.pdf")
	check(err, "check that it runs")
	check(b.Delete(t.Context(), "a.pdf"), "check that it runs")
	for _, err := range b.Older(t.Context(), time.Hour, "") {
		check(err, "check that it runs")
	}
}

func TestAnEndpointIsEncryptedUnlessItIsHTTPOrLocal(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "unknown")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for address, want := range map[string]string{"": "https://s3.amazonaws.com", "store.example:9000": "https://store.example:9000", "http://store.example": "http://store.example", "127.0.0.1:7070": "http://127.0.0.1:7070",
		"localhost:7070": "http://localhost:7070", "[::1]:7070": "http://[::1]:7070", "https://localhost": "https://localhost", "https://a.example/": "https://a.example"} {
		t.Setenv("S3_ENDPOINT", address)
		o, host, err := fromEnvironment()
		scheme := map[bool]string{true: "https", false: "http"}[o.Secure]
		if err != nil || scheme+"://"+host != want {
			t.Errorf("%q is %s://%s, %v", address, scheme, host, err)
		}
	}
	for _, address := range []string{"ftp://x", "https://", "https://a.example/path", "https://key:secret@a.example", "http://a.example?x=1", ":", "http://[::1"} {
		t.Setenv("S3_ENDPOINT", address)
		if _, _, err := fromEnvironment(); err == nil || !strings.Contains(err.Error(), "S3_ENDPOINT") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
