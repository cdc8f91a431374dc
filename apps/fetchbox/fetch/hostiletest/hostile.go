// Package hostiletest is HTTP servers that break the rules of HTTP: for tests, and for the benchmark that counts the wrong files of other programs.
package hostiletest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
)

// A Source is a server with one resource. Most of them misbehave.
type Source struct {
	Name   string
	Expect fetch.Expect // what a request for it knows
	Code   string       // of the failure; empty: the download succeeds
	Final  bool         // the failure is not retried
	Body   string       // what a success must have stored
	Answer func(conn net.Conn, r *http.Request)
}

// PNG is the beginning of an image, and Page is an error page.
var (
	PNG  = "\x89PNG\r\n\x1a\n" + strings.Repeat("pixels", 2000)
	Page = "<!DOCTYPE html><html><body>Too many requests, try later</body></html>"
)

// PNGExpected is an expectation that only an image meets.
var PNGExpected = fetch.Expect{Type: "image/png"}

// Sources returns all sources.
func Sources() []Source {
	return slices.Concat(behaving(), lengths(), ends(), neverEnding(), encodings(), somethingElse(), statuses())
}

// Sources that behave.
func behaving() []Source {
	return []Source{
		{Name: "sized", Answer: Says(Sized("Content-Type: image/png\r\n", PNG)), Expect: PNGExpected, Body: PNG},
		{Name: "chunked", Answer: Says(OK("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")), Body: "hello"},
		{Name: "to the end of the connection", Answer: Says(OK("", "hello")), Body: "hello"},
		{Name: "empty", Answer: Says(Sized("", "")), Expect: fetch.Expect{Size: new(int64(0))}, Body: ""},
		{Name: "gzip that was not asked for", Answer: Says(Sized("Content-Encoding: gzip\r\n", compressed("hello"))), Body: "hello"},
		{Name: "everything as expected", Answer: Says(Sized("Content-Type: image/png\r\n", PNG)), Expect: fetch.Expect{Type: "image/*", Size: new(int64(len(PNG))), SHA256: strings.ToUpper(Sum(PNG))}, Body: PNG},
		{Name: "one image announced as another", Answer: Says(Sized("Content-Type: image/jpeg\r\n", PNG)), Expect: PNGExpected, Body: PNG},
		{Name: "no type", Answer: Says(Sized("", PNG)), Expect: PNGExpected, Body: PNG},
	}
}

// Sources that lie about the length.
func lengths() []Source {
	return []Source{
		{Name: "shorter than announced", Answer: Says(OK("Content-Length: 1000\r\n", "hello")), Code: code.DownloadIncomplete},
		{Name: "longer than announced", Answer: Says(OK("Content-Length: 5\r\n", "hello, world")), Code: code.DownloadWrongSize},
		{Name: "no last chunk", Answer: Says(OK("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n")), Code: code.DownloadIncomplete},
		{Name: "a cut chunk", Answer: Says(OK("Transfer-Encoding: chunked\r\n", "ff\r\nhello")), Code: code.DownloadIncomplete},
		{Name: "a chunk without a length", Answer: Says(OK("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\nzz\r\nhello\r\n0\r\n\r\n")), Code: code.DownloadIncomplete},
		{Name: "a chunk that is too long", Answer: Says(OK("Transfer-Encoding: chunked\r\n", "3\r\nhello\r\n0\r\n\r\n")), Code: code.DownloadIncomplete},
		{Name: "two lengths", Answer: Says(OK("Content-Length: 5\r\nContent-Length: 6\r\n", "hello")), Code: code.DownloadBadResponse},
		{Name: "a part only", Answer: Says("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/10\r\nContent-Length: 5\r\n\r\nhello"), Code: code.DownloadBadResponse},
		{Name: "no content", Answer: Status(204, ""), Code: code.DownloadBadResponse},
		{Name: "not modified, unasked", Answer: Says("HTTP/1.1 304 Not Modified\r\n\r\n"), Code: code.DownloadBadResponse},
	}
}

