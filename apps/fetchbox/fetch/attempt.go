package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/failure"
)

// An attempt is one download through one route.
type attempt struct {
	fetcher *Fetcher
	request Request
	limits  Limits
	url     *url.URL
	route   *proxy.Route

	answer  *proxy.Answer // counts the bytes of the answer
	status  int
	outcome proxy.Outcome
}

// Causes for which an attempt is ended.
var (
	errTime = errors.New("the time limit of the download has passed")
	errSlow = errors.New("the source sends too slowly")
)

func (a *attempt) run(caller context.Context) (Result, error) {
	limited, stop := context.WithTimeoutCause(caller, a.limits.Time, errTime)
	defer stop()
	ctx, cancel := context.WithCancelCause(limited)
	defer cancel(nil)
	request, err := a.build(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { a.answer = proxy.Watch(got.Conn) }}))
	if err != nil {
		return Result{}, failure.NeverRetry(failure.WithCode(err, code.DownloadInvalidURL))
	}
	answer, err := a.fetcher.cfg.Proxies.Guard().Via(a.route).Do(request, max(a.limits.Redirects, 0))
	if err != nil {
		return Result{}, a.classify(ctx, err, beforeAnswer)
	}
	defer func() { _ = answer.Body.Close() }()
	a.status, a.outcome.Answered = answer.StatusCode, true
	result := Result{
		URL: address(answer.Request.URL), ETag: answer.Header.Get("ETag"), LastModified: answer.Header.Get("Last-Modified"), Proxy: a.route.Name(), Status: answer.StatusCode,
	}
	if err := a.checkStatus(answer, &result); err != nil || result.NotChanged {
		return result, err
	}
	body := watchPace(answer.Body, a.limits, cancel)
	defer body.end()
	if err := a.save(ctx, answer, body, &result); err != nil {
		return Result{}, err
	}
	return result, nil
}

// build makes the HTTP request.
func (a *attempt) build(ctx context.Context) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url.String(), nil)
	if err != nil {
		return nil, err
	}
	for name, values := range a.request.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", a.fetcher.cfg.UserAgent)
	}
	if request.Header.Get("Accept") == "" {
		request.Header.Set("Accept", "*/*")
	}
	request.Header.Set("Accept-Encoding", "identity")
	if a.request.ETag != "" {
		request.Header.Set("If-None-Match", a.request.ETag)
	}
	if a.request.LastModified != "" {
		request.Header.Set("If-Modified-Since", a.request.LastModified)
	}
	return request, nil
}

// address returns a URL as it is shown in results and messages: without query, which may hold a secret.
func address(u *url.URL) string {
	plain := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return plain.String()
}

// checkStatus decides about everything but a 200 with a body.
func (a *attempt) checkStatus(answer *http.Response, result *Result) error {
	status := answer.StatusCode
	switch {
	case status == http.StatusOK || status == http.StatusNonAuthoritativeInfo:
		return nil
	case status == http.StatusNotModified && (a.request.ETag != "" || a.request.LastModified != ""):
		result.NotChanged = true
		if result.ETag == "" {
			result.ETag = a.request.ETag
		}
		if result.LastModified == "" {
			result.LastModified = a.request.LastModified
		}
		return nil
	case status/100 == 3 && status != http.StatusNotModified:
		return a.failed(code.DownloadRedirect, fmt.Errorf("it answered a redirect (HTTP %d) that is not followed: the limit is %d, and none leads from https to http", status, max(a.limits.Redirects, 0)))
	case status < 400:
		return a.failed(code.DownloadBadResponse, fmt.Errorf("it answered HTTP %d, which was not asked for", status))
	}
	err := failure.NewHTTPError(status, answer.Header, nil)
	if status == http.StatusTooManyRequests {
		a.throttled(err)
	}
	a.outcome.Either = status >= 500
	return a.failed(codeOfStatus(status), err)
}

// defaultThrottle is how long a source that answers 429 without Retry-After is left alone by the same proxy.
const defaultThrottle = time.Minute

// throttled keeps the proxy from being used for the source for the time that it asked for. If another proxy can be used meanwhile, the job need not wait.
func (a *attempt) throttled(err *failure.HTTPError) {
	wait := err.RetryAfter
	if wait <= 0 {
		wait = defaultThrottle
	}
	a.outcome.Wait = wait
	if a.route.Usable(a.request.Region) {
		err.RetryAfter = 0
	} else {
		a.fetcher.hosts.pause(a.url.Hostname(), wait)
	}
}

