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

// Config says what a Console shows, to whom. Desk is required.
type Config struct {
	Desk ops.Desk
	// Prefix is the path under which the console is mounted, such as "/console"; empty: at the root.
	Prefix string
	// Who tells who asks, for applications that have let their visitors in themselves. An error keeps the visitor out and is shown.
	Who func(r *http.Request) (Visitor, error)
	// Open lets in who has a key: the console then has a page to sign in. An empty text asks for a visitor without a key. Without Who and Open everybody
	// is an admin: that is for one's own machine.
	Open func(ctx context.Context, remote, text string) (Visitor, error)
	// TrustProxy says that every request comes through a proxy that sets X-Forwarded-Proto: where it says https, cookies are for TLS alone and browsers are told to
	// stay with TLS. Without such a proxy it must be false, because visitors could set the header themselves.
	TrustProxy bool
	// ReadOnly has nobody change anything, whoever they are.
	ReadOnly bool
	// Version of the application, for the page about health.
	Version string
	// Policies are what the workers were given at their start, for the page about policies. Nil: nothing.
	Policies *policy.Set
	Log      *slog.Logger // slog.Default when nil
}

// A Visitor is who looks at the console, and what they may.
type Visitor struct {
	Name  string       // the actor of what they do
	Scope apikey.Scope // viewers look, operators intervene, admins do everything
	Owner string       // who is bound to an owner is not let in: pages show everybody's jobs
	// Ended is closed when the visitor's rights end, or change: pages that listen are then told to go. Nil: the console asks again now and then.
	Ended <-chan struct{}

	signedIn bool // with a key
}

// A Console serves pages. It is safe for concurrent use.
type Console struct {
	cfg       Config
	mux       *http.ServeMux
	origins   *http.CrossOriginProtection
	looks     looks
	sessions  sessions
	pulse     pulse
	counted   memo
	live      live
	listeners listeners
	acts      []string   // patterns that change something, for the test of roles
	ordering  sync.Mutex // redrives are started one after the other, so that a form that is sent twice starts one
}

// New makes a console.
func New(cfg Config) (*Console, error) {
	if cfg.Desk == nil {
		return nil, errors.New("a console without a desk: give one")
	}
	if cfg.Prefix = strings.TrimRight(cfg.Prefix, "/"); cfg.Prefix != "" && !strings.HasPrefix(cfg.Prefix, "/") {
		return nil, errors.New("the prefix of a console begins with a slash, such as /console")
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	c := &Console{cfg: cfg, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection()}
	c.pulse.desk = cfg.Desk
	c.live.begin(&c.pulse, cfg.Log)
	if err := c.looks.load(cfg.Prefix); err != nil {
		return nil, err
	}
	c.mount()
	return c, nil
}

// Close sends those away who listen for changes. Pages can still be asked for.
func (c *Console) Close() { c.live.end() }

// mount puts every screen in its place, in the order of the menu.
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
	c.mux.HandleFunc("/", c.serve(screen(func(q *ask) (page, error) { return page{}, errNowhere })))
}

// policyOfPages is what pages may do: nothing but what comes from here. No code and no style is written in them.
const policyOfPages = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// ServeHTTP answers one request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policyOfPages)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if c.secure(r) {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
	if err := c.origins.Check(r); err != nil {
		c.refuse(w, r, &forbidden{text: "A page of another site tried to do this. Do it from here."})
		return
	}
	path, under := strings.CutPrefix(r.URL.Path, c.cfg.Prefix)
	switch {
	case !under || path != "" && path[0] != '/':
		c.refuse(w, r, errNowhere)
	case path == "":
		http.Redirect(w, r, c.cfg.Prefix+"/", http.StatusPermanentRedirect)
	default:
		http.StripPrefix(c.cfg.Prefix, c.mux).ServeHTTP(w, r)
	}
}
