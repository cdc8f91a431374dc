package main

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/events"
	"github.com/holdfastdev/holdfast/store"
)

// streamedEvents are the events that a page shows. The store always writes events of people's actions, such as a manual retry.
var streamedEvents = []string{
	store.EventQueued, store.EventProcessing, store.EventReclaimed, store.EventRetry, store.EventReleased,
	store.EventComplete, store.EventFailed, store.EventExpired, store.EventCancelled,
}

// newFeed returns the streams behind GET /api/events. It registers a listener, so that the store writes these events from now on, before the first client connects. The
// listener has a name of its own: other listeners on the same store do not affect it.
func (a *app) newFeed() (*events.Streams, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := a.jobs.Apply(ctx, store.Change{Listen: []store.Listener{{Name: "convert", Events: streamedEvents}}}); err != nil {
		return nil, err
	}
	return events.New(a.jobs, events.Config{Source: "/convert", Log: a.log, TooMany: tooManyStreams, Change: func(_ context.Context, e *store.Event) error {
		e.Actor, e.Reason, e.Request, e.Message, e.Context = "", "", "", "", nil // details for engineers and operators
		if e.Code != "" {
			e.Code = a.set.code(e.Code).Name
		}
		return nil
	}, BadAfter: badRequest("after must be the id of the last event that you received, or be left out.")})
}

// follow answers GET /api/events: the events of the owner's jobs, as they happen.
func (f *webHandler) follow(w http.ResponseWriter, r *http.Request, owner string) error {
	if r.Method != http.MethodGet {
		return badRequest("Follow events with GET.")
	}
	return f.feed.Serve(w, r, owner, "")
}
