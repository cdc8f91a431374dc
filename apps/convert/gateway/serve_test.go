package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
	"github.com/holdfastdev/holdfast/apps/internal/pdf/pdftest"
)

func TestAPDFBecomesValidXMLWithEveryReaderAndMapping(t *testing.T) {
	documents := map[string][]byte{
		"simple":  pdftest.Simple(t, "Hello, world.\nSecond line.", "Page two: fünf & <sechs>."),
		"hebrew":  pdftest.Simple(t, "שלום עולם"),
		"form":    pdftest.Form(t, pdftest.Field{Name: "a.b", Kind: "text", Value: "x & y"}, pdftest.Field{Name: "c", Kind: "checkbox", Value: "Yes"}),
		"about":   pdftest.Described(t, map[string]string{"Title": "<T>", "CreationDate": "D:20240229133000+01'00'", "Lang": "en-GB"}, "Text."),
		"scan":    pdftest.Scan(t),
		"rotated": pdftest.Rotated(t, 90, "Sideways."),
		"columns": pdftest.Columns(t, "one\ntwo", "three\nfour"),
		"open":    pdftest.Locked(t, "", "Anyone may read this."),
	}
	for _, r := range pdf.Readers() {
		s := serve(t, Config{Reader: r.Name()})
		for name, document := range documents {
			for _, m := range builtin {
				t.Run(r.Name()+" "+m.Name+" "+name, func(t *testing.T) {
					got := s.convert(t, m.Name, document)
					s.valid(t, m.Name, got)
					if pages := got.Header.Get("X-Pages"); pages != strconv.Itoa(max(1, strings.Count(name, "simple")*2)) {
						t.Errorf("it is said to have %s pages", pages)
					}
					if again := s.convert(t, m.Name, document); !bytes.Equal(again.body, got.body) {
						t.Error("the same PDF became two different texts")
					}
				})
			}
		}
	}
}

func TestTheWordsAreInTheXML(t *testing.T) {
	for _, r := range pdf.Readers() {
		s := serve(t, Config{Reader: r.Name()})
		text := string(s.convert(t, "text", pdftest.Simple(t, "Fish & chips.", "Second page.")).body)
		if !strings.Contains(text, "Fish &amp; chips.") || !strings.Contains(text, `<page number="2">`) {
			t.Errorf("%s: it became %s", r.Name(), text)
		}
		form := string(s.convert(t, "fields", pdftest.Form(t, pdftest.Field{Name: "a.b", Kind: "text", Value: "Ada"})).body)
		if !strings.Contains(form, `<field name="a.b" kind="text" page="1">Ada</field>`) && !strings.Contains(form, `<field name="a.b" kind="text">Ada</field>`) {
			t.Errorf("%s: it became %s", r.Name(), form)
		}
	}
}

// TestEveryRefusalHasItsStatus checks the statuses that the worker relies on (C3): 400, 406, 413 and 415 are final.
func TestEveryRefusalHasItsStatus(t *testing.T) {
	s := serve(t, Config{MaxBytes: 1 << 20})
	sound := pdftest.Simple(t, "Hello.")
	for _, c := range []struct {
		law, mapping, kind string
		body               []byte
		status             int
		code               string
	}{
		{"damaged", "text", "application/pdf", sound[:len(sound)/2], 400, codeDamaged},
		{"locked", "text", "application/pdf", pdftest.Locked(t, "secret", "x"), 400, codeLocked},
		{"empty", "text", "application/pdf", nil, 400, codeEmpty},
		{"unknown mapping", "nonesuch", "application/pdf", sound, 406, codeUnknown},
		{"too large", "text", "application/pdf", append(sound, make([]byte, 1<<20)...), 413, codeTooLarge},
		{"not a PDF", "text", "application/pdf", []byte("<html>"), 415, codeNotPDF},
		{"a polyglot", "text", "application/pdf", append(bytes.Clone(sound), "<script>"...), 415, codeTwoFaced},
		{"another type", "text", "text/html", sound, 415, codeType},
		{"no type", "text", "", sound, 415, codeType},
		{"a form", "text", "multipart/form-data; boundary=x", sound, 415, codeType},
	} {
		t.Run(c.law, func(t *testing.T) {
			s.send(t, "POST", "/convert?mapping="+c.mapping, c.kind, bytes.NewReader(c.body)).refused(t, c.status, c.code)
			chunked := struct{ io.Reader }{bytes.NewReader(c.body)}
			s.send(t, "POST", "/convert?mapping="+c.mapping, c.kind, chunked).refused(t, c.status, c.code)
		})
	}
}

