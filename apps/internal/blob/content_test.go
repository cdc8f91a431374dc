package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/holdfastdev/holdfast/apps/internal/s3test"
	"github.com/holdfastdev/holdfast/internal/soak"
)

func contentOf(text []byte) Content {
	sum := sha256.Sum256(text)
	return Content{From: bytes.NewReader(text), Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:]), CRC32C: crcOf(text)}
}

func crcOf(text []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
}

// storesFiles is a law: PutFile.
func storesFiles(t *testing.T, s Store) {
	for _, size := range []int{0, 1, 70_000} {
		text := content(size, 1)
		key := "f-" + hex.EncodeToString([]byte{byte(size)})
		info, err := s.PutFile(t.Context(), key, contentOf(text))
		if err != nil || info.Size != int64(size) || info.Key != key {
			t.Fatalf("%+v, %v", info, err)
		}
		if got := read(t, s, key); !bytes.Equal(got, text) {
			t.Errorf("%d bytes came back as %d", size, len(got))
		}
		if _, err := s.PutFile(t.Context(), key, contentOf(text)); err != nil {
			t.Errorf("the same content again: %v", err)
		}
		if _, err := s.PutFile(t.Context(), key, contentOf(append(text, 'x'))); !errors.Is(err, ErrExists) {
			t.Errorf("another content: %v", err)
		}
		if got := read(t, s, key); !bytes.Equal(got, text) {
			t.Error("the file was changed")
		}
		replaced := contentOf([]byte("replaced"))
		replaced.Replace = true
		if _, err := s.PutFile(t.Context(), key, replaced); err != nil {
			t.Fatal(err)
		}
		if got := read(t, s, key); string(got) != "replaced" {
			t.Errorf("%q", got)
		}
	}
}

// storesNothingElse is a law: a file with other bytes than announced is not stored.
func storesNothingElse(t *testing.T, s Store) {
	for _, c := range []Content{
		{From: bytes.NewReader([]byte("other")), Size: 5, SHA256: contentOf([]byte("bytes")).SHA256},
		{From: bytes.NewReader([]byte("other")), Size: 5, SHA256: contentOf([]byte("bytes")).SHA256, CRC32C: crcOf([]byte("bytes"))},
		{From: bytes.NewReader([]byte("short")), Size: 6, SHA256: contentOf([]byte("short")).SHA256},
		{From: bytes.NewReader([]byte("longer")), Size: 5, SHA256: contentOf([]byte("longer")).SHA256},
	} {
		if _, err := s.PutFile(t.Context(), "file", c); err == nil {
			t.Errorf("%d bytes were stored", c.Size)
		}
		if _, err := s.Stat(t.Context(), "file"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%v", err)
		}
	}
	for _, c := range []Content{{}, {From: bytes.NewReader(nil), SHA256: "x"}, {From: bytes.NewReader(nil), Size: -1, SHA256: contentOf(nil).SHA256}} {
		if _, err := s.PutFile(t.Context(), "file", c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	nothingLeft(t, s)
}

// small makes files of a few megabytes large ones, so that they are stored in parts.
func small(t *testing.T) {
	t.Helper()
	before, part := largeFile, filePart
	largeFile, filePart = 6<<20, 5<<20 // S3 allows no smaller parts
	t.Cleanup(func() { largeFile, filePart = before, part })
}

func TestALargeFileIsStoredInPartsAndKeepsTheRules(t *testing.T) {
	small(t)
	b := openThere(t, s3test.Start(t).Use(t)+"/prefix")
	text := content(12<<20, 3)
	for range 2 {
		if _, err := b.PutFile(t.Context(), "large", contentOf(text)); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, b, "large"); !bytes.Equal(got, text) {
		t.Error("other bytes came back")
	}
	other := contentOf(content(12<<20, 4))
	if _, err := b.PutFile(t.Context(), "large", other); !errors.Is(err, ErrExists) {
		t.Errorf("another content: %v", err)
	}
	other.Replace = true
	if _, err := b.PutFile(t.Context(), "large", other); err != nil {
		t.Error(err)
	}
	wrong := contentOf(text)
	wrong.SHA256 = contentOf(nil).SHA256
	if _, err := b.PutFile(t.Context(), "wrong", wrong); !errors.Is(err, ErrChanged) {
		t.Errorf("a wrong checksum: %v", err)
	}
	if left := unfinished(t, b); left != 0 {
		t.Errorf("%d uploads are unfinished", left)
	}
}

func unfinished(t *testing.T, b *bucket) int {
	t.Helper()
	list, err := b.s3.ListMultipartUploads(t.Context(), b.name, b.prefix, "", "", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Uploads)
}

// sweepUntilNoneIsUnfinished sweeps more than once: the server may still handle the last request of a killed process after
// the first sweep, and begin an upload then. Production sweeps again after some hours.
func sweepUntilNoneIsUnfinished(t *testing.T, b *bucket) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(50 * time.Millisecond) {
		if _, err := b.Sweep(t.Context(), -time.Hour); err != nil {
			t.Fatal(err)
		}
		n := unfinished(t, b)
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d uploads are unfinished after a minute of sweeps", n)
		}
	}
}

