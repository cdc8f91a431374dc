// Package manifest reads what clients send to FetchBox: the resources of a job. It accepts one JSON document, or one resource in each line (NDJSON), and names every
// bad line. It is pure: it knows nothing of jobs or storage.
package manifest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"mime"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
)

// Limits of a manifest.
const (
	MaxResources = 100_000
	MaxLine      = 64 << 10  // bytes of one resource
	MaxBytes     = 256 << 20 // bytes of a manifest
	MaxProblems  = 1000      // that an answer names
	maxURL       = 8 << 10
	maxKey       = 150
	maxHeaders   = 32
	maxHeader    = 4 << 10
	maxName      = 200
	maxMeta      = 1 << 10
	maxRetries   = 100
)

// A Resource is one thing to fetch.
type Resource struct {
	URL     string            `json:"url"`
	Key     string            `json:"key,omitempty"` // in the bucket; made from the job and the position when empty
	Headers map[string]string `json:"headers,omitempty"`

	// What the content must be, if the client knows it.
	SHA256 string `json:"sha256,omitempty"` // in hex
	Size   *int64 `json:"size,omitempty"`
	Type   string `json:"type,omitempty"` // media type, such as image/png; image/* for any of a kind

	Proxy   string            `json:"proxy,omitempty"`   // name of a proxy pool; no proxy when empty
	Region  string            `json:"region,omitempty"`  // of the proxy
	Handler string            `json:"handler,omitempty"` // inspects the content between download and upload
	Meta    map[string]string `json:"meta,omitempty"`    // for the handler; stored with the object
	Replace bool              `json:"replace,omitempty"` // an object with this key and another content is replaced
	ETag    string            `json:"etag,omitempty"`    // of the object that is there: it is replaced, and only if the source has another content by now
}

// Defaults are the fields of a manifest that hold for all its resources.
type Defaults struct {
	Name    string            `json:"name,omitempty"` // for people
	Proxy   string            `json:"proxy,omitempty"`
	Region  string            `json:"region,omitempty"`
	Handler string            `json:"handler,omitempty"`
	Meta    map[string]string `json:"meta,omitempty"`

	DownloadRetryLimit int `json:"download_retry_limit,omitempty"` // attempts to download each resource; that of the settings when 0
	StorageRetryLimit  int `json:"storage_retry_limit,omitempty"`  // attempts to store each resource
}

// A Manifest is the resources of one job.
type Manifest struct {
	Defaults
	Resources []Resource `json:"resources"`
}

