// Package fetch downloads a resource into a spool file: one attempt, with a code for each way in which it can fail. Retries are made by the engine.
//
// A download is complete only if everything arrived that was announced and expected. A body that is cut, whose chunks are broken, that is shorter than its
// Content-Length, or that cannot be decompressed is never a success.
package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// Limits bound a download. In a Request, a zero field has the value of the Config; a larger one than in the Config has no effect.
type Limits struct {
	Size      int64         `json:"size,omitempty"`      // most bytes, after decompression; 5 GiB when zero
	Time      time.Duration `json:"time,omitempty"`      // of the whole download; 1 h when zero
	MinSpeed  int64         `json:"min_speed,omitempty"` // least bytes per second; 1 KiB when zero, no limit when negative
	MinSpan   time.Duration `json:"min_span,omitempty"`  // the time over which the speed is measured; 15 s when zero
	Redirects int           `json:"redirects,omitempty"` // most redirects; 10 when zero, none when negative
}

// HostLimits are the manners towards hosts, for all downloads of this process.
type HostLimits struct {
	Concurrency int                   // downloads from one host at once; 8 when zero
	Delay       time.Duration         // from the start of one download to that of the next from the same host; none when zero
	Wait        time.Duration         // how long a download waits for its turn before its job is sent back to the queue, at no cost; 5 s when zero
	ByHost      map[string]HostManner // for hosts that need other limits
}

// HostManner is what holds for one host instead of HostLimits. Zero fields are those of HostLimits.
type HostManner struct {
	Concurrency int           `yaml:"concurrency"`
	Delay       time.Duration `yaml:"delay"`
}

// Config configures a Fetcher. Spool and Proxies are required.
type Config struct {
	Spool     *spool.Spool
	Proxies   *proxy.Pools
	Limits    Limits
	Hosts     HostLimits
	UserAgent string // "FetchBox" when empty
}

var defaultLimits = Limits{Size: 5 << 30, Time: time.Hour, MinSpeed: 1 << 10, MinSpan: 15 * time.Second, Redirects: 10}

const (
	maxRedirects = 30

	defaultConcurrency = 8
	defaultWait        = 5 * time.Second
)

// Expect is what the sender of a request knows about the resource. Empty fields are not checked.
type Expect struct {
	SHA256 string `json:"sha256,omitempty"` // in hexadecimal
	Size   *int64 `json:"size,omitempty"`
	Type   string `json:"type,omitempty"` // a media type, such as image/png or image/*
}

// A Request asks for a resource. Name and URL are required.
type Request struct {
	Name   string      // of the spool file
	URL    string      // http or https
	Header http.Header // after a redirect to another origin, only those that say nothing about the sender are sent
	Expect Expect
	Limits Limits

	Pool       string // of proxies; proxy.Direct when empty
	Region     string // of the proxy; any when empty
	AvoidProxy string // the proxy of the previous attempt
	Attempt    int    // for the context of a failure

	ETag         string // of the copy that the sender has: if the source has no other, the result is NotChanged
	LastModified string // the same
	Owner        string // downloads from one host take turns between owners
}

// A Result describes a resource that was downloaded.
type Result struct {
	File         spool.File `json:"-"`
	URL          string     `json:"url"`  // after redirects
	Type         string     `json:"type"` // as the bytes show, or else as announced
	ETag         string     `json:"etag,omitempty"`
	LastModified string     `json:"last_modified,omitempty"`
	Proxy        string     `json:"proxy"`
	Status       int        `json:"status"`
	NotChanged   bool       `json:"not_changed,omitempty"` // the source has no newer copy: there is no file
}

// A Fetcher downloads resources. It is safe for concurrent use.
type Fetcher struct {
	cfg   Config
	hosts *hosts
}

