// Package probe asks whether something is well. Engines do not speak HTTP themselves, so that they need not; whoever runs one
// hands them this:
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

// patience is how long an answer may take. A service that needs longer to say that it is well is not.
const patience = 5 * time.Second

// client keeps no connection: the next question comes seconds later, and must not be answered by the memory of a good time. A
// redirect is an answer, and not the one that was asked for.
var client = &http.Client{
	Timeout:       patience,
	Transport:     &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: patience},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// URL asks an address with GET, and is content with any status from 200 to 299.
func URL(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("the address of a health probe makes no sense: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the health probe has no answer: %w", err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<16)
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("the health probe is answered with %s", response.Status)
	}
	return nil
}
