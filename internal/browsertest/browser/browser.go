// Package browser gives tests a real Chromium. Pages that are open at the same time share a browser and nothing else.
//
//	p := browser.Open(t, server.URL)
//	p.Click("button.primary")
//	p.See(".badge", "Complete")
//
// It never skips a test: without Chromium the test fails and says how to get it.
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

// patience bounds what is normally done in a moment, on a machine that may be very busy.
const patience = 60 * time.Second

// names are those that Chromium and its kin go by elsewhere.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}

// shared is the browser of all pages that are open. It starts with the first of them and ends with the last: nothing outlives the tests, and no
// TestMain is needed for that.
var shared struct {
	sync.Mutex
	pages int
	ctx   context.Context
	end   func()
}

// join answers with the browser for one more page, and starts it if there is none.
func join() (context.Context, error) {
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

// leave ends the browser when no page is left.
func leave() {
	shared.Lock()
	defer shared.Unlock()
	if shared.pages--; shared.pages == 0 {
		shared.end()
		shared.ctx, shared.end = nil, nil
	}
}

func launch() (context.Context, func(), error) {
	path, err := find()
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "holdfast-browser-")
	if err != nil {
		return nil, nil, fmt.Errorf("there is no temporary folder for the browser: %w", err)
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
		return nil, nil, fmt.Errorf("the browser %s does not start: %w", path, err)
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

// fatal ends a test with what was asked for and what was there instead.
func fatal(t testing.TB, err error, format string, a ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", fmt.Sprintf(format, a...), err)
	}
}
