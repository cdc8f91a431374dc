package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

const (
	mappingsMaxAge  = 30 * time.Second // how long the gateway's list of mappings is reused
	mappingsRetry   = 3 * time.Second  // how long it is not asked again after it did not answer
	mappingsTimeout = 2 * time.Second
	gatewayMaxAge   = time.Second // how long the breaker's state is reused
)

// A Mapping is one that users can choose.
type Mapping struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// A mappingsCache holds the gateway's last list of mappings.
type mappingsCache struct {
	mu    sync.Mutex
	until time.Time
	list  []Mapping
}

// mappings answers GET /api/mappings.
func (f *webHandler) mappings(w http.ResponseWriter, r *http.Request, _ string) error {
	return web.WriteJSON(w, http.StatusOK, map[string][]Mapping{"mappings": f.availableMappings(r.Context())})
}

// availableMappings returns the gateway's mappings. While the gateway is down, it returns the last list, or that of the MAPPINGS setting, so that uploads still work.
func (f *webHandler) availableMappings(ctx context.Context) []Mapping {
	o := &f.mappingsCache
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Now().Before(o.until) {
		return o.list
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mappingsTimeout) // the result is shared with other requests
	defer cancel()
	list, err := f.requestMappings(ctx)
	if err == nil {
		o.list, o.until = list, time.Now().Add(mappingsMaxAge)
		return list
	}
	f.log.Debug("cannot read the mappings of the gateway", "event", "mappings_unknown", "error", err.Error())
	o.until = time.Now().Add(mappingsRetry)
	if o.list == nil {
		o.list = f.configuredMappings()
	}
	return o.list
}

// configuredMappings returns the mappings of the MAPPINGS setting.
func (a *app) configuredMappings() []Mapping {
	titles := map[string]string{"text": "Text: pages and paragraphs", "layout": "Layout: words with boxes and fonts", "fields": "Fields: form fields and metadata"}
	list := make([]Mapping, 0, len(a.set.Mappings))
	for _, name := range a.set.Mappings {
		title := titles[name]
		if title == "" {
			title = name
		}
		list = append(list, Mapping{Name: name, Title: title})
	}
	return list
}

func (a *app) requestMappings(ctx context.Context) ([]Mapping, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.set.GatewayURL+"/mappings", nil)
	if err != nil {
		return nil, err
	}
	response, err := a.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the gateway answered with status %d", response.StatusCode)
	}
	var body struct{ Mappings []Mapping }
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&body); err != nil {
		return nil, err
	}
	var list []Mapping
	for _, m := range body.Mappings {
		if !mappingName.MatchString(m.Name) {
			continue // no upload could name it
		}
		if m.Title == "" {
			m.Title = m.Name
		}
		list = append(list, m)
	}
	if len(list) == 0 {
		return nil, errors.New("the gateway has no mappings")
	}
	return list, nil
}

// Gateway is the state of the gateway, for the banner of the page.
type Gateway struct {
	State       string     `json:"state"` // closed: works; open: no jobs are sent to it; half_open: being tried again
	Mode        string     `json:"mode"`  // hold, or fail-fast
	Message     *string    `json:"message"`
	Held        int        `json:"held"` // files that wait for it; counting stops at ten thousand
	NextProbeAt *time.Time `json:"next_probe_at"`
}

// A gatewayCache holds the last state of the gateway: every open page asks for it.
type gatewayCache struct {
	mu  sync.Mutex
	at  time.Time
	now Gateway
}

// gateway answers GET /api/gateway.
func (f *webHandler) gateway(w http.ResponseWriter, r *http.Request, _ string) error {
	now, err := f.gatewayState(r.Context())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, now)
}

// gatewayState returns the breaker's state, at most a second old.
func (f *webHandler) gatewayState(ctx context.Context) (Gateway, error) {
	b := &f.gatewayCache
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.at) < gatewayMaxAge {
		return b.now, nil
	}
	now, err := f.readBreaker(ctx)
	if err == nil {
		b.now, b.at = now, time.Now()
	}
	return now, err
}

// readBreaker reads the breaker and translates its state for users.
func (a *app) readBreaker(ctx context.Context) (Gateway, error) {
	now := Gateway{State: "closed", Mode: "hold"}
	if a.set.FailFast {
		now.Mode = "fail-fast"
	}
	b, err := a.operator.Breaker(ctx, dependencyGateway)
	if errors.Is(err, holdfast.ErrNotFound) { // no call was made yet
		return now, nil
	}
	if err != nil {
		return now, err
	}
	switch {
	case b.State.Refuses():
		now.State = "open"
	case b.State == breaker.HalfOpen || b.State == breaker.Recovering:
		now.State = "half_open"
	default:
		return now, nil
	}
	line := "Converter busy — jobs will resume automatically."
	if a.set.FailFast {
		line = "Converter unavailable — files fail at once until it is back. Please retry them then."
	}
	now.Message, now.Held, now.NextProbeAt = &line, b.Behind, instant(b.NextProbe)
	return now, nil
}
