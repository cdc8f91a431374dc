package proxy

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// A countedConn is a connection for HTTP/1.1 that counts the bytes behind the header of an answer. net/http reads as many as Content-Length announces and ignores the
// rest. A source that sends more has announced a wrong length, most often because it counted characters instead of bytes, and then what was read is not the resource.
type countedConn struct {
	net.Conn

	mu       sync.Mutex
	head     []byte // the first bytes of the answer
	newlines int    // in a row, in the header
	inBody   bool
	body     int64 // bytes behind the header
	reading  bool
	ended    bool
}

// statusSize is how many bytes of a status line show the first digit of the status: HTTP/1.1 2.
const statusSize = 10

// Write sends a part of a request, with which the next answer begins.
func (c *countedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.head, c.newlines, c.inBody, c.body = c.head[:0], 0, false, 0
	c.mu.Unlock()
	return c.Conn.Write(p)
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
	c.count(p[:n])
	return n, err
}

// count finds the end of the header: an empty line.
func (c *countedConn) count(p []byte) {
	for i, b := range p {
		if c.inBody {
			c.body += int64(len(p) - i)
			return
		}
		if len(c.head) < statusSize {
			c.head = append(c.head, b)
		}
		switch b {
		case '\n':
			c.newlines++
		case '\r':
		default:
			c.newlines = 0
		}
		if c.newlines < 2 {
			continue
		}
		interim := len(c.head) == statusSize && c.head[statusSize-1] == '1' // such as 103 Early Hints: another header follows
		c.head, c.newlines, c.inBody = c.head[:0], 0, !interim
	}
}

// Close looks once more for bytes that nothing read, and closes the connection.
func (c *countedConn) Close() error {
	c.mu.Lock()
	look := c.inBody && !c.ended
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

// Excess reports whether a source has sent more than length bytes as the body of an answer that was read to its end, on a connection of a route. It sees what has arrived,
// and waits a moment for more, because a source that counts wrong sends the rest at once.
func Excess(conn net.Conn, length int64) bool {
	c, ok := conn.(*countedConn)
	if !ok {
		return false
	}
	for range 40 {
		c.mu.Lock()
		body, idle := c.body, c.reading || c.ended
		c.mu.Unlock()
		if body > length {
			return true
		}
		time.Sleep(500 * time.Microsecond)
		if !idle {
			continue // net/http has not asked for more yet
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.body > length
	}
	return false
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