// Connections that end.
func ends() []Source {
	return []Source{
		{Name: "closed at once", Answer: Says(""), Code: code.DownloadConnectionLost},
		{Name: "closed in the header", Answer: Says("HTTP/1.1 200 OK\r\n"), Code: code.DownloadConnectionLost},
		{Name: "closed in a line of the header", Answer: Says("HTTP/1.1 200 OK\r\nContent-Le"), Code: code.DownloadBadResponse},
		{Name: "reset in the body", Answer: reset(OK("Content-Length: 1000\r\n", "hello")), Code: code.DownloadConnectionLost},
		{Name: "reset without a length", Answer: reset(OK("", "hello")), Code: code.DownloadConnectionLost},
	}
}

// Sources that never end.
func neverEnding() []Source {
	return []Source{
		{Name: "10 bytes a second", Answer: trickle, Code: code.DownloadTooSlow},
		{Name: "endless", Answer: endless, Code: code.DownloadTooLarge, Final: true},
		{Name: "announced too large", Answer: Says(OK("Content-Length: 1000000000000\r\n", "hello")), Code: code.DownloadTooLarge, Final: true},
		{Name: "no answer", Answer: Silent, Code: code.DownloadTimeout},
		{Name: "redirects in a circle", Answer: loop, Code: code.DownloadRedirect, Final: true},
	}
}

// Encodings.
func encodings() []Source {
	return []Source{
		{Name: "a bomb", Answer: Says(Sized("Content-Encoding: gzip\r\n", bomb(64))), Code: code.DownloadTooLarge, Final: true},
		{Name: "not gzip", Answer: Says(Sized("Content-Encoding: gzip\r\n", "this is not compressed at all")), Code: code.DownloadBadEncoding},
		{Name: "cut gzip", Answer: Says(Sized("Content-Encoding: gzip\r\n", compressed(PNG)[:40])), Code: code.DownloadIncomplete},
		{Name: "gzip with a wrong checksum", Answer: Says(Sized("Content-Encoding: gzip\r\n", flipped(compressed(PNG)))), Code: code.DownloadBadEncoding},
		{Name: "an encoding that was not asked for", Answer: Says(Sized("Content-Encoding: br\r\n", "hello")), Code: code.DownloadBadEncoding},
	}
}

