package browser_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/screenshot/browser"
	"github.com/holdfastdev/holdfast/apps/screenshot/browser/hostiletest"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
	"github.com/holdfastdev/holdfast/internal/soak"
)

// Every hostile page ends within the time limit of its shot and 2 seconds, with the code that says what it did, and the next shot of the same browser is right. In
// `make test`, where other tests use the same processors, the bound on the time is generous.
func TestHostilePagesEndInTimeAndHarmNoOtherShot(t *testing.T) {
	all, after := soak.Pick("all hostile pages, or those that stand for a class", 0, 1), time.Duration(soak.Pick("seconds after the limit of a hostile page", 30, 2))*time.Second
	s := open(t, func(cfg *browser.Config) {
		cfg.Guard = guard(t, hangsAtTimes)
		cfg.Limits.Memory, cfg.Limits.HeapMB = 1<<30, 256
	})
	port := hostiletest.Serve(t, killRenderers)
	for _, page := range hostiletest.Pages() {
		if all == 0 && !page.Stands {
			continue
		}
		t.Run(page.Name, func(t *testing.T) {
			s := &scene{t, s.pool}
			s.unharmed()
			o, host := page.Options, page.Host
			if host == "" {
				host = "page.example"
			}
			o.URL = "http://" + net.JoinHostPort(host, port) + page.Path()
			codes, limited := page.Codes, slices.ContainsFunc(page.Codes, isLimit)
			if o.TimeoutMS == 0 {
				o.TimeoutMS = soak.Pick("milliseconds that a hostile page may take", 60_000, 5000)
			}
			if all == 0 && limited { // it ends at its limit; on a slow machine the document may come later
				o.TimeoutMS, codes = min(o.TimeoutMS, 8000), append(slices.Clone(codes), code.PageTimeout)
			}
			if o.Width == 0 {
				o.Width, o.Height = 400, 300
			}
			began := time.Now()
			p, err := s.try(o)
			took := time.Since(began)
			t.Logf("%v of %v: %v %v", took.Round(time.Millisecond), o.WithDefaults().Timeout(), code.Name(err), err)
			if took > o.Timeout()+after {
				t.Errorf("it took %v, the limit is %v", took, o.Timeout())
			}
			switch {
			case err != nil && !slices.Contains(codes, code.Name(err)):
				t.Errorf("%s: %v; expected is one of %v", code.Name(err), err, codes)
			case err == nil && len(page.Codes) > 0 && !page.Or:
				t.Errorf("a picture instead of one of %v: %+v", page.Codes, p.Facts)
			case err == nil && page.Shows:
				s.shows(p, 1, 1, green)
			}
			if err == nil && p.Facts.Dialogs < page.Dialogs {
				t.Errorf("%d dialogs: %+v", p.Facts.Dialogs, p.Facts)
			}
			s.unharmed()
		})
	}
}

// isLimit reports whether a page ends with a code only when its time is over.
func isLimit(name string) bool {
	return name == code.PageUnresponsive || name == code.PageNeverIdle || name == code.PageTimeout
}

// unharmed takes a picture that must be right.
func (s *scene) unharmed() {
	s.Helper()
	p := s.take(shot.Options{HTML: `<!doctype html><title>Next</title><body style="background: blue"><p>Next`, Width: 200, Height: 100})
	s.shows(p, 190, 90, blue)
	if p.Facts.Title != "Next" || p.Facts.Dialogs != 0 || p.Facts.Requests != 1 || len(p.Facts.Failed) > 0 || len(p.Facts.Blocked) > 0 {
		s.Errorf("%+v", p.Facts)
	}
}

// hangsAtTimes resolves names to 127.0.0.1, and does not answer for hangs.example.
func hangsAtTimes(ctx context.Context, host string) ([]netip.Addr, error) {
	if host == "hangs.example" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// killRenderers kills the renderers of the browsers that this process started.
func killRenderers() {
	for _, pid := range descendants(os.Getpid()) {
		if line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); err != nil || !strings.Contains(string(line), "--type=renderer") {
			continue
		}
		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Kill()
		}
	}
}

// descendants returns the processes that a process started, and those that they started. It needs Linux.
func descendants(pid int) (list []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is valid
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, one := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(one); err == nil {
				list = append(append(list, child), descendants(child)...)
			}
		}
	}
	return list
}
