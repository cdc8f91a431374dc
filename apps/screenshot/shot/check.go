package shot

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // so that zones are known on systems without them
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// Limits are the largest options that are accepted. Zero fields have defaults.
type Limits struct {
	Timeout time.Duration // 60 s when zero
	HTML    int           // bytes of Options.HTML; 5 MiB when zero
	Pixels  int           // of a picture; 100 million when zero
	// CheckURL refuses a URL that the service does not call. Its error is shown to the client.
	CheckURL func(address string) (*url.URL, error)
}

// WithDefaults returns the limits with their defaults filled in.
func (l Limits) WithDefaults() Limits {
	setDefault(&l.Timeout, time.Minute)
	setDefault(&l.HTML, 5<<20)
	setDefault(&l.Pixels, 100_000_000)
	return l
}

const (
	maxSide     = 10_000 // CSS pixels of a viewport
	maxScale    = 4
	maxDelay    = 30 * time.Second
	maxList     = 50
	maxSelector = 1000
	maxText     = 4000
	maxPaper    = 2000 // millimetres
	// MaxWebP is the largest side of a picture in WebP.
	MaxWebP = 16_383
	// MaxJPEG is the largest side of a picture in JPEG.
	MaxJPEG = 65_535
)

// A FieldError says what is wrong with a field of the options.
type FieldError struct {
	Field   string `json:"field"`
	Problem string `json:"problem"`
}

// FieldErrors are all that is wrong.
type FieldErrors []FieldError

func (e FieldErrors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Field + ": " + one.Problem
	}
	return strings.Join(lines, "; ")
}

func (e *FieldErrors) add(bad bool, field, format string, args ...any) {
	if bad {
		*e = append(*e, FieldError{field, fmt.Sprintf(format, args...)})
	}
}

var (
	locale = regexp.MustCompile(`^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*$`)
	domain = regexp.MustCompile(`^\.?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$`)
)

// Check checks options with their defaults filled in. The error is a FieldErrors.
func (o Options) Check(limits Limits) error {
	limits = limits.WithDefaults()
	var bad FieldErrors
	o.checkSource(&bad, limits)
	o.checkPicture(&bad, limits)
	o.checkWaiting(&bad, limits)
	o.checkPage(&bad)
	if len(bad) > 0 {
		return bad
	}
	return nil
}

func (o Options) checkSource(bad *FieldErrors, limits Limits) {
	bad.add(o.URL == "" && o.HTML == "", "url", "give the address of a page, or a document in html")
	bad.add(o.URL != "" && o.HTML != "", "html", "give either url or html")
	bad.add(len(o.HTML) > limits.HTML, "html", "it has %d bytes, the limit is %d", len(o.HTML), limits.HTML)
	bad.add(!utf8.ValidString(o.HTML), "html", "it is not valid UTF-8")
	if o.URL == "" {
		return
	}
	bad.add(len(o.URL) > maxText, "url", "it has %d bytes, the limit is %d", len(o.URL), maxText)
	check := limits.CheckURL
	if check == nil {
		check = url.Parse
	}
	if u, err := check(o.URL); err != nil {
		bad.add(true, "url", "%v", err)
	} else {
		bad.add(u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "", "url", "give an address such as https://example.org/path")
	}
}

func (o Options) checkPicture(bad *FieldErrors, limits Limits) {
	bad.add(o.Format != PNG && o.Format != JPEG && o.Format != WebP && o.Format != PDF, "format", "%q is not a format: use png, jpeg, webp or pdf", o.Format)
	bad.add(o.Quality < 1 || o.Quality > 100, "quality", "it is %d: use 1 to 100", o.Quality)
	bad.add(o.Width < 16 || o.Width > maxSide, "width", "it is %d: use 16 to %d", o.Width, maxSide)
	bad.add(o.Height < 16 || o.Height > maxSide, "height", "it is %d: use 16 to %d", o.Height, maxSide)
	bad.add(math.IsNaN(o.Scale) || o.Scale < 0.25 || o.Scale > maxScale, "scale", "it is %v: use 0.25 to %d", o.Scale, maxScale)
	pixels := float64(o.Width) * float64(o.Height) * o.Scale * o.Scale
	bad.add(pixels > float64(limits.Pixels), "scale", "the picture would have %.0f pixels, the limit is %d", pixels, limits.Pixels)
	bad.add(o.Format == WebP && math.Max(float64(o.Width), float64(o.Height))*o.Scale > MaxWebP, "format", "webp has at most %d pixels on a side: use png", MaxWebP)
	bad.add(o.FullPage && o.Selector != "", "selector", "give either selector or fullPage")
	bad.add(o.Format == PDF && (o.FullPage || o.Selector != ""), "format", "a pdf always shows the whole page: leave out fullPage and selector")
	p := o.Paper
	bad.add(p.Width < 20 || p.Width > maxPaper || p.Height < 20 || p.Height > maxPaper, "paper", "it is %v by %v mm: use 20 to %d", p.Width, p.Height, maxPaper)
	bad.add(p.Margin < 0 || 2*p.Margin > min(p.Width, p.Height)-10, "paper.margin", "it is %v mm: nothing would be left of the page", p.Margin)
}

