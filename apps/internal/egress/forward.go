package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
)

// hopByHop are headers between the program and the proxy.
var hopByHop = []string{"Connection", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// dialPlain connects for a request of plain HTTP.
func (c *Client) dialPlain(ctx context.Context, _, host string) (net.Conn, error) {
	conn, err := c.connect(ctx, host)
	if err != nil && c.ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		c.refuse(host, reasonOf(err), err)
	}
	return conn, err
}

// forward sends a request of plain HTTP to its target. If it reaches no target, the connection of the program is closed without an answer, because the program would take
// an answer of the proxy for one of the target.
func (c *Client) forward(w http.ResponseWriter, r *http.Request) {
	if c.limits.Local != nil && strings.EqualFold(r.URL.Host, c.limits.LocalHost) {
		c.limits.Local.ServeHTTP(w, r)
		return
	}
	proxy := httputil.ReverseProxy{
		Transport: c.transport, ErrorLog: c.proxy.server.ErrorLog, FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			for _, name := range hopByHop {
				p.Out.Header.Del(name)
			}
			if p.In.Header["User-Agent"] == nil {
				p.Out.Header["User-Agent"] = nil // none of ours instead
			}
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// tunnel connects a program with its target.
func (c *Client) tunnel(w http.ResponseWriter, r *http.Request) {
	target, err := c.connect(r.Context(), r.Host)
	if err != nil {
		if c.ctx.Err() == nil && !errors.Is(err, context.Canceled) {
			c.refuse(r.Host, reasonOf(err), err)
		}
		http.Error(w, "the target cannot be connected", http.StatusBadGateway)
		return
	}
	defer target.Close()
	program, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "the connection cannot become a tunnel", http.StatusInternalServerError)
		return
	}
	defer program.Close()
	defer context.AfterFunc(c.ctx, func() { _ = program.Close() })()
	if _, err := io.WriteString(program, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { pipe(target, buffered) })
	both.Go(func() { pipe(program, target) })
	both.Wait()
}

// pipe copies until one side ends, and then ends the other side's reading.
func pipe(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	if half, ok := unwrap(to).(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
}

func unwrap(conn net.Conn) net.Conn {
	if c, ok := conn.(*counted); ok {
		return c.Conn
	}
	return conn
}
