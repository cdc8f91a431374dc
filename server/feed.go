package server

import (
	"context"
	"net/http"

	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/notify/sse"
)

// boundTo is the context key of the owner that the caller is bound to.
type boundTo struct{}

func (s *Server) mountFeed() error {
	handler, err := sse.New(s.cfg.Store, sse.Config{Listen: s.cfg.Listen, Log: s.cfg.Log, Owner: func(r *http.Request) (string, bool) {
		owner, ok := r.Context().Value(boundTo{}).(string)
		return owner, ok
	}})
	if err != nil {
		return err
	}
	context.AfterFunc(s.closing, handler.Close)
	mountRaw(s, api.Events, func(w http.ResponseWriter, r *http.Request, _ Caller, in *api.EventsIn) error {
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), boundTo{}, in.Bound)))
		return nil
	})
	return nil
}

// untilClose returns a context that also ends when the server closes.
func (s *Server) untilClose(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.closing, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
