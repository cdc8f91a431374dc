package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/screenshot/browser"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
)

func TestABrowserIsReplacedAfterANumberOfPicturesAnAgeAndASize(t *testing.T) {
	for name, recycle := range map[string]browser.Recycle{"pictures": {Shots: 1}, "age": {Age: time.Nanosecond}, "memory": {Memory: 1}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, func(cfg *browser.Config) { cfg.Recycle = recycle })
			s.unharmed()
			s.unharmed()
			if st := s.pool.Status(); st.Started != 2 || st.Recycled < 1 || st.Sick != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestABrowserThatEndedBetweenTwoShotsIsStartedAgain(t *testing.T) {
	s := open(t, nil)
	s.unharmed()
	for _, pid := range descendants(os.Getpid()) {
		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Kill()
		}
	}
	// The end may be noticed before the next shot or by it. Then the shot fails with a code that is retried.
	if _, err := s.try(shot.Options{HTML: "<title>x</title><p>x"}); err != nil && code.Name(err) != code.BrowserCrashed {
		t.Errorf("%s: %v", code.Name(err), err)
	}
	s.unharmed()
	if st := s.pool.Status(); st.Started != 2 || st.Sick != 1 || st.Problem != "" {
		t.Errorf("%+v", st)
	}
}

// A user who cancels a shot does not cost others the time in which a browser starts.
func TestACancelledShotIsNoFailureOfTheBrowser(t *testing.T) {
	s := open(t, nil)
	asked := make(chan struct{}, 1)
	at := serve(t, map[string]http.HandlerFunc{"/part": func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}, "/page": text(`<title>Page</title><p>Page<img src=/part>`)})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := s.pool.Take(ctx, shot.Options{URL: at + "/page", TimeoutMS: 60_000}); ctx.Err() == nil || err == nil {
		t.Errorf("the shot ended with %v", err)
	}
	s.unharmed()
	if st := s.pool.Status(); st.Started != 1 || st.Sick != 0 || st.Failed != 0 {
		t.Errorf("%+v", st)
	}
}

func TestACancellationWhileTheBrowserStartsIsNoProblemOfTheBrowsers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("the program that never answers is a script of the shell")
		return
	}
	folder := t.TempDir()
	started, program := filepath.Join(folder, "started"), filepath.Join(folder, "chromium")
	if err := os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\ntouch '%s'\nexec tail -f /dev/null\n", started), 0o700); err != nil {
		t.Fatal(err)
	}
	pool, err := browser.New(browser.Config{Path: program, Size: 1, Guard: guard(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for _, err := os.Stat(started); err != nil && t.Context().Err() == nil; _, err = os.Stat(started) {
			<-time.After(10 * time.Millisecond)
		}
	}()
	if _, err := pool.Take(ctx, shot.Options{HTML: "<p>x"}); err == nil {
		t.Error("a picture without a browser")
	}
	if st := pool.Status(); st.Problem != "" || st.Failed != 0 {
		t.Errorf("%+v", st)
	}
}
