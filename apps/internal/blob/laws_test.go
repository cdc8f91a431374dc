package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

// The laws are conformance tests that every Store passes.
var laws = []struct {
	name string
	hold func(t *testing.T, s Store)
}{
	{"what was put is there, and what was deleted is not", keepsFiles},
	{"of fifty that make one file, one does", oneWins},
	{"a reader that fails leaves nothing, and its own error", readerFails},
	{"a cancelled Put leaves nothing", givesUp},
	{"a file is read from any place", readsAnywhere},
	{"keys with tricks are refused", refusesTricks},
	{"lists continue where they ended", listsOn},
	{"many files are made at once", manyAtOnce},
	{"a file of this machine is stored, and replaced on request only", storesFiles},
	{"a file with other bytes than announced is not stored", storesNothingElse},
}

func keepLaws(t *testing.T, open func(t *testing.T) Store) {
	for _, law := range laws {
		t.Run(law.name, func(t *testing.T) { law.hold(t, open(t)) })
	}
}

// content returns n random bytes.
func content(n int, seed uint64) []byte {
	text := make([]byte, n)
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	return text
}

func put(t *testing.T, s Store, key string, text []byte) Info {
	t.Helper()
	info, err := s.Put(t.Context(), key, bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s could not be put: %v", key, err)
	}
	return info
}

func read(t *testing.T, s Store, key string) []byte {
	t.Helper()
	file, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatalf("%s could not be opened: %v", key, err)
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		t.Fatalf("%s could not be read: %v", key, err)
	}
	return text
}

// all lists everything, parts too.
func all(t *testing.T, s Store, after string) (keys []string) {
	t.Helper()
	for info, err := range s.Older(t.Context(), -time.Hour, after) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

func nothingLeft(t *testing.T, s Store) {
	t.Helper()
	if left := all(t, s, ""); len(left) > 0 {
		t.Errorf("%v is left, and nothing should be", left)
	}
}

func keepsFiles(t *testing.T, s Store) {
	if _, err := s.Stat(t.Context(), "0.pdf"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := s.Open(t.Context(), "0.pdf"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a file that is not there was opened: %v", err)
	}
	for _, size := range []int{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1<<20 + 3} {
		key, want := fmt.Sprintf("%d.pdf", size), content(size, 1)
		made := put(t, s, key, want)
		if got := read(t, s, key); !bytes.Equal(got, want) {
			t.Errorf("%d bytes came back as %d others", size, len(got))
		}
		info, err := s.Stat(t.Context(), key)
		if err != nil || info.Key != key || info.Size != int64(size) || made.Size != int64(size) || info.Part || time.Since(info.MadeAt).Abs() > time.Hour {
			t.Errorf("put said %+v, stat says %+v, %v", made, info, err)
		}
		if _, err := s.Put(t.Context(), key, strings.NewReader("other")); !errors.Is(err, ErrExists) {
			t.Errorf("a second file of the same key: %v", err)
		}
		if got := read(t, s, key); !bytes.Equal(got, want) {
			t.Errorf("a second file of the same key changed the first")
		}
		for range 2 {
			if err := s.Delete(t.Context(), key); err != nil {
				t.Error(err)
			}
		}
		if _, err := s.Stat(t.Context(), key); !errors.Is(err, ErrNotFound) {
			t.Errorf("a deleted file: %v", err)
		}
	}
	nothingLeft(t, s)
}

func oneWins(t *testing.T, s Store) {
	const many = 50
	var together sync.WaitGroup
	answers := make([]error, many)
	for i := range many {
		together.Go(func() {
			_, answers[i] = s.Put(t.Context(), "one.xml", bytes.NewReader(content(200_000+i, uint64(i))))
		})
	}
	together.Wait()
	winner := -1
	for i, err := range answers {
		switch {
		case err == nil && winner < 0:
			winner = i
		case err == nil:
			t.Errorf("both %d and %d created the file", winner, i)
		case !errors.Is(err, ErrExists):
			t.Errorf("%d was answered: %v", i, err)
		}
	}
	if winner < 0 {
		t.Fatal("no writer created the file")
	}
	if got := read(t, s, "one.xml"); !bytes.Equal(got, content(200_000+winner, uint64(winner))) {
		t.Error("the file is not the winner's")
	}
	if left := all(t, s, ""); !slices.Equal(left, []string{"one.xml"}) {
		t.Errorf("there are %v", left)
	}
}

func readerFails(t *testing.T, s Store) {
	for _, offset := range []int{0, 1, 64 << 10, 100_000, 1 << 20} {
		broken := errors.New("the browser went away")
		from := io.MultiReader(bytes.NewReader(content(offset, 2)), iotest.ErrReader(broken))
		if _, err := s.Put(t.Context(), "half.pdf", from); err != broken {
			t.Errorf("at %d: %v instead of the reader's own error", offset, err)
		}
		if _, err := s.Stat(t.Context(), "half.pdf"); !errors.Is(err, ErrNotFound) {
			t.Errorf("at %d: %v", offset, err)
		}
	}
	if _, err := s.Put(t.Context(), "half.pdf", stuck{}); err != io.ErrNoProgress {
		t.Errorf("a reader that says nothing for ever: %v", err)
	}
	nothingLeft(t, s)
	put(t, s, "half.pdf", []byte("the key is free"))
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func givesUp(t *testing.T, s Store) {
	gone, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Put(gone, "late.pdf", strings.NewReader("text")); !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v", err)
	}
	put(t, s, "there.pdf", []byte("text"))
	if _, err := s.Open(gone, "there.pdf"); !errors.Is(err, context.Canceled) {
		t.Errorf("open: %v", err)
	}
	if _, err := s.Stat(gone, "there.pdf"); !errors.Is(err, context.Canceled) {
		t.Errorf("stat: %v", err)
	}
	if err := s.Delete(gone, "there.pdf"); !errors.Is(err, context.Canceled) {
		t.Errorf("delete: %v", err)
	}
	for info, err := range s.Older(gone, -time.Hour, "") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("list: %v, %v", info, err)
		}
	}
	soon, end := context.WithCancel(t.Context())
	from := io.MultiReader(bytes.NewReader(content(300_000, 3)), reading(func() { end() }), bytes.NewReader(content(300_000, 4)))
	if _, err := s.Put(soon, "late.pdf", from); !errors.Is(err, context.Canceled) {
		t.Errorf("put, given up in the middle: %v", err)
	}
	if left := all(t, s, ""); !slices.Equal(left, []string{"there.pdf"}) {
		t.Errorf("there are %v", left)
	}
}

