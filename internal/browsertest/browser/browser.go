// Package browser gives tests a real Chromium. Pages that are open at the same time share the browser process, but no cookies or storage.
//
//	p := browser.Open(t, server.URL)
//	p.Click("button.primary")
//	p.See(".badge", "Complete")
//
// It never skips a test: without Chromium the test fails and says how to install it.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfastdev/holdfast/internal/testprograms"
)

// timeout is for operations that normally take a moment, on a machine that may be very busy.
const timeout = 60 * time.Second

// names are the names of Chromium and Chrome on different systems.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}

// shared is the browser of all open pages. It starts with the first page and ends with the last, so that it does not outlive the tests and no TestMain is needed.
var shared struct {
	sync.Mutex
	pages int
	ctx   context.Context
	end   func()
}

// acquire returns the browser for one more page, and starts it if needed.
func acquire() (context.Context, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.pages == 0 {
		var err error
		if shared.ctx, shared.end, err = launch(); err != nil {
			return nil, err
		}
	}
	shared.pages++
	return shared.ctx, nil
}

// release ends the browser when no page is left.
func release() {
	shared.Lock()
	defer shared.Unlock()
	if shared.pages--; shared.pages == 0 {
		shared.end()
		shared.ctx, shared.end = nil, nil
	}
}

// launches is how often a browser is started until it answers: now and then one crashes at its start.
const launches = 3

func launch() (ctx context.Context, end func(), err error) {
	path, err := find()
	if err != nil {
		return nil, nil, err
	}
	for range launches {
		if ctx, end, err = start(path); err == nil {
			break
		}
	}
	return ctx, end, err
}

func start(path string) (context.Context, func(), error) {
	dir, err := os.MkdirTemp("", "holdfast-browser-")
	if err != nil {
		return nil, nil, fmt.Errorf("cannot create a temporary folder for the browser: %w", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(dir),
		chromedp.Flag("disable-quic", true), chromedp.WindowSize(1280, 900))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // its sandbox does not work for root
	}
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, endBrowser := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	end := func() {
		endBrowser()
		endAllocator()
		_ = os.RemoveAll(dir)
	}
	if err := chromedp.Do(ctx); err != nil {
		end()
		return nil, nil, fmt.Errorf("cannot start the browser %s: %w", path, err)
	}
	return ctx, end, nil
}

func find() (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return testprograms.Chromium.Ensure()
}

// fatal ends a test if there is an error.
func fatal(t testing.TB, err error, format string, a ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", fmt.Sprintf(format, a...), err)
	}
}
