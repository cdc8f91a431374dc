package fetch_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/internal/soak"
)

var (
	png  = "\x89PNG\r\n\x1a\n" + strings.Repeat("pixels", 2000)
	page = "<!DOCTYPE html><html><body>Too many requests, try later</body></html>"
)

func compressed(text string) string {
	var to bytes.Buffer
	w := gzip.NewWriter(&to)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return to.String()
}

// bomb returns gzip data that decompresses to so many megabytes of zeros.
func bomb(megabytes int) string {
	var to bytes.Buffer
	w := gzip.NewWriter(&to)
	for range megabytes {
		_, _ = w.Write(make([]byte, 1<<20))
	}
	_ = w.Close()
	return to.String()
}

func ok(headers, body string) string {
	return "HTTP/1.1 200 OK\r\nConnection: close\r\n" + headers + "\r\n" + body
}

func sized(headers, body string) string {
	return ok(headers+"Content-Length: "+strconv.Itoa(len(body))+"\r\n", body)
}

// A lie is one way in which a source misbehaves, and what must be found.
type lie struct {
	name   string
	answer func(conn net.Conn, r *http.Request)
	expect fetch.Expect
	code   string // empty: the download succeeds with content
	final  bool
	body   string // what a success must have stored
}

func says(text string) func(net.Conn, *http.Request) {
	return func(conn net.Conn, _ *http.Request) { send(conn, text) }
}

// reset ends a connection with RST instead of FIN.
func reset(text string) func(net.Conn, *http.Request) {
	return func(conn net.Conn, _ *http.Request) {
		send(conn, text)
		if tcp, isTCP := conn.(*net.TCPConn); isTCP {
			_ = tcp.SetLinger(0)
		}
	}
}

// trickle sends 10 bytes a second for ever.
func trickle(conn net.Conn, _ *http.Request) {
	send(conn, ok("Content-Length: 1000000\r\n", ""))
	for send(conn, "x") {
		<-time.After(100 * time.Millisecond)
	}
}

func endless(conn net.Conn, _ *http.Request) {
	send(conn, ok("", ""))
	for send(conn, strings.Repeat("x", 64<<10)) {
	}
}

func silent(conn net.Conn, _ *http.Request) { _, _ = io.Copy(io.Discard, conn) }

func status(n int, headers string) func(net.Conn, *http.Request) {
	return says(fmt.Sprintf("HTTP/1.1 %d X\r\nConnection: close\r\n%sContent-Length: 0\r\n\r\n", n, headers))
}

func loop(conn net.Conn, r *http.Request) {
	send(conn, "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: "+r.URL.Path+"\r\nContent-Length: 0\r\n\r\n")
}

var isPNG = fetch.Expect{Type: "image/png"}

