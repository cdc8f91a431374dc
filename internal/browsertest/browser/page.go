package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A Page is one tab, with its own cookies and storage.
type Page struct {
	t         testing.TB
	ctx       context.Context
	downloads string

	mu         sync.Mutex
	complaints []string
}

// New opens an empty page. It is closed when the test ends.
func New(t testing.TB) *Page {
	t.Helper()
	browser, err := acquire()
	fatal(t, err, "no browser")
	ctx, end := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(func() {
		end()
		release()
	})
	p := &Page{t: t, ctx: ctx, downloads: t.TempDir()}
	fatal(t, chromedp.Do(ctx), "an empty page") // the page exists as long as the context of its first use
	go p.listen()
	_, err = chromedp.CallBrowser(ctx, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{
		Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllow, DownloadPath: p.downloads, BrowserContextID: chromedp.FromContext(ctx).BrowserContextID,
	})
	fatal(t, err, "cannot set the download folder")
	p.Size(1280, 900)
	return p
}

// Open opens a page and navigates to an address.
func Open(t testing.TB, url string) *Page {
	t.Helper()
	p := New(t)
	p.Go(url)
	return p
}

// listen collects the errors of the page's console.
func (p *Page) listen() {
	for message, err := range chromedp.Console(p.ctx) {
		if err != nil {
			return
		}
		if message.Type == chromedp.ConsoleError || message.Type == chromedp.ConsoleException {
			p.mu.Lock()
			p.complaints = append(p.complaints, fmt.Sprintf("%s: %s (%s)", message.Type, message.Text, message.URL))
			p.mu.Unlock()
		}
	}
}

// Complaints returns the errors of the page's console: exceptions, and requests that the browser refused.
func (p *Page) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.complaints...)
}

func (p *Page) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v\n%s", what, err, p.visible())
	}
}

// Go navigates to an address and waits until the page is loaded.
func (p *Page) Go(url string) { p.t.Helper(); p.do("open "+url, chromedp.Navigate(url)) }

// Reload reloads the page.
func (p *Page) Reload() { p.t.Helper(); p.do("reload", chromedp.Reload()) }

// Click clicks on the element of a selector once it is visible.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.do("click "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// Follow clicks on a link or a submit button, and waits until the next page is loaded.
func (p *Page) Follow(selector string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)); err != nil {
		p.t.Fatalf("follow %s: %v\n%s", selector, err, p.visible())
	}
}

// ArrowDown is the key of that name, for Press.
const ArrowDown = kb.ArrowDown

// Press presses a key, or several, one after the other.
func (p *Page) Press(keys string) { p.t.Helper(); p.do("press", chromedp.KeyEvent(keys, byHand)) }

// PressControl presses a key while Ctrl is held.
func (p *Page) PressControl(key string) {
	p.t.Helper()
	p.do("press Ctrl and "+key, chromedp.KeyEvent(key, byHand, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
}

// byHand sends keys as a keyboard does: a handler of keydown can prevent the input.
func byHand(k *input.DispatchKeyEventParams) {
	if k.Type == kb.KeyDown {
		k.Type = kb.KeyRawDown
	}
}

// Choose selects files in a file picker.
func (p *Page) Choose(selector string, files ...string) {
	p.t.Helper()
	p.do("choose files", chromedp.SetUploadFiles(chromedp.CSS(selector), files))
}

// Drop drops a file on the element of a selector, as a user drags it from a folder.
func (p *Page) Drop(selector, name string, content []byte) {
	p.t.Helper()
	Eval[bool](p, fmt.Sprintf(`(() => {
		const bytes = Uint8Array.from(atob(%s), (c) => c.charCodeAt(0));
		const carried = new DataTransfer();
		carried.items.add(new File([bytes], %s, { type: "application/pdf" }));
		const on = document.querySelector(%s);
		for (const type of ["dragenter", "dragover", "drop"]) on.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: carried }));
		return true;
	})()`, quote(base64.StdEncoding.EncodeToString(content)), quote(name), quote(selector)))
}

// Size sets the size of the window.
func (p *Page) Size(width, height int64) {
	p.t.Helper()
	p.do("size", chromedp.EmulateViewport(width, height))
}

// Likes sets the preferences of the system: the theme, light or dark, and reduced motion.
func (p *Page) Likes(theme string, lessMotion bool) {
	p.t.Helper()
	motion := "no-preference"
	if lessMotion {
		motion = "reduce"
	}
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: motion},
	}})
	fatal(p.t, err, "prefer %s", theme)
}

