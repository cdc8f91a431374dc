package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// Config says what a Server serves. Store and Desk are required.
type Config struct {
	Store holdfast.Store
	Desk  ops.Desk
	Judge Judge // of what remote workers report; without one they settle by themselves
	// Enqueue takes drafts in; the store's own when nil. engine.Limits makes one that keeps owners to their rate.
	Enqueue holdfast.Enqueuer
	// Watch is told of what is asked and enqueued here; nil: nobody is.
	Watch Watcher
	// Metrics is served at /metrics, to viewers; nil: there is no such page.
	Metrics http.Handler
	// Checks say whether this server can serve, beside those of the store. All must be well.
	Checks []Check
	// Open lets everybody in as an admin who asks by a loopback name, without a key. It is for one's own machine.
	Open bool
	Log  *slog.Logger // slog.Default when nil
}

// A Watcher is told of what a server does, for whoever counts.
type Watcher interface {
	// Asked is told of each request when it was answered. The route is its name, never a path.
	Asked(route string, status int, took time.Duration)
	// Enqueued is told of what was acknowledged and is new.
	Enqueued(drafts []holdfast.Draft)
}

// A Check says whether something that serving needs is well, and what there is to know about it.
type Check struct {
	Name string
	Ask  func(ctx context.Context) (detail any, err error)
}

// A Server answers requests. It is an http.Handler.
type Server struct {
	cfg    Config
	mux    *http.ServeMux
	doc    *huma.OpenAPI
	routes []mounted
}

// New makes a server.
func New(cfg Config) (*Server, error) {
	if cfg.Store == nil || cfg.Desk == nil {
		return nil, errors.New("a server without a store or a desk: give both")
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	s := &Server{cfg: cfg, mux: http.NewServeMux(), doc: newDocument()}
	s.mountJobs()
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }
