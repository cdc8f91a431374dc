package safehttp

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// MaxRedirects is the maximum number of redirects that Do follows, unless Config.Redirects says otherwise.
const MaxRedirects = 5

// ErrTooLarge ends the reading of an answer that is larger than Config.MaxBody.
var ErrTooLarge = errors.New("the answer is larger than the maximum")

// Do sends a request and follows up to so many redirects, none for 0; the answer after the last one is returned as it is. Each hop is checked like the first. A
// request to another origin has no body and only headers that say nothing about the sender, and a redirect from https to http is not followed there. A gzip
// body is decompressed, whether it was asked for or not; MaxBody applies to the result.
//
// An error of Do never contains the URL. The caller closes the body of an answer.
func (g *Guard) Do(request *http.Request, redirects int) (*http.Response, error) {
	if err := g.check(request.URL); err != nil {
		return nil, err
	}
	called := request.URL
	client := http.Client{
		Transport: g.transport, Timeout: g.cfg.Timeout,
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if len(via) > min(redirects, g.cfg.Redirects) {
				return http.ErrUseLastResponse
			}
			if err := g.checkRedirect(next, via); err != nil {
				return err
			}
			called = next.URL
			return nil
		},
	}
	answer, err := client.Do(request)
	if err != nil {
		if answer != nil { // a redirect was refused
			_ = answer.Body.Close()
		}
		if err = withoutURL(err); called != request.URL {
			err = &RedirectedError{URL: called, Err: err}
		}
		return nil, err
	}
	g.limitBody(answer)
	return answer, nil
}

// A RedirectedError is the error of a request that was redirected: the address that did not answer is not the one that the caller named.
type RedirectedError struct {
	URL *url.URL // the address of the last call
	Err error
}

// Error returns the text of Err, without the address.
func (e *RedirectedError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *RedirectedError) Unwrap() error { return e.Err }

// withoutURL removes the URL from an error, because its query may be a secret.
func withoutURL(err error) error {
	wrapped := (*url.Error)(nil)
	if errors.As(err, &wrapped) {
		if errors.Is(wrapped.Err, ErrBlocked) {
			return ErrBlocked
		}
		return wrapped.Err
	}
	return err
}

// safeHeaders are the headers that are kept in a redirect to another origin.
var safeHeaders = map[string]bool{"Accept": true, "Accept-Language": true, "User-Agent": true}

// checkRedirect checks a redirect before it is followed.
func (g *Guard) checkRedirect(next *http.Request, via []*http.Request) error {
	next.Header.Del("Referer") // it would reveal the previous URL with its query
	if g.check(next.URL) != nil {
		return ErrBlocked // the receiver chose the address; the caller learns no more
	}
	first, crossOrigin := origin(via[0].URL), false
	for _, hop := range append(via[1:len(via):len(via)], next) {
		crossOrigin = crossOrigin || origin(hop.URL) != first
	}
	if !crossOrigin {
		return nil
	}
	if via[0].URL.Scheme == "https" && next.URL.Scheme != "https" || next.Body != nil && next.Body != http.NoBody {
		return http.ErrUseLastResponse
	}
	for name := range next.Header {
		if !safeHeaders[name] {
			next.Header.Del(name)
		}
	}
	return nil
}

func origin(u *url.URL) string {
	port, _ := portOf(u)
	return u.Scheme + " " + strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) + " " + strconv.Itoa(int(port))
}

// limitBody limits the size of an answer.
func (g *Guard) limitBody(answer *http.Response) {
	raw := answer.Body
	b := &body{Reader: raw, raw: raw, left: g.cfg.MaxBody}
	if strings.EqualFold(strings.TrimSpace(answer.Header.Get("Content-Encoding")), "gzip") && answer.Request.Method != http.MethodHead {
		// Compressed data may be endless and decompress to nothing, so it is limited as well.
		b.Reader = &gzipBody{from: io.LimitReader(raw, g.cfg.MaxBody+64<<10)}
		answer.Header.Del("Content-Encoding")
		answer.Header.Del("Content-Length")
		answer.ContentLength, answer.Uncompressed = -1, true
	}
	answer.Body = b
}

type body struct {
	io.Reader
	raw  io.Closer
	left int64
}

// Read reads at most the allowed bytes, and one more to find out whether there are more.
func (b *body) Read(into []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(into)) > b.left+1 {
		into = into[:b.left+1]
	}
	n, err := b.Reader.Read(into)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}

func (b *body) Close() error { return b.raw.Close() }

// gzipBody decompresses gzip. It starts with the first Read, because the beginning of the body may arrive late.
type gzipBody struct {
	from   io.Reader
	reader *gzip.Reader
	err    error
}

// Read decompresses.
func (u *gzipBody) Read(into []byte) (int, error) {
	if u.reader == nil && u.err == nil {
		u.reader, u.err = gzip.NewReader(u.from)
		if errors.Is(u.err, io.EOF) { // an empty body
			return 0, u.err
		}
	}
	if u.err != nil {
		return 0, u.err
	}
	return u.reader.Read(into)
}
