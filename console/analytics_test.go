package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/ops"
)

// addedUp asks for a page until its figures are there.
func (s *scene) addedUp(path string) string {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if text := s.shows(path); !strings.Contains(text, "Being added up") {
			return text
		}
	}
	s.t.Fatal("the figures never come")
	return ""
}

func TestAnalyticsSayWhetherItHelpsToTryAgain(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	text := s.addedUp("/analytics?within=1h")
	for _, words := range []string{"Complete at once", "Attempt 1", "DEPENDENCY_DOWN", "never tried again", `href="/policies?kind=convert"`, "Amplification", "Recovery of dependencies", "gateway"} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is not said", words)
		}
	}
	if status, _ := s.get("/analytics?within=1y"); status != http.StatusBadRequest {
		t.Errorf("a time that is not offered: %d", status)
	}
}

// A slowDesk adds up until it is let go.
type slowDesk struct {
	ops.Desk
	leave chan struct{}
}

func (d slowDesk) Analytics(ctx context.Context, within time.Duration) (ops.Analytics, error) {
	select {
	case <-d.leave:
		return d.Desk.Analytics(ctx, within)
	case <-ctx.Done():
		return ops.Analytics{}, ctx.Err()
	}
}

func TestAnalyticsThatTakeLongKeepNobodyWaiting(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	slow := slowDesk{s.Desk, make(chan struct{})}
	c, err := console.New(console.Config{Desk: slow})
	if err != nil {
		t.Fatal(err)
	}
	s.site = httptest.NewServer(c)
	t.Cleanup(func() { c.Close(); s.site.Close() })
	s.shows("/analytics", "Being added up")
	close(slow.leave)
	if text := s.addedUp("/analytics"); !strings.Contains(text, "Success by attempt") {
		t.Error("no figures")
	}
}
