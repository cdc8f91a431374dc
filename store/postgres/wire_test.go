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

// A wire sits between a store and its database, and counts what is said. Only what runs a statement counts: preparing one,
// the looks at a new connection and at whether one lives, and the paced hints to other processes do not.
type wire struct {
	to    string
	conns sync.WaitGroup

	mu                              sync.Mutex
	trips, statements, transactions int
	parses, named                   int // how often a statement was prepared, and how often under a name
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

// through is the address of the same database by way of the wire.
func (w *wire) through(t testing.TB, base string) string {
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
	options.Set("sslmode", "disable") // or there would be nothing to read
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
		if l.pass(from, server, 0, func(byte, []byte) {}) != nil { // the greeting has no letter in front
			return
		}
		for l.pass(from, server, 1, l.asked) == nil {
		}
	})
	from := bufio.NewReaderSize(server, 1<<16)
	for l.pass(from, client, 1, l.answered) == nil {
	}
}

// A line is one connection.
type line struct {
	wire     *wire
	prepared map[string]string // texts by name

	mu      sync.Mutex
	said    int   // statements since the last sync
	waiting []int // statements before each sync whose answer is due
}

// pass hands one message on and shows it. A message is a letter, its length and its body.
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

// asked hears what the store says.
func (l *line) asked(kind byte, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch words := bytes.SplitN(body, []byte{0}, 3); kind {
	case 'P': // parse: name, text
		l.prepared[string(words[0])] = string(words[1])
		l.wire.parsed(len(words[0]) > 0)
	case 'B': // bind: portal, name of the statement that will be executed
		l.said += counted(l.prepared[string(words[1])])
	case 'Q': // a simple query: text
		l.waiting = append(l.waiting, l.said+counted(string(words[0])))
		l.said = 0
	case 'S': // sync
		l.waiting = append(l.waiting, l.said)
		l.said = 0
	}
}

func counted(text string) int {
	if strings.Contains(text, "pg_notify") || strings.Contains(text, "pg_backend_pid") || strings.HasPrefix(text, "--") || strings.TrimSpace(text) == ";" {
		return 0
	}
	return 1
}

// answered hears the database. It says Z when it is ready for the next question, with I when no transaction is open.
func (l *line) answered(kind byte, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kind != 'Z' || len(l.waiting) == 0 {
		return
	}
	said := l.waiting[0]
	l.waiting = l.waiting[1:]
	if said == 0 {
		return
	}
	l.wire.mu.Lock()
	defer l.wire.mu.Unlock()
	l.wire.trips++
	l.wire.statements += said
	if body[0] == 'I' {
		l.wire.transactions++
	}
}