// Answers that are something else.
func somethingElse() []Source {
	return []Source{
		{Name: "an error page with status 200", Answer: Says(Sized("Content-Type: text/html\r\n", Page)), Expect: PNGExpected, Code: code.DownloadWrongType},
		{Name: "an error page announced as an image", Answer: Says(Sized("Content-Type: image/png\r\n", Page)), Code: code.DownloadWrongType},
		{Name: "an error text announced as an image", Answer: Says(Sized("Content-Type: image/jpeg\r\n", "quota exceeded")), Code: code.DownloadWrongType},
		{Name: "an error page announced as JSON", Answer: Says(Sized("Content-Type: application/json\r\n", Page)), Code: code.DownloadWrongType},
		{Name: "nothing, announced as an image", Answer: Says(Sized("Content-Type: image/png\r\n", "")), Code: code.DownloadWrongType},
		{Name: "other bytes", Answer: Says(Sized("", "hello")), Expect: fetch.Expect{SHA256: Sum("other")}, Code: code.DownloadWrongChecksum},
		{Name: "another size, announced", Answer: Says(Sized("", "hello")), Expect: fetch.Expect{Size: new(int64(6))}, Code: code.DownloadWrongSize},
		{Name: "something instead of nothing", Answer: Says(OK("", "hello")), Expect: fetch.Expect{Size: new(int64(0))}, Code: code.DownloadWrongSize},
		{Name: "another size, not announced", Answer: Says(OK("", "hello")), Expect: fetch.Expect{Size: new(int64(6))}, Code: code.DownloadWrongSize},
		{Name: "not HTTP", Answer: Says("220 mail.example ESMTP\r\n"), Code: code.DownloadBadResponse},
		{Name: "a header of 4 MiB", Answer: Says("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 4<<20) + "\r\n\r\n"), Code: code.DownloadBadResponse},
	}
}

// Statuses (F3).
func statuses() []Source {
	return []Source{
		{Name: "404", Answer: Status(404, ""), Code: code.DownloadHTTP4XX, Final: true},
		{Name: "403", Answer: Status(403, ""), Code: code.DownloadHTTP4XX, Final: true},
		{Name: "410", Answer: Status(410, ""), Code: code.DownloadHTTP4XX, Final: true},
		{Name: "407 of the source", Answer: Status(407, ""), Code: code.DownloadHTTP4XX, Final: true},
		{Name: "408", Answer: Status(408, ""), Code: code.DownloadHTTP408},
		{Name: "499", Answer: Status(499, ""), Code: code.DownloadHTTP499},
		{Name: "500", Answer: Status(500, ""), Code: code.DownloadHTTP5XX},
		{Name: "503", Answer: Status(503, "Retry-After: 20\r\n"), Code: code.DownloadHTTP5XX},
		{Name: "redirect without a target", Answer: Status(301, ""), Code: code.DownloadRedirect, Final: true},
	}
}

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

// OK returns an answer with status 200, after which the connection is closed.
func OK(headers, body string) string {
	return "HTTP/1.1 200 OK\r\nConnection: close\r\n" + headers + "\r\n" + body
}

// Sized returns such an answer with its Content-Length.
func Sized(headers, body string) string {
	return OK(headers+"Content-Length: "+strconv.Itoa(len(body))+"\r\n", body)
}

// Says answers with a text.
func Says(text string) func(net.Conn, *http.Request) {
	return func(conn net.Conn, _ *http.Request) { Send(conn, text) }
}

// reset ends a connection with RST instead of FIN.
func reset(text string) func(net.Conn, *http.Request) {
	return func(conn net.Conn, _ *http.Request) {
		Send(conn, text)
		if tcp, isTCP := conn.(*net.TCPConn); isTCP {
			_ = tcp.SetLinger(0)
		}
	}
}

// trickle sends 10 bytes a second for ever.
func trickle(conn net.Conn, _ *http.Request) {
	Send(conn, OK("Content-Length: 1000000\r\n", ""))
	for Send(conn, "x") {
		<-time.After(100 * time.Millisecond)
	}
}

func endless(conn net.Conn, _ *http.Request) {
	Send(conn, OK("", ""))
	for Send(conn, strings.Repeat("x", 64<<10)) {
	}
}

// Silent never answers.
func Silent(conn net.Conn, _ *http.Request) { _, _ = io.Copy(io.Discard, conn) }

// Status answers with a status and no body.
func Status(n int, headers string) func(net.Conn, *http.Request) {
	return Says(fmt.Sprintf("HTTP/1.1 %d X\r\nConnection: close\r\n%sContent-Length: 0\r\n\r\n", n, headers))
}

func loop(conn net.Conn, r *http.Request) {
	Send(conn, "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: "+r.URL.Path+"\r\nContent-Length: 0\r\n\r\n")
}

func flipped(text string) string {
	bytes := []byte(text)
	bytes[len(bytes)-6] ^= 0xff
	return string(bytes)
}

// Sum returns the SHA-256 of a text, in hexadecimal.
func Sum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Start starts a server that answers each request by writing to the connection itself, so that it can break every rule of HTTP. It returns its URL, and serves one request on each connection.
func Start(t testing.TB, answer func(conn net.Conn, r *http.Request)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		close(ended)
		_ = listener.Close()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				done := make(chan struct{})
				go func() {
					select {
					case <-ended:
					case <-done:
					}
					_ = conn.Close()
				}()
				defer close(done)
				if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					answer(conn, r)
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

// Send writes a text, and reports whether the connection still takes it.
func Send(conn net.Conn, text string) bool {
	_, err := io.WriteString(conn, text)
	return err == nil
}