// reading does something when it is read, and holds nothing.
type reading func()

func (r reading) Read([]byte) (int, error) {
	r()
	return 0, io.EOF
}

func readsAnywhere(t *testing.T, s Store) {
	want := content(300_000, 5)
	put(t, s, "long.xml", want)
	file, err := s.Open(t.Context(), "long.xml")
	if err != nil {
		t.Fatal(err)
	}
	for _, span := range [][2]int64{{0, 10}, {10, 20}, {299_990, 10}, {150_000, 70_000}, {5, 1}, {0, 300_000}} {
		if _, err := file.Seek(span[0], io.SeekStart); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, span[1])
		if _, err := io.ReadFull(file, got); err != nil || !bytes.Equal(got, want[span[0]:span[0]+span[1]]) {
			t.Errorf("%d bytes at %d: %v", span[1], span[0], err)
		}
	}
	if end, err := file.Seek(0, io.SeekEnd); end != 300_000 || err != nil {
		t.Errorf("the end is at %d, %v", end, err)
	}
	if n, err := file.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
	if _, err := file.Seek(-1, io.SeekStart); err == nil {
		t.Error("there is something before the beginning")
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if _, err := file.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("a closed file was read: %v", err)
	}
	short, err := s.Open(t.Context(), "long.xml")
	if err != nil {
		t.Fatal(err)
	}
	defer short.Close()
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("Range", "bytes=1000-1999")
	answer := httptest.NewRecorder()
	http.ServeContent(answer, request, "long.xml", short.MadeAt, short)
	if answer.Code != http.StatusPartialContent || !bytes.Equal(answer.Body.Bytes(), want[1000:2000]) {
		t.Errorf("a range over HTTP: %d, %d bytes", answer.Code, answer.Body.Len())
	}
}

