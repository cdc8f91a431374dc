package probe_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfastdev/holdfast/internal/probe"
)

func TestOnly2xxIsHealthy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/well":
		case "/moved":
			http.Redirect(w, r, "/well", http.StatusFound)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	for path, well := range map[string]bool{"/well": true, "/moved": false, "/ill": false} {
		if err := probe.URL(t.Context(), server.URL+path); (err == nil) != well {
			t.Errorf("%s: %v", path, err)
		}
	}
	server.Close()
	if probe.URL(t.Context(), server.URL+"/well") == nil || probe.URL(t.Context(), "::") == nil {
		t.Error("an address that does not answer, or makes no sense, is well")
	}
}

func TestAProbeEndsWithItsContext(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if probe.URL(ctx, server.URL) == nil {
		t.Error("a probe that was called off is well")
	}
}