func lies() []lie {
	large := bomb(64)
	return []lie{
		// Sources that behave.
		{name: "sized", answer: says(sized("Content-Type: image/png\r\n", png)), expect: isPNG, body: png},
		{name: "chunked", answer: says(ok("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")), body: "hello"},
		{name: "to the end of the connection", answer: says(ok("", "hello")), body: "hello"},
		{name: "empty", answer: says(sized("", "")), body: ""},
		{name: "gzip that was not asked for", answer: says(sized("Content-Encoding: gzip\r\n", compressed("hello"))), body: "hello"},
		{name: "everything as expected", answer: says(sized("Content-Type: image/png\r\n", png)), expect: fetch.Expect{Type: "image/*", Size: int64(len(png)), SHA256: strings.ToUpper(sumOf(png))}, body: png},
		{name: "one image announced as another", answer: says(sized("Content-Type: image/jpeg\r\n", png)), expect: isPNG, body: png},
		{name: "no type", answer: says(sized("", png)), expect: isPNG, body: png},

		// Sources that lie about the length.
		{name: "shorter than announced", answer: says(ok("Content-Length: 1000\r\n", "hello")), code: code.DownloadIncomplete},
		{name: "longer than announced", answer: says(ok("Content-Length: 5\r\n", "hello, world")), code: code.DownloadWrongSize},
		{name: "no last chunk", answer: says(ok("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n")), code: code.DownloadIncomplete},
		{name: "a cut chunk", answer: says(ok("Transfer-Encoding: chunked\r\n", "ff\r\nhello")), code: code.DownloadIncomplete},
		{name: "a chunk without a length", answer: says(ok("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\nzz\r\nhello\r\n0\r\n\r\n")), code: code.DownloadIncomplete},
		{name: "a chunk that is too long", answer: says(ok("Transfer-Encoding: chunked\r\n", "3\r\nhello\r\n0\r\n\r\n")), code: code.DownloadIncomplete},
		{name: "two lengths", answer: says(ok("Content-Length: 5\r\nContent-Length: 6\r\n", "hello")), code: code.DownloadBadResponse},
		{name: "a part only", answer: says("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/10\r\nContent-Length: 5\r\n\r\nhello"), code: code.DownloadBadResponse},
		{name: "no content", answer: status(204, ""), code: code.DownloadBadResponse},
		{name: "not modified, unasked", answer: says("HTTP/1.1 304 Not Modified\r\n\r\n"), code: code.DownloadBadResponse},

		// Connections that end.
		{name: "closed at once", answer: says(""), code: code.DownloadConnectionLost},
		{name: "closed in the header", answer: says("HTTP/1.1 200 OK\r\n"), code: code.DownloadConnectionLost},
		{name: "closed in a line of the header", answer: says("HTTP/1.1 200 OK\r\nContent-Le"), code: code.DownloadBadResponse},
		{name: "reset in the body", answer: reset(ok("Content-Length: 1000\r\n", "hello")), code: code.DownloadConnectionLost},
		{name: "reset without a length", answer: reset(ok("", "hello")), code: code.DownloadConnectionLost},

		// Sources that never end.
		{name: "10 bytes a second", answer: trickle, code: code.DownloadTooSlow},
		{name: "endless", answer: endless, code: code.DownloadTooLarge, final: true},
		{name: "announced too large", answer: says(ok("Content-Length: 1000000000000\r\n", "hello")), code: code.DownloadTooLarge, final: true},
		{name: "no answer", answer: silent, code: code.DownloadTimeout},
		{name: "redirects in a circle", answer: loop, code: code.DownloadRedirect, final: true},

		// Encodings.
		{name: "a bomb", answer: says(sized("Content-Encoding: gzip\r\n", large)), code: code.DownloadTooLarge, final: true},
		{name: "not gzip", answer: says(sized("Content-Encoding: gzip\r\n", "this is not compressed at all")), code: code.DownloadBadEncoding},
		{name: "cut gzip", answer: says(sized("Content-Encoding: gzip\r\n", compressed(png)[:40])), code: code.DownloadIncomplete},
		{name: "gzip with a wrong checksum", answer: says(sized("Content-Encoding: gzip\r\n", flipped(compressed(png)))), code: code.DownloadBadEncoding},
		{name: "an encoding that was not asked for", answer: says(sized("Content-Encoding: br\r\n", "hello")), code: code.DownloadBadEncoding},

		// Answers that are something else.
		{name: "an error page with status 200", answer: says(sized("Content-Type: text/html\r\n", page)), expect: isPNG, code: code.DownloadWrongType},
		{name: "an error page announced as an image", answer: says(sized("Content-Type: image/png\r\n", page)), code: code.DownloadWrongType},
		{name: "an error text announced as an image", answer: says(sized("Content-Type: image/jpeg\r\n", "quota exceeded")), code: code.DownloadWrongType},
		{name: "an error page announced as JSON", answer: says(sized("Content-Type: application/json\r\n", page)), code: code.DownloadWrongType},
		{name: "nothing, announced as an image", answer: says(sized("Content-Type: image/png\r\n", "")), code: code.DownloadWrongType},
		{name: "other bytes", answer: says(sized("", "hello")), expect: fetch.Expect{SHA256: sumOf("other")}, code: code.DownloadWrongChecksum},
		{name: "another size, announced", answer: says(sized("", "hello")), expect: fetch.Expect{Size: 6}, code: code.DownloadWrongSize},
		{name: "another size, not announced", answer: says(ok("", "hello")), expect: fetch.Expect{Size: 6}, code: code.DownloadWrongSize},
		{name: "not HTTP", answer: says("220 mail.example ESMTP\r\n"), code: code.DownloadBadResponse},
		{name: "an endless header", answer: says("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 200<<10) + "\r\n\r\n"), code: code.DownloadBadResponse},

		// Statuses (F3).
		{name: "404", answer: status(404, ""), code: code.DownloadHTTP4XX, final: true},
		{name: "403", answer: status(403, ""), code: code.DownloadHTTP4XX, final: true},
		{name: "410", answer: status(410, ""), code: code.DownloadHTTP4XX, final: true},
		{name: "407 of the source", answer: status(407, ""), code: code.DownloadHTTP4XX, final: true},
		{name: "408", answer: status(408, ""), code: code.DownloadHTTP408},
		{name: "499", answer: status(499, ""), code: code.DownloadHTTP499},
		{name: "500", answer: status(500, ""), code: code.DownloadHTTP5XX},
		{name: "503", answer: status(503, "Retry-After: 20\r\n"), code: code.DownloadHTTP5XX},
		{name: "redirect without a target", answer: status(301, ""), code: code.DownloadRedirect, final: true},
	}
}

func flipped(text string) string {
	bytes := []byte(text)
	bytes[len(bytes)-6] ^= 0xff
	return string(bytes)
}

// hostile is the times of the hostile tests: long enough for a busy machine, and far below those of production.
var hostile = settings{limits: fetch.Limits{Size: 8 << 20, MinSpeed: 1000, MinSpan: 3 * time.Second, Redirects: 3}, header: 10 * time.Second}

// tell downloads from a source and compares what is stored.
func (s *scene) tell(l lie, name, address string) bool {
	result, err := s.Fetch(s.Context(), fetch.Request{Name: name, URL: address + "/file?token=secret", Expect: l.expect, Attempt: 2})
	right := codeOf(err) == l.code
	if !right {
		s.Errorf("%s: %s instead of %q: %v", l.name, codeOf(err), l.code, err)
	}
	if err != nil {
		v := verdict(err)
		if final := v.To == holdfast.Failed; final != l.final {
			s.Errorf("%s: final is %v: %v", l.name, final, err)
		}
		if v.Failure.Context["attempt"] != "2" || v.Failure.Context["proxy"] != "direct" || strings.Contains(err.Error(), "secret") {
			s.Errorf("%s: %+v, %v", l.name, v.Failure.Context, err)
		}
		_, found := s.spool.Find(name)
		return right && found != nil
	}
	text, err := os.ReadFile(result.File.Path)
	if err != nil || string(text) != l.body || result.File.SHA256 != sumOf(l.body) || result.File.Size != int64(len(l.body)) {
		s.Errorf("%s: %d bytes were stored (%v)", l.name, len(text), err)
		return false
	}
	return right && s.spool.Remove(name) == nil
}

// nothingElse checks that failed downloads left nothing.
func (s *scene) nothingElse() {
	s.Helper()
	entries, err := os.ReadDir(s.dir)
	if u := s.spool.Usage(); err != nil || len(entries) > 1 || u.Bytes != 0 || u.Files != 0 {
		s.Errorf("%d files are left, %+v", len(entries), u)
	}
}

// A thousand faulty transfers (a share of them in make test), no wrong object, each with the right code. Each fault occurs at least three times.
func TestManyFaultyTransfersStoreNoWrongObject(t *testing.T) {
	s := newScene(t, hostile)
	list := lies()
	var addresses []string
	for _, l := range list {
		addresses = append(addresses, rawServer(t, l.answer))
	}
	var wrong atomic.Int64
	var all sync.WaitGroup
	slots := make(chan struct{}, 200)
	for n := range soak.Pick("faulty transfers", 200, 1000) {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			at := n % len(list)
			if !s.tell(list[at], fmt.Sprintf("job-%d", n), addresses[at]) {
				wrong.Add(1)
			}
		})
	}
	all.Wait()
	s.nothingElse()
	if wrong.Load() > 0 {
		t.Errorf("%d transfers ended otherwise than expected", wrong.Load())
	}
}
