package fetch

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// A phase is how far an attempt was when it failed.
type phase bool

const (
	beforeAnswer phase = false // until the header of the answer was complete
	inBody       phase = true
)

// classify gives an error of the transport its code (F3).
func (a *attempt) classify(ctx context.Context, err error, in phase) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errSlow):
		return a.either(code.DownloadTooSlow, cause)
	case errors.Is(cause, errTime):
		return a.either(code.DownloadTimeout, fmt.Errorf("timed out after %v", a.limits.Time))
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err() // the worker stops or the job was cancelled: the engine knows which
	case ctx.Err() != nil:
		return a.either(code.DownloadTimeout, ctx.Err())
	}
	name := codeOf(err, in)
	switch name {
	case code.DownloadAddressBlocked, code.DownloadRedirect, code.DownloadTooLarge, code.DownloadDNSError:
		return a.failed(name, err)
	}
	return a.either(name, err)
}

// codeOf returns the code of an error of the transport. The order matters: an error of a proxy may wrap a time-out.
func codeOf(err error, in phase) string {
	if failed, ok := errors.AsType[*proxy.Error](err); ok {
		return codeOfProxy(failed)
	}
	for _, c := range classes {
		if c.is(err) {
			return c.code
		}
	}
	switch {
	case in == inBody && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		return code.DownloadIncomplete
	case proxy.HungUp(err):
		return code.DownloadConnectionLost
	case in == inBody && strings.Contains(err.Error(), "chunk"): // net/http has no types for broken chunks
		return code.DownloadIncomplete
	case in == inBody:
		return code.DownloadConnectionLost
	case strings.Contains(err.Error(), "Location header"):
		return code.DownloadRedirect
	}
	return code.DownloadBadResponse
}

func codeOfProxy(failed *proxy.Error) string {
	switch failed.Status {
	case http.StatusProxyAuthRequired:
		return code.DownloadProxyAuth
	case http.StatusTooManyRequests:
		return code.DownloadProxyThrottled
	}
	return code.DownloadProxyError
}

// classes are the errors that have a type.
var classes = []struct {
	code string
	is   func(error) bool
}{
	{code.DownloadAddressBlocked, isError(safehttp.ErrBlocked)},
	{code.DownloadTooLarge, isError(safehttp.ErrTooLarge)},
	{code.DownloadDNSError, isType[*net.DNSError]},
	{code.DownloadTLSError, isType[*tls.CertificateVerificationError]},
	{code.DownloadTLSError, isType[tls.RecordHeaderError]},
	{code.DownloadTLSError, isType[tls.AlertError]},
	{code.DownloadTimeout, isTimeout},
	{code.DownloadConnectError, isDial},
	{code.DownloadBadEncoding, isError(gzip.ErrHeader)},
	{code.DownloadBadEncoding, isError(gzip.ErrChecksum)},
	{code.DownloadBadEncoding, isType[flate.CorruptInputError]},
	{code.DownloadConnectionLost, isError(syscall.ECONNRESET)},
	{code.DownloadConnectionLost, isError(net.ErrClosed)},
	{code.DownloadTLSError, func(err error) bool { // net/http has no types for these
		return strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "HTTP response to HTTPS client")
	}},
}

func isError(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isTimeout(err error) bool {
	late, ok := errors.AsType[net.Error](err)
	return ok && late.Timeout()
}

func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// withContext adds to an error what the seed's failure record has: proxy, attempt and status.
func (r Request) withContext(err error, route *proxy.Route, status int) error {
	if r.Attempt > 0 {
		err = failure.With(err, "attempt", strconv.Itoa(r.Attempt))
	}
	if route != nil {
		err = failure.With(err, "proxy", route.Name())
	}
	if status > 0 {
		err = failure.With(err, "status", strconv.Itoa(status))
	}
	return err
}
