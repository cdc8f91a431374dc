// Package shot describes a picture of a page: what is asked for, with checks that name the field, and what comes back.
package shot

import (
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/egress"
)

// A Format is the format of a picture.
type Format string

// The formats.
const (
	PNG  Format = "png"
	JPEG Format = "jpeg"
	WebP Format = "webp"
	PDF  Format = "pdf"
)

// MediaType returns the media type of the format.
func (f Format) MediaType() string {
	if f == PDF {
		return "application/pdf"
	}
	return "image/" + string(f)
}

// An Event is what a page is waited for after it began to load.
type Event string

// The events.
const (
	Load Event = "load" // the load event: the document and all that it needs were loaded
	Idle Event = "idle" // and no request was open for half a second
)

// Options are what a client asks for. One of URL and HTML is required; zero fields have defaults.
type Options struct {
	URL  string `json:"url,omitempty"`
	HTML string `json:"html,omitempty"` // a document that is shown instead of a page of the internet

	Format   Format  `json:"format,omitempty"`   // png when empty
	Quality  int     `json:"quality,omitempty"`  // of jpeg and webp, 1 to 100; 80 when zero
	Width    int     `json:"width,omitempty"`    // of the viewport in CSS pixels; 1280 when zero
	Height   int     `json:"height,omitempty"`   // 800 when zero
	Scale    float64 `json:"scale,omitempty"`    // pixels of the picture per CSS pixel; 1 when zero
	FullPage bool    `json:"fullPage,omitempty"` // the whole page instead of the viewport
	Selector string  `json:"selector,omitempty"` // the first element of this selector instead of the viewport
	Paper    *Paper  `json:"paper,omitempty"`    // of pdf; A4 with margins of 10 mm when nil

	WaitFor         Event  `json:"waitFor,omitempty"`         // load when empty
	WaitForSelector string `json:"waitForSelector,omitempty"` // then until a visible element of this selector exists
	DelayMS         int    `json:"delayMs,omitempty"`         // then so long
	TimeoutMS       int    `json:"timeoutMs,omitempty"`       // for all of it; 30,000 when zero

	DarkMode bool              `json:"darkMode,omitempty"`
	Locale   string            `json:"locale,omitempty"`   // such as de-DE; en-US when empty
	TimeZone string            `json:"timeZone,omitempty"` // such as Europe/Berlin; UTC when empty
	Headers  map[string]string `json:"headers,omitempty"`  // of requests to the origin of URL
	Cookies  []Cookie          `json:"cookies,omitempty"`
	Click    []string          `json:"click,omitempty"` // selectors of elements that are clicked, in this order, after the page was loaded
	Hide     []string          `json:"hide,omitempty"`  // selectors of elements that are not shown

	BlockAds   bool     `json:"blockAds,omitempty"`   // hosts of the service's list are not called
	BlockHosts []string `json:"blockHosts,omitempty"` // these hosts, and those below them, are not called

	FailOnText          []string `json:"failOnText,omitempty"`          // the shot fails if the page contains one of these texts
	FailOnRequestErrors bool     `json:"failOnRequestErrors,omitempty"` // the shot fails if a request of the page failed
	AllowErrorPages     bool     `json:"allowErrorPages,omitempty"`     // a page with an HTTP status of 400 or more is no failure
	AllowBlank          bool     `json:"allowBlank,omitempty"`          // a blank picture is no failure
}

// A Cookie is set before the page is loaded. Domain is the host of the URL when empty.
type Cookie struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Domain   string `json:"domain,omitempty"`
	Path     string `json:"path,omitempty"`
	Secure   bool   `json:"secure,omitempty"`
	HTTPOnly bool   `json:"httpOnly,omitempty"`
}

// A Paper is the paper of a PDF, in millimetres.
type Paper struct {
	Width      float64 `json:"width,omitempty"`  // 210 when zero
	Height     float64 `json:"height,omitempty"` // 297 when zero
	Margin     float64 `json:"margin,omitempty"`
	Landscape  bool    `json:"landscape,omitempty"`
	Background bool    `json:"background,omitempty"` // colours and pictures behind the text
}

// WithDefaults returns the options with their defaults filled in.
func (o Options) WithDefaults() Options {
	setDefault(&o.Format, PNG)
	setDefault(&o.Quality, 80)
	setDefault(&o.Width, 1280)
	setDefault(&o.Height, 800)
	setDefault(&o.Scale, 1)
	setDefault(&o.WaitFor, Load)
	setDefault(&o.TimeoutMS, 30_000)
	setDefault(&o.Locale, "en-US")
	setDefault(&o.TimeZone, "UTC")
	paper := Paper{Margin: 10, Background: true}
	if o.Paper != nil {
		paper = *o.Paper
	}
	setDefault(&paper.Width, 210)
	setDefault(&paper.Height, 297)
	o.Paper = &paper
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Timeout returns the time limit of the shot.
func (o Options) Timeout() time.Duration { return time.Duration(o.TimeoutMS) * time.Millisecond }

// A Picture is the result of a shot.
type Picture struct {
	Data   []byte
	Format Format
	Facts  Facts
}

// Facts say how a picture came about.
type Facts struct {
	FinalURL   string           `json:"finalUrl"` // after redirects
	Status     int              `json:"status"`   // HTTP status of the page; 0 for HTML of the request
	Title      string           `json:"title"`
	Width      int              `json:"width"` // of the picture in pixels; 0 for a PDF
	Height     int              `json:"height"`
	Bytes      int              `json:"bytes"`
	Strips     int              `json:"strips"` // parts that the picture was made of; 1 for most
	DurationMS int64            `json:"durationMs"`
	Requests   int              `json:"requests"`          // of the page
	Received   int64            `json:"transferred"`       // bytes over the network
	Blocked    []egress.Refusal `json:"blocked,omitempty"` // hosts that were not called, and why
	Dialogs    int              `json:"dialogs,omitempty"` // that the page opened, and that were dismissed
	Failed     []string         `json:"failedRequests,omitempty"`
}

// Public returns the options as clients read them later: without values of headers and cookies, which may be secrets, and without the text of HTML.
func (o Options) Public() Options {
	headers := map[string]string{}
	for name := range o.Headers {
		headers[name] = hidden
	}
	if o.Headers != nil {
		o.Headers = headers
	}
	cookies := make([]Cookie, len(o.Cookies))
	for i, c := range o.Cookies {
		c.Value = hidden
		cookies[i] = c
	}
	if o.Cookies != nil {
		o.Cookies = cookies
	}
	if o.HTML != "" {
		o.HTML = hidden
	}
	return o
}

// hidden stands for a value that is not shown.
const hidden = "(hidden)"
