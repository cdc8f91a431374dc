package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/holdfastdev/holdfast/apps/internal/egress"
	"github.com/holdfastdev/holdfast/apps/screenshot/chromium"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
)

// The phases of a shot.
const (
	phaseOpen     = "opening a tab"
	phaseNavigate = "requesting the page"
	phaseLoad     = "loading the page"
	phaseIdle     = "waiting until the page is idle"
	phaseSelector = "waiting for an element"
	phaseDelay    = "waiting as long as the job asks"
	phasePrepare  = "preparing the page"
	phaseCapture  = "taking the picture"
)

// take takes the picture. Its errors are either coded, or raw for failed.
func (t *tab) take(ctx context.Context) (*shot.Picture, error) {
	ctx, t.end = context.WithCancelCause(ctx)
	defer t.end(nil)
	for _, step := range []struct {
		phase string
		do    func(context.Context) error
	}{{phaseOpen, t.open}, {phaseNavigate, t.navigate}, {phaseLoad, t.wait}, {phasePrepare, t.prepare}} {
		t.phase = step.phase
		if err := step.do(ctx); err != nil {
			return nil, err
		}
	}
	t.phase = phaseCapture
	picture, err := t.capture(ctx)
	if err != nil {
		return nil, err
	}
	return picture, t.describe(ctx, picture)
}

// localHost is the host from which documents of requests are served: the proxy answers for it.
const localHost = "document.invalid"

// open opens a browser context with one page, and sets what the page may do and see.
func (t *tab) open(ctx context.Context) error {
	t.client = t.slot.pool.proxy.Open(t.network())
	root := t.slot.process.Browser
	root.Handle(t.handleBrowser)
	watch, stop := context.WithCancel(context.Background())
	t.stop = stop
	go t.watch(watch)
	made, err := chromium.Call(ctx, root, target.CreateBrowserContext, target.CreateBrowserContextParams{})
	if err != nil {
		return err
	}
	t.context = made.BrowserContextID
	// The size of the window does not matter, but in a window smaller than its frame nothing is drawn.
	opened, err := chromium.Call(ctx, root, target.CreateTarget, target.CreateTargetParams{URL: "about:blank", BrowserContextID: t.context})
	if err != nil {
		return err
	}
	t.target = opened.TargetID
	if t.session, err = t.slot.process.Attach(ctx, t.target); err != nil {
		return err
	}
	t.session.Handle(t.handle)
	// All are sent before the first answer is read: a browser under load takes as long for each answer as for all of them.
	for _, wait := range slices.Concat(t.restrict(), t.observe(), t.emulate(), t.setCookies()) {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// network returns what the page may do in the network.
func (t *tab) network() egress.Limits {
	limits, own := t.slot.pool.cfg.Limits.Network, shot.NewHosts(t.options.BlockHosts...)
	limits.Deny = func(host string) bool { return own.Has(host) || t.options.BlockAds && t.slot.pool.cfg.Ads.Has(host) }
	if t.options.HTML != "" {
		limits.LocalHost, limits.Local = localHost, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte(t.options.HTML))
		})
	}
	return limits
}

// do executes a command whose answer says nothing.
func do[P, R any](ctx context.Context, s *chromium.Session, command cdp.Command[P, R], params P) error {
	return begin(s, command, params)(ctx)
}

// An answered waits until a command that was sent is answered.
type answered func(context.Context) error

// begin sends a command whose answer says nothing.
func begin[P, R any](s *chromium.Session, command cdp.Command[P, R], params P) answered {
	pending := chromium.Begin(s, command, params)
	return func(ctx context.Context) error {
		_, err := pending.Wait(ctx)
		return err
	}
}

// noWorkers runs in each document before its own scripts. A service worker would answer for the page, and outlive it.
const noWorkers = `(() => {
	const refuse = () => Promise.reject(new DOMException("Service workers are not available", "SecurityError"));
	if (globalThis.ServiceWorkerContainer) Object.defineProperty(ServiceWorkerContainer.prototype, "register", { value: refuse });
})()`

// restrict refuses downloads and service workers.
func (t *tab) restrict() []answered {
	root := t.slot.process.Browser
	return []answered{
		begin(root, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorDeny, BrowserContextID: t.context}),
		begin(t.session, network.SetBypassServiceWorker, network.SetBypassServiceWorkerParams{Bypass: true}),
		begin(t.session, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: noWorkers}),
		begin(root, target.SetDiscoverTargets, target.SetDiscoverTargetsParams{Discover: true}),
	}
}

