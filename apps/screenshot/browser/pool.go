// Package browser takes pictures of pages with a pool of Chromium processes.
//
// One process takes one picture at a time, in a browser context that is made for it and thrown away: a page that stops, crashes or fills its browser harms no other. All
// connections of the processes go through a proxy of our own (apps/internal/egress), which calls public addresses only, with a credential for each picture. A process is
// replaced after a number of pictures, at an age, above a size, and at once when it does not do what it should; then everything is built again from nothing.
package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/egress"
	"github.com/holdfastdev/holdfast/apps/screenshot/chromium"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// Config says how many browsers there are and what they may do. Only Guard is required; zero numbers have defaults.
type Config struct {
	Path      string // of Chromium; found in the PATH when empty
	Folder    string // for profiles of browsers; one in the system's temporary folder when empty
	NoSandbox bool   // see chromium.Config
	WebGL     bool   // see chromium.Config

	Size int // browsers, and so pictures at the same time; 2 when zero
	Recycle
	Limits

	Guard *safehttp.Guard // which addresses pages may call
	Ads   shot.Hosts      // for shot.Options.BlockAds; shot.Ads when nil
	Log   *slog.Logger    // nil: no log
}

// Recycle says when a browser that works is replaced.
type Recycle struct {
	Shots  int           // after so many pictures; 100 when zero
	Age    time.Duration // 30 min when zero
	Memory int64         // bytes, after a picture; 1 GiB when zero
}

// Limits are for one picture.
type Limits struct {
	Shot        shot.Limits
	Memory      int64         // bytes of a browser with all its processes; 2 GiB when zero
	HeapMB      int           // MiB of a page's scripts; 512 when zero
	Bytes       int           // of a picture; 64 MiB when zero
	Network     egress.Limits // of a page; Deny and Local are set by the pool
	Navigations int           // that a page may make; 20 when zero
	Start       time.Duration // of a browser; 30 s when zero
}

