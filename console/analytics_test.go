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

// computed requests a page until its figures are available.
func (s *scene) computed(path string) string {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if text := s.shows(path); !strings.Contains(text, "Computing") {
			return text
		}
	}
	s.t.Fatal("the figures are never computed")
	return ""
}

func TestAnalyticsSayWhetherRetriesHelp(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	text := s.computed("/analytics?within=1h")
	for _, words := range []string{"First-attempt success", "Attempt 1", "DEPENDENCY_DOWN", "never retried", `href="/policies?kind=convert"`, "Amplification", "Recovery of dependencies", "gateway"} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is not shown", words)
		}
	}
	if status, _ := s.get("/analytics?within=1y"); status != http.StatusBadRequest {
		t.Errorf("an unknown time range: %d", status)
	}
}

// A slowOperator computes analytics only after release is closed.
type slowOperator struct {
	ops.Operator
	release chan struct{}
}

func (d slowOperator) Analytics(ctx context.Context, within time.Duration) (ops.Analytics, error) {
	select {
	case <-d.release:
		return d.Operator.Analytics(ctx, within)
	case <-ctx.Done():
		return ops.Analytics{}, ctx.Err()
	}
}

func TestAnalyticsThatTakeLongKeepNobodyWaiting(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	slow := slowOperator{s.Operator, make(chan struct{})}
	c, err := console.New(console.Config{Operator: slow})
	if err != nil {
		t.Fatal(err)
	}
	s.site = httptest.NewServer(c)
	t.Cleanup(func() { c.Close(); s.site.Close() })
	s.shows("/analytics", "Computing")
	close(slow.release)
	if text := s.computed("/analytics"); !strings.Contains(text, "Success by attempt") {
		t.Error("no figures")
	}
}
