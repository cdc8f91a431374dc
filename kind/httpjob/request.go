package httpjob

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/jobkind"
	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// Kind is the name of the kind.
const Kind = "http"

// Limits and defaults of a request.
const (
	MaxTimeout  = 10 * time.Minute
	MaxResponse = 512 << 10
	maxHeaders  = 64
	maxValue    = 8 << 10

	defaultTimeout  = 30 * time.Second
	defaultResponse = 64 << 10
)

// A Request is the arguments of a job of kind "http". Only URL is required.
type Request struct {
	Method  string            `json:"method,omitempty"` // if empty, GET, or POST with a body
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"` // the body as text
	JSON    json.RawMessage   `json:"json,omitempty"` // or as a JSON value
	Timeout Duration          `json:"timeout,omitempty"`
	// Expect lists the statuses that mean success: 204, "200-299", "2xx". If empty, all of 2xx.
	Expect      []Status `json:"expect,omitempty"`
	KeepHeaders []string `json:"keep_headers,omitempty"` // response headers to store with the result
	MaxResponse int      `json:"max_response,omitempty"` // bytes of the response body to store; 64 KiB when 0
	Redirects   int      `json:"redirects,omitempty"`    // the maximum number to follow; none when 0
}

// Kind returns "http".
func (Request) Kind() string { return Kind }

// A Duration is written in JSON as text, such as "1m30s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	span, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration %.40q: use a form such as 30s or 1m30s", text)
	}
	*d = Duration(span)
	return nil
}

// A Status is one HTTP status or a range: "404", "200-299", "2xx".
type Status string

// UnmarshalJSON accepts a number, too.
func (s *Status) UnmarshalJSON(text []byte) error {
	word := strings.Trim(string(text), `"`)
	if _, _, ok := Status(word).bounds(); !ok {
		return fmt.Errorf("status %.40s: use a form such as 204, \"200-299\" or \"2xx\"", text)
	}
	*s = Status(word)
	return nil
}

func (s Status) bounds() (low, high int, ok bool) {
	first, last, isRange := strings.Cut(string(s), "-")
	if !isRange {
		last = first
	}
	if len(first) == 3 && strings.EqualFold(first[1:], "xx") && !isRange {
		first, last = first[:1]+"00", first[:1]+"99"
	}
	low, err := strconv.Atoi(first)
	high, err2 := strconv.Atoi(last)
	return low, high, err == nil && err2 == nil && low >= 200 && high <= 599 && low <= high
}

// expects reports whether a status means success.
func (r Request) expects(status int) bool {
	if len(r.Expect) == 0 {
		return status >= 200 && status < 300
	}
	for _, s := range r.Expect {
		if low, high, _ := s.bounds(); status >= low && status <= high {
			return true
		}
	}
	return false
}

// Draft returns the draft of a request, with the host as its dependency. Other fields can be set on the draft.
func Draft(r Request) (holdfast.Draft, error) {
	d, err := holdfast.NewDraft(r)
	if err != nil {
		return d, err
	}
	return d, Prepare(&d)
}

// Prepare validates a draft of kind "http" and sets the host as its dependency. The error names every problem. A draft that names another dependency is refused: its
// failures would count against a dependency that it does not call. Drafts of other kinds are not changed. Whether an address may be called is decided by the worker.
func Prepare(d *holdfast.Draft) error { return Dependencies(nil).Prepare(d) }

// Dependencies maps hosts to names of dependencies. A host is written as host or host:port; *.example.org matches every host below example.org, and the longest match
// applies. Hosts with the same name share a breaker, a retry budget and limits.
type Dependencies map[string]string

// Prepare is like the function Prepare, but sets the name to which the host is mapped.
func (m Dependencies) Prepare(d *holdfast.Draft) error {
	if d.Kind != Kind {
		return nil
	}
	_, target, err := read(d.Args)
	if err != nil {
		return err
	}
	host := m.of(target)
	if d.Dependency != "" && d.Dependency != host {
		return jobkind.Refuse("dependency %.60q: a job of kind http depends on the host that it calls, %s; leave the dependency out", d.Dependency, host)
	}
	d.Dependency = host
	return nil
}

// Check validates patterns and names. The error names every problem.
func (m Dependencies) Check() error {
	var problems []error
	for pattern, name := range m {
		probe := holdfast.Draft{Kind: Kind, Dependency: name}
		host := strings.TrimPrefix(pattern, "*.")
		if host == "" || host != strings.ToLower(host) || strings.ContainsAny(host, "*/@ ") || name == "" || probe.Prepare() != nil {
			problems = append(problems, jobkind.Refuse("%.60q=%.60q: give a host in lower case (host, host:port or *.host) and a name of letters, digits and _ - . : /", pattern, name))
		}
	}
	return errors.Join(problems...)
}

// of returns the dependency of an address.
func (m Dependencies) of(u *url.URL) string {
	host := dependencyOf(u)
	if name, ok := m[host]; ok {
		return name
	}
	for rest := host; ; {
		_, parent, more := strings.Cut(rest, ".")
		if !more {
			return host
		}
		if name, ok := m["*."+parent]; ok {
			return name
		}
		rest = parent
	}
}

// read decodes and validates arguments.
func read(args json.RawMessage) (r Request, target *url.URL, err error) {
	if err := jobkind.Read(Kind, args, &r); err != nil {
		return r, nil, err
	}
	target, err = r.target()
	return r, target, errors.Join(err, r.checkMethod(), r.checkHeaders(), r.checkLimits())
}

