// Package events streams the events of a store to the pages and API clients of an application, as they happen (server-sent events). Each owner receives the events of
// its own jobs.
package events

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/internal/limit"
	"github.com/holdfastdev/holdfast/notify/sse"
	"github.com/holdfastdev/holdfast/store"
)

// Config says what the streams of an application contain and how many there may be.
type Config struct {
	Source   string                                    // of the events, such as "/fetchbox"
	Log      *slog.Logger                              // required
	Change   func(context.Context, *store.Event) error // makes of an event what clients may see of it
	Operator bool                                      // an empty owner is an operator, who sees everything
	BadAfter error                                     // what Serve returns for a position that is not one
	TooMany  error                                     // what Serve returns when there are too many streams
}

const (
	maxStreams = 1000           // of a process
	maxShare   = maxStreams / 4 // of them for one owner, and for one address
)

// Streams are the open event streams of a process. They are safe for concurrent use.
type Streams struct {
	Config
	feed *sse.Handler
	open limit.AtOnce
}

// ownerKey is the context key of the owner of an event stream.
type ownerKey struct{}

// New makes Streams of the events in a feed.
func New(from sse.Store, cfg Config) (*Streams, error) {
	feed, err := sse.New(changedFeed{from, cfg.Change}, sse.Config{Source: cfg.Source, Log: cfg.Log, Owner: func(r *http.Request) (string, bool) {
		owner, ok := r.Context().Value(ownerKey{}).(string)
		return owner, ok && (owner != "" || cfg.Operator)
	}})
	return &Streams{Config: cfg, feed: feed}, err
}

// Close ends all streams and refuses new ones.
func (s *Streams) Close() { s.feed.Close() }

// Serve sends the events of an owner until the client disconnects, and only those of one group if one is named. It begins after the event whose id the client
// received last.
func (s *Streams) Serve(w http.ResponseWriter, r *http.Request, owner, group string) error {
	after := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	if n, err := strconv.ParseInt(after, 10, 64); after != "" && (err != nil || n < 0) {
		return s.BadAfter
	}
	release, err := s.admit(owner, r.RemoteAddr)
	if err != nil {
		return err
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

// admit counts a stream of an owner from an address, until it is released.
func (s *Streams) admit(owner, remote string) (release func(), err error) {
	release, ok := s.open.Join(limit.Share{Name: "all", Most: maxStreams}, limit.Share{Name: "owner " + owner, Most: maxShare}, limit.Share{Name: "address " + limit.Network(remote).String(), Most: maxShare})
	if !ok {
		return nil, s.TooMany
	}
	return release, nil
}

// A changedFeed is a feed with events as clients may see them.
type changedFeed struct {
	sse.Store
	change func(context.Context, *store.Event) error
}

// Feed returns the events after a number.
func (f changedFeed) Feed(ctx context.Context, after int64, limit int) (store.Feed, error) {
	feed, err := f.Store.Feed(ctx, after, limit)
	for i := range feed.Events {
		if err := f.change(ctx, &feed.Events[i]); err != nil {
			return feed, err
		}
	}
	return feed, err
}