func (c Config) withDefaults() Config {
	set(&c.Size, 2)
	set(&c.Recycle.Shots, 100)
	set(&c.Recycle.Age, 30*time.Minute)
	set(&c.Recycle.Memory, 1<<30)
	set(&c.Limits.Memory, 2<<30)
	set(&c.Limits.HeapMB, 512)
	set(&c.Limits.Bytes, 64<<20)
	set(&c.Limits.Navigations, 20)
	set(&c.Limits.Start, 30*time.Second)
	c.Limits.Shot = c.Limits.Shot.WithDefaults()
	if c.Limits.Shot.CheckURL == nil && c.Guard != nil {
		c.Limits.Shot.CheckURL = c.Guard.Check
	}
	if c.Ads == nil {
		c.Ads = shot.Ads()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// A Pool takes pictures. It is safe for concurrent use.
type Pool struct {
	cfg    Config
	proxy  *egress.Proxy
	free   chan *slot
	closed context.Context
	close  context.CancelFunc
	ended  sync.Once
	folder *ownedFolder

	mu     sync.Mutex
	status Status
}

// Status counts what the browsers of a pool did since its start.
type Status struct {
	Size      int    `json:"size"`
	Busy      int    `json:"busy"`
	Running   int    `json:"running"` // processes
	Started   int    `json:"started"`
	Recycled  int    `json:"recycled"` // replaced as planned
	Sick      int    `json:"sick"`     // replaced because they did not work
	Shots     int    `json:"shots"`
	Failed    int    `json:"failed"`
	Version   string `json:"version"`
	Sandboxed bool   `json:"sandboxed"`
	Problem   string `json:"problem,omitempty"` // of the last start; empty when it succeeded
}

// New makes a pool. Browsers are started when they are needed.
func New(cfg Config) (*Pool, error) {
	cfg = cfg.withDefaults()
	if cfg.Guard == nil {
		return nil, errors.New("Guard is nil: make one with safehttp.New")
	}
	if cfg.Size < 1 || cfg.Size > 64 {
		return nil, fmt.Errorf("Size is %d: use 1 to 64 browsers", cfg.Size)
	}
	if cfg.Path == "" {
		cfg.Path = Find()
	}
	folder, err := ownFolder(cfg.Folder)
	if err != nil {
		return nil, err
	}
	proxy, err := egress.Listen(egress.Config{Guard: cfg.Guard, Log: cfg.Log})
	if err != nil {
		folder.remove()
		return nil, err
	}
	p := &Pool{cfg: cfg, proxy: proxy, free: make(chan *slot, cfg.Size), folder: folder}
	p.closed, p.close = context.WithCancel(context.Background())
	p.status = Status{Size: cfg.Size, Sandboxed: p.chromium().Sandboxed()}
	if !p.status.Sandboxed {
		cfg.Log.Warn("browsers run without Chromium's sandbox: run the service as a user other than root", "event", "browser_sandbox_off")
	}
	for range cfg.Size {
		p.free <- &slot{pool: p}
	}
	return p, nil
}

// Find returns the path of Chromium or Chrome, or the name of Chromium if there is none.
func Find() string {
	for _, name := range []string{
		"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", os.Getenv("ProgramFiles") + `\Google\Chrome\Application\chrome.exe`,
	} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return "chromium"
}

func (p *Pool) chromium() chromium.Config {
	return chromium.Config{Path: p.cfg.Path, Folder: p.folder.path, Proxy: p.proxy.Address(), NoSandbox: p.cfg.NoSandbox, WebGL: p.cfg.WebGL, HeapMB: p.cfg.Limits.HeapMB}
}

// Take takes a picture. It waits for a free browser until ctx ends; the time limit of the options begins when there is one. The error has a code of package code.
func (p *Pool) Take(ctx context.Context, o shot.Options) (*shot.Picture, error) {
	o = o.WithDefaults()
	host := hostOf(o)
	if err := o.Check(p.cfg.Limits.Shot); err != nil {
		return nil, code.New(code.Validation, host, err)
	}
	s, err := p.acquire(ctx, host)
	if err != nil {
		return nil, err
	}
	picture, err := s.take(ctx, o)
	p.count(func(st *Status) {
		st.Busy--
		st.Shots++
		if err != nil && ctx.Err() == nil { // otherwise the caller gave up
			st.Failed++
		}
	})
	go func() { // the caller does not wait for the cleaning
		s.clean()
		p.free <- s
	}()
	return picture, err
}

// acquire waits for a free slot.
func (p *Pool) acquire(ctx context.Context, host string) (*slot, error) {
	select {
	case s := <-p.free:
		if p.closed.Err() != nil {
			p.free <- s
			return nil, code.New(code.BrowserUnavailable, host, errors.New("the pool of browsers was closed"))
		}
		p.count(func(st *Status) { st.Busy++ })
		return s, nil
	case <-p.closed.Done():
		return nil, code.New(code.BrowserUnavailable, host, errors.New("the pool of browsers was closed"))
	case <-ctx.Done():
		return nil, code.New(code.BrowserBusy, host, fmt.Errorf("no browser became free: %w", context.Cause(ctx)))
	}
}

// Probe reports whether a browser works: it takes a picture of a small document.
func (p *Pool) Probe(ctx context.Context) error {
	_, err := p.Take(ctx, shot.Options{HTML: "<!doctype html><title>Probe</title><p>Probe", Width: 64, Height: 64, TimeoutMS: 10_000})
	return err
}

// Status returns what the browsers did so far.
func (p *Pool) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

func (p *Pool) count(change func(*Status)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.status)
}

// Close ends all browsers, after the pictures that are being taken. It may be called again.
func (p *Pool) Close() {
	p.close()
	p.ended.Do(func() {
		for range p.cfg.Size {
			s := <-p.free
			s.end()
		}
		p.proxy.Close()
		p.folder.remove()
	})
}

// hostOf returns the host of the page, which failures count against.
func hostOf(o shot.Options) string {
	u, err := url.Parse(o.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
