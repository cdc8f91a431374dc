package proxy

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// A countedConn is a connection for HTTP/1.1 that counts the bytes behind the header of each answer. net/http reads as many as Content-Length announces and ignores the
// rest. A source that sends more has announced a wrong length, most often because it counted characters instead of bytes, and then what was read is not the resource.
type countedConn struct {
	net.Conn

	mu      sync.Mutex
	current *Answer // the answer that arrives, or the last one
	reading bool
	ended   bool
}

// An Answer counts the bytes of one answer on a connection.
type Answer struct {
	conn     *countedConn // its lock protects the rest
	head     []byte       // the first bytes
	newlines int          // in a row, in the header
	inBody   bool
	body     int64 // bytes behind the header
}

// statusSize is how many bytes of a status line show the first digit of the status: HTTP/1.1 2.
const statusSize = 10

// Watch begins to count an answer. It is called before the request is sent, with a connection of a route.
func Watch(conn net.Conn) *Answer {
	c, ok := conn.(*countedConn)
	if !ok {
		return &Answer{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = &Answer{conn: c}
	return c.current
}

// Read reads and counts.
func (c *countedConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	c.reading = true
	c.mu.Unlock()
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading, c.ended = false, c.ended || err != nil
	if c.current != nil {
		c.current.count(p[:n])
	}
	return n, err
}

// count finds the end of the header, an empty line, and counts what follows.
func (a *Answer) count(p []byte) {
	for i, b := range p {
		if a.inBody {
			a.body += int64(len(p) - i)
			return
		}
		if len(a.head) < statusSize {
			a.head = append(a.head, b)
		}
		switch b {
		case '\n':
			a.newlines++
		case '\r':
		default:
			a.newlines = 0
		}
		if a.newlines < 2 {
			continue
		}
		interim := len(a.head) == statusSize && a.head[statusSize-1] == '1' // such as 103 Early Hints: another header follows
		a.head, a.newlines, a.inBody = a.head[:0], 0, !interim
	}
}

// Close looks once more for bytes that nothing read, and closes the connection.
func (c *countedConn) Close() error {
	c.mu.Lock()
	look := c.current != nil && c.current.inBody && !c.ended
	c.mu.Unlock()
	if look {
		var one [1]byte
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, _ = c.Read(one[:])
	}
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	return c.Conn.Close()
}

// Excess reports whether a source has sent more than length bytes as the body of an answer that was read to its end. It sees what has arrived, and waits a moment for
// more, because a source that counts wrong sends the rest at once.
func (a *Answer) Excess(length int64) bool {
	if a.conn == nil {
		return false
	}
	for range 40 {
		body, over := a.state()
		if body > length {
			return true
		}
		<-time.After(500 * time.Microsecond)
		if over {
			body, _ := a.state()
			return body > length
		}
	}
	return false
}

// state returns the bytes of the body, and whether net/http asks for more already, or no more will be counted.
func (a *Answer) state() (body int64, over bool) {
	a.conn.mu.Lock()
	defer a.conn.mu.Unlock()
	return a.body, a.conn.reading || a.conn.ended || a.conn.current != a
}

// counted makes a dial function count.
func counted(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn}, nil
	}
}

// secured makes a dial function make an encrypted connection to the source, and count what is in it.
func (p *Pools) secured(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, p.cfg.ConnectTimeout)
		defer cancel()
		host, _, _ := net.SplitHostPort(address)
		secure := tls.Client(conn, p.tls(host))
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return &countedConn{Conn: secure}, nil
	}
}
