// Package probe checks the health of a service over HTTP. It is separate so that package engine does not import net/http; the server passes it to its engine:
//
//	engine.Config{ProbeURL: probe.URL}
package probe

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// patience is the time limit of a probe. A service that needs longer counts as unhealthy.
const patience = 5 * time.Second

// client keeps no connections: each probe must open a new one, so that it tests the service as a new client would. Redirects are not followed and count as
// failures.
var client = &http.Client{
	Timeout:       patience,
	Transport:     &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: patience},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// URL sends a GET request and returns nil for any status from 200 to 299.
func URL(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("the address of the health probe is not valid: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the health probe got no answer: %w", err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<16)
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("the health probe was answered with %s", response.Status)
	}
	return nil
}
