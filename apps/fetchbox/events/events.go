// Package events sends what happens to the resources of an owner, as it happens, to API clients and pages (server-sent events).
package events

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/internal/limit"
	"github.com/holdfastdev/holdfast/notify/sse"
	"github.com/holdfastdev/holdfast/store"
)

const maxStreams = 1000

var tooManyStreams = refusal.Error{Code: code.SystemOverloaded, Line: "Too many event streams are open.", After: 5 * time.Second}

// Streams are the open event streams of a process. They are safe for concurrent use.
type Streams struct {
	feed *sse.Handler
	open limit.AtOnce
}

// ownerKey is the context key of the owner of an event stream; an empty owner sees everything.
type ownerKey struct{}

// New makes Streams of the events in a feed.
func New(from sse.Store, log *slog.Logger) (*Streams, error) {
	feed, err := sse.New(publicFeed{from}, sse.Config{Source: "/fetchbox", Log: log, Owner: func(r *http.Request) (string, bool) {
		owner, ok := r.Context().Value(ownerKey{}).(string)
		return owner, ok
	}})
	return &Streams{feed: feed}, err
}

// Close ends all streams and refuses new ones.
func (s *Streams) Close() { s.feed.Close() }

// Serve sends the events of an owner until the client disconnects, and only those of one group if one is named. An empty owner sees everything.
func (s *Streams) Serve(w http.ResponseWriter, r *http.Request, owner, group string) error {
	after := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	if n, err := strconv.ParseInt(after, 10, 64); after != "" && (err != nil || n < 0) {
		return refusal.Invalid("after must be the id of the last event that you received, or be left out.")
	}
	release, ok := s.open.Join(limit.Share{Name: "owner " + owner, Most: maxStreams / 2}, limit.Share{Name: "address " + limit.Network(r.RemoteAddr).String(), Most: maxStreams / 2})
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
	s.feed.ServeHTTP(w, request)
	return nil
}

// A publicFeed is a feed with the codes of FetchBox.
type publicFeed struct{ sse.Store }

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
