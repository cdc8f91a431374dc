// Package fetch downloads a resource into a spool file: one attempt, with a code for each way in which it can fail. Retries are made by the engine.
//
// A download is complete only if everything arrived that was announced and expected. A body that is cut, whose chunks are broken, that is shorter than its
// Content-Length or cannot be decompressed is never a success.
package fetch

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
)

// Limits bound a download. In a Request, a zero field has the value of the Config.
type Limits struct {
	Size      int64         `json:"size,omitempty"`      // most bytes, after decompression; 5 GiB when zero
	Time      time.Duration `json:"time,omitempty"`      // of the whole download; 1 h when zero
	MinSpeed  int64         `json:"min_speed,omitempty"` // least bytes per second over MinSpan; 1 KiB when zero, none when negative
	MinSpan   time.Duration `json:"min_span,omitempty"`  // 15 s when zero
	Redirects int           `json:"redirects,omitempty"` // most redirects; 10 when zero, none when negative
}

// HostLimits are the manners towards one host, for all downloads of this process.
type HostLimits struct {
	Concurrency int           // downloads at once; 8 when zero
	Delay       time.Duration // from the start of a request to the next; none when zero
	Wait        time.Duration // how long a download waits for its turn before the job is sent back to its queue, at no cost; 5 s when zero
}

// Config configures a Fetcher. Spool and Proxies are required.
type Config struct {
	Spool     *spool.Spool
	Proxies   *proxy.Pools
	Limits    Limits
	Hosts     HostLimits
	UserAgent string // "FetchBox" when empty
}

// Expect is what the sender of a request knows about the resource. Zero fields are not checked.
type Expect struct {
	SHA256 string `json:"sha256,omitempty"` // in hexadecimal
	Size   int64  `json:"size,omitempty"`
	Type   string `json:"type,omitempty"` // a media type, such as image/png or image/*
}

// A Request asks for a resource. Name and URL are required.
type Request struct {
	Name   string      // of the spool file
	URL    string      // http or https
	Header http.Header // sent to the origin of URL only; see safehttp
	Expect Expect
	Limits Limits

	Pool       string // of proxies; proxy.Direct when empty
	Region     string // of the proxy; any when empty
	AvoidProxy string // the proxy of the previous attempt
	Attempt    int    // for the context of a failure

	ETag         string // of the copy that the sender has: if the source has no other, the result is NotChanged
	LastModified string // the same
	Owner        string // downloads of one host are fair between owners
}

// A Result describes a resource that was downloaded.
type Result struct {
	File         spool.File `json:"file"`
	URL          string     `json:"url"`                     // after redirects
	Type         string     `json:"type"`                    // announced, or found by the first bytes if the announced one is missing or general
	ETag         string     `json:"etag,omitempty"`
	LastModified string     `json:"last_modified,omitempty"`
	Proxy        string     `json:"proxy"`
	Status       int        `json:"status"`
	NotChanged   bool       `json:"not_changed,omitempty"` // the source has no newer copy: there is no file
}

// A Fetcher downloads resources. It is safe for concurrent use.
type Fetcher struct{ cfg Config }

// New makes a Fetcher. The error names every problem of the configuration.
func New(cfg Config) (*Fetcher, error) { panic("draft") }

// Fetch makes one attempt to download a resource. The error has a code, and a context with proxy, attempt and status; a snooze if the host is busy with other downloads.
func (f *Fetcher) Fetch(ctx context.Context, r Request) (Result, error) { panic("draft") }

// Adopt returns the result of an earlier Fetch whose spool file still exists, also of a process that was killed. The error has the code STORAGE_SPOOL_LOST if there is
// none: then the resource must be downloaded again.
func (f *Fetcher) Adopt(name string) (Result, error) { panic("draft") }

// Check refuses a request that can never succeed, before a job is made of it: its error has a code DOWNLOAD_INVALID_URL, DOWNLOAD_ADDRESS_BLOCKED or DOWNLOAD_UNKNOWN_POOL.
// It resolves no name.
func (f *Fetcher) Check(r Request) error { panic("draft") }
