package browser

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"

	"github.com/holdfastdev/holdfast/apps/internal/egress"
	"github.com/holdfastdev/holdfast/apps/screenshot/chromium"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
)

// probeTime is how long a page has to answer after the time limit: one that does not was kept busy by its scripts.
const probeTime = time.Second

// failed returns the error of a shot with its code, and says whether the browser must be replaced. ctx is that of the caller, limited the one with the time limit.
func (t *tab) failed(ctx, limited context.Context, err error) error {
	s := t.look()
	coded, isCoded := errors.AsType[*code.Error](err)
	switch {
	case s.outOfMemory, s.crashed && s.peak > int64(t.slot.pool.cfg.Limits.HeapMB)<<20*9/5:
		t.slot.sick = true
		return t.fail(code.PageOutOfMemory, fmt.Errorf("the browser used %d MiB while %s", s.peak>>20, t.phase))
	case s.crashed:
		t.slot.sick = true
		return t.fail(code.PageCrashed, fmt.Errorf("the page crashed while %s", t.phase))
	case s.endless:
		return t.fail(code.PageRedirectLoop, fmt.Errorf("the page went to another one %d times", s.navigations))
	case isCoded:
		return coded
	case s.isCut():
		if err := t.checkNetwork(); err != nil {
			return err
		}
		return t.navigationError(s.documentErr)
	case ctx.Err() != nil: // the caller gave up: the job was cancelled, or the worker stops
		t.slot.sick = !t.answers()
		return ctx.Err()
	case errors.Is(err, chromium.ErrLost):
		t.slot.sick = true
		return t.fail(code.BrowserCrashed, fmt.Errorf("%w while %s", err, t.phase))
	case limited.Err() != nil:
		return t.late()
	}
	t.slot.sick = true
	return t.fail(code.BrowserError, fmt.Errorf("%w while %s", err, t.phase))
}

// late returns the error of a shot whose time limit has passed.
func (t *tab) late() error {
	if err := t.checkNetwork(); err != nil {
		return err
	}
	why := fmt.Errorf("%v have passed while %s", t.options.Timeout(), t.phase)
	answers := t.answers()
	t.slot.sick = !answers
	switch t.phase {
	case phaseOpen:
		return t.fail(code.BrowserError, why)
	case phaseNavigate: // no script of the page runs yet
		if !answers {
			return t.fail(code.BrowserError, why)
		}
		return t.fail(code.PageTimeout, why)
	}
	if !answers {
		return t.fail(code.PageUnresponsive, why)
	}
	switch t.phase {
	case phaseIdle:
		return t.fail(code.PageNeverIdle, why)
	case phaseSelector:
		return t.fail(code.PageSelectorLate, why)
	}
	return t.fail(code.PageTimeout, why)
}

// answers reports whether the browser, or the page if it has scripts already, still does what it is asked. While a tab opens or a picture is taken it is not asked: what was begun
// cannot be undone then.
func (t *tab) answers() bool {
	if t.session == nil || t.phase == phaseOpen || t.phase == phaseCapture {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	if t.phase == phaseNavigate {
		_, err := chromium.Call(ctx, t.slot.process.Browser, browser.GetVersion, cdp.Empty{})
		return err == nil
	}
	_, err := evaluate[int](ctx, t, "1")
	return err == nil
}

// checkNetwork fails when the page needed more data than allowed: its picture would lack what was cut off.
func (t *tab) checkNetwork() error {
	if report := t.client.Report(); report.Count(egress.TooLarge) > 0 {
		return t.fail(code.PageTooLarge, fmt.Errorf("the page transferred %d MiB", report.Bytes>>20))
	}
	return nil
}

// byReason are the codes of what the proxy refused.
var byReason = map[egress.Reason]string{
	egress.Blocked: code.PageAddressBlocked, egress.Denied: code.PageAddressBlocked, egress.Protocol: code.PageProtocolBlocked,
	egress.NoSuchName: code.PageDNSError, egress.ResolveTimeout: code.PageDNSError, egress.ResolveFailed: code.PageDNSError,
	egress.ConnectTimeout: code.PageConnectError, egress.ConnectFailed: code.PageConnectError,
	egress.TooMany: code.PageTooLarge, egress.TooLarge: code.PageTooLarge,
}

// byText are the codes of errors of the browser's network, by the beginning of their names.
var byText = []struct{ begins, code string }{
	{"TOO_MANY_REDIRECTS", code.PageRedirectLoop},
	{"UNSAFE_REDIRECT", code.PageProtocolBlocked}, {"UNKNOWN_URL_SCHEME", code.PageProtocolBlocked}, {"DISALLOWED_URL_SCHEME", code.PageProtocolBlocked},
	{"UNSAFE_PORT", code.PageAddressBlocked}, {"BLOCKED_BY", code.PageAddressBlocked}, {"ACCESS_DENIED", code.PageAddressBlocked}, {"INVALID_URL", code.Validation},
	{"CERT_", code.PageBadCertificate}, {"SSL_", code.PageTLSError}, {"QUIC_", code.PageTLSError}, {"ECH_", code.PageTLSError},
	{"TIMED_OUT", code.PageTimeout}, {"CONNECTION_TIMED_OUT", code.PageTimeout},
	{"INVALID_AUTH_CREDENTIALS", code.BrowserError}, {"PROXY_", code.BrowserError}, {"MANDATORY_PROXY", code.BrowserError}, {"INSUFFICIENT_RESOURCES", code.BrowserError},
	{"CONTENT_LENGTH_MISMATCH", code.PageConnectionLost}, {"INVALID_", code.PageBadResponse}, {"CONTENT_", code.PageBadResponse}, {"RESPONSE_HEADERS", code.PageBadResponse}, {"INCOMPLETE", code.PageConnectionLost},
}

// navigationError returns the error of a page that could not be requested, by the error of the browser's network and what the proxy says about the host.
func (t *tab) navigationError(text string) error {
	s, report := t.look(), t.client.Report()
	name := strings.TrimPrefix(text, "net::ERR_")
	why := fmt.Errorf("the browser answers %s", cut(text, 60))
	if name == "HTTP_RESPONSE_CODE_FAILURE" { // an error without a document; the browser shows one of its own
		return t.checkAnswer()
	}
	if name == "ABORTED" {
		if s.status == 204 || s.status == 205 {
			return t.fail(code.PageNoContent, fmt.Errorf("the host of the page answered HTTP %d", s.status))
		}
		return t.fail(code.PageIsDownload, why)
	}
	if reason := report.Of(addressOf(s.asked)); reason != "" {
		return t.fail(byReason[reason], errors.New(string(reason)))
	}
	for _, one := range byText {
		if strings.HasPrefix(name, one.begins) {
			return t.fail(one.code, why)
		}
	}
	if last := slices.Clone(report.Refusals); len(last) > 0 && (name == "TUNNEL_CONNECTION_FAILED" || name == "EMPTY_RESPONSE") {
		reason := last[len(last)-1].Reason
		return t.fail(byReason[reason], errors.New(string(reason)))
	}
	return t.fail(code.PageConnectionLost, why)
}

// addressOf returns the host:port of an address, as the browser asks the proxy for it.
func addressOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
