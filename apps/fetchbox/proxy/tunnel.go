package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/holdfastdev/holdfast/failure"
)

// An Error is a failure on the way to or through a proxy, before the source could answer.
type Error struct {
	Proxy      string // name of the member
	Doing      string // what failed
	Status     int    // of the proxy's answer to CONNECT; 407 also if a SOCKS proxy refused the credentials; 0 without an answer
	RetryAfter time.Duration
	Either     bool // the proxy works, and says that it cannot connect to the source
	Err        error
}

func (e *Error) Error() string { return fmt.Sprintf("proxy %s: %s: %v", e.Proxy, e.Doing, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// rests reports whether the proxy is to be left alone for a while.
func (e *Error) rests() bool {
	return e.Status == http.StatusProxyAuthRequired || e.Status == http.StatusTooManyRequests
}

// RoundTrip sends a request through the proxy. Each request of a chain of redirects comes here, so each is checked.
func (r *Route) RoundTrip(request *http.Request) (*http.Response, error) {
	m, began := r.member, time.Now()
	if m.proxy == nil || m.proxy.Scheme == "socks5" || request.URL.Scheme != "http" {
		answer, err := m.tunnel.RoundTrip(request)
		r.delay = max(time.Since(began), 1)
		return answer, err
	}
	// An HTTP proxy gets the whole request for an http:// URL, with the name. What the name resolves to here must be an address that may be called.
	if _, err := m.pools.guard.Resolve(request.Context(), hostOf(request.URL)); err != nil {
		return nil, err
	}
	answer, err := m.plain.RoundTrip(request)
	r.delay = max(time.Since(began), 1)
	if HungUp(err) && request.Context().Err() == nil {
		return nil, m.failed("the proxy closed the connection without an answer", withoutAddress(err))
	}
	if err == nil && answer.StatusCode == http.StatusProxyAuthRequired {
		_ = answer.Body.Close()
		return nil, m.refused(answer)
	}
	return answer, err
}

// HungUp reports whether an error means that the other side closed a connection instead of answering.
func HungUp(err error) bool {
	return err != nil && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "server closed idle connection")) // net/http has no type for it
}

// tls returns the settings of TLS to a host; an http.Transport sets the host itself.
func (p *Pools) tls(host string) *tls.Config {
	return &tls.Config{RootCAs: p.cfg.Roots, ServerName: host, MinVersion: tls.VersionTLS12}
}

// dialProxy connects to the proxy itself, whatever the address: for connections on which the proxy gets whole requests.
func (m *member) dialProxy(ctx context.Context, network, _ string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: m.pools.cfg.ConnectTimeout}
	conn, err := dialer.DialContext(ctx, network, m.proxy.Host)
	if err != nil {
		return nil, m.failed("cannot connect to the proxy", withoutAddress(err))
	}
	return conn, nil
}

// withoutAddress returns the cause of a failed connection. The address is that of the proxy, which the user of a pool need not know.
func withoutAddress(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

func (m *member) failed(doing string, err error) error {
	return &Error{Proxy: m.name, Doing: doing, Err: err}
}

// tries is how many addresses of a source a proxy is asked for.
const tries = 3

// dialTunnel connects to a source through the proxy. The proxy is asked for the addresses that the source's name has here and that may be called.
func (m *member) dialTunnel(ctx context.Context, _, address string) (net.Conn, error) {
	addresses, err := m.pools.guard.Resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	targets := []string{address}
	if !m.RemoteNames {
		targets = nil
		for _, a := range addresses[:min(tries, len(addresses))] {
			targets = append(targets, a.String())
		}
	}
	for _, target := range targets {
		var conn net.Conn
		if conn, err = m.connect(ctx, target); err == nil {
			return conn, nil
		}
		if failed, ok := errors.AsType[*Error](err); !ok || !failed.Either || failed.rests() {
			break
		}
	}
	return nil, err
}

// connect connects to the proxy and asks it to connect to a target.
func (m *member) connect(caller context.Context, target string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(caller, 2*m.pools.cfg.ConnectTimeout)
	defer cancel()
	conn, err := m.dialProxy(ctx, "tcp", "")
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	tunnel, err := m.handshake(ctx, conn, target)
	switch late := !stop(); {
	case caller.Err() != nil:
		err = caller.Err()
	case late:
		err = m.failed("the proxy did not answer in time", context.DeadlineExceeded)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return tunnel, nil
}

// handshake asks the proxy to connect to a target.
func (m *member) handshake(ctx context.Context, conn net.Conn, target string) (net.Conn, error) {
	switch m.proxy.Scheme {
	case "socks5":
		return conn, m.socks(conn, target)
	case "https":
		secure := tls.Client(conn, m.pools.tls(m.proxy.Hostname()))
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, m.failed("cannot make an encrypted connection to the proxy", err)
		}
		conn = secure
	}
	return conn, m.httpConnect(conn, target)
}

// httpConnect asks an HTTP proxy for a tunnel.
func (m *member) httpConnect(conn net.Conn, target string) error {
	request := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n"
	if secret := m.authorization(); secret != "" {
		request += "Proxy-Authorization: " + secret + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return m.failed("cannot send a request to the proxy", withoutAddress(err))
	}
	from := bufio.NewReader(io.LimitReader(conn, 64<<10))
	answer, err := http.ReadResponse(from, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return m.failed("the proxy did not answer", withoutAddress(err))
	}
	// The body of a refusal is not read: the connection is closed.
	if answer.StatusCode/100 != 2 {
		return m.refused(answer)
	}
	if from.Buffered() > 0 {
		return m.failed("cannot use the proxy", errors.New("it sent data before the source was asked for any"))
	}
	return nil
}

// refused returns the error of an answer of an HTTP proxy that is no tunnel. A 5xx says that the proxy cannot connect to the source, most of the others that it does not
// want to.
func (m *member) refused(answer *http.Response) error {
	e := &Error{Proxy: m.name, Doing: "the proxy refused the request", Status: answer.StatusCode, Err: fmt.Errorf("it answered HTTP %d", answer.StatusCode)}
	if e.Status == http.StatusUnauthorized { // some proxies say this instead (tinyproxy)
		e.Status = http.StatusProxyAuthRequired
	}
	e.RetryAfter = failure.NewHTTPError(answer.StatusCode, answer.Header, nil).RetryAfter
	e.Either = !e.rests()
	return e
}

// socksReplies are the answers of a SOCKS proxy to a request (RFC 1928 section 6).
var socksReplies = map[byte]string{
	1: "general failure", 2: "not allowed by its rules", 3: "network unreachable", 4: "host unreachable", 5: "connection refused", 6: "time to live expired",
	7: "command not supported", 8: "address type not supported",
}

// socks asks a SOCKS5 proxy for a tunnel (RFC 1928, and RFC 1929 for credentials).
func (m *member) socks(conn net.Conn, target string) error {
	if err := m.socksGreet(conn); err != nil {
		return err
	}
	request, err := socksAddress([]byte{5, 1, 0}, target)
	if err != nil {
		return m.failed("cannot ask the proxy", err)
	}
	if _, err := conn.Write(request); err != nil {
		return m.failed("cannot send a request to the proxy", withoutAddress(err))
	}
	var head [4]byte // version, reply, reserved, type of the address that follows
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return m.failed("the proxy did not answer", withoutAddress(err))
	}
	if head[0] != 5 {
		return m.failed("cannot use the proxy", errors.New("its answer is not SOCKS5"))
	}
	if reply := head[1]; reply != 0 {
		text := socksReplies[reply]
		if text == "" {
			text = "an unknown reason"
		}
		return &Error{Proxy: m.name, Doing: "the proxy did not connect to the source", Either: reply < 7, Err: fmt.Errorf("SOCKS reply %d: %s", reply, text)}
	}
	return m.socksSkip(conn, head[3])
}

