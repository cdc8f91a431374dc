package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/limit"
	"github.com/holdfastdev/holdfast/ops"
)

// Config says what a Server serves. Store and Desk are required.
type Config struct {
	Store holdfast.Store
	Desk  ops.Desk
	Judge Judge // of what remote workers report; without one they settle by themselves
	// Engine is how engines beside the store are configured. Its rules of retention, its warning and how long it keeps what happened hold for workers that
	// purge and forget through this server, whatever they ask for. The zero Config has an engine's defaults.
	Engine engine.Config
	// Enqueue takes drafts in; the store's own when nil. engine.Limits makes one that keeps owners to their rate.
	Enqueue holdfast.Enqueuer
	// Watch is told of what is asked and enqueued here; nil: nobody is.
	Watch Watcher
	// Metrics is served at /metrics, to viewers; nil: there is no such page.
	Metrics http.Handler
	// Checks say whether this server can serve, beside those of the store. All must be well.
	Checks []Check
	// Listen are the events of jobs that are written to the feed for those who follow /v1/events, "*" for all; none: what subscriptions listen for.
	Listen []string
	// Open lets in callers without a key as admins, if they ask from this machine by a loopback name and through no proxy. It is for one's own machine. It
	// ends, within a second, when the first key is made, and does not begin again.
	Open bool
	// IgnoreKeys, with Open, lets callers in without a key although there are keys.
	IgnoreKeys bool

	// TrustProxy says that every request comes through a proxy that sets X-Forwarded-For: its last entry is who asks, for limits by address. Without such a proxy it
	// must be false, because callers could set the header themselves.
	TrustProxy bool
	Limits     Limits       // on what is taken on; ordinary ones when zero
	Log        *slog.Logger // slog.Default when nil
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
	mux    *table
	routes []mounted
	pages  string // the prefix under which pages for people are; empty: there are none

	keys      *keyring
	strangers *limit.Rates
	small     smallRun
	origins   *http.CrossOriginProtection
	crowd     *crowd
	quotas    sync.Map // the id of a key → *quota
	streams   streams
	bodies    budget // of bodies and lines in memory
	answers   budget // that are not written yet
	pulse     pulse
	draining  atomic.Bool

	lent    lent            // what workers hold that report outcomes
	closing context.Context // ends when the server closes: whoever waits or listens is sent away
	close   context.CancelFunc
}

// A table is a mux that remembers what is mounted, so that the test of the gate can find what has no line in its table.
type table struct {
	*http.ServeMux
	patterns []string
}

// HandleFunc mounts.
func (t *table) HandleFunc(pattern string, do func(http.ResponseWriter, *http.Request)) {
	t.patterns = append(t.patterns, pattern)
	t.ServeMux.HandleFunc(pattern, do)
}

// Handle mounts.
func (t *table) Handle(pattern string, do http.Handler) { t.HandleFunc(pattern, do.ServeHTTP) }

// New makes a server.
func New(cfg Config) (*Server, error) {
	if cfg.Store == nil || cfg.Desk == nil {
		return nil, errors.New("a server without a store or a desk: give both")
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	cfg.Limits = cfg.Limits.orDefaults()
	s := &Server{cfg: cfg, mux: &table{ServeMux: http.NewServeMux()}, origins: http.NewCrossOriginProtection(), crowd: newCrowd(cfg.Limits.Running), strangers: newStrangers()}
	s.keys = newKeyring(cfg.Store, s.saysLocked)
	s.closing, s.close = context.WithCancel(context.Background())
	s.mux.ServeMux.HandleFunc("/", s.home)
	s.mountHealth()
	s.mountDesk()
	s.mountEnqueue()
	s.mountClaims()
	s.mountStore()
	if err := s.mountFeed(); err != nil {
		return nil, err
	}
	s.mountDocument()
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.cfg.TrustProxy {
		r = limit.FromProxy(r)
	}
	a := s.begin(w, r)
	defer s.end(a, r)
	if err := s.sane(r); err != nil {
		s.refuse(a, r, err)
		return
	}
	s.mux.ServeHTTP(a, r)
}
