package postgres_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// A wire is a proxy between a store and its database that counts messages. It counts only messages that run a statement: not preparing one, examining
// or checking a connection, or the notifications to other processes.
type wire struct {
	to    string
	conns sync.WaitGroup

	mu                              sync.Mutex
	trips, statements, transactions int
	parses, named                   int // prepared statements, and those prepared by name
}

func (w *wire) counts() (trips, statements, transactions int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trips, w.statements, w.transactions
}

func (w *wire) parsed(named bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parses++
	if named {
		w.named++
	}
}

// urlFor returns the address of the same database through the wire.
func (w *wire) urlFor(t testing.TB, base string) string {
	address, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close(); w.conns.Wait() })
	w.to, address.Host = address.Host, listener.Addr().String()
	w.conns.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			w.conns.Go(func() { w.serve(client) })
		}
	})
	options := address.Query()
	options.Set("sslmode", "disable") // otherwise the messages could not be read
	address.RawQuery = options.Encode()
	return address.String()
}

func (w *wire) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer server.Close()
	l := &line{wire: w, prepared: map[string]string{}}
	w.conns.Go(func() {
		defer server.Close()
		from := bufio.NewReaderSize(client, 1<<16)
		if l.pass(from, server, 0, func(byte, []byte) {}) != nil { // the startup message has no type byte
			return
		}
		for l.pass(from, server, 1, l.request) == nil {
		}
	})
	from := bufio.NewReaderSize(server, 1<<16)
	for l.pass(from, client, 1, l.response) == nil {
	}
}

// A line is one connection.
type line struct {
	wire     *wire
	prepared map[string]string // statement texts by name

	mu      sync.Mutex
	sent    int   // statements since the last sync
	waiting []int // statements before each sync whose answer is due
}

// pass forwards one message and shows it. A message is a type byte, its length and its body.
func (l *line) pass(from *bufio.Reader, to io.Writer, letter int, show func(kind byte, body []byte)) error {
	head := make([]byte, letter+4)
	if _, err := io.ReadFull(from, head); err != nil {
		return err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[letter:])-4)
	if _, err := io.ReadFull(from, body); err != nil {
		return err
	}
	show(head[0], body)
	_, err := to.Write(append(head, body...))
	return err
}

// request reads a message of the store.
func (l *line) request(kind byte, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch words := bytes.SplitN(body, []byte{0}, 3); kind {
	case 'P': // parse: name, text
		l.prepared[string(words[0])] = string(words[1])
		l.wire.parsed(len(words[0]) > 0)
	case 'B': // bind: portal, name of the statement that will be executed
		l.sent += counted(l.prepared[string(words[1])])
	case 'Q': // a simple query: text
		l.waiting = append(l.waiting, l.sent+counted(string(words[0])))
		l.sent = 0
	case 'S': // sync
		l.waiting = append(l.waiting, l.sent)
		l.sent = 0
	}
}

func counted(text string) int {
	if strings.Contains(text, "pg_notify") || strings.Contains(text, "pg_backend_pid") || strings.HasPrefix(text, "--") || strings.TrimSpace(text) == ";" {
		return 0
	}
	return 1
}

// response reads a message of the database. It sends Z when it is ready for the next request, with I if no transaction is open.
func (l *line) response(kind byte, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kind != 'Z' || len(l.waiting) == 0 {
		return
	}
	sent := l.waiting[0]
	l.waiting = l.waiting[1:]
	if sent == 0 {
		return
	}
	l.wire.mu.Lock()
	defer l.wire.mu.Unlock()
	l.wire.trips++
	l.wire.statements += sent
	if body[0] == 'I' {
		l.wire.transactions++
	}
}
