package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/holdfastdev/holdfast/apps/screenshot/chromium"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
)

// wait waits until the page is what the options ask for. A page may go to another one meanwhile: then that one is waited for.
func (t *tab) wait(ctx context.Context) error {
	for {
		before := t.look().navigations
		if err := t.waitLoaded(ctx); err != nil {
			return err
		}
		if err := t.waitSelector(ctx); err != nil {
			return err
		}
		if err := t.delay(ctx); err != nil {
			return err
		}
		after := t.look()
		if after.navigations == before || after.loaded() {
			return t.checkAnswer()
		}
	}
}

func (t *tab) waitLoaded(ctx context.Context) error {
	t.phase = phaseLoad
	if err := t.until(ctx, func(s seen) bool { return s.loaded() }); err != nil {
		return err
	}
	if err := t.checkAnswer(); err != nil {
		return err
	}
	if t.options.WaitFor == shot.Idle {
		t.phase = phaseIdle
		if err := t.until(ctx, func(s seen) bool { return s.reached["networkIdle"] }); err != nil {
			return err
		}
	}
	return t.settle(ctx)
}

// until waits until a condition holds for what was seen.
func (t *tab) until(ctx context.Context, holds func(seen) bool) error {
	for {
		if s := t.look(); s.ended() {
			return errPage
		} else if holds(s) {
			return nil
		}
		if err := t.pause(ctx, 0); err != nil {
			return err
		}
	}
}

// errPage is the error of a page that has ended the shot. failed reads from what was seen how.
var errPage = errors.New("the page has ended")

