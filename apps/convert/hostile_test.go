package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
)

// An ask is a raw HTTP request: no client corrects it.
type ask struct {
	proto   string   // HTTP/1.1 when empty
	headers []string // besides the usual ones
	kind    string   // the Content-Type; the form's own when empty, none when "-"
	body    string
	length  string // the Content-Length: of the body when empty, none when "-"
}

const boundary = "XYZ"

// form is the body of a form, of parts that are written as they are given.
func form(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString("--" + boundary + "\r\n" + part + "\r\n")
	}
	return b.String() + "--" + boundary + "--\r\n"
}

func filePart(disposition, file string) string {
	return `Content-Disposition: form-data; name="file"` + disposition + "\r\nContent-Type: application/pdf\r\n\r\n" + file
}

func named(name string) string { return `; filename="` + name + `"` }

func field(name, value string) string {
	return fmt.Sprintf("Content-Disposition: form-data; name=%q\r\n\r\n%s", name, value)
}

func (q ask) text(session string) string {
	head := []string{"POST /api/upload " + q.proto, "Host: localhost", "Cookie: " + sessionCookie + "=" + session}
	if q.proto == "" {
		head[0] += "HTTP/1.1"
	}
	switch q.kind {
	case "":
		head = append(head, "Content-Type: multipart/form-data; boundary="+boundary)
	case "-":
	default:
		head = append(head, "Content-Type: "+q.kind)
	}
	switch q.length {
	case "":
		head = append(head, fmt.Sprintf("Content-Length: %d", len(q.body)))
	case "-":
	default:
		head = append(head, "Content-Length: "+q.length)
	}
	return strings.Join(append(head, q.headers...), "\r\n") + "\r\n\r\n" + q.body
}

// chunked is a body in chunks, as it should be.
func chunked(body string) string {
	var b strings.Builder
	for chunk := range slices.Chunk([]byte(body), 5000) {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(chunk), chunk)
	}
	return b.String() + "0\r\n\r\n"
}

