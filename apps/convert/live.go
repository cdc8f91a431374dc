package main

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/sse"
)

// followed are the events that a page shows. What people do, a manual retry for one, is told anyway.
var followed = []string{
	holdfast.EventQueued, holdfast.EventProcessing, holdfast.EventReclaimed, holdfast.EventRetry, holdfast.EventReturned,
	holdfast.EventComplete, holdfast.EventFailed, holdfast.EventExpired, holdfast.EventCancelled,
}

// events makes what GET /api/events tells. From then on the store writes down what is followed, under a name of our own: whoever comes first misses nothing,
// and others who listen to the same store do not change it.
func (a *app) events() (*sse.Handler, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := a.jobs.Keep(ctx, holdfast.Change{Listen: []holdfast.Listener{{Name: "convert", Events: followed}}}); err != nil {
		return nil, err
	}
	return sse.New(owned{a.jobs, &a.set}, sse.Config{Source: "/convert", Log: a.log, Owner: func(r *http.Request) (string, bool) {
		owner, ok := r.Context().Value(following{}).(string)
		return owner, ok && owner != ""
	}})
}

// following is under which the owner travels with the request.
type following struct{}

// follow answers GET /api/events: the way of the owner's jobs as it happens, and nobody else's.
func (f *front) follow(w http.ResponseWriter, r *http.Request, owner string) error {
	after := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	if n, err := strconv.ParseInt(after, 10, 64); r.Method != http.MethodGet || after != "" && (err != nil || n < 0) {
		return senseless("Follow events with GET, after the id of the last one you saw, or without one.")
	}
	leave, err := f.mayFollow(owner, r.RemoteAddr)
	if err != nil {
		return err
	}
	defer leave()
	answerOf(w).own = true // it waits longer than others, and knows how long
	asked := r.Clone(context.WithValue(r.Context(), following{}, owner))
	asked.URL.RawQuery = url.Values{"after": {after}}.Encode()
	f.feed.ServeHTTP(w, asked)
	return nil
}

// owned is the feed as owners may see it: whose job, what happened and when, and the public code. What engineers are told is left out.
type owned struct {
	holdfast.Store
	set *settings
}

// Feed tells events that come after a number.
func (o owned) Feed(ctx context.Context, after int64, limit int) (holdfast.Feed, error) {
	told, err := o.Store.Feed(ctx, after, limit)
	for i := range told.Events {
		e := &told.Events[i]
		e.Actor, e.Reason, e.Request, e.Message, e.Context = "", "", "", "", nil
		if e.Code != "" {
			e.Code = o.set.code(e.Code).Name
		}
	}
	return told, err
}
