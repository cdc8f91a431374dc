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
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// How the gateway is asked what it can do: seldom, and not for long.
const (
	offerFresh  = 30 * time.Second
	offerAgain  = 3 * time.Second // after it did not answer
	offerWithin = 2 * time.Second
	bannerFresh = time.Second
)

// A Mapping is one that can be chosen.
type Mapping struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// offer is what the gateway said a moment ago.
type offer struct {
	mu    sync.Mutex
	until time.Time
	list  []Mapping
}

// mappings answers GET /api/mappings.
func (f *front) mappings(w http.ResponseWriter, r *http.Request, _ string) error {
	return answer(w, http.StatusOK, map[string][]Mapping{"mappings": f.choices(r.Context())})
}

// choices are the mappings that there are, as far as anybody knows. While the gateway is away they are those that it had, or those that the settings name: files
// can be taken all the same.
func (f *front) choices(ctx context.Context) []Mapping {
	o := &f.offer
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Now().Before(o.until) {
		return o.list
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), offerWithin) // for all who wait here
	defer cancel()
	list, err := f.askMappings(ctx)
	if err == nil {
		o.list, o.until = list, time.Now().Add(offerFresh)
		return list
	}
	f.log.Debug("the gateway does not say which mappings it has", "event", "mappings_unknown", "error", err.Error())
	o.until = time.Now().Add(offerAgain)
	if o.list == nil {
		o.list = f.usualMappings()
	}
	return o.list
}

// usualMappings are those that the settings name.
func (a *app) usualMappings() []Mapping {
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

func (a *app) askMappings(ctx context.Context) ([]Mapping, error) {
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
		return nil, fmt.Errorf("it answers with status %d", response.StatusCode)
	}
	var said struct{ Mappings []Mapping }
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&said); err != nil {
		return nil, err
	}
	var list []Mapping
	for _, m := range said.Mappings {
		if !mappingName.MatchString(m.Name) {
			continue // no upload could name it
		}
		if m.Title == "" {
			m.Title = m.Name
		}
		list = append(list, m)
	}
	if len(list) == 0 {
		return nil, errors.New("it names none")
	}
	return list, nil
}

// Gateway is how the converter behind the worker is, for the page's banner.
type Gateway struct {
	State       string     `json:"state"` // closed: all is well; open: nothing is sent there; half_open: it is being tried again
	Mode        string     `json:"mode"`  // hold, or fail-fast
	Message     *string    `json:"message"`
	Held        int        `json:"held"` // files that wait for it, counted up to ten thousand
	NextProbeAt *time.Time `json:"next_probe_at"`
}

// banner is what was found out a moment ago: every page that is open asks.
type banner struct {
	mu  sync.Mutex
	at  time.Time
	now Gateway
}

// gateway answers GET /api/gateway.
func (f *front) gateway(w http.ResponseWriter, r *http.Request, _ string) error {
	now, err := f.gatewayState(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, now)
}

// gatewayState is what the breaker says, not older than a second.
func (f *front) gatewayState(ctx context.Context) (Gateway, error) {
	b := &f.banner
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.at) < bannerFresh {
		return b.now, nil
	}
	now, err := f.askBreaker(ctx)
	if err == nil {
		b.now, b.at = now, time.Now()
	}
	return now, err
}

// askBreaker puts the breaker's state in words for owners.
func (a *app) askBreaker(ctx context.Context) (Gateway, error) {
	now := Gateway{State: "closed", Mode: "hold"}
	if a.set.FailFast {
		now.Mode = "fail-fast"
	}
	b, err := a.desk.Breaker(ctx, dependencyGateway)
	if errors.Is(err, holdfast.ErrNotFound) { // nobody has called it yet
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
		line = "Converter unavailable — files fail at once until it is back. Retry them then."
	}
	now.Message, now.Held, now.NextProbeAt = &line, b.Behind, instant(b.NextProbe)
	return now, nil
}
