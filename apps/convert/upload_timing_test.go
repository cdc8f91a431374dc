package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// An upload that is aborted at any point leaves no file, no unfinished file and no job.
func TestAnUploadThatIsAbortedLeavesNothing(t *testing.T) {
	const size = 4 << 20
	d := openDoor(t, "")
	file := pdfOf(size)
	whole := ask{body: form(filePart(named("a.pdf"), file), field("mapping", "text"))}
	type abort struct {
		at     int
		abrupt bool
	}
	var aborts []abort
	for at := 0; at < size; at += 64 << 10 {
		aborts = append(aborts, abort{at, false}, abort{at + 1, true})
	}
	owners := make([]string, len(aborts))
	limit := make(chan struct{}, 8)
	var all sync.WaitGroup
	for i, one := range aborts {
		var session string
		session, owners[i] = newSession()
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			text := whole.text(session)
			conn, err := net.Dial("tcp", d.server.Listener.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			if _, err = io.WriteString(conn, text[:len(text)-len(whole.body)+one.at]); err != nil {
				t.Error(err)
			}
			if one.abrupt {
				_ = conn.(*net.TCPConn).SetLinger(0)
			}
			_ = conn.Close()
		})
	}
	all.Wait()
	d.until("every upload came to its end", func() bool { return d.uploading.Count("all") == 0 && len(d.files(t)) == 0 })
	for i, owner := range owners {
		if jobs := d.jobsOf(t, owner); len(jobs) != 0 {
			t.Errorf("aborted at %d: %+v", aborts[i].at, jobs)
		}
	}
}

func TestUploadsBeyondTheLimitAreRefusedWithRetryAfter(t *testing.T) {
	d := openDoor(t, "", func(s *settings) { s.MaxUploads = 1 })
	session, _ := newSession()
	slow, to := io.Pipe()
	answered := make(chan int)
	go func() {
		response, _ := d.posts(t, session, slow, "text")
		answered <- response.StatusCode
	}()
	_, _ = io.WriteString(to, smallPDF)
	d.until("the first is under way", func() bool { return d.uploading.Count("all") == 1 })
	response, text := d.posts(t, session, strings.NewReader(smallPDF), "text")
	after, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if response.StatusCode != http.StatusServiceUnavailable || err != nil || after < 1 || decode[refusalAnswer](t, text).Line == "" {
		t.Errorf("%d %s %s", response.StatusCode, response.Header, text)
	}
	_ = to.Close()
	expect(t, "the first", <-answered, http.StatusCreated)
	d.quiet(t)
	response, _ = d.posts(t, session, strings.NewReader(smallPDF), "text")
	expect(t, "afterwards", response.StatusCode, http.StatusOK)
}

func TestAClientThatExpectsContinueIsAnsweredBeforeItSends(t *testing.T) {
	d := openDoor(t, "")
	session, _ := newSession()
	body := form(filePart(named("a.pdf"), smallPDF))
	for name, c := range map[string]struct {
		ask
		first string // line of the answer
	}{
		"in order": {ask{headers: []string{"Expect: 100-continue"}}, "HTTP/1.1 100 Continue"},
		"hopeless": {ask{headers: []string{"Expect: 100-continue"}, kind: "text/plain"}, "HTTP/1.1 400 Bad Request"},
	} {
		c.length = strconv.Itoa(len(body))
		conn, err := net.Dial("tcp", d.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
		_, _ = io.WriteString(conn, c.text(session))
		answer := bufio.NewReader(conn)
		line, err := answer.ReadString('\n')
		if err != nil || strings.TrimSpace(line) != c.first {
			t.Errorf("%s: %q %v", name, line, err)
		}
		if strings.Contains(c.first, "100") {
			_, _ = answer.ReadString('\n')
			_, _ = io.WriteString(conn, body)
			if line, _ = answer.ReadString('\n'); !strings.Contains(line, "201") {
				t.Errorf("%s: then %q", name, line)
			}
		}
		_ = conn.Close()
	}
}

// wireless is a listener without a network, for scenarios in virtual time.
type wireless chan net.Conn

// Accept waits for a connection.
func (w wireless) Accept() (net.Conn, error) {
	conn, ok := <-w
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

// Close accepts no more connections.
func (w wireless) Close() error { close(w); return nil }

// Addr is nowhere.
func (w wireless) Addr() net.Addr { return &net.IPAddr{} }

func TestAnUploadThatStallsIsCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		first int           // so many bytes come at once,
		drips int           // so many one by one,
		every time.Duration // each after such a time,
		cut   time.Duration // and then nothing
	}{
		"nothing more comes":             {200, 0, 0, uploadIdle},
		"nothing more comes after a lot": {200_000, 1, 20 * time.Second, 20*time.Second + uploadIdle},
		"a byte comes now and then":      {200, 100, 7 * time.Second, uploadIdle},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(s *scene) {
				listener := make(wireless)
				server := &http.Server{Handler: http.HandlerFunc(s.upload)}
				go func() { _ = server.Serve(listener) }()
				defer server.Close()
				client, far := net.Pipe()
				listener <- far
				begun := time.Now()
				var sender sync.WaitGroup
				sender.Go(func() {
					q := ask{length: "5000000", body: form(filePart(named("a.pdf"), pdfOf(300_000)))[:c.first]}
					session, _ := newSession()
					_, err := io.WriteString(client, q.text(session))
					for n := 0; n < c.drips && err == nil; n++ {
						<-time.After(c.every)
						_, err = io.WriteString(client, "x")
					}
				})
				response, err := http.ReadResponse(bufio.NewReader(client), nil)
				if err != nil {
					t.Fatal(err)
				}
				took := time.Since(begun)
				text, _ := io.ReadAll(response.Body)
				_ = client.Close()
				sender.Wait()
				expect(t, "status", response.StatusCode, http.StatusRequestTimeout)
				if took < c.cut-time.Second || took > c.cut+time.Second || decode[refusalAnswer](t, string(text)).Code != codeUnknown {
					t.Errorf("after %v: %s", took, text)
				}
				<-time.After(time.Minute) // the server lets go of the connection
				expect(t, "under way", s.uploading.Count("all"), 0)
				expect(t, "files", len(filesIn(t, s.set.Uploads)), 0)
			})
		})
	}
}