func TestOddRequestsGetAClearAnswer(t *testing.T) {
	s := serve(t, Config{Reader: "quick", MaxBytes: 1 << 20, Mappings: "testdata"})
	n := 0
	ask := func(method, path, kind, body string, status int) {
		n++
		got := s.send(t, method, path, kind, strings.NewReader(body))
		if got.StatusCode != status {
			t.Errorf("%s %q as %q: %d, not %d: %.200s", method, path, kind, got.StatusCode, status, got.body)
		}
		if status >= 400 && method != "HEAD" {
			var r refusal
			if json.Unmarshal(got.body, &r) != nil || r.Code == "" || r.Message == "" {
				t.Errorf("%s %q: no refusal in JSON: %.200s", method, path, got.body)
			}
		}
	}
	for _, path := range []string{"/convert?mapping=text", "/mappings", "/schemas/text.xsd", "/healthz"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "BREW"} {
			status := http.StatusMethodNotAllowed
			if strings.HasPrefix(path, "/convert") == (method == "POST") && (method == "POST" || method == "GET" || method == "HEAD") {
				status = http.StatusOK
			}
			ask(method, path, "application/pdf", "x", status)
		}
	}
	for _, name := range []string{"TEXT", "text%20", "%20text", "text%00", "text.xsd", "../text", "..%2f..%2fetc%2fpasswd", "%2e%2e", "/etc/passwd", "C:%5Cwindows", "text/../layout", "text%0d%0aX-Evil:1",
		"%3Cscript%3E", "%F0%9F%92%A9", "%ff%fe", "t%C3%A9xt", "text,layout", "[text]", "{}", "null", "*", "%25s%25n", "'%20OR%201=1--", "$(id)", "`id`", "gateway-child", "invoice.yaml", strings.Repeat("a", 60_000)} {
		ask("POST", "/convert?mapping="+name, "application/pdf", "x", http.StatusNotAcceptable)
	}
	for _, query := range []string{"", "?", "?mapping", "?Mapping=text", "?map=text", "?mapping=text&mapping=text", "?mapping=text&mapping=layout", "?mapping=%zz", "?mapping=text;x=y", "?mapping[]=text", "?=text"} {
		status := http.StatusBadRequest
		if query == "?mapping" {
			status = http.StatusNotAcceptable
		}
		ask("POST", "/convert"+query, "application/pdf", "x", status)
	}
	for _, kind := range []string{"", "pdf", "application", "application/", "/pdf", "application/pdf2", "application/x-pdf", "text/plain", "text/html", "application/json", "image/png", "*/*", "application/*",
		"multipart/form-data", "application/x-www-form-urlencoded", "application/pdf, text/html", "application/pdf; charset", ";", "application/pdf;;", "\"application/pdf\"", strings.Repeat("a/", 1000)} {
		ask("POST", "/convert?mapping=text", kind, "x", http.StatusUnsupportedMediaType)
	}
	for _, kind := range []string{"application/pdf", "APPLICATION/PDF", "application/octet-stream", "application/pdf; charset=binary", "application/pdf; name=\"../../x\"", "  application/pdf  "} {
		ask("POST", "/convert?mapping=text", kind, "x", http.StatusOK)
		ask("POST", "/convert?mapping=text&other=1#x", kind, "x", http.StatusOK)
		ask("POST", "/convert?mapping=text", kind, "", http.StatusBadRequest)
		ask("POST", "/convert?mapping=text", kind, strings.Repeat("x", 1<<20+1), http.StatusRequestEntityTooLarge)
	}
	for _, file := range []string{"", "x", "text", "TEXT.xsd", "text.xsd.xsd", "text.XSD", "%2e%2e%2fgateway.go", "..%5cgateway.go", "text.xsd%00", ".xsd", "invoice.yaml", "%3Cscript%3E.xsd", "nonesuch.xsd"} {
		ask("GET", "/schemas/"+file, "", "", http.StatusNotFound)
	}
	for _, path := range []string{"/", "/x", "/convert/", "/convert/text", "/Convert", "/convert.php", "/.env", "/.git/config", "/debug/pprof/", "/metrics", "/schemas", "/schemas/", "/schemas/a/b", "/mappings/", "/mappings/text", "/healthz/", "/%00", "/%e2%80%ae",
		"/admin", "/login", "/api/upload", "/api/jobs", "/index.html", "/convert%2f", "/convert;x", "/cgi-bin/x", "/favicon.ico", "/robots.txt", "/wp-login.php", "/etc/passwd", "/a%2f..%2f..%2fetc%2fpasswd", "/" + strings.Repeat("a", 5000)} {
		ask("GET", path, "", "", http.StatusNotFound)
		ask("POST", path, "application/pdf", "x", http.StatusNotFound)
	}
	if n < 200 {
		t.Errorf("only %d requests were made", n)
	}
}