// before returns a bucket with a server in front that may answer a request itself.
func before(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, behind http.Handler)) *bucket {
	t.Helper()
	server := s3test.Start(t)
	place := server.Use(t)
	behind, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	to := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.Host = r.In.Host
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r, to) }))
	t.Cleanup(front.Close)
	t.Setenv("S3_ENDPOINT", front.URL)
	return openThere(t, place+"/prefix")
}

func TestALargeFileThatCannotBeCompletedLeavesNothing(t *testing.T) {
	small(t)
	var refusals atomic.Int64
	b := before(t, func(w http.ResponseWriter, r *http.Request, behind http.Handler) {
		if r.Method == http.MethodPut && r.URL.Query().Get("partNumber") == "2" {
			refusals.Add(1)
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		behind.ServeHTTP(w, r)
	})
	if _, err := b.PutFile(t.Context(), "large", contentOf(content(12<<20, 5))); err == nil || refusals.Load() == 0 {
		t.Errorf("%v after %d refusals", err, refusals.Load())
	}
	if left := unfinished(t, b); left != 0 {
		t.Errorf("%d uploads are unfinished", left)
	}
	nothingLeft(t, b)
}

// The answer to the request that completes a large file is lost, and the repeated request gets NoSuchUpload.
func TestALostAnswerToACompletedFileIsNoFailure(t *testing.T) {
	small(t)
	var lost atomic.Bool
	b := before(t, func(w http.ResponseWriter, r *http.Request, behind http.Handler) {
		switch completes := r.Method == http.MethodPost && r.URL.Query().Get("uploadId") != ""; {
		case completes && lost.CompareAndSwap(false, true):
			behind.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case completes: // as Amazon S3 answers; versitygw does not always
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<Error><Code>NoSuchUpload</Code></Error>")
		default:
			behind.ServeHTTP(w, r)
		}
	})
	text := content(7<<20, 6)
	c := contentOf(text)
	c.Replace = true // with a condition it would be answered with 412
	if _, err := b.PutFile(t.Context(), "large", c); err != nil {
		t.Fatal(err)
	}
	if got := read(t, b, "large"); !bytes.Equal(got, text) || !lost.Load() {
		t.Error("other bytes came back")
	}
}

// A process is killed again and again while it stores large files. What it leaves is swept, and what exists is whole.
func TestProcessesThatAreKilledLeaveOnlyWholeFilesAfterASweep(t *testing.T) {
	place := s3test.Start(t).Use(t) + "/prefix"
	b := openThere(t, place)
	random, left := rand.New(rand.NewPCG(1, 2)), 0
	for range soak.Pick("kills during uploads in parts", 6, 200) {
		middle := make(chan struct{})
		time.AfterFunc(time.Duration(50+random.IntN(400))*time.Millisecond, func() { close(middle) })
		killed(t, place, middle, victim+"_PARTS=yes")
		left += unfinished(t, b)
		sweepUntilNoneIsUnfinished(t, b)
	}
	sweepUntilNoneIsUnfinished(t, b)
	t.Logf("%d uploads were left unfinished", left)
	for n, key := range all(t, b, "") {
		want := content(7<<20, uint64(n))
		if got := read(t, b, fmt.Sprintf("large-%d", n)); key == "" || !bytes.Equal(got, want) {
			t.Errorf("large-%d has %d other bytes", n, len(got))
		}
	}
}

func TestASweepAbortsUnfinishedUploadsOfItsOwnPrefix(t *testing.T) {
	server := s3test.Start(t)
	place := server.Use(t)
	mine, other := openThere(t, place+"/mine"), openThere(t, place+"/other")
	for _, b := range []*bucket{mine, other} {
		id, err := b.s3.NewMultipartUpload(t.Context(), b.name, b.prefix+"left.bin", minio.PutObjectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		part := content(5<<20, 1)
		if _, err := b.s3.PutObjectPart(t.Context(), b.name, b.prefix+"left.bin", id, 1, bytes.NewReader(part), int64(len(part)), minio.PutObjectPartOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := mine.Sweep(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("a young upload: %d, %v", n, err)
	}
	if n, err := mine.Sweep(t.Context(), -time.Hour); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if unfinished(t, mine) != 0 || unfinished(t, other) != 1 {
		t.Errorf("%d and %d uploads are left", unfinished(t, mine), unfinished(t, other))
	}
	gone, end := context.WithCancel(t.Context())
	end()
	if _, err := other.Sweep(gone, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