// WithoutScript disables JavaScript from the next page on.
func (p *Page) WithoutScript() {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	fatal(p.t, err, "without script")
}

// Cookie returns the value of a cookie of the page, also of an HttpOnly one.
func (p *Page) Cookie(name string) string {
	p.t.Helper()
	all, err := chromedp.Call(p.ctx, network.GetCookies, network.GetCookiesParams{})
	fatal(p.t, err, "cookies")
	for _, c := range all.Cookies {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// See waits until an element of the selector is visible and contains the text.
func (p *Page) See(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("see %q in %s", text, selector), seen(selector, text))
}

// SeeNot waits until no visible element of the selector contains the text.
func (p *Page) SeeNot(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("see %q in %s no more", text, selector), "!"+seen(selector, text))
}

// Until waits until an expression is true.
func (p *Page) Until(expression string) { p.t.Helper(); p.until(expression, expression) }

func seen(selector, text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%s)].some((e) => e.checkVisibility() && e.innerText.includes(%s))`, quote(selector), quote(text))
}

func (p *Page) until(what, expression string) {
	p.t.Helper()
	for deadline := time.Now().Add(timeout); ; {
		ctx, cancel := context.WithTimeout(p.ctx, timeout)
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		cancel()
		if err == nil && is {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("timed out waiting to %s (last: %v)\n%s", what, err, p.visible())
		}
		<-time.After(30 * time.Millisecond)
	}
}

// Eval returns the value of an expression in the page.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("evaluate %.200s: %v", expression, err)
	}
	return value
}

// Text returns the visible text of the page.
func (p *Page) Text() string { p.t.Helper(); return Eval[string](p, "document.body.innerText") }

// Downloaded waits until a file is downloaded completely, and returns its name and content.
func (p *Page) Downloaded() (string, []byte) {
	p.t.Helper()
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); <-time.After(30 * time.Millisecond) {
		entries, _ := os.ReadDir(p.downloads)
		for _, entry := range entries {
			if strings.HasSuffix(entry.Name(), ".crdownload") || strings.HasPrefix(entry.Name(), ".") {
				continue
			}
			content, err := os.ReadFile(filepath.Join(p.downloads, entry.Name()))
			if err == nil && len(content) > 0 {
				return entry.Name(), content
			}
		}
	}
	p.t.Fatal("nothing was downloaded")
	return "", nil
}

// Shot saves a screenshot of the whole page.
func (p *Page) Shot(file string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(file, picture, 0o644)
	}
	fatal(p.t, err, "picture %s", file)
}

// ShotOf saves a screenshot from the top of the page: as wide as given, and as high as the page, up to a maximum.
func (p *Page) ShotOf(file string, width, maxHeight int64) {
	p.t.Helper()
	p.Size(width, 800)
	height := Eval[int64](p, `document.documentElement.scrollHeight`)
	p.Size(width, min(max(height, 800), maxHeight))
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(file, picture, 0o644)
	}
	fatal(p.t, err, "picture %s", file)
}

// visible returns what the page shows, for the message of a failed wait.
func (p *Page) visible() string {
	ctx, cancel := context.WithTimeout(p.ctx, 10*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	if err != nil {
		return "cannot read the page: " + err.Error()
	}
	return "the page: " + text + "\nconsole errors: " + strings.Join(p.Complaints(), "\n")
}

// quote returns a text as a JavaScript string.
func quote(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}
