package main

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/internal/limit"
	"github.com/holdfastdev/holdfast/notify/sse"
	"github.com/holdfastdev/holdfast/store"
)

// ownerKey is the context key of the owner of an event stream; an empty owner sees everything.
type ownerKey struct{}

// newFeed returns the handler of event streams.
func (a *app) newFeed() (*sse.Handler, error) {
	return sse.New(publicFeed{a.jobs}, sse.Config{Source: "/fetchbox", Log: a.log, Owner: func(r *http.Request) (string, bool) {
		owner, ok := r.Context().Value(ownerKey{}).(string)
		return owner, ok
	}})
}

// A publicFeed is the feed with the codes of FetchBox.
type publicFeed struct{ store.Store }

// Feed returns the events after a number.
func (p publicFeed) Feed(ctx context.Context, after int64, limit int) (store.Feed, error) {
	feed, err := p.Store.Feed(ctx, after, limit)
	for i := range feed.Events {
		if e := &feed.Events[i]; e.Code != "" {
			e.Code = code.Of(e.Code).Name
		}
	}
	return feed, err
}

// events answers GET /api/events: the events of the caller's jobs, as they happen.
func (f *api) events(w http.ResponseWriter, r *http.Request, c caller) error {
	return f.follow(w, r, c.scope(), "")
}

// jobEvents answers GET /api/jobs/{id}/events.
func (f *api) jobEvents(w http.ResponseWriter, r *http.Request, c caller) error {
	group, err := f.ownGroup(r.Context(), c.scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return f.follow(w, r, group.Owner, group.ID.String())
}

// follow sends the events of an owner, and only those of one group if one is named.
func (f *api) follow(w http.ResponseWriter, r *http.Request, owner, group string) error {
	after := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	if n, err := strconv.ParseInt(after, 10, 64); after != "" && (err != nil || n < 0) {
		return apiError{code: code.ValidationInvalidField, line: "after must be the id of the last event that you received, or be left out."}
	}
	release, ok := f.streaming.Join(limit.Share{Name: "owner " + owner, Most: maxStreams / 2}, limit.Share{Name: "address " + limit.Network(r.RemoteAddr).String(), Most: maxStreams / 2})
	if !ok {
		return tooManyStreams
	}
	defer release()
	web.ReplyOf(w).OwnDeadlines = true // the feed sets its own write deadlines
	request := r.Clone(context.WithValue(r.Context(), ownerKey{}, owner))
	query := url.Values{"after": {after}}
	if group != "" {
		query["group"] = []string{group}
	}
	request.URL.RawQuery = query.Encode()
	f.feed.ServeHTTP(w, request)
	return nil
}
