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
	"github.com/holdfastdev/holdfast/store"
)

// Config configures a Server. Store and Operator are required.
type Config struct {
	Store    store.Store
	Operator ops.Operator
	Settler  OutcomeSettler // decides the outcomes that remote workers report; without one they must settle themselves
	// Engine is the configuration of the engines next to the store. Its retention rules, its warning time and how long it keeps events apply to workers that
	// purge and delete through this server, whatever they ask for. The zero Config has an engine's defaults.
	Engine engine.Config
	// Enqueue enqueues drafts; the store when nil. engine.Limits makes one that enforces the rates of owners.
	Enqueue holdfast.Enqueuer
	// Prepare checks and completes drafts that workers enqueue with the completion of a job, as Enqueue does with others; nil: no calls. Rates of owners do not
	// apply to these drafts.
	Prepare func(*holdfast.Draft) error
	// Watch is called for each request and for enqueued jobs; nil: no calls.
	Watch Watcher
	// Metrics is served at /metrics for the scope viewer; nil: there is no such page.
	Metrics http.Handler
	// Checks are the health checks beside that of the store. The server is ready if all succeed.
	Checks []Check
	// Listen are the events of jobs that are written to the feed for clients of /v1/events, "*" for all. If empty, the feed has the events that subscriptions
	// listen for.
	Listen []string
	// Open admits callers without a key as admins, if they are on this machine, use a loopback name and come through no proxy. It is for local use. It ends
	// within a second when the first key is created, and does not start again.
	Open bool
	// IgnoreKeys, with Open, admits callers without a key even if there are keys.
	IgnoreKeys bool

	// TrustProxy says that every request comes through a proxy that sets X-Forwarded-For and X-Forwarded-Proto. The last entry of the first is the client's
	// address, for limits by address; if the second is https, responses have Strict-Transport-Security. Without such a proxy it must be false, because clients can
	// set the headers themselves.
	TrustProxy bool
	Limits     Limits       // defaults when zero
	Log        *slog.Logger // slog.Default when nil
}

// A Watcher observes a server, for metrics. Its methods are called concurrently.
type Watcher interface {
	// ObserveRequest is called after each request was answered. The route is its name, never a path.
	ObserveRequest(route string, status int, took time.Duration)
	// ObserveEnqueue is called with the drafts that became new jobs.
	ObserveEnqueue(drafts []holdfast.Draft)
}

// A Check is a health check. Ask returns details for /readyz, or why the server is not ready.
type Check struct {
	Name string
	Ask  func(ctx context.Context) (detail any, err error)
}

// A Server is the HTTP server. It is an http.Handler.
type Server struct {
	cfg    Config
	mux    *routeMux
	routes []mounted
	pages  string // prefix of the pages for people; empty: there are none

	keys        *keyring
	badKeys     *limit.Rates
	sizer       claimSizer
	origins     *http.CrossOriginProtection
	admission   *admission
	quotas      sync.Map // key id → *quota
	streams     streams
	bodies      budget // request bodies and lines of streams in memory
	answers     budget // answers that are not written yet
	healthCache healthCache
	draining    atomic.Bool

	leaseCache leaseCache      // leases that this server has handed out
	closing    context.Context // ends when the server closes; requests that wait or stream end with it
	close      context.CancelFunc
}

// A routeMux is a mux that records its patterns, so that a test can find routes without an entry in the table of permissions.
type routeMux struct {
	*http.ServeMux
	patterns []string
}

// HandleFunc mounts a handler function.
func (t *routeMux) HandleFunc(pattern string, do func(http.ResponseWriter, *http.Request)) {
	t.patterns = append(t.patterns, pattern)
	t.ServeMux.HandleFunc(pattern, do)
}

// Handle mounts a handler.
func (t *routeMux) Handle(pattern string, do http.Handler) { t.HandleFunc(pattern, do.ServeHTTP) }

// New makes a server. It uses the store only when a request needs it.
func New(cfg Config) (*Server, error) {
	if cfg.Store == nil || cfg.Operator == nil {
		return nil, errors.New("the server needs a store and an operator: set both")
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	cfg.Limits = cfg.Limits.orDefaults()
	s := &Server{cfg: cfg, mux: &routeMux{ServeMux: http.NewServeMux()}, origins: http.NewCrossOriginProtection(), admission: newAdmission(cfg.Limits.Running), badKeys: newBadKeyLimit()}
	s.keys = newKeyring(cfg.Store, s.logLocked)
	s.closing, s.close = context.WithCancel(context.Background())
	s.mux.ServeMux.HandleFunc("/", s.home)
	s.mountHealth()
	s.mountOperator()
	s.mountEnqueue()
	s.mountClaims()
	s.mountStore()
	if err := s.mountFeed(); err != nil {
		return nil, err
	}
	s.mountDocument()
	return s, nil
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.cfg.TrustProxy {
		r = limit.FromProxy(r)
	}
	a := s.begin(w, r)
	defer s.end(a, r)
	if err := s.checkRequest(r); err != nil {
		s.refuse(a, r, err)
		return
	}
	s.mux.ServeHTTP(a, r)
}
