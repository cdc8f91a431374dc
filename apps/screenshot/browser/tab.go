package browser

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/holdfastdev/holdfast/apps/internal/egress"
	"github.com/holdfastdev/holdfast/apps/screenshot/chromium"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
)

// A tab is one page in a browser context of its own, for one shot.
type tab struct {
	slot    *slot
	options shot.Options
	began   time.Time

	client  *egress.Client
	context cdp.BrowserContextID
	target  target.ID
	session *chromium.Session
	world   runtime.ExecutionContextID // in which evaluate runs; 0: none yet. For the goroutine of the shot only
	stop    context.CancelFunc         // of the watch over memory
	end     context.CancelCauseFunc    // of the shot, which may wait for an answer that a page that has ended does not give
	phase   string                     // what the shot does now, for the detail of a failure

	icon network.RequestID // of the page's icon, which the browser requests for itself: the picture does not need it. For handlers of events only

	changed chan struct{} // has an element when the state below has changed
	mu      sync.Mutex
	seen    seen
}

// seen is what the events of a page have said so far.
type seen struct {
	loader      cdp.LoaderID    // of the document that is shown
	reached     map[string]bool // lifecycle events of that document
	stopped     bool            // the browser loads nothing any more
	url         string
	unreachable string       // the address instead of which the browser shows an error page
	asked       string       // the last address of a document that was requested
	documentErr string       // why the last request of a document failed
	cut         cdp.LoaderID // of a document whose end was lost
	status      int
	navigations int
	requests    int
	failed      []string // requests that failed
	dialogs     int
	crashed     bool
	outOfMemory bool
	endless     bool  // there were more navigations than allowed
	peak        int64 // bytes of the browser
}

// loaded reports whether the document that is shown was loaded. One that goes elsewhere while it is loaded, but does not arrive, as at a download, has no load event.
func (s *seen) loaded() bool { return s.reached["load"] || s.stopped }

// ended reports whether there will be no picture, whatever the page does now.
func (s *seen) ended() bool {
	return s.crashed || s.endless || s.outOfMemory || s.isCut()
}

// isCut reports whether the end of the document that is shown was lost.
func (s *seen) isCut() bool { return s.cut != "" && s.cut == s.loader && s.unreachable == "" }

const maxFailedRequests = 20

func newTab(s *slot, o shot.Options) *tab {
	return &tab{slot: s, options: o, began: time.Now(), changed: make(chan struct{}, 1), end: func(error) {}, seen: seen{reached: map[string]bool{}}}
}

// update changes what was seen, and wakes the shot.
func (t *tab) update(change func(*seen)) {
	t.mu.Lock()
	change(&t.seen)
	ended := t.seen.ended()
	t.mu.Unlock()
	if ended {
		t.end(errPage)
	}
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// look returns what was seen so far.
func (t *tab) look() seen {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.seen
	now.reached, now.failed = maps.Clone(now.reached), slices.Clone(now.failed)
	return now
}

// handle is called for each event of the page. Events that are not listed are not decoded: a page can cause any number of them.
func (t *tab) handle(method string, params jsonv2.Value) {
	switch method {
	case page.LifecycleEvent.Method:
		on(page.LifecycleEvent, params, t.onLifecycle)
	case page.FrameNavigated.Method:
		on(page.FrameNavigated, params, t.onNavigated)
	case page.FrameStartedLoading.Method:
		on(page.FrameStartedLoading, params, func(e page.EventFrameStartedLoading) { t.onLoading(e.FrameID, false) })
	case page.FrameStoppedLoading.Method:
		on(page.FrameStoppedLoading, params, func(e page.EventFrameStoppedLoading) { t.onLoading(e.FrameID, true) })
	case page.NavigatedWithinDocument.Method:
		on(page.NavigatedWithinDocument, params, func(e page.EventNavigatedWithinDocument) {
			if t.isMain(e.FrameID) {
				t.update(func(s *seen) { s.url = e.URL })
			}
		})
	case page.JavascriptDialogOpening.Method:
		on(page.JavascriptDialogOpening, params, func(e page.EventJavascriptDialogOpening) {
			chromium.Send(t.session, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: e.Type == page.DialogTypeBeforeunload})
			t.update(func(s *seen) { s.dialogs++ })
		})
	case network.RequestWillBeSent.Method:
		on(network.RequestWillBeSent, params, func(e network.EventRequestWillBeSent) {
			if e.Type == network.ResourceTypeOther && e.Initiator != nil && e.Initiator.Type == network.InitiatorTypeOther {
				t.icon = e.RequestID
				return
			}
			t.update(func(s *seen) {
				s.requests++
				if e.Type == network.ResourceTypeDocument && t.isMain(e.FrameID) && e.Request != nil {
					s.asked = e.Request.URL
				}
			})
		})
	case network.ResponseReceived.Method:
		on(network.ResponseReceived, params, t.onResponse)
	case network.LoadingFailed.Method:
		on(network.LoadingFailed, params, t.onFailed)
	case fetch.RequestPaused.Method:
		on(fetch.RequestPaused, params, t.onPaused)
	case fetch.AuthRequired.Method:
		on(fetch.AuthRequired, params, t.onAuthRequired)
	case inspector.TargetCrashed.Method:
		t.update(func(s *seen) { s.crashed = true })
	}
}

// on decodes an event and passes it on.
func on[E any](event cdp.Event[E], params jsonv2.Value, to func(E)) {
	if e, err := chromium.Decode(event, params); err == nil {
		to(e)
	}
}

