package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/ops"
)

// Config configures a Console. Operator is required.
type Config struct {
	Operator ops.Operator
	// Prefix is the path under which the console is mounted, such as "/console". Empty mounts it at the root.
	Prefix string
	// Who returns the visitor of a request, for applications with their own sign-in. If it returns an error, the request is refused with status 403 and the
	// visitor sees the error text.
	Who func(r *http.Request) (Visitor, error)
	// Open returns the visitor of an API key; the console then has a sign-in page. It is called with an empty text for a visitor without a key. Without Who and
	// Open every visitor is an admin; use that only on a developer's machine.
	Open func(ctx context.Context, remote, text string) (Visitor, error)
	// TrustProxy states that every request comes through a proxy that sets X-Forwarded-Proto. If the header is https, session cookies are Secure and responses
	// have Strict-Transport-Security. Without such a proxy it must be false, because visitors could set the header themselves.
	TrustProxy bool
	// ReadOnly refuses every change, whatever the scope of the visitor.
	ReadOnly bool
	// Version of the application, shown on the health page.
	Version string
	// Policies is the policy file that the workers were started with, shown on the policies page. Nil means none.
	Policies *policy.Set
	Log      *slog.Logger // slog.Default when nil
}

// A Visitor is a person who uses the console, with their permissions.
type Visitor struct {
	Name  string       // the actor of their changes, in stories and in the audit log
	Scope apikey.Scope // viewers read, operators intervene, admins do everything
	Owner string       // a visitor bound to an owner is refused, because pages show the jobs of all owners
	// Ended is closed when the visitor's permissions end or change; the console then closes their live connections. If it is nil, the console checks the
	// permissions again every 15 seconds.
	Ended <-chan struct{}

	signedIn bool // signed in with a key, so there is a session to end
}

// A Console serves pages. It is safe for concurrent use.
type Console struct {
	cfg            Config
	mux            *http.ServeMux
	origins        *http.CrossOriginProtection
	templates      templates
	sessions       sessions
	snapshots      snapshotCache
	groupCache     groupCache
	live           live
	listeners      listeners
	actionPatterns []string   // routes that change something, for the test of scopes
	startMu        sync.Mutex // serializes starts of redrives, so that a form that is sent twice starts one redrive
}

// New returns a console. It fails if the configuration is invalid.
func New(cfg Config) (*Console, error) {
	if cfg.Operator == nil {
		return nil, errors.New("console: Config.Operator is nil: set it, for example to ops.New(store, ops.Config{})")
	}
	if cfg.Prefix = strings.TrimRight(cfg.Prefix, "/"); cfg.Prefix != "" && !strings.HasPrefix(cfg.Prefix, "/") {
		return nil, errors.New("console: Config.Prefix must begin with a slash, such as /console")
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	c := &Console{cfg: cfg, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection()}
	c.snapshots.operator = cfg.Operator
	c.live.begin(&c.snapshots, cfg.Log)
	if err := c.templates.load(cfg.Prefix); err != nil {
		return nil, err
	}
	c.mount()
	return c, nil
}

// Close closes the live connections of open pages. The console still answers requests.
func (c *Console) Close() { c.live.end() }

// mount registers every page, in the order of the menu.
func (c *Console) mount() {
	c.mountAssets()
	c.mountSession()
	c.mountHome()
	c.mountFailures()
	c.mountJobs()
	c.mountJob()
	c.mountDeadLetters()
	c.mountRedrives()
	c.mountBreakers()
	c.mountGroups()
	c.mountQueues()
	c.mountWorkers()
	c.mountSchedules()
	c.mountPolicies()
	c.mountAnalytics()
	c.mountDeliveries()
	c.mountAudit()
	c.mountHealth()
	c.mountSettings()
	c.mux.HandleFunc("GET /live", c.listen)
	c.mux.HandleFunc("/", c.serve(pageFunc(func(q *request) (page, error) { return page{}, errNoPage })))
}

// contentSecurityPolicy allows pages to load only what this console serves. Pages contain no inline script and no inline style.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// ServeHTTP answers one request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if c.secure(r) {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
	if err := c.origins.Check(r); err != nil {
		c.renderError(w, r, &forbidden{text: "The request came from another site. Repeat the action on this page."})
		return
	}
	path, under := strings.CutPrefix(r.URL.Path, c.cfg.Prefix)
	switch {
	case !under || path != "" && path[0] != '/':
		c.renderError(w, r, errNoPage)
	case path == "":
		http.Redirect(w, r, c.cfg.Prefix+"/", http.StatusPermanentRedirect)
	default:
		http.StripPrefix(c.cfg.Prefix, c.mux).ServeHTTP(w, r)
	}
}