// lenient parses addresses and accepts blocked ones: the guard of the worker decides which may be called.
var lenient = func() *safehttp.Guard {
	g, err := safehttp.New(safehttp.Config{AnyPort: true})
	if err != nil {
		panic(err)
	}
	return g
}()

func (r Request) target() (*url.URL, error) {
	u, err := lenient.Check(r.URL)
	switch {
	case err != nil && !errors.Is(err, safehttp.ErrBlocked):
		return nil, jobkind.Refuse("url: %v", err)
	case u.Fragment != "":
		return nil, jobkind.Refuse("url: it has a part after #, which is never sent: leave it out")
	case len(r.URL) > maxValue:
		return nil, jobkind.Refuse("url: it has %d bytes; the limit is %d", len(r.URL), maxValue)
	}
	before, _, _ := strings.Cut(r.URL, "?")
	if strings.Contains(before, "${") || strings.Contains(before, "$%7B") {
		return nil, jobkind.Refuse("url: a secret before the question mark: put it into the query or into a header")
	}
	return u, checkReferences("url", u.RawQuery)
}

var token = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")

func (r Request) checkMethod() error {
	var problems []error
	switch method := r.method(); method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		if (method == http.MethodGet || method == http.MethodHead) && r.sends() {
			problems = append(problems, jobkind.Refuse("method %s with a body: use POST, PUT or PATCH", method))
		}
	default:
		problems = append(problems, jobkind.Refuse("method %.20q: use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS", r.Method))
	}
	if r.Body != "" && len(r.JSON) > 0 {
		problems = append(problems, jobkind.Refuse("both body and json: give one"))
	}
	if strings.Contains(r.Body, "${secret:") || strings.Contains(string(r.JSON), "${secret:") {
		problems = append(problems, jobkind.Refuse("a secret in the body: put it into a header or into the query"))
	}
	return errors.Join(problems...)
}

func (r Request) sends() bool { return r.Body != "" || len(r.JSON) > 0 }

func (r Request) method() string {
	switch {
	case r.Method != "":
		return strings.ToUpper(r.Method)
	case r.sends():
		return http.MethodPost
	}
	return http.MethodGet
}

// connectionHeaders are headers that the HTTP client sets itself.
var connectionHeaders = map[string]bool{
	"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true, "Keep-Alive": true, "Upgrade": true, "Te": true, "Trailer": true,
	"Expect": true, "Proxy-Authorization": true, "Proxy-Connection": true, "Accept-Encoding": true,
}

func (r Request) checkHeaders() error {
	var problems []error
	if len(r.Headers) > maxHeaders || len(r.KeepHeaders) > maxHeaders {
		problems = append(problems, jobkind.Refuse("%d headers, and %d to keep: the limit is %d", len(r.Headers), len(r.KeepHeaders), maxHeaders))
	}
	seen := make(map[string]bool)
	for name, value := range r.Headers {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !token.MatchString(name):
			problems = append(problems, jobkind.Refuse("header %.40q: its name may contain letters, digits and -", name))
		case connectionHeaders[canonical]:
			problems = append(problems, jobkind.Refuse("header %s: it belongs to the connection; leave it out", name))
		case seen[canonical]:
			problems = append(problems, jobkind.Refuse("header %s: it is given twice; keep one", canonical))
		case !plain(value):
			problems = append(problems, jobkind.Refuse("header %s: its value must be one line of at most %d bytes", name, maxValue))
		default:
			problems = append(problems, checkReferences("header "+name, value))
		}
		seen[canonical] = true
	}
	for _, name := range r.KeepHeaders {
		if !token.MatchString(name) {
			problems = append(problems, jobkind.Refuse("keep_headers: %.40q is not a header name", name))
		}
	}
	return errors.Join(problems...)
}

// plain reports whether a text can be a header value.
func plain(value string) bool {
	return len(value) <= maxValue && utf8.ValidString(value) && !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}

func (r Request) checkLimits() error {
	var problems []error
	if r.Timeout < 0 || time.Duration(r.Timeout) > MaxTimeout {
		problems = append(problems, jobkind.Refuse("timeout %v: give a duration up to %v, or leave it out", time.Duration(r.Timeout), MaxTimeout))
	}
	if r.MaxResponse < 0 || r.MaxResponse > MaxResponse {
		problems = append(problems, jobkind.Refuse("max_response %d: give up to %d bytes, or leave it out for %d", r.MaxResponse, MaxResponse, defaultResponse))
	}
	if r.Redirects < 0 || r.Redirects > safehttp.MaxRedirects {
		problems = append(problems, jobkind.Refuse("redirects %d: give up to %d, or leave it out to follow none", r.Redirects, safehttp.MaxRedirects))
	}
	for _, s := range r.Expect { // values that were not decoded from JSON
		if _, _, ok := s.bounds(); !ok {
			problems = append(problems, jobkind.Refuse("expect %.20q: use a form such as 204, 200-299 or 2xx", string(s)))
		}
	}
	return errors.Join(problems...)
}

// dependencyOf returns the host, with its port unless it is the default one, in the form of dependency names.
func dependencyOf(u *url.URL) string {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	host, _, _ = strings.Cut(host, "%") // an IPv6 zone; such an address is always blocked
	usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if u.Port() == "" || u.Port() == usual {
		return host
	}
	return host + ":" + u.Port()
}