// isMain reports whether a frame is the page itself. The browser gives it the id of its target.
func (t *tab) isMain(frame cdp.FrameID) bool { return string(frame) == string(t.target) }

func (t *tab) onLifecycle(e page.EventLifecycleEvent) {
	if !t.isMain(e.FrameID) {
		return
	}
	t.update(func(s *seen) {
		if e.LoaderID == s.loader {
			s.reached[e.Name] = true
		}
	})
}

// onLoading is called when a frame begins or stops to load.
func (t *tab) onLoading(frame cdp.FrameID, stopped bool) {
	if t.isMain(frame) {
		t.update(func(s *seen) { s.stopped = stopped && s.loader != "" })
	}
}

func (t *tab) onNavigated(e page.EventFrameNavigated) {
	if e.Frame == nil || !t.isMain(e.Frame.ID) {
		return
	}
	t.update(func(s *seen) {
		s.loader, s.url, s.unreachable = e.Frame.LoaderID, e.Frame.URL, e.Frame.UnreachableURL
		s.reached, s.stopped = map[string]bool{}, false
		s.navigations++
		s.endless = s.endless || s.navigations > t.slot.pool.cfg.Limits.Navigations
	})
}

func (t *tab) onResponse(e network.EventResponseReceived) {
	if e.Response == nil {
		return
	}
	t.update(func(s *seen) {
		if e.Type == network.ResourceTypeDocument && t.isMain(e.FrameID) {
			s.status = int(e.Response.Status)
			return
		}
		if e.Response.Status >= 400 && e.RequestID != t.icon {
			s.addFailed(e.Response.URL, e.Response.StatusText)
		}
	})
}

func (t *tab) onFailed(e network.EventLoadingFailed) {
	t.update(func(s *seen) {
		switch {
		case e.Type == network.ResourceTypeDocument:
			s.documentErr = e.ErrorText
			if !e.Canceled {
				s.cut = cdp.LoaderID(e.RequestID) // if it is that of the page itself: its request has the id of its loader
			}
		case !e.Canceled && e.RequestID != t.icon:
			s.addFailed(string(e.Type), e.ErrorText)
		}
	})
}

func (s *seen) addFailed(what, why string) {
	if len(s.failed) < maxFailedRequests {
		s.failed = append(s.failed, strings.TrimSpace(cut(what, 200)+" "+why))
	}
}

func cut(text string, length int) string {
	if len(text) > length {
		return strings.ToValidUTF8(text[:length], "")
	}
	return text
}

// onAuthRequired gives the credential of the shot to the proxy, and to nothing else. From then on the browser sends it without asking.
func (t *tab) onAuthRequired(e fetch.EventAuthRequired) {
	answer := &fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseCancelAuth}
	if e.AuthChallenge != nil && e.AuthChallenge.Source == fetch.AuthChallengeSourceProxy {
		answer = &fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseProvideCredentials, Username: t.client.User, Password: t.client.Password}
	}
	chromium.Send(t.session, fetch.ContinueWithAuth, fetch.ContinueWithAuthParams{RequestID: e.RequestID, AuthChallengeResponse: answer})
}

// onPaused lets a request continue, with the headers of the options if it goes to the origin that they are for.
func (t *tab) onPaused(e fetch.EventRequestPaused) {
	next := fetch.ContinueRequestParams{RequestID: e.RequestID}
	if len(t.options.Headers) > 0 && e.Request != nil {
		ours := map[string]string{}
		for name, value := range t.options.Headers {
			ours[strings.ToLower(name)] = value
		}
		for name, value := range e.Request.Headers {
			if text, ok := value.(string); ok && ours[strings.ToLower(name)] == "" {
				next.Headers = append(next.Headers, &fetch.HeaderEntry{Name: name, Value: text})
			}
		}
		if originOf(e.Request.URL) == originOf(t.options.URL) {
			for name, value := range t.options.Headers {
				next.Headers = append(next.Headers, &fetch.HeaderEntry{Name: name, Value: value})
			}
		}
	}
	chromium.Send(t.session, fetch.ContinueRequest, next)
}

// handleBrowser is called for each event of the browser. Windows that the page opens are closed, in case that the browser opens any.
func (t *tab) handleBrowser(method string, params jsonv2.Value) {
	switch method {
	case target.TargetCreated.Method:
		on(target.TargetCreated, params, func(e target.EventTargetCreated) {
			if i := e.TargetInfo; i != nil && i.Type == "page" && i.OpenerID != "" {
				chromium.Send(t.slot.process.Browser, target.CloseTarget, target.CloseTargetParams{TargetID: i.TargetID})
			}
		})
	case target.TargetCrashed.Method:
		on(target.TargetCrashed, params, func(e target.EventTargetCrashed) {
			if e.TargetID == t.target {
				t.update(func(s *seen) { s.crashed, s.outOfMemory = true, s.outOfMemory || e.Status == "oom" })
			}
		})
	}
}

// watch ends the browser when it uses more memory than a shot may.
func (t *tab) watch(ctx context.Context) {
	every := time.NewTicker(150 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		usage, ok := t.slot.process.Usage()
		if !ok {
			continue
		}
		over := usage.Memory > t.slot.pool.cfg.Limits.Memory
		t.update(func(s *seen) { s.peak, s.outOfMemory = max(s.peak, usage.Memory), s.outOfMemory || over })
		if over {
			t.slot.process.Kill()
			return
		}
	}
}
