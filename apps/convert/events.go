package main

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/notify/sse"
	"github.com/holdfastdev/holdfast/store"
)

// streamedEvents are the events that a page shows. The store always writes events of people's actions, such as a manual retry.
var streamedEvents = []string{
	store.EventQueued, store.EventProcessing, store.EventReclaimed, store.EventRetry, store.EventReleased,
	store.EventComplete, store.EventFailed, store.EventExpired, store.EventCancelled,
}

// newFeed returns the handler behind GET /api/events. It registers a listener, so that the store writes these events from now on, before the first client connects. The
// listener has a name of its own: other listeners on the same store do not affect it.
func (a *app) newFeed() (*sse.Handler, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := a.jobs.Apply(ctx, store.Change{Listen: []store.Listener{{Name: "convert", Events: streamedEvents}}}); err != nil {
		return nil, err
	}
	return sse.New(ownerFeed{a.jobs, &a.set}, sse.Config{Source: "/convert", Log: a.log, Owner: func(r *http.Request) (string, bool) {
		owner, ok := r.Context().Value(ownerKey{}).(string)
		return owner, ok && owner != ""
	}})
}

// ownerKey is the context key of the owner of an event stream.
type ownerKey struct{}

// follow answers GET /api/events: the events of the owner's jobs, as they happen.
func (f *webHandler) follow(w http.ResponseWriter, r *http.Request, owner string) error {
	after := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	if n, err := strconv.ParseInt(after, 10, 64); r.Method != http.MethodGet || after != "" && (err != nil || n < 0) {
		return badRequest("Follow events with GET. after must be the id of the last event that you received, or be left out.")
	}
	release, err := f.admitStream(owner, r.RemoteAddr)
	if err != nil {
		return err
	}
	defer release()
	web.ReplyOf(w).OwnDeadlines = true // the feed sets its own write deadlines
	request := r.Clone(context.WithValue(r.Context(), ownerKey{}, owner))
	request.URL.RawQuery = url.Values{"after": {after}}.Encode()
	f.feed.ServeHTTP(w, request)
	return nil
}

// An ownerFeed is the feed as owners may see it: job, event, time and public code. Details for engineers and operators are removed.
type ownerFeed struct {
	store.Store
	set *settings
}

// Feed returns the events after a number.
func (o ownerFeed) Feed(ctx context.Context, after int64, limit int) (store.Feed, error) {
	feed, err := o.Store.Feed(ctx, after, limit)
	for i := range feed.Events {
		e := &feed.Events[i]
		e.Actor, e.Reason, e.Request, e.Message, e.Context = "", "", "", "", nil
		if e.Code != "" {
			e.Code = o.set.code(e.Code).Name
		}
	}
	return feed, err
}