// repeated returns a PDF of size bytes that is generated while it is read; it differs for each number.
func repeated(n int, size int64) io.Reader {
	head, tail := fmt.Sprintf("%%PDF-1.7\n1 0 obj\n<</N %d>>\nendobj\n%%", n), "\nstartxref\n9\n%%EOF\n"
	return io.MultiReader(strings.NewReader(head), io.LimitReader(xs{}, size-int64(len(head)+len(tail))), strings.NewReader(tail))
}

type xs struct{}

func (xs) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// Issue 7: uploads stream to the disk, with memory flat at files of 50 MB.
func TestLargeUploadsAreNeverInMemory(t *testing.T) {
	const uploads, size, most = 20, 50 << 20, 32 << 20
	d := openDoor(t, "")
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before, peak := heap(), uint64(0)
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-tick.C:
				peak = max(peak, heap())
			case <-stop:
				return
			}
		}
	}()
	var all sync.WaitGroup
	for n := range uploads {
		all.Go(func() {
			session, _ := newSession()
			if response, text := d.posts(t, session, repeated(n, size), "text"); response.StatusCode != http.StatusCreated || decode[view](t, text).Bytes != size {
				t.Errorf("%d %s", response.StatusCode, text)
			}
		})
	}
	all.Wait()
	close(stop)
	<-watched
	if peak > before+most {
		t.Errorf("%d uploads of %d bytes at once took %d bytes of memory", uploads, size, peak-before)
	}
	t.Logf("%d uploads of %d MiB at once: the heap grew by at most %.1f MiB", uploads, size>>20, float64(peak-min(peak, before))/(1<<20))
}

// Most clients send a whole request before they read the answer. A file that is too large is read on, so that they receive the answer instead of a connection error.
func TestAClientThatSendsEverythingReceivesTooLarge(t *testing.T) {
	d := openDoor(t, "", func(set *settings) { set.MaxUpload = 12 << 20 })
	kind, body := formOf("large.pdf", []byte(pdfOf(40<<20))) // more than lies between two ends of a connection
	for _, length := range []string{fmt.Sprintf("Content-Length: %d", body.Len()), "Transfer-Encoding: chunked"} {
		conn, err := net.Dial("tcp", d.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /api/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n%s\r\n\r\n", kind, length)
		if strings.HasPrefix(length, "Transfer") {
			_, err = fmt.Fprintf(conn, "%x\r\n%s\r\n0\r\n\r\n", body.Len(), body.Bytes())
		} else {
			_, err = conn.Write(body.Bytes())
		}
		if err != nil {
			t.Errorf("%s: it was cut off: %v", length, err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: no answer: %v", length, err)
		}
		var said refusalAnswer
		if json.NewDecoder(response.Body).Decode(&said) != nil || response.StatusCode != http.StatusRequestEntityTooLarge || said.Code != codeTooLarge {
			t.Errorf("%s: it is answered with %d %s", length, response.StatusCode, said.Code)
		}
		_ = conn.Close()
	}
}