// socksGreet agrees on a way to authenticate, and authenticates.
func (m *member) socksGreet(conn net.Conn) error {
	greeting := []byte{5, 1, 0}
	if m.user != nil {
		greeting = []byte{5, 2, 0, 2}
	}
	if _, err := conn.Write(greeting); err != nil {
		return m.failed("cannot send a request to the proxy", withoutAddress(err))
	}
	var chosen [2]byte
	if _, err := io.ReadFull(conn, chosen[:]); err != nil {
		return m.failed("the proxy did not answer", withoutAddress(err))
	}
	switch {
	case chosen[0] != 5:
		return m.failed("cannot use the proxy", errors.New("its answer is not SOCKS5"))
	case chosen[1] == 0:
		return nil
	case chosen[1] != 2 || m.user == nil:
		return m.denied("it accepts none of our ways to authenticate")
	}
	password, _ := m.user.Password()
	name := m.user.Username()
	login := append([]byte{1, byte(len(name))}, name...)
	login = append(append(login, byte(len(password))), password...)
	if _, err := conn.Write(login); err != nil {
		return m.failed("cannot send a request to the proxy", withoutAddress(err))
	}
	var answer [2]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil { // some proxies close the connection instead
		return m.denied("it closed the connection after the credentials")
	}
	if answer[1] != 0 {
		return m.denied("it refused the credentials")
	}
	return nil
}

func (m *member) denied(why string) error {
	return &Error{Proxy: m.name, Doing: "the proxy refused us", Status: http.StatusProxyAuthRequired, Err: errors.New(why)}
}

// socksAddress appends a target, host:port, in the form of SOCKS.
func socksAddress(to []byte, target string) ([]byte, error) {
	host, text, err := net.SplitHostPort(target)
	if err != nil {
		return nil, err
	}
	port, err := net.LookupPort("tcp", text)
	if err != nil {
		return nil, err
	}
	switch ip, err := netip.ParseAddr(host); {
	case err == nil && ip.Is4():
		to = append(append(to, 1), ip.AsSlice()...)
	case err == nil:
		to = append(append(to, 4), ip.AsSlice()...)
	case len(host) > 255:
		return nil, errors.New("the host name is longer than 255 bytes")
	default:
		to = append(append(to, 3, byte(len(host))), host...)
	}
	return append(to, byte(port>>8), byte(port)), nil
}

// socksSkip reads the address that a proxy connected from, and ignores it.
func (m *member) socksSkip(conn net.Conn, kind byte) error {
	length := map[byte]int{1: 4, 4: 16}[kind]
	if kind == 3 {
		var size [1]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return m.failed("the proxy did not answer", withoutAddress(err))
		}
		length = int(size[0])
	}
	if _, err := io.CopyN(io.Discard, conn, int64(length)+2); err != nil {
		return m.failed("the proxy did not answer", withoutAddress(err))
	}
	return nil
}
