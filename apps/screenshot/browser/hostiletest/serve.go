// Package hostiletest has pages that harm the browser that shows them, or keep it from taking a picture: for tests, and for the benchmark that counts how often other
// services hang.
package hostiletest

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An answer is the handler of a page or of a part of one. It returns when the client has gone.
type answer func(w http.ResponseWriter, r *http.Request)

// Serve serves the pages until the test ends, and returns the port. kill is called for the page whose renderer is killed.
func Serve(t testing.TB, kill func()) (port string) {
	pages := map[string]Page{}
	for _, p := range Pages() {
		pages[p.Path()] = p
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := pages[r.URL.Path]
		switch {
		case r.URL.Path == "/part/kill":
			kill()
		case !ok:
			part(w, r)
		case p.handler != nil:
			p.handler(w, r)
		default:
			html(w, strings.ReplaceAll(p.html, "OTHER", other(r)))
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	_, port, _ = net.SplitHostPort(server.Listener.Addr().String())
	return port
}

// other returns the address of the same server under another name.
func other(r *http.Request) string {
	name, port, _ := net.SplitHostPort(r.Host)
	if strings.HasSuffix(name, ".example") {
		return "http://other.example:" + port
	}
	return "http://localhost:" + port
}

func html(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, text)
}

// part answers requests for the parts of pages.
func part(w http.ResponseWriter, r *http.Request) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/part/"), "/")
	switch name {
	case "ok":
		html(w, green)
	case "dialogs":
		html(w, `<script>alert(1); confirm(2)</script>`)
	case "endless":
		if r.Header.Get("Sec-Fetch-Dest") == "iframe" {
			html(w, `<script>for (;;);</script>`)
			return
		}
		endless(w, r)
	case "goes-on":
		html(w, `<script>location = "?" + Math.random()</script>`)
	case "frames":
		if depth, _ := strconv.Atoi(rest); depth > 0 {
			html(w, fmt.Sprintf(`<iframe src="%s/part/frames/%d"></iframe><iframe src="/part/frames/%d"></iframe>`, other(r), depth-1, depth-1))
		}
	case "silent":
		silent(w, r)
	case "noise":
		_, _ = io.CopyN(w, rand.Reader, 20<<10)
	case "events":
		w.Header().Set("Content-Type", "text/event-stream")
		repeat(w, r, "data: "+strings.Repeat("x", 10<<10)+"\n\n", time.Millisecond)
	case "socket":
		socket(w, r)
	case "download":
		download(w, r)
	case "unauthorized":
		unauthorized(w, r)
	case "endless.png":
		endlessPicture(w)
	case "huge.png":
		hugePicture(w)
	default:
		http.NotFound(w, r)
	}
}

// repeat sends a text again and again until the client has gone.
func repeat(w http.ResponseWriter, r *http.Request, text string, every time.Duration) {
	send := http.NewResponseController(w)
	ticks := time.NewTicker(max(every, 1))
	defer ticks.Stop()
	for {
		if _, err := io.WriteString(w, text); err != nil || send.Flush() != nil {
			return
		}
		if every == 0 {
			continue
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticks.C:
		}
	}
}

func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func slow(w http.ResponseWriter, r *http.Request) {
	html(w, green)
	repeat(w, r, "x", 100*time.Millisecond)
}

func endless(w http.ResponseWriter, r *http.Request) {
	html(w, green)
	repeat(w, r, "<!--"+strings.Repeat("x", 64<<10)+"-->", 0)
}

func redirect(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, r.URL.Path, http.StatusFound)
}

func redirectOn(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.URL.RawQuery)
	http.Redirect(w, r, r.URL.Path+"?"+strconv.Itoa(n+1), http.StatusTemporaryRedirect)
}

func redirectTo(address string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", address)
		w.WriteHeader(http.StatusFound)
	}
}

// frames answers with a document that has itself in it twice.
func frames(w http.ResponseWriter, r *http.Request) {
	html(w, green+fmt.Sprintf(`<iframe src="?%[1]s0"></iframe><iframe src="?%[1]s1"></iframe>`, r.URL.RawQuery))
}

func download(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="file.bin"`)
	_, _ = w.Write(make([]byte, 1<<20))
}

func unauthorized(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("WWW-Authenticate", `Basic realm="page"`)
	http.Error(w, "a password is needed", http.StatusUnauthorized)
}

// compressedBomb sends a document of some gigabytes that is small on the network.
func compressedBomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Encoding", "gzip")
	packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	text := []byte(strings.Repeat("<b>x", 256<<10))
	for range 4 << 10 {
		if _, err := packed.Write(text); err != nil {
			return
		}
	}
	_ = packed.Close()
}

// raw answers with bytes that need not be HTTP, and ends the connection.
func raw(text string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
}

// headers sends a header without end.
func headers(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
	for n := 0; err == nil; n++ {
		_, err = fmt.Fprintf(conn, "X-Header-%d: %s\r\n", n, strings.Repeat("x", 1000))
	}
}

// socket accepts a WebSocket, and sends messages without end.
func socket(w http.ResponseWriter, r *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", accept(r.Header.Get("Sec-WebSocket-Key")))
	message := append([]byte{0x81, 126, 0x10, 0x00}, strings.Repeat("x", 0x1000)...)
	for err == nil {
		_, err = conn.Write(message)
	}
}

// accept returns the answer to the key of a WebSocket (RFC 6455).
func accept(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// hugePicture sends a small file that is a picture of 20,000 by 20,000 pixels.
func hugePicture(w io.Writer) {
	const side = 20_000
	png(w, side)
	chunk(w, "IDAT", zeros(side*(side/8+1)))
	chunk(w, "IEND", nil)
}

// endlessPicture sends a picture that never ends.
func endlessPicture(w io.Writer) {
	const side = 20_000
	png(w, side)
	_, err := w.Write(binary.BigEndian.AppendUint32(nil, 1<<31-1))
	if err == nil {
		_, err = io.WriteString(w, "IDAT")
	}
	for noise := make([]byte, 64<<10); err == nil; {
		_, err = w.Write(noise)
	}
}

// png sends the beginning of a black and white picture.
func png(w io.Writer, side uint32) {
	_, _ = io.WriteString(w, "\x89PNG\r\n\x1a\n")
	chunk(w, "IHDR", append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, side), side), 1, 0, 0, 0, 0))
}

func chunk(w io.Writer, kind string, data []byte) {
	_, _ = w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(data))))
	body := append([]byte(kind), data...)
	_, _ = w.Write(binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body)))
}

// zeros returns so many zeros, compressed.
func zeros(n int) []byte {
	var packed bytes.Buffer
	to, _ := zlib.NewWriterLevel(&packed, zlib.BestSpeed)
	_, _ = io.CopyN(to, zeroReader{}, int64(n))
	_ = to.Close()
	return packed.Bytes()
}

type zeroReader struct{}

func (zeroReader) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}