// observe turns on the events of handle. The first request of the page is intercepted, because the browser asks only then for the credential of the proxy.
func (t *tab) observe() []answered {
	pattern := &fetch.RequestPattern{URLPattern: "*", ResourceType: network.ResourceTypeDocument}
	if len(t.options.Headers) > 0 {
		pattern.ResourceType = "" // headers belong to all requests
	}
	yes, small := true, int64(1<<16)
	return []answered{
		begin(t.session, inspector.Enable, cdp.Empty{}),
		begin(t.session, page.Enable, page.EnableParams{}),
		begin(t.session, page.SetLifecycleEventsEnabled, page.SetLifecycleEventsEnabledParams{Enabled: true}),
		begin(t.session, network.Enable, network.EnableParams{MaxTotalBufferSize: &small, MaxResourceBufferSize: &small, MaxPostDataSize: new(int64)}),
		begin(t.session, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{pattern}, HandleAuthRequests: &yes}),
	}
}

// emulate sets the viewport, the theme, the locale and the time zone.
func (t *tab) emulate() []answered {
	o, theme := t.options, "light"
	if o.DarkMode {
		theme = "dark"
	}
	return []answered{
		begin(t.session, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: int64(o.Width), Height: int64(o.Height), DeviceScaleFactor: o.Scale,
		}),
		begin(t.session, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}),
		begin(t.session, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: o.TimeZone}),
		begin(t.session, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: strings.ReplaceAll(o.Locale, "-", "_")}),
		begin(t.session, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: t.slot.process.UserAgent, AcceptLanguage: o.Locale}),
	}
}

func (t *tab) setCookies() []answered {
	if len(t.options.Cookies) == 0 {
		return nil
	}
	var list []*network.CookieParam
	for _, c := range t.options.Cookies {
		one := &network.CookieParam{Name: c.Name, Value: c.Value, Domain: c.Domain, Path: c.Path, Secure: c.Secure, HTTPOnly: c.HTTPOnly}
		if c.Domain == "" {
			one.URL = t.options.URL
		}
		list = append(list, one)
	}
	set := begin(t.session, network.SetCookies, network.SetCookiesParams{Cookies: list})
	return []answered{func(ctx context.Context) error {
		if err := set(ctx); err != nil {
			return t.refuse("cookies", err)
		}
		return nil
	}}
}

// refuse returns the error of an option that only the browser could check.
func (t *tab) refuse(field string, err error) error {
	if _, ok := asProtocolError(err); !ok {
		return err
	}
	return code.New(code.Validation, hostOf(t.options), shot.FieldErrors{{Field: field, Problem: "the browser does not accept it"}})
}

// navigate requests the page, up to its first bytes.
func (t *tab) navigate(ctx context.Context) error {
	address := t.options.URL
	if t.options.HTML != "" {
		address = "http://" + localHost + "/"
	}
	answer, err := chromium.Call(ctx, t.session, page.Navigate, page.NavigateParams{URL: address})
	switch {
	case err != nil:
		return err
	case answer.IsDownload:
		return code.New(code.PageIsDownload, hostOf(t.options), nil)
	case answer.ErrorText != "":
		return t.navigationError(answer.ErrorText)
	}
	if len(t.options.Headers) == 0 { // the browser knows the credential now
		return do(ctx, t.session, fetch.Disable, cdp.Empty{})
	}
	return nil
}

// describe adds the facts to a picture.
func (t *tab) describe(ctx context.Context, p *shot.Picture) error {
	title, err := evaluate[string](ctx, t, `document.title.slice(0, 300)`)
	if err != nil {
		return err
	}
	s, report := t.look(), t.client.Report()
	p.Format = t.options.Format
	p.Facts.FinalURL, p.Facts.Status, p.Facts.Title = s.url, s.status, title
	if t.options.HTML != "" {
		p.Facts.FinalURL, p.Facts.Status = "", 0
	}
	p.Facts.Bytes, p.Facts.DurationMS = len(p.Data), time.Since(t.began).Milliseconds()
	p.Facts.Requests, p.Facts.Received, p.Facts.Blocked = s.requests, report.Bytes, report.Refusals
	p.Facts.Dialogs, p.Facts.Failed = s.dialogs, s.failed
	return nil
}

// closeTime is how long a browser may take to throw a context away. One that needs longer is replaced.
const closeTime = 3 * time.Second

// close throws the context away, and reports whether the browser did that.
func (t *tab) close() bool {
	if t.stop != nil {
		t.stop()
	}
	defer func() {
		if t.client != nil {
			t.client.Close()
		}
	}()
	t.slot.process.Browser.Handle(nil)
	if t.session != nil {
		t.session.Handle(nil)
	}
	if t.slot.sick {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return t.context == "" || do(ctx, t.slot.process.Browser, target.DisposeBrowserContext, target.DisposeBrowserContextParams{BrowserContextID: t.context}) == nil
}

// originOf returns the origin of an address.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return fmt.Sprintf("%s://%s:%s", u.Scheme, strings.ToLower(u.Hostname()), port)
}