// send sends a request over a socket of its own, ends its half, and answers what comes back.
func (d *door) send(t *testing.T, text string) (status int, answer string) {
	t.Helper()
	conn, err := net.Dial("tcp", d.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	go func() { // the server may close the connection before everything is sent
		_, _ = io.WriteString(conn, text)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("half an answer: %v", err)
	}
	return response.StatusCode, string(body)
}

// A hostile upload, and its expected answer.
type hostile struct {
	ask
	status   int
	code     string // of the answer; empty if net/http answers, or if the upload is accepted
	recorded bool   // a refusal is left
	name     string // of the job, where it is in order
}

func refusedFile(file string) hostile {
	return hostile{ask: ask{body: form(filePart(named("a.pdf"), file), field("mapping", "text"))}, status: 400, code: codeNotPDF, recorded: true}
}

func nonsense(q ask) hostile { return hostile{ask: q, status: 400, code: codeUnknown} }

const hostileLimit = 1 << 20

// oddForms are malformed requests.
func oddForms() map[string]hostile {
	good, long := filePart(named("a.pdf"), smallPDF), strings.Repeat("x", 1<<20)
	return map[string]hostile{
		"no content type":                    nonsense(ask{kind: "-", body: form(good)}),
		"JSON":                               nonsense(ask{kind: "application/json", body: `{"file": "x"}`}),
		"an address form":                    nonsense(ask{kind: "application/x-www-form-urlencoded", body: "file=x&mapping=text"}),
		"a bare PDF":                         nonsense(ask{kind: "application/pdf", body: smallPDF}),
		"another multipart":                  nonsense(ask{kind: "multipart/mixed; boundary=" + boundary, body: form(good)}),
		"a content type that cannot be read": nonsense(ask{kind: "multipart/form-data; boundary=\"", body: form(good)}),
		"no boundary":                        nonsense(ask{kind: "multipart/form-data", body: form(good)}),
		"an empty boundary":                  nonsense(ask{kind: `multipart/form-data; boundary=""`, body: form(good)}),
		"a long boundary":                    nonsense(ask{kind: "multipart/form-data; boundary=" + strings.Repeat("b", 71), body: form(good)}),
		"two boundaries":                     nonsense(ask{kind: "multipart/form-data; boundary=a; boundary=XYZ", body: form(good)}),
		"another boundary than it says":      nonsense(ask{kind: "multipart/form-data; boundary=abc", body: form(good)}),
		"a boundary that begins like ours":   nonsense(ask{body: strings.ReplaceAll(form(good), boundary, boundary+"2")}),
		"nothing at all":                     nonsense(ask{body: ""}),
		"only the last boundary":             nonsense(ask{body: "--XYZ--\r\n"}),
		"no last boundary":                   nonsense(ask{body: strings.TrimSuffix(form(good), "--XYZ--\r\n")}),
		"a part without an end of headers":   nonsense(ask{body: "--XYZ\r\nContent-Disposition: form-data; name=\"file\""}),
		"a part without headers":             nonsense(ask{body: form("\r\nhello")}),
		"a header that is none":              nonsense(ask{body: form("nonsense\r\n\r\nhello")}),
		"a header with NUL":                  nonsense(ask{body: form("Content-\x00Disposition: form-data; name=file\r\n\r\nhello")}),
		"a part that is attached":            nonsense(ask{body: form(strings.Replace(good, "form-data", "attachment", 1))}),
		"a part with two names":              nonsense(ask{body: form(`Content-Disposition: form-data; name="file"; name="mapping"; filename="a"` + "\r\n\r\n" + smallPDF)}),
		"no file":                            nonsense(ask{body: form(field("mapping", "text"))}),
		"a file that is a field":             nonsense(ask{body: form(field("file", "a.pdf"))}),
		"no file chosen":                     nonsense(ask{body: form(filePart(named(""), ""))}),
		"two files":                          nonsense(ask{body: form(good, good)}),
		"a file and no PDF":                  nonsense(ask{body: form(good, filePart(named("b.pdf"), "b"))}),
		"an unknown part":                    nonsense(ask{body: form(good, field("mode", "fast"))}),
		"an unknown file":                    nonsense(ask{body: form(good, strings.Replace(good, `"file"`, `"files[]"`, 1))}),
		"many parts":                         nonsense(ask{body: form(slices.Repeat([]string{field("mapping", "text")}, 100)...)}),
		"two mappings":                       nonsense(ask{body: form(field("mapping", "text"), field("mapping", "text"), good)}),
		"a mapping that leads elsewhere":     nonsense(ask{body: form(field("mapping", "../../etc/passwd"), good)}),
		"a mapping in capitals":              nonsense(ask{body: form(good, field("mapping", "TEXT"))}),
		"a mapping with a line end":          nonsense(ask{body: form(good, field("mapping", "text\r\nX-Evil: 1"))}),
		"a mapping with NUL":                 nonsense(ask{body: form(good, field("mapping", "te\x00xt"))}),
		"a mapping that asks for more":       nonsense(ask{body: form(good, field("mapping", "text&mapping=layout"))}),
		"a huge mapping":                     nonsense(ask{body: form(field("mapping", long), good)}),
		"a huge mapping behind the file":     nonsense(ask{body: form(good, field("mapping", long))}),
		"huge headers of a part":             nonsense(ask{body: form("X-Long: " + long + "\r\n" + good)}),
		"many headers of a part":             nonsense(ask{body: form(strings.Repeat("X-A: b\r\n", 50_000) + good)}),
		"huge disposition":                   nonsense(ask{body: form(filePart(named(long), smallPDF))}),
		"much before the form":               nonsense(ask{body: long + "\r\n" + form(good)}),
		"much behind the form":               nonsense(ask{body: form(good) + long}),
		"said to be packed":                  nonsense(ask{headers: []string{"Content-Encoding: gzip"}, body: form(good)}),
		"said to be packed twice":            nonsense(ask{headers: []string{"Content-Encoding: identity", "Content-Encoding: br"}, body: form(good)}),
	}
}

// oddWires are requests with a wrong length or transfer encoding.
func oddWires() map[string]hostile {
	good := form(filePart(named("a.pdf"), smallPDF), field("mapping", "text"))
	big := form(filePart(named("big.pdf"), "%PDF-1.7\n"+strings.Repeat("x", hostileLimit)))
	inChunks := []string{"Transfer-Encoding: chunked"}
	large := hostile{status: 413, code: codeTooLarge, recorded: true}
	with := func(q ask) hostile { h := large; h.ask = q; return h }
	return map[string]hostile{
		"too large":                             with(ask{body: big}),
		"too large in chunks":                   with(ask{headers: inChunks, length: "-", body: chunked(big)}),
		"too large and no PDF (000 section 11)": with(ask{headers: inChunks, length: "-", body: chunked(form(filePart(named("dummy.pdf"), strings.Repeat("\x00", hostileLimit+1))))}),
		"too large by what it says":             with(ask{length: "99999999999", body: good[:200]}),
		"one byte too large":                    with(ask{body: form(filePart(named("a.pdf"), pdfOf(hostileLimit+1)))}),
		"longer than it says":                   nonsense(ask{length: "200", body: good}),
		"shorter than it says":                  nonsense(ask{length: fmt.Sprint(len(good) + 1), body: good}),
		"much shorter than it says":             nonsense(ask{length: fmt.Sprint(hostileLimit), body: good}),
		"cut off in the file":                   nonsense(ask{length: fmt.Sprint(len(good)), body: good[:300]}),
		"said to be empty":                      nonsense(ask{length: "0", body: good}),
		"no length":                             nonsense(ask{length: "-", body: good}),
		"chunks that are none":                  nonsense(ask{headers: inChunks, length: "-", body: "zzzz\r\n" + good}),
		"a chunk that is cut off":               nonsense(ask{headers: inChunks, length: "-", body: "ffff\r\n" + good}),
		"a chunk of a negative size":            nonsense(ask{headers: inChunks, length: "-", body: "-5\r\n" + good}),
		"a chunk without end":                   nonsense(ask{headers: inChunks, length: "-", body: "ffffffffffffffffff\r\n" + good}),
		"no last chunk":                         nonsense(ask{headers: inChunks, length: "-", body: strings.TrimSuffix(chunked(good), "0\r\n\r\n")}),
		"chunks and a negative length":          {ask: ask{length: "-1", body: good}, status: 400},
		"two lengths":                           {ask: ask{headers: []string{"Content-Length: 7"}, body: good}, status: 400},
		"an unknown wrapping":                   {ask: ask{headers: []string{"Transfer-Encoding: gzip"}, length: "-", body: good}, status: 501},
		"HTTP/1.0 without a length":             nonsense(ask{proto: "HTTP/1.0", length: "-", body: good}),
		"a form within the file":                refusedFile("Content-Type: multipart/mixed; boundary=abc\r\n\r\n--abc\r\n\r\n" + smallPDF + "\r\n--abc--"),
		"a boundary within the file":            nonsense(ask{body: form(filePart(named("a.pdf"), strings.Replace(smallPDF, "2 0 obj", "\r\n--XYZ\r\n\r\n", 1)))}),
		"a last boundary within the file":       {ask: ask{body: form(filePart(named("a.pdf"), strings.Replace(smallPDF, "2 0 obj", "\r\n--XYZ--\r\n", 1)))}, status: 400, code: codeNotPDF, recorded: true},
		"said to be in base64":                  {ask: ask{body: form("Content-Transfer-Encoding: base64\r\n" + filePart(named("a.pdf"), "JVBERi0xLjcK"))}, status: 400, code: codeNotPDF, recorded: true},
	}
}

// oddButGood are unusual uploads that must be accepted, with the resulting file name.
func oddButGood() map[string]hostile {
	cases := map[string]hostile{
		"HTTP/1.0":                  {ask: ask{proto: "HTTP/1.0", body: form(filePart(named("a.pdf"), smallPDF))}, name: "a.pdf"},
		"in chunks":                 {ask: ask{headers: []string{"Transfer-Encoding: chunked"}, length: "-", body: chunked(form(filePart(named("a.pdf"), smallPDF)))}, name: "a.pdf"},
		"the mapping first":         {ask: ask{body: form(field("mapping", "layout"), filePart(named("a.pdf"), smallPDF))}, name: "a.pdf"},
		"an empty mapping":          {ask: ask{body: form(field("mapping", ""), filePart(named("a.pdf"), smallPDF))}, name: "a.pdf"},
		"something around it":       {ask: ask{body: "hello\r\n" + form(filePart(named("a.pdf"), smallPDF)) + "goodbye"}, name: "a.pdf"},
		"as large as may be":        {ask: ask{body: form(filePart(named("a.pdf"), pdfOf(hostileLimit)))}, name: "a.pdf"},
		"said to be printable":      {ask: ask{body: form("Content-Transfer-Encoding: quoted-printable\r\n" + filePart(named("a.pdf"), smallPDF))}, name: "a.pdf"},
		"said to be a web page":     {ask: ask{body: form(strings.Replace(filePart(named("a.pdf"), smallPDF), "application/pdf", "text/html", 1))}, name: "a.pdf"},
		"no encoding":               {ask: ask{headers: []string{"Content-Encoding: identity"}, body: form(filePart(named("a.pdf"), smallPDF))}, name: "a.pdf"},
		"a name in two ways":        {ask: ask{body: form(filePart(`; filename*=UTF-8''na%C3%AFve%0d%0a.pdf`, smallPDF))}, name: "naïve.pdf"},
		"a boundary that is quoted": {ask: ask{kind: `multipart/form-data; boundary="XYZ"`, body: form(filePart(named("a.pdf"), smallPDF))}, name: "a.pdf"},
	}
	for given, want := range map[string]string{
		"../../../etc/passwd.pdf": "passwd.pdf", "/etc/passwd": "passwd", `..\\..\\boot.ini`: "boot.ini", "C:/windows/a.pdf": "a.pdf", "..": unnamed, "CON": "CON", "NUL.pdf": "NUL.pdf",
		"LPT1.pdf:ads": "LPT1.pdf:ads", "a%00.pdf": "a%00.pdf", "a%0d%0aX: b.pdf": "a%0d%0aX: b.pdf", "\u202efdp.exe": "fdp.exe", "<img src=x onerror=alert(1)>.pdf": "<img src=x onerror=alert(1)>.pdf",
		"'; DROP TABLE job; --": "'; DROP TABLE job; --", "$(reboot).pdf": "$(reboot).pdf", "-rf": "-rf", strings.Repeat("n", 10_000) + ".pdf": strings.Repeat("n", 251) + ".pdf",
		"\xff\xfea\xff.pdf": "\ufffda\ufffd.pdf", "{{.}}%s%n.pdf": "{{.}}%s%n.pdf", " ": unnamed, "🙂.pdf": "🙂.pdf", "a\u2028b.pdf": "ab.pdf",
	} {
		cases["called "+given[:min(len(given), 40)]] = hostile{ask: ask{body: form(filePart(named(given), smallPDF))}, name: want}
	}
	for name, one := range cases {
		one.status = http.StatusCreated
		cases[name] = one
	}
	return cases
}

// TestHostileUploadsGetAClearAnswerAndLeaveNothing: C1, and 000 section 11: a bad type is NOT_PDF and 400, too much is TOO_LARGE and 413, and either leaves a failed job.
func TestHostileUploadsGetAClearAnswerAndLeaveNothing(t *testing.T) {
	d := openDoor(t, "", func(s *settings) { s.MaxUpload = hostileLimit })
	cases := map[string]hostile{}
	for name, file := range hostileFiles(t) {
		cases["file/"+name] = refusedFile(file)
	}
	for group, some := range map[string]map[string]hostile{"form/": oddForms(), "wire/": oddWires(), "fine/": oddButGood()} {
		for name, one := range some {
			cases[group+name] = one
		}
	}
	if len(cases) < 60 {
		t.Fatalf("%d cases are few", len(cases))
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) { d.suffers(t, cases[name]) })
	}
	d.quiet(t)
	if findings, err := d.jobs.CheckIntegrity(t.Context()); err != nil || len(findings) != 0 {
		t.Error(findings, err)
	}
}

