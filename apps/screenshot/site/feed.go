package site

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/internal/limit"
	"github.com/holdfastdev/holdfast/notify/sse"
	"github.com/holdfastdev/holdfast/store"
)

// A Feed streams the events of an organisation's shots to pages and programs.
type Feed struct {
	handler *sse.Handler
	open    limit.AtOnce
}

const maxStreams = 1000

// ownerKey is the context key of the owner of an event stream.
type ownerKey struct{}

// NewFeed returns a feed of the events of a store.
func NewFeed(jobs store.Store, of *service.Service, log *slog.Logger) (*Feed, error) {
	h, err := sse.New(publicFeed{jobs, of}, sse.Config{Source: "/screenshot", Log: log, Owner: func(r *http.Request) (string, bool) {
		owner, ok := r.Context().Value(ownerKey{}).(string)
		return owner, ok && owner != ""
	}})
	return &Feed{handler: h}, err
}

// A publicFeed is the feed with the codes of this service, and with the types of the retry events that an event stands for in its context.
type publicFeed struct {
	store.Store
	service *service.Service
}

// Feed returns the events after a number.
func (p publicFeed) Feed(ctx context.Context, after int64, limit int) (store.Feed, error) {
	feed, err := p.Store.Feed(ctx, after, limit)
	for i := range feed.Events {
		e := &feed.Events[i]
		if e.Code != "" {
			e.Code = code.Of(e.Code).Name
		}
		retries, bad := p.service.RetryEventsOf(ctx, e)
		if bad != nil {
			return feed, bad
		}
		if len(retries) > 0 {
			e.Context = maps.Clone(e.Context)
			if e.Context == nil {
				e.Context = map[string]string{}
			}
			e.Context["retry_events"] = strings.Join(typesOf(retries), " ")
		}
	}
	return feed, err
}

func typesOf(retries []service.RetryEvent) (list []string) {
	for _, r := range retries {
		list = append(list, r.Type)
	}
	return list
}

// Follow streams the events of an owner, until the client goes away or the feed is closed.
func (f *Feed) Follow(w http.ResponseWriter, r *http.Request, owner string) error {
	after := r.Header.Get("Last-Event-ID")
	if after == "" {
		after = r.URL.Query().Get("after")
	}
	if n, err := strconv.ParseInt(after, 10, 64); after != "" && (err != nil || n < 0) {
		return &service.Error{Code: code.Validation, Message: "after: use the id of the last event that you received, or leave it out"}
	}
	release, ok := f.open.Join(limit.Share{Name: "owner " + owner, Most: maxStreams / 10}, limit.Share{Name: "all", Most: maxStreams})
	if !ok {
		return &service.Error{Code: code.SystemOverloaded, Message: "Too many event streams are open.", After: 5 * time.Second}
	}
	defer release()
	web.ReplyOf(w).OwnDeadlines = true // the feed sets its own write deadlines
	request := r.Clone(context.WithValue(r.Context(), ownerKey{}, owner))
	request.URL.RawQuery = url.Values{"after": {after}}.Encode()
	f.handler.ServeHTTP(w, request)
	return nil
}

// Close ends all streams and refuses new ones.
func (f *Feed) Close() { f.handler.Close() }