// A Problem is what is wrong with one line.
type Problem struct {
	Line    int    `json:"line"` // of NDJSON, or the position of the resource in a JSON document, counted from 1; 0: the manifest as a whole
	Field   string `json:"field,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// A Checker knows which handlers and proxy pools exist, and what can be downloaded. Nil accepts everything.
type Checker struct {
	Handler  func(name string) error
	Proxy    func(name string) error
	Download func(r *Resource) *Problem // nil: the download may succeed. It is asked about resources without other problems
}

// Problems collects problems. Those beyond MaxProblems are only counted.
type Problems struct {
	List  []Problem
	Count int
}

func (p *Problems) add(line int, field, code, format string, args ...any) {
	if p.Count++; len(p.List) < MaxProblems {
		p.List = append(p.List, Problem{Line: line, Field: field, Code: code, Message: fmt.Sprintf(format, args...)})
	}
}

var (
	keySegment = regexp.MustCompile(`^[a-z0-9_-]([a-z0-9._-]*[a-z0-9_-])?$`)
	word       = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

	headerName  = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	headerValue = regexp.MustCompile(`^[\t\x20-\x7e\x80-\xff]*$`)
)

// A collector checks resources one by one.
type collector struct {
	to       *Manifest
	check    Checker
	problems *Problems
	keys     map[string]int // the line of each key
	lines    []int          // of the resources; 0: it has a problem
	refused  map[string]error
	over     bool // there are too many resources, which was reported
}

func newCollector(to *Manifest, check Checker, problems *Problems) *collector {
	return &collector{to: to, check: check, problems: problems, keys: map[string]int{}, refused: map[string]error{}}
}

// add checks a resource and adds it.
func (c *collector) add(line int, r Resource) {
	if len(c.to.Resources) >= MaxResources {
		if !c.over {
			c.problems.add(line, "", code.ValidationTooLarge, "a manifest has at most %d resources: send the rest as another job", MaxResources)
		}
		c.over = true
		return
	}
	before := c.problems.Count
	c.checkURL(line, r.URL)
	c.checkKey(line, r.Key)
	c.checkContent(line, &r)
	c.checkHeaders(line, r.Headers)
	c.checkMeta(line, r.Meta)
	c.checkNames(line, r.Proxy, r.Region, r.Handler)
	c.to.Resources = append(c.to.Resources, r)
	if c.problems.Count > before {
		line = 0
	}
	c.lines = append(c.lines, line)
}

func (c *collector) checkURL(line int, text string) {
	if text == "" {
		c.problems.add(line, "url", code.ValidationMissingField, "url is missing")
		return
	}
	u, err := url.Parse(text)
	switch {
	case len(text) > maxURL:
		c.problems.add(line, "url", code.ValidationInvalidURL, "url has %d bytes: the limit is %d", len(text), maxURL)
	case err != nil || !utf8.ValidString(text):
		c.problems.add(line, "url", code.ValidationInvalidURL, "url cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https":
		c.problems.add(line, "url", code.ValidationInvalidURL, "url must begin with http:// or https://")
	case u.Hostname() == "":
		c.problems.add(line, "url", code.ValidationInvalidURL, "url has no host")
	}
}

func (c *collector) checkKey(line int, key string) {
	if key == "" {
		return
	}
	bad := len(key) > maxKey
	for segment := range strings.SplitSeq(key, "/") {
		bad = bad || !keySegment.MatchString(segment)
	}
	if bad {
		c.problems.add(line, "key", code.ValidationInvalidField, "key must have at most %d bytes: segments of lower-case letters, digits, dots, dashes and underscores, separated by /; no segment begins or ends with a dot", maxKey)
		return
	}
	if first, taken := c.keys[key]; taken {
		c.problems.add(line, "key", code.ValidationInvalidField, "key %q is that of line %d too: each resource needs its own", key, first)
		return
	}
	c.keys[key] = line
}

func (c *collector) checkContent(line int, r *Resource) {
	if r.SHA256 != "" {
		r.SHA256 = strings.ToLower(r.SHA256)
		if sum, err := hex.DecodeString(r.SHA256); err != nil || len(sum) != 32 {
			c.problems.add(line, "sha256", code.ValidationInvalidField, "sha256 must have 64 hexadecimal digits")
		}
	}
	if r.Size != nil && (*r.Size < 0 || *r.Size > 1<<50) {
		c.problems.add(line, "size", code.ValidationInvalidField, "size must be a number of bytes from 0 to %d", int64(1)<<50)
	}
	if r.Type != "" {
		if _, _, err := mime.ParseMediaType(r.Type); err != nil || strings.Count(r.Type, "/") != 1 {
			c.problems.add(line, "type", code.ValidationInvalidField, "type must be a media type such as image/png or image/*")
		}
	}
	switch {
	case r.ETag == "":
	case r.Key == "":
		c.problems.add(line, "etag", code.ValidationInvalidField, "etag is that of an object which is there: give its key, too")
	case len(r.ETag) > maxMeta || !headerValue.MatchString(r.ETag):
		c.problems.add(line, "etag", code.ValidationInvalidField, "etag must be as the source sent it, with at most %d bytes", maxMeta)
	}
}

func (c *collector) checkHeaders(line int, headers map[string]string) {
	if len(headers) > maxHeaders {
		c.problems.add(line, "headers", code.ValidationInvalidField, "%d headers: the limit is %d", len(headers), maxHeaders)
	}
	for name, value := range headers {
		if !headerName.MatchString(name) || !headerValue.MatchString(value) || len(name)+len(value) > maxHeader {
			c.problems.add(line, "headers", code.ValidationInvalidField, "the header %.80q is not valid", name)
		}
	}
}

func (c *collector) checkMeta(line int, meta map[string]string) {
	bytes := 0
	for name, value := range meta {
		bytes += len(name) + len(value)
		if !word.MatchString(name) || !headerValue.MatchString(value) {
			c.problems.add(line, "meta", code.ValidationInvalidField, "%.80q cannot be stored with an object: use a name of letters, digits and _ . -, and a value in one line", name)
		}
	}
	if bytes > maxMeta {
		c.problems.add(line, "meta", code.ValidationInvalidField, "meta has %d bytes: the limit is %d", bytes, maxMeta)
	}
}

func (c *collector) checkNames(line int, proxy, region, handler string) {
	for _, name := range []struct {
		field, value string
		check        func(string) error
	}{{"proxy", proxy, c.check.Proxy}, {"region", region, nil}, {"handler", handler, c.check.Handler}} {
		if name.value == "" {
			continue
		}
		err := c.known(name.field+" "+name.value, func() error {
			if !word.MatchString(name.value) || name.check == nil {
				return nil
			}
			return name.check(name.value)
		})
		if err != nil {
			c.problems.add(line, name.field, code.ValidationUnknownName, "%v", err)
		} else if !word.MatchString(name.value) {
			c.problems.add(line, name.field, code.ValidationInvalidField, "%.80q is not a valid name", name.value)
		}
	}
}

// known remembers the result of a check, because most lines have the same names.
func (c *collector) known(what string, check func() error) error {
	if err, ok := c.refused[what]; ok {
		return err
	}
	err := check()
	if len(c.refused) < 1000 {
		c.refused[what] = err
	}
	return err
}

// finish checks what concerns the manifest as a whole, and fills the defaults in.
func (c *collector) finish() {
	d := &c.to.Defaults
	if len(d.Name) > maxName || !utf8.ValidString(d.Name) {
		c.problems.add(0, "name", code.ValidationInvalidField, "name must be text of at most %d bytes", maxName)
	}
	for field, n := range map[string]int{"download_retry_limit": d.DownloadRetryLimit, "storage_retry_limit": d.StorageRetryLimit} {
		if n < 0 || n > maxRetries {
			c.problems.add(0, field, code.ValidationInvalidField, "%s must be a number from 1 to %d", field, maxRetries)
		}
	}
	c.checkMeta(0, d.Meta)
	c.checkNames(0, d.Proxy, d.Region, d.Handler)
	if len(c.to.Resources) == 0 && c.problems.Count == 0 {
		c.problems.add(0, "resources", code.ValidationMissingField, "the manifest has no resources")
	}
	for i := range c.to.Resources {
		r := &c.to.Resources[i]
		if r.Proxy == "" {
			r.Proxy = d.Proxy
		}
		if r.Region == "" {
			r.Region = d.Region
		}
		if r.Handler == "" {
			r.Handler = d.Handler
		}
		if r.Meta == nil {
			r.Meta = d.Meta
		}
		if c.check.Download == nil || c.lines[i] == 0 {
			continue
		}
		if p := c.check.Download(r); p != nil {
			c.problems.add(c.lines[i], p.Field, p.Code, "%s", p.Message)
		}
	}
}

// isObject reports whether a line is a JSON object, so that a text or a number is refused with the line's own message.
func isObject(line []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(line, " \t\r\n"), []byte("{")) }