// TestMalformedHTTPGetsAClearAnswer sends raw bytes, because an HTTP client would not break the rules.
func TestMalformedHTTPGetsAClearAnswer(t *testing.T) {
	s := serve(t, Config{Reader: "quick", MaxBytes: 1 << 20})
	const head = "POST /convert?mapping=text HTTP/1.1\r\nHost: x\r\nContent-Type: application/pdf\r\n"
	for _, c := range []struct {
		law, send string
		statuses  string
	}{
		{"more is promised than comes", head + "Content-Length: 1000\r\n\r\n%PDF-", "400"},
		{"more comes than is promised", head + "Content-Length: 5\r\n\r\n%PDF-1.7 and more", "200"},
		{"everything is promised", head + "Content-Length: 9223372036854775807\r\n\r\n%PDF-", "413"},
		{"more than everything is promised", head + "Content-Length: 99999999999999999999\r\n\r\n%PDF-", "400"},
		{"less than nothing is promised", head + "Content-Length: -5\r\n\r\n%PDF-", "400"},
		{"two promises", head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n%PDF-1", "400"},
		{"a promise and chunks", head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n%PDF-\r\n0\r\n\r\n", "200 400"},
		{"chunks of rubbish", head + "Transfer-Encoding: chunked\r\n\r\nrubbish\r\n", "400"},
		{"a chunk that is cut", head + "Transfer-Encoding: chunked\r\n\r\nff\r\n%PDF-", "400"},
		{"a chunk of a negative size", head + "Transfer-Encoding: chunked\r\n\r\n-5\r\n%PDF-\r\n", "400"},
		{"a chunk beyond all numbers", head + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n%PDF-\r\n", "400"},
		{"no last chunk", head + "Transfer-Encoding: chunked\r\n\r\n5\r\n%PDF-\r\n", "400"},
		{"no chunk at all", head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
		{"another encoding", head + "Transfer-Encoding: gzip\r\n\r\nx", "501 400"},
		{"a compressed body", head + "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\n%PDF-", "415"},
		{"no body at all", head + "\r\n", "400"},
	} {
		t.Run(c.law, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
			if _, err := io.WriteString(conn, c.send); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(c.statuses, "200") { // the server takes a client that closes after a complete request as gone
				if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			got, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			got.Body.Close()
			if !strings.Contains(c.statuses, strconv.Itoa(got.StatusCode)) {
				t.Errorf("the answer is %s, not %s", got.Status, c.statuses)
			}
		})
	}
}

// TestMemoryStaysFlatHoweverLargeThePDF counts all that was ever allocated, on both sides of the wire, so that no collection can hide anything.
func TestMemoryStaysFlatHoweverLargeThePDF(t *testing.T) {
	s := serve(t, Config{Reader: "quick"})
	cost := func(size int64) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := s.send(t, "POST", "/convert?mapping=text", "application/pdf", io.LimitReader(endless{}, size))
		runtime.ReadMemStats(&after)
		if got.StatusCode != http.StatusOK {
			t.Fatalf("%d bytes: %d %s", size, got.StatusCode, got.body)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	cost(1 << 10)
	if small, large := cost(1<<10), cost(50<<20); large > small+4<<20 {
		t.Errorf("a PDF of 50 MB costs %d bytes, one of 1 kB %d", large, small)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestNoMessageIsTooLong(t *testing.T) {
	for code, r := range refusals {
		if got := refuse(code, strings.Repeat("long ", 100)); got.Message != r.Message || len(got.Message) > maxMessage || got.status != r.status {
			t.Errorf("%s says %q", code, got.Message)
		}
	}
	if got := refuse("HITHERTO_UNKNOWN", "/a/secret/path"); got.Code != codeFailed || got.Message != refusals[codeFailed].Message {
		t.Errorf("an unknown code says %q", got.Message)
	}
}

func TestTheMappingsAreNamed(t *testing.T) {
	s := serve(t, Config{Mappings: "testdata"})
	got := s.send(t, "GET", "/mappings", "", nil)
	want := `{"mappings":[{"name":"text","title":"Text: pages and paragraphs"},`
	if !strings.HasPrefix(string(got.body), want) || !strings.Contains(string(got.body), `{"name":"invoice","title":"Invoice of Example Ltd"}`) {
		t.Errorf("the answer is %s", got.body)
	}
}

func TestTheHealthCheckStartsAProcess(t *testing.T) {
	handler, err := New(Config{Temp: t.TempDir(), Reader: "go"})
	if err != nil {
		t.Fatal(err)
	}
	s := scene{Server: newServer(t, handler)}
	got := s.send(t, "GET", "/healthz", "", nil)
	if got.StatusCode != http.StatusOK || strings.TrimSpace(string(got.body)) != `{"reader":"go","status":"ok"}` {
		t.Errorf("the answer is %d %s", got.StatusCode, got.body)
	}
	broken := &gateway{cfg: Config{Reader: "go", Timeout: time.Minute, Log: quiet}, temp: &workspaceRoot{folder: t.TempDir()}, program: "/nowhere/at/all"}
	s = scene{Server: newServer(t, broken.routes())}
	got = s.send(t, "GET", "/healthz", "", nil)
	got.refused(t, 503, codeBusy)
	if got.Header.Get("Retry-After") == "" {
		t.Error("the answer has no Retry-After")
	}
	broken.program = fmt.Sprint(broken.program, "either")
	if s.send(t, "GET", "/healthz", "", nil).StatusCode != 503 {
		t.Error("the result was not reused")
	}
}