func (o Options) checkWaiting(bad *FieldErrors, limits Limits) {
	bad.add(o.WaitFor != Load && o.WaitFor != Idle, "waitFor", "%q is not an event: use load or idle", o.WaitFor)
	bad.add(o.Timeout() < time.Second || o.Timeout() > limits.Timeout, "timeoutMs", "it is %d: use 1000 to %d", o.TimeoutMS, limits.Timeout.Milliseconds())
	bad.add(o.DelayMS < 0 || o.DelayMS > int(maxDelay.Milliseconds()), "delayMs", "it is %d: use 0 to %d", o.DelayMS, maxDelay.Milliseconds())
	bad.add(o.DelayMS >= o.TimeoutMS && o.TimeoutMS > 0, "delayMs", "it is not below timeoutMs")
	selectors := map[string][]string{"selector": {o.Selector}, "waitForSelector": {o.WaitForSelector}, "click": o.Click, "hide": o.Hide}
	for _, field := range []string{"selector", "waitForSelector", "click", "hide"} {
		bad.add(len(selectors[field]) > maxList, field, "it has %d selectors, the limit is %d", len(selectors[field]), maxList)
		for _, selector := range selectors[field] {
			bad.add(len(selector) > maxSelector, field, "a selector has %d bytes, the limit is %d", len(selector), maxSelector)
			bad.add(strings.TrimSpace(selector) == "" && (selector != "" || field == "click" || field == "hide"), field, "a selector is empty")
		}
	}
	bad.add(len(o.FailOnText) > maxList, "failOnText", "it has %d texts, the limit is %d", len(o.FailOnText), maxList)
	for _, text := range o.FailOnText {
		bad.add(text == "" || len(text) > maxText, "failOnText", "a text has %d bytes: use 1 to %d", len(text), maxText)
	}
}

// hopHeaders are headers that belong to a connection, or that have a field of their own.
var hopHeaders = map[string]string{
	"Host": "it follows from url", "Content-Length": "the request has no body", "Transfer-Encoding": "the request has no body", "Connection": "the browser sets it",
	"Cookie": "use cookies", "Upgrade": "the browser sets it", "Te": "the browser sets it", "Trailer": "the browser sets it",
}

func (o Options) checkPage(bad *FieldErrors) {
	bad.add(!locale.MatchString(o.Locale), "locale", "%q is not a locale: give one such as de-DE", o.Locale)
	_, err := time.LoadLocation(o.TimeZone)
	bad.add(err != nil || o.TimeZone == "Local", "timeZone", "%q is not a time zone: give one such as Europe/Berlin", o.TimeZone)
	bad.add(len(o.Headers) > maxList, "headers", "there are %d, the limit is %d", len(o.Headers), maxList)
	for name, value := range o.Headers {
		why := hopHeaders[http.CanonicalHeaderKey(name)]
		bad.add(!httpguts.ValidHeaderFieldName(name), "headers", "%.40q is not a name of a header", name)
		bad.add(why != "" || strings.HasPrefix(strings.ToLower(name), "proxy-") || strings.HasPrefix(strings.ToLower(name), "sec-"), "headers", "%.40s cannot be set: %s", name, or(why, "the browser sets it"))
		bad.add(!httpguts.ValidHeaderFieldValue(value) || len(value) > maxText, "headers", "the value of %.40s is not valid", name)
	}
	bad.add(len(o.Headers) > 0 && o.URL == "", "headers", "they are sent to the origin of url, which is missing")
	bad.add(len(o.Cookies) > maxList, "cookies", "there are %d, the limit is %d", len(o.Cookies), maxList)
	for _, c := range o.Cookies {
		bad.add(!httpguts.ValidHeaderFieldName(c.Name), "cookies", "%.40q is not a name of a cookie", c.Name)
		bad.add(len(c.Value) > maxText || strings.ContainsFunc(c.Value, func(r rune) bool { return r < ' ' || r == ';' || r > '~' }), "cookies", "the value of %.40s is not valid", c.Name)
		bad.add(c.Domain != "" && !domain.MatchString(c.Domain), "cookies", "the domain of %.40s is not valid", c.Name)
		bad.add(c.Domain == "" && o.URL == "", "cookies", "%.40s has no domain, and url is missing", c.Name)
		bad.add(c.Path != "" && !strings.HasPrefix(c.Path, "/"), "cookies", "the path of %.40s does not begin with a slash", c.Name)
	}
	bad.add(len(o.BlockHosts) > 1000, "blockHosts", "there are %d, the limit is 1000", len(o.BlockHosts))
	for _, host := range o.BlockHosts {
		bad.add(!domain.MatchString(host), "blockHosts", "%.60q is not a host", host)
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