// pause waits until something has changed, or for a time if that is not zero.
func (t *tab) pause(ctx context.Context, d time.Duration) error {
	var later <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		later = timer.C
	}
	select {
	case <-t.changed:
	case <-later:
	case <-t.slot.process.Ended():
		return chromium.ErrLost
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// checkAnswer refuses the page that the browser shows instead of one that it did not reach, and pages with an HTTP status of an error.
func (t *tab) checkAnswer() error {
	s := t.look()
	status := s.status
	if s.unreachable != "" && s.documentErr != "net::ERR_HTTP_RESPONSE_CODE_FAILURE" {
		return t.navigationError(s.documentErr)
	}
	if status < 400 || t.options.AllowErrorPages {
		return nil
	}
	name := code.PageHTTP4XX
	switch {
	case status == 429:
		name = code.PageHTTP429
	case status >= 500:
		name = code.PageHTTP5XX
	}
	return t.fail(name, fmt.Errorf("the host of the page answered HTTP %d", status))
}

// settle waits until fonts were loaded and two frames were drawn, but not long: what never settles is shown as it is.
func (t *tab) settle(ctx context.Context) error {
	_, err := evaluate[bool](ctx, t, `Promise.race([
		document.fonts.ready.then(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))),
		new Promise((late) => setTimeout(late, 1000)),
	]).then(() => true)`)
	return err
}

// pollInterval is the time between two looks for an element.
const pollInterval = 100 * time.Millisecond

func (t *tab) waitSelector(ctx context.Context) error {
	if t.options.WaitForSelector == "" {
		return nil
	}
	t.phase = phaseSelector
	for {
		found, err := t.find(ctx, "waitForSelector", t.options.WaitForSelector)
		if err != nil || found.Width > 0 && found.Height > 0 {
			return err
		}
		if err := t.until(ctx, func(seen) bool { return true }); err != nil {
			return err
		}
		if err := t.pause(ctx, pollInterval); err != nil {
			return err
		}
	}
}

func (t *tab) delay(ctx context.Context) error {
	if t.options.DelayMS == 0 {
		return nil
	}
	t.phase = phaseDelay
	over := time.Now().Add(time.Duration(t.options.DelayMS) * time.Millisecond)
	return t.until(ctx, func(seen) bool {
		left := time.Until(over)
		if left > 0 {
			_ = t.pause(ctx, left)
		}
		return time.Until(over) <= 0 || ctx.Err() != nil
	})
}

// prepare clicks, hides and checks.
func (t *tab) prepare(ctx context.Context) error {
	for _, selector := range t.options.Click {
		clicked, err := t.withSelector(ctx, "click", selector, `e ? (e.scrollIntoView({ block: "center", behavior: "instant" }), e.click(), true) : false`)
		switch {
		case err != nil:
			return err
		case clicked != "true":
			return t.fail(code.PageSelectorMissing, fmt.Errorf("click: there is no element %.100q", selector))
		}
		if err := t.settle(ctx); err != nil {
			return err
		}
	}
	for _, selector := range t.options.Hide {
		if _, err := t.withSelector(ctx, "hide", selector, `(() => {
			const sheet = new CSSStyleSheet();
			sheet.insertRule(selector + " { display: none !important }");
			document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
			return true;
		})()`); err != nil {
			return err
		}
	}
	if err := t.checkContent(ctx); err != nil {
		return err
	}
	if len(t.options.Hide) > 0 {
		return t.settle(ctx)
	}
	return nil
}

// checkContent fails where the options ask for it, and when the page needed more data than allowed.
func (t *tab) checkContent(ctx context.Context) error {
	if err := t.checkNetwork(); err != nil {
		return err
	}
	if s := t.look(); t.options.FailOnRequestErrors && len(s.failed) > 0 {
		return t.fail(code.PageRequestFailed, fmt.Errorf("%d requests failed, first: %s", len(s.failed), s.failed[0]))
	}
	if len(t.options.FailOnText) == 0 {
		return nil
	}
	texts, err := json.Marshal(t.options.FailOnText)
	if err != nil {
		return err
	}
	found, err := evaluate[string](ctx, t, `(() => { const text = document.documentElement.innerText; return `+string(texts)+`.find((t) => text.includes(t)) ?? ""; })()`)
	if err != nil {
		return err
	}
	if found != "" {
		return t.fail(code.PageTextFound, fmt.Errorf("the page contains %.100q", found))
	}
	return nil
}

// A box is the place of an element in the page, in CSS pixels.
type box struct{ X, Y, Width, Height float64 }

// find returns the place of the first element of a selector; an empty one if there is none, or it is not visible.
func (t *tab) find(ctx context.Context, field, selector string) (b box, err error) {
	text, err := t.withSelector(ctx, field, selector, `(() => {
		if (!e || !e.checkVisibility({ visibilityProperty: true })) return {};
		const r = e.getBoundingClientRect();
		return { X: r.x + scrollX, Y: r.y + scrollY, Width: r.width, Height: r.height };
	})()`)
	if err != nil {
		return b, err
	}
	return b, json.Unmarshal([]byte(text), &b)
}

// withSelector evaluates an expression with the selector and its first element e, and returns the value as JSON. field is the option that has the selector.
func (t *tab) withSelector(ctx context.Context, field, selector, expression string) (string, error) {
	quoted, err := json.Marshal(selector)
	if err != nil {
		return "", err
	}
	text, err := evaluate[string](ctx, t, `((selector) => {
		let e;
		try { e = document.querySelector(selector) } catch { return "invalid" }
		return JSON.stringify(`+expression+`);
	})(`+string(quoted)+`)`)
	if err == nil && text == "invalid" {
		return "", code.New(code.Validation, hostOf(t.options), shot.FieldErrors{{Field: field, Problem: fmt.Sprintf("%.100q is not a CSS selector", selector)}})
	}
	return text, err
}

// evaluate evaluates an expression in a world of its own: scripts of the page cannot change what it sees, except for the document. When the page goes to another one
// meanwhile, the expression is evaluated there.
func evaluate[T any](ctx context.Context, t *tab, expression string) (value T, err error) {
	for {
		answer, err := t.evaluateOnce(ctx, expression)
		switch _, refused := asProtocolError(err); {
		case err == nil && answer.ExceptionDetails != nil:
			return value, fmt.Errorf("a script of the service failed in the page: %s", cut(answer.ExceptionDetails.Text, 200))
		case err == nil && answer.Result != nil:
			return value, jsonv2.Unmarshal(answer.Result.Value, &value)
		case !refused:
			return value, err
		}
		if err := t.until(ctx, func(seen) bool { return true }); err != nil {
			return value, err
		}
		if err := t.pause(ctx, 20*time.Millisecond); err != nil {
			return value, err
		}
	}
}

// evaluateOnce evaluates an expression in the world of the document that is shown, which it makes if there is none yet. A world ends with its document.
func (t *tab) evaluateOnce(ctx context.Context, expression string) (answer runtime.EvaluateResult, err error) {
	yes := true
	if t.world == 0 {
		made, err := chromium.Call(ctx, t.session, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: cdp.FrameID(t.target), WorldName: "holdfast"})
		if err != nil {
			return answer, err
		}
		t.world = made.ExecutionContextID
	}
	answer, err = chromium.Call(ctx, t.session, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ContextID: t.world, ReturnByValue: &yes, AwaitPromise: &yes})
	if _, refused := asProtocolError(err); refused {
		t.world = 0
	}
	return answer, err
}

func asProtocolError(err error) (*chromium.ProtocolError, bool) {
	return errors.AsType[*chromium.ProtocolError](err)
}

// fail returns the error of a code.
func (t *tab) fail(name string, err error) error { return code.New(name, t.host(), err) }

// host returns the host of the page that is shown, or of the one that was asked for.
func (t *tab) host() string {
	if host := hostOf(shot.Options{URL: t.look().asked}); host != "" && !strings.EqualFold(host, localHost) {
		return host
	}
	return hostOf(t.options)
}