// New makes a Fetcher. The error names every problem of the configuration.
func New(cfg Config) (*Fetcher, error) {
	problems := []error{cfg.Limits.check()}
	if cfg.Spool == nil || cfg.Proxies == nil {
		problems = append(problems, errors.New("Spool and Proxies are required"))
	}
	if h := cfg.Hosts; h.Concurrency < 0 || h.Delay < 0 || h.Wait < 0 {
		problems = append(problems, fmt.Errorf("Hosts is %+v: give positive values, or 0 for the defaults", h))
	}
	for name, m := range cfg.Hosts.ByHost {
		if m.Concurrency < 0 || m.Delay < 0 || name != hostName(name) || name == "" {
			problems = append(problems, fmt.Errorf("the host %.80q with %+v: give a name in lower case without port, and positive values", name, m))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	cfg.Limits = cfg.Limits.or(defaultLimits)
	if cfg.Hosts.Concurrency == 0 {
		cfg.Hosts.Concurrency = defaultConcurrency
	}
	if cfg.Hosts.Wait == 0 {
		cfg.Hosts.Wait = defaultWait
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "FetchBox"
	}
	return &Fetcher{cfg: cfg, hosts: newHosts(cfg.Hosts)}, nil
}

func (l Limits) check() error {
	if l.Size < 0 || l.Time < 0 || l.MinSpan < 0 || l.Redirects > maxRedirects {
		return fmt.Errorf("the limits %+v: give no negative Size, Time or MinSpan, and up to %d Redirects", l, maxRedirects)
	}
	return nil
}

// or returns the limits with those of another in place of zero fields.
func (l Limits) or(other Limits) Limits {
	if l.Size == 0 {
		l.Size = other.Size
	}
	if l.Time == 0 {
		l.Time = other.Time
	}
	if l.MinSpeed == 0 {
		l.MinSpeed = other.MinSpeed
	}
	if l.MinSpan == 0 {
		l.MinSpan = other.MinSpan
	}
	if l.Redirects == 0 {
		l.Redirects = other.Redirects
	}
	return l
}

// within returns the limits of a request under those of the configuration.
func (l Limits) within(most Limits) Limits {
	l = l.or(most)
	l.Size, l.Time, l.Redirects = min(l.Size, most.Size), min(l.Time, most.Time), min(l.Redirects, most.Redirects)
	l.MinSpan = min(l.MinSpan, most.MinSpan)
	if most.MinSpeed > 0 {
		l.MinSpeed = max(l.MinSpeed, most.MinSpeed)
	}
	return l
}

var hexSHA256 = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// ownHeaders are set by this package or belong to the connection: a request may not contain them.
var ownHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Keep-Alive",
	"Proxy-Authorization", "Proxy-Connection", "Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// Check refuses a request that can never succeed, before a job is made of it. It resolves no name. Its errors have the codes VALIDATION_INVALID_FIELD,
// DOWNLOAD_INVALID_URL, DOWNLOAD_ADDRESS_BLOCKED and DOWNLOAD_UNKNOWN_POOL.
func (f *Fetcher) Check(r Request) error {
	_, err := f.check(r)
	return err
}

func (f *Fetcher) check(r Request) (*url.URL, error) {
	u, err := f.cfg.Proxies.Guard().Check(r.URL)
	if errors.Is(err, safehttp.ErrBlocked) {
		return nil, failure.WithCode(err, code.DownloadAddressBlocked)
	}
	if err != nil {
		return nil, failure.WithCode(fmt.Errorf("the URL: %w", err), code.DownloadInvalidURL)
	}
	for name, values := range r.Header {
		if !httpguts.ValidHeaderFieldName(name) || slices.Contains(ownHeaders, http.CanonicalHeaderKey(name)) {
			return nil, invalid("the header %.60q cannot be set: leave it out", name)
		}
		if !allOf(values, httpguts.ValidHeaderFieldValue) {
			return nil, invalid("the header %.60q has a value that HTTP does not allow: leave out control characters", name)
		}
	}
	switch {
	case r.Expect.SHA256 != "" && !hexSHA256.MatchString(r.Expect.SHA256):
		return nil, invalid("the expected checksum is not a SHA-256: give 64 hexadecimal digits")
	case r.Expect.Size != nil && *r.Expect.Size < 0:
		return nil, invalid("the expected size is %d: give the number of bytes", *r.Expect.Size)
	case !httpguts.ValidHeaderFieldValue(r.ETag) || !httpguts.ValidHeaderFieldValue(r.LastModified):
		return nil, invalid("the ETag or Last-Modified has control characters: give it as the source sent it")
	}
	if _, _, err := mime.ParseMediaType(r.Expect.Type); r.Expect.Type != "" && (err != nil || strings.Count(r.Expect.Type, "/") != 1) {
		return nil, invalid("the expected type %.60q is not a media type: give one such as image/png or image/*", r.Expect.Type)
	}
	if err := r.Limits.check(); err != nil {
		return nil, failure.WithCode(err, code.ValidationInvalidField)
	}
	if !f.cfg.Proxies.Has(r.Pool, r.Region) {
		return nil, failure.WithCode(fmt.Errorf("there is no pool of proxies %.60q with a proxy in the region %.60q", r.Pool, r.Region), code.DownloadUnknownPool)
	}
	return u, nil
}

func allOf(values []string, ok func(string) bool) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return !ok(v) })
}

func invalid(format string, args ...any) error {
	return failure.WithCode(fmt.Errorf(format, args...), code.ValidationInvalidField)
}

// Adopt returns the result of an earlier Fetch whose spool file still exists, also of a process that was killed. The error has the code STORAGE_SPOOL_LOST if there is
// none: then the resource must be downloaded again.
func (f *Fetcher) Adopt(name string) (Result, error) {
	file, err := f.cfg.Spool.Find(name)
	if err != nil {
		return Result{}, err
	}
	r := Result{}
	if err := json.Unmarshal(file.Note, &r); err != nil {
		return Result{}, errors.Join(failure.WithCode(fmt.Errorf("the note of the spool file cannot be read: %w", err), code.StorageSpoolLost), f.cfg.Spool.Remove(name))
	}
	r.File = file
	return r, nil
}

// Fetch makes one attempt to download a resource. Its errors have codes, and a context with proxy, attempt and status. While the host is busy with other downloads it
// returns a snooze (failure.Snooze): the job waits, and no attempt is spent.
func (f *Fetcher) Fetch(ctx context.Context, r Request) (Result, error) {
	u, err := f.check(r)
	if err != nil {
		return Result{}, failure.NeverRetry(err)
	}
	release, err := f.hosts.acquire(ctx, u.Hostname(), r.Owner)
	if err != nil {
		return Result{}, err
	}
	defer release()
	route, err := f.cfg.Proxies.Pick(proxy.Want{Pool: r.Pool, Avoid: r.AvoidProxy, Host: hostPort(u), Region: r.Region})
	if err != nil {
		return Result{}, r.withContext(err, nil, 0)
	}
	a := &attempt{fetcher: f, request: r, limits: r.Limits.within(f.cfg.Limits), url: u, route: route}
	result, err := a.run(ctx)
	if ctx.Err() == nil {
		a.outcome.Err = err
	} else {
		a.outcome = proxy.Outcome{Err: context.Canceled}
	}
	route.End(a.outcome)
	if err != nil {
		return Result{}, r.withContext(err, route, a.status)
	}
	return result, nil
}

// hostPort returns host:port of a URL.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) + ":" + port
}