func refusesTricks(t *testing.T, s Store) {
	for _, key := range []string{"", ".", "..", "../x", "/x", "a//b", "a/", "a/../b", "a/./b", ".x", "a/.x/b", "x.", "x./y", "A.pdf", "a\\b", "..\\x", "c:x", "a b", "a\x00b", "a\nb",
		"ä", "%2e%2e", "~", "a/" + strings.Repeat("x", 300), strings.Repeat("../", 30) + "etc/passwd"} {
		if _, err := s.Put(t.Context(), key, strings.NewReader("text")); err == nil {
			t.Errorf("%q was put", key)
		}
		if _, err := s.Open(t.Context(), key); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("%q was looked for: %v", key, err)
		}
		if _, err := s.Stat(t.Context(), key); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("%q was looked at: %v", key, err)
		}
		if err := s.Delete(t.Context(), key); err == nil && key != ".x" { // parts are listed so, and may be deleted
			t.Errorf("%q was deleted", key)
		}
	}
	nothingLeft(t, s)
	put(t, s, strings.Repeat("x", maxKey), []byte("as long as can be"))
}

func listsOn(t *testing.T, s Store) {
	const many = 30
	var want []string
	for i := range many {
		key := fmt.Sprintf("0189%04d.pdf", i*7919%10_000)
		put(t, s, key, []byte(key))
		want = append(want, key)
	}
	whole := all(t, s, "")
	if got := slices.Sorted(slices.Values(whole)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Fatalf("there are %d files, listed are %v", many, got)
	}
	for i, key := range whole {
		if i%2 == 0 {
			if err := s.Delete(t.Context(), key); err != nil {
				t.Error(err)
			}
		}
		rest := whole[i+1:]
		if got := all(t, s, key); !slices.Equal(got, rest) {
			t.Errorf("after %s come %v, not %v", key, got, rest)
		}
	}
	for info, err := range s.Older(t.Context(), time.Hour, "") {
		t.Errorf("%v is not an hour old (%v)", info, err)
	}
	for range s.Older(t.Context(), -time.Hour, "") {
		break // the caller may stop early
	}
}

func manyAtOnce(t *testing.T, s Store) {
	var together sync.WaitGroup
	for i := range 20 {
		together.Go(func() {
			key, text := fmt.Sprintf("file-%d.pdf", i), content(50_000+i, uint64(i))
			if _, err := s.Put(t.Context(), key, bytes.NewReader(text)); err != nil {
				t.Errorf("%s: %v", key, err)
				return
			}
			if got := read(t, s, key); !bytes.Equal(got, text) {
				t.Errorf("%s is another file", key)
			}
		})
	}
	together.Wait()
}

// flat measures what a file of 50 MB takes, above what was taken before.
func flat(t *testing.T, s Store, limit uint64) {
	t.Helper()
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	done, peak := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		var now runtime.MemStats
		for beat := time.Tick(2 * time.Millisecond); ; {
			select {
			case <-done:
				peak <- most
				return
			case <-beat:
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc)
			}
		}
	}()
	info, err := s.Put(t.Context(), "big.pdf", io.LimitReader(noise{}, 50<<20))
	if err != nil || info.Size != 50<<20 {
		t.Fatalf("%+v, %v", info, err)
	}
	file, err := s.Open(t.Context(), "big.pdf")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if n, err := io.Copy(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{file}); n != 50<<20 || err != nil {
		t.Fatalf("%d bytes came back, %v", n, err)
	}
	close(done)
	most := <-peak
	t.Logf("50 MB took %.1f MB of heap at most, above %.1f MB before", float64(int64(most)-int64(before.HeapAlloc))/(1<<20), float64(before.HeapAlloc)/(1<<20))
	if most > before.HeapAlloc+limit {
		t.Errorf("the heap grew from %d to %d bytes, more than %d", before.HeapAlloc, most, limit)
	}
}

// noise is a reader without an end.
type noise struct{}

func (noise) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i * 31)
	}
	return len(p), nil
}
