package site

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/events"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/store"
)

// NewFeed returns the event streams of the organisations. Events have the codes of this service, and the types of the retry events that they stand for in their context.
func NewFeed(jobs store.Store, of *service.Service, log *slog.Logger) (*events.Streams, error) {
	return events.New(jobs, events.Config{
		Source: "/screenshot", Log: log,
		BadAfter: &service.Error{Code: code.Validation, Message: "after: use the id of the last event that you received, or leave it out"},
		TooMany:  &service.Error{Code: code.SystemOverloaded, Message: "Too many event streams are open.", After: 5 * time.Second},
		Change: func(ctx context.Context, e *store.Event) error {
			if e.Code != "" {
				e.Code = code.Of(e.Code).Name
			}
			retries, err := of.RetryEventsOf(ctx, e)
			if len(retries) > 0 {
				e.Context = maps.Clone(e.Context)
				if e.Context == nil {
					e.Context = map[string]string{}
				}
				e.Context["retry_events"] = strings.Join(typesOf(retries), " ")
			}
			return err
		},
	})
}

func typesOf(retries []service.RetryEvent) (list []string) {
	for _, r := range retries {
		list = append(list, r.Type)
	}
	return list
}