// codeOfStatus returns the code of an error status.
func codeOfStatus(status int) string {
	switch status {
	case http.StatusRequestTimeout:
		return code.DownloadHTTP408
	case http.StatusTooManyRequests:
		return code.DownloadHTTP429
	case 499:
		return code.DownloadHTTP499
	}
	if status >= 500 {
		return code.DownloadHTTP5XX
	}
	return code.DownloadHTTP4XX
}

// save writes the body to a spool file, and completes it if it is what was announced and expected.
func (a *attempt) save(ctx context.Context, answer *http.Response, body io.Reader, result *Result) error {
	if encoding := strings.TrimSpace(answer.Header.Get("Content-Encoding")); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return a.failed(code.DownloadBadEncoding, fmt.Errorf("the body has the encoding %.40q, which was not asked for", encoding))
	}
	size := answer.ContentLength // -1: not announced
	switch want := a.request.Expect.Size; {
	case size > a.limits.Size:
		return a.failed(code.DownloadTooLarge, fmt.Errorf("it announces %d bytes, the limit is %d", size, a.limits.Size))
	case want != nil && size >= 0 && size != *want:
		return a.either(code.DownloadWrongSize, fmt.Errorf("it announces %d bytes, expected are %d", size, *want))
	}
	w, err := a.fetcher.cfg.Spool.Create(a.request.Name, size)
	if err != nil {
		return err
	}
	defer w.Abort()
	first, err := a.copy(ctx, w, body)
	if err != nil {
		return err
	}
	if size >= 0 && a.answer.Excess(size) {
		return a.either(code.DownloadWrongSize, fmt.Errorf("it sent more than the %d bytes that it announced", size))
	}
	if err := a.verify(w, announcedType(answer.Header), first, result); err != nil {
		return err
	}
	result.File, err = w.Commit(result)
	return err
}

// buffers are reused, so that many downloads need little memory.
var buffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// sniffed is how many bytes show the type of a resource.
const sniffed = 512

// copy copies the body, and returns its first bytes.
func (a *attempt) copy(ctx context.Context, w *spool.Writer, body io.Reader) (first []byte, err error) {
	buffer := buffers.Get().(*[128 << 10]byte)
	defer buffers.Put(buffer)
	for {
		n, failed := body.Read(buffer[:])
		if left := sniffed - len(first); left > 0 {
			first = append(first, buffer[:min(n, left)]...)
		}
		if w.Size()+int64(n) > a.limits.Size {
			return nil, a.failed(code.DownloadTooLarge, fmt.Errorf("it has more than %d bytes", a.limits.Size))
		}
		if _, err := w.Write(buffer[:n]); err != nil {
			return nil, err
		}
		if failed == io.EOF {
			return first, nil
		}
		if failed != nil {
			return nil, a.classify(ctx, failed, inBody)
		}
	}
}

// verify compares what arrived with what was expected.
func (a *attempt) verify(w *spool.Writer, announced string, first []byte, result *Result) error {
	want := a.request.Expect
	if want.Size != nil && w.Size() != *want.Size {
		return a.either(code.DownloadWrongSize, fmt.Errorf("it has %d bytes, expected are %d", w.Size(), *want.Size))
	}
	if sum := w.SHA256(); want.SHA256 != "" && !strings.EqualFold(sum, want.SHA256) {
		return a.either(code.DownloadWrongChecksum, fmt.Errorf("it has the SHA-256 %s, expected is %s", sum, strings.ToLower(want.SHA256)))
	}
	actual, problem := judgeType(announced, first)
	if problem == "" && want.Type != "" && !matches(want.Type, actual) {
		problem = fmt.Sprintf("it has the type %.60s, expected is %.60s", actual, want.Type)
	}
	if problem != "" {
		return a.either(code.DownloadWrongType, errors.New(problem))
	}
	result.Type = actual
	return nil
}

// failed returns an error with a code, for which only the source can be at fault.
func (a *attempt) failed(name string, err error) error {
	return failure.On(failure.WithCode(fmt.Errorf("GET %s: %w", address(a.url), err), name), a.url.Hostname())
}

// either returns an error with a code, for which the proxy or the source is at fault.
func (a *attempt) either(name string, err error) error {
	a.outcome.Either = true
	return a.failed(name, err)
}
