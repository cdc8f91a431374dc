//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/screenshot/browser/hostiletest"
)

const (
	hostileLimit = 5 * time.Second  // of a hostile page
	after        = 2 * time.Second  // so much later a contender must have answered
	patience     = 15 * time.Second // for the ordinary page after it
)

// A hostile page hangs a contender if the request is not answered 2 seconds after the time limit of the picture, and harms it if the next ordinary page fails or takes
// longer than 15 seconds. A contender that does not recover is started again.
func TestHostilePagesHangNoShotOfTheService(t *testing.T) {
	if !*peers {
		t.Log("the package browser tests hostile pages; this test compares with others: -args -bench.peers")
		return
	}
	ordinary := servePages(t)[0]
	for i, c := range contenders(t) {
		hangs, harmed, pages := 0, 0, 0
		r := c.start(t, 2, hostileLimit)
		port := hostiletest.Serve(t, func() { killRenderers(os.Getpid()) })
		for _, page := range hostiletest.Pages() {
			if !page.Stands || page.Host != "" || page.Options.DelayMS > 0 || page.Options.WaitFor != "" || page.Options.WaitForSelector != "" {
				continue // the others have no such options, or other ones
			}
			pages++
			began := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), hostileLimit+30*time.Second)
			_, err := r.shoot(ctx, request{url: "http://" + net.JoinHostPort("127.0.0.1", port) + page.Path(), full: page.Options.FullPage})
			cancel()
			took := time.Since(began)
			hung := took > hostileLimit+after || errors.Is(err, context.DeadlineExceeded)
			ctx, cancel = context.WithTimeout(context.Background(), patience)
			_, next := r.shoot(ctx, request{url: ordinary})
			cancel()
			if hung {
				hangs++
			}
			if next != nil {
				harmed++
				r.stop()
				r = c.start(t, 2, hostileLimit)
			}
			t.Logf("%-18s %-45s %6d ms, hangs %v, next %v: %.150v", c.name, page.Name, took.Milliseconds(), hung, next, err)
		}
		r.stop()
		if i == 0 && hangs+harmed > 0 {
			t.Errorf("the service hangs")
		}
		t.Logf("%s: %d hostile pages, %d hangs, %d times the next page was harmed", c.name, pages, hangs, harmed)
	}
}

// killRenderers kills the renderers below a process. Only Linux lists them.
func killRenderers(pid int) {
	for _, child := range children(pid) {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child)); err == nil && strings.Contains(string(line), "--type=renderer") {
			_ = syscall.Kill(child, syscall.SIGKILL)
			continue
		}
		killRenderers(child)
	}
}