// suffers sends a hostile upload and checks the answer, the jobs and the files.
func (d *door) suffers(t *testing.T, h hostile) {
	session, owner := newSession()
	before := d.files(t)
	status, answer := d.send(t, h.text(session))
	if status != h.status {
		t.Fatalf("answered %d: %s", status, answer)
	}
	jobs := d.jobsOf(t, owner)
	if h.status == http.StatusCreated {
		if got := decode[view](t, answer); got.Filename != h.name || len(jobs) != 1 || jobs[0].ID.String() != got.ID || len(d.files(t)) != len(before)+1 {
			t.Errorf("%+v, %d jobs, %d files more", got, len(jobs), len(d.files(t))-len(before))
		}
		return
	}
	if after := d.files(t); !slices.Equal(before, after) {
		t.Errorf("files were left: %v", after)
	}
	if h.code == "" {
		return
	}
	got := decode[refusalAnswer](t, answer)
	if got.Code != h.code || got.Line == "" || strings.ContainsAny(got.Line, "\n") || strings.Contains(answer, "goroutine") || strings.Contains(answer, d.set.Uploads) {
		t.Errorf("it says %s", answer)
	}
	if !h.recorded {
		if len(jobs) != 0 || got.ID != "" {
			t.Errorf("%d jobs were left: %+v", len(jobs), got)
		}
		return
	}
	if len(jobs) != 1 || jobs[0].Kind != (Refusal{}).Kind() || jobs[0].ID.String() != got.ID {
		t.Fatalf("%d jobs, and the answer names %q", len(jobs), got.ID)
	}
	if v, err := d.view(t.Context(), jobs[0]); err != nil || v.Status != string(holdfast.Failed) || v.ErrorCode == nil || *v.ErrorCode != h.code || *v.ErrorMessage != got.Line {
		t.Errorf("the record is %+v %v", v, err)
	}
}
