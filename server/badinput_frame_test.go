package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A badFrame is sent over a plain TCP connection. KEY stands for a valid key, HOST for the address.
type badFrame struct {
	name, text string
	fine       bool // unusual but valid: any answer but a server error is correct
}

const authHead = "Host: HOST\r\nAuthorization: Bearer KEY\r\n"

func badFrames() []badFrame {
	post := "POST /v1/jobs HTTP/1.1\r\n" + authHead + "Content-Type: application/json\r\n"
	get := "GET /v1/jobs HTTP/1.1\r\n"
	body := `{"kind":"smuggled"}`
	return []badFrame{
		{"both lengths", post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
		{"both lengths, the other way", post + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", false},
		{"two lengths", post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", false},
		{"a list of lengths", post + "Content-Length: 2, 3\r\n\r\n{}", false},
		{"a negative length", post + "Content-Length: -1\r\n\r\n", false},
		{"a signed length", post + "Content-Length: +2\r\n\r\n{}", false},
		{"a length in hex", post + "Content-Length: 0x2\r\n\r\n{}", false},
		{"a length with a space", post + "Content-Length: 1 2\r\n\r\n{}", false},
		{"a huge length", post + "Content-Length: 99999999999999999999\r\n\r\n", false},
		{"a length beyond the limit", post + "Content-Length: 9999999999\r\n\r\n", false},
		{"an empty length", post + "Content-Length:\r\n\r\n{}", false},
		{"an unknown coding", post + "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n", false},
		{"coding identity", post + "Transfer-Encoding: identity\r\n\r\n", false},
		{"two codings", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", false},
		{"chunked twice", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
		{"chunked, disguised", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", false},
		{"chunked behind a space", post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", false},
		{"chunked behind a vertical tab", post + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", false},
		{"a chunk without a size", post + "Transfer-Encoding: chunked\r\n\r\n\r\n\r\n", false},
		{"a chunk of size x", post + "Transfer-Encoding: chunked\r\n\r\nx\r\n\r\n", false},
		{"a chunk of negative size", post + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n", false},
		{"a chunk of endless size", post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", false},
		{"a chunk that is longer than it says", post + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}{}\r\n0\r\n\r\n", false},
		{"a chunk with a bare LF", post + "Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n", false},
		{"a chunk with an endless extension", post + "Transfer-Encoding: chunked\r\n\r\n2;" + strings.Repeat("a", 20000) + "\r\n{}\r\n0\r\n\r\n", false},
		{"no blank line", get + authHead, false},
		{"no host", get + "Authorization: Bearer KEY\r\n\r\n", false},
		{"two hosts", get + authHead + "Host: other\r\n\r\n", false},
		{"a host with a space", get + "Host: a b\r\nAuthorization: Bearer KEY\r\n\r\n", false},
		{"a header without a name", get + authHead + ": x\r\n\r\n", false},
		{"a header without a colon", get + authHead + "nonsense\r\n\r\n", false},
		{"a header with a space in its name", get + authHead + "X A: b\r\n\r\n", false},
		{"a folded header", get + authHead + "X-A: b\r\n c\r\n\r\n", true},
		{"a header with NUL", get + authHead + "X-A: b\x00c\r\n\r\n", false},
		{"a header with CR", get + authHead + "X-A: b\rc\r\n\r\n", false},
		{"a header of Latin-1", get + authHead + "X-Request-Id: \xe4\r\n\r\n", true},
		{"ten thousand headers", get + authHead + strings.Repeat("X-A: b\r\n", 20000) + "\r\n", false},
		{"a header of 100 KiB", get + authHead + "X-A: " + strings.Repeat("b", 100<<10) + "\r\n\r\n", false},
		{"a request line of 100 KiB", "GET /" + strings.Repeat("a", 100<<10) + " HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"two authorizations", get + authHead + "Authorization: Bearer KEY\r\n\r\n", false},
		{"HTTP/0.9", "GET /v1/jobs\r\n\r\n", false},
		{"HTTP/1.0", "GET /v1/jobs HTTP/1.0\r\n" + authHead + "\r\n", true},
		{"HTTP/2 over nothing", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false},
		{"HTTP/3.0", "GET /v1/jobs HTTP/3.0\r\n" + authHead + "\r\n", false},
		{"HTTP/1.2", "GET /v1/jobs HTTP/1.2\r\n" + authHead + "\r\n", true},
		{"HTTP/x", "GET /v1/jobs HTTP/x\r\n" + authHead + "\r\n", false},
		{"lower-case http", "GET /v1/jobs http/1.1\r\n" + authHead + "\r\n", false},
		{"two spaces", "GET  /v1/jobs  HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"tabs", "GET\t/v1/jobs\tHTTP/1.1\r\n" + authHead + "\r\n", false},
		{"bare LF", "GET /v1/jobs HTTP/1.1\n" + strings.ReplaceAll(authHead, "\r", "") + "\n", true},
		{"bare CR", "GET /v1/jobs HTTP/1.1\r" + strings.ReplaceAll(authHead, "\n", "") + "\r", false},
		{"an absolute address", "GET http://evil.example/v1/nope HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"an absolute address with a user", "GET http://admin:KEY@HOST/v1/jobs HTTP/1.1\r\nHost: HOST\r\n\r\n", false},
		{"another scheme", "GET file:///etc/passwd HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"no path", "GET  HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"a star", "OPTIONS * HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"a star to get", "GET * HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"a tunnel", "CONNECT evil.example:443 HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"a tunnel to a path", "CONNECT /v1/jobs HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"a path without a slash", "GET v1/jobs HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"a path with a raw space", "GET /v1/jobs /x HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"a path with NUL", "GET /v1/jobs\x00 HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"a path of Latin-1", "GET /v1/jobs/\xe4 HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"a bad escape", "GET /v1/jobs/%zz HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"a fragment", "GET /v1/jobs#x HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"an empty method", " /v1/jobs HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"a method with a brace", "G{T /v1/jobs HTTP/1.1\r\n" + authHead + "\r\n", false},
		{"an upgrade", get + authHead + "Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n", true},
		{"a websocket", get + authHead + "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n", true},
		{"an unknown expectation", post + "Expect: the-impossible\r\nContent-Length: 2\r\n\r\n{}", false},
		{"a body cut short", post + "Content-Length: 100\r\n\r\n{}", false},
		{"chunks cut short", post + "Transfer-Encoding: chunked\r\n\r\n5\r\n{}", false},
		{"a trailer that lies", post + "Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\n\r\n", false},
		{"a request inside a body that is none", "GET /v1/nope HTTP/1.1\r\n" + authHead + "Content-Length: 0\r\n\r\n" + "BAD\r\n\r\n", false},
		{"a request smuggled behind a length", post + "Content-Length: 2\r\n\r\n{}" + "POST /v1/jobs HTTP/1.1\r\nHost: HOST\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n" + body, false},
		{"another name for the host", get + authHead + "X-Forwarded-Host: evil.example\r\nX-Forwarded-For: 127.0.0.1\r\nX-Original-URL: /v1/keys\r\n\r\n", true},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", false},
		{"noise", "\x00\x01\x02\x03\xff\xfe\r\n\r\n", false},
		{"SSH", "SSH-2.0-OpenSSH_9.9\r\n", false},
		{"nothing", "\r\n\r\n\r\n", false},
	}
}

// sendRaw sends text over a plain TCP connection, closes the writing side unless the text asks for Connection: close, and reads the answer.
func (s *gateScene) sendRaw(text string) string {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	text = strings.NewReplacer("KEY", s.keys["admin"], "HOST", s.addr).Replace(text)
	_, _ = io.WriteString(conn, text) // fails if the server has closed the connection before the end
	if !strings.Contains(text, "Connection: close") {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	heard, _ := io.ReadAll(conn)
	return string(heard)
}

func TestBadFramesAreRefusedAndNothingIsSmuggledIn(t *testing.T) {
	s := newGateScene(t)
	before := s.facts()
	for _, f := range badFrames() {
		heard := s.sendRaw(f.text)
		from := bufio.NewReader(strings.NewReader(heard))
		for n := 0; ; n++ {
			response, err := http.ReadResponse(from, nil)
			if err != nil {
				break // no further answer; none at all is correct too
			}
			_, _ = io.Copy(io.Discard, response.Body)
			status := response.StatusCode
			gone := status == http.StatusServiceUnavailable // the server may take a half-closed connection for a lost client
			if status >= 500 && !gone && status != http.StatusHTTPVersionNotSupported && status != http.StatusNotImplemented || status < 300 && !f.fine && status != http.StatusContinue {
				t.Errorf("%s: answer %d is %s", f.name, n+1, response.Status)
			}
		}
	}
	if after := s.facts(); before != after {
		t.Error("something was changed:", after)
	}
	if strings.Contains(s.log.String(), "request_panicked") {
		t.Error(s.log.String())
	}
}

func TestPipelinedRequestsAreAllAnswered(t *testing.T) {
	s := newGateScene(t)
	one := "GET /v1/jobs HTTP/1.1\r\n" + authHead + "\r\n"
	heard := s.sendRaw(strings.Repeat(one, 20) + "GET /v1/nope HTTP/1.1\r\n" + authHead + "\r\n" + "GET /v1/jobs HTTP/1.1\r\n" + authHead + "Connection: close\r\n\r\n")
	if good, bad := strings.Count(heard, "HTTP/1.1 200 OK"), strings.Count(heard, "HTTP/1.1 404"); good != 21 || bad != 1 {
		t.Errorf("%d good answers, %d bad ones: %.300q", good, bad, heard)
	}
}
