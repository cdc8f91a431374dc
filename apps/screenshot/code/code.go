// Package code contains everything that the screenshot service decides about failures: the codes, what each means, which class of errors it belongs to, which are retried, and
// what it counts against: the host of the page, or our browsers. The engine does the rest. The table is the only one: the API, job records, logs, metrics and pages show
// its codes.
package code

import (
	"errors"

	"github.com/holdfastdev/holdfast/failure"
)

// Codes of requests to the API that cannot be accepted. No request is retried.
const (
	Validation             = "VALIDATION_ERROR"
	InsufficientCredits    = "INSUFFICIENT_CREDITS"
	ConcurrentModification = "CONCURRENT_MODIFICATION"
	NotFound               = "NOT_FOUND"
	NotReady               = "NOT_READY"
	Expired                = "EXPIRED"
	Unauthorized           = "UNAUTHORIZED"
	Forbidden              = "FORBIDDEN"
	RateLimited            = "RATE_LIMITED"
)

// Codes of pages, which count against the host of the page.
const (
	PageDNSError        = "PAGE_DNS_ERROR"
	PageConnectError    = "PAGE_CONNECT_ERROR"
	PageConnectionLost  = "PAGE_CONNECTION_LOST"
	PageTLSError        = "PAGE_TLS_ERROR"
	PageBadCertificate  = "PAGE_BAD_CERTIFICATE"
	PageBadResponse     = "PAGE_BAD_RESPONSE"
	PageTimeout         = "PAGE_TIMEOUT"
	PageHTTP5XX         = "PAGE_HTTP_5XX"
	PageHTTP429         = "PAGE_HTTP_429"
	PageHTTP4XX         = "PAGE_HTTP_4XX"
	PageRedirectLoop    = "PAGE_REDIRECT_LOOP"
	PageAddressBlocked  = "PAGE_ADDRESS_BLOCKED"
	PageProtocolBlocked = "PAGE_PROTOCOL_BLOCKED"
	PageIsDownload      = "PAGE_IS_DOWNLOAD"
	PageNoContent       = "PAGE_NO_CONTENT"
	PageTooLarge        = "PAGE_TOO_LARGE"
	PageRequestFailed   = "PAGE_REQUEST_FAILED"
	PageTextFound       = "PAGE_TEXT_FOUND"
	PageSelectorLate    = "PAGE_SELECTOR_TIMEOUT"
	PageSelectorMissing = "PAGE_SELECTOR_MISSING"
	PageNeverIdle       = "PAGE_NEVER_IDLE"
	PageUnresponsive    = "PAGE_UNRESPONSIVE"
	PageCrashed         = "PAGE_CRASHED"
	PageOutOfMemory     = "PAGE_OUT_OF_MEMORY"
)

// Codes of pictures of a page that was loaded.
const (
	PictureBlank    = "PICTURE_BLANK"
	PictureCut      = "PICTURE_CUT"
	PictureTooLarge = "PICTURE_TOO_LARGE"
	PictureStore    = "PICTURE_STORE_ERROR"
)

// Codes of the browsers, which count against the dependency Browsers.
const (
	BrowserUnavailable = "BROWSER_UNAVAILABLE"
	BrowserCrashed     = "BROWSER_CRASHED"
	BrowserError       = "BROWSER_ERROR"
	BrowserBusy        = "BROWSER_BUSY"
)

// Codes of the service itself.
const (
	SystemError      = "SYSTEM_ERROR"
	SystemPanic      = "SYSTEM_PANIC"
	SystemStorage    = "SYSTEM_STORAGE_ERROR"
	SystemWorkerLost = "SYSTEM_WORKER_LOST"
	SystemExpired    = "SYSTEM_EXPIRED"
	SystemOverloaded = "SYSTEM_OVERLOADED"
)

// Browsers is the dependency of failures that the pool of browsers caused. Other failures of a shot name the host of the page.
const Browsers = "browsers"

// A Class is the type of error that the seed (003) decides by. Its three first classes are retried, and the others are final.
type Class string

// The classes, with the names of the seed.
const (
	SocketTimeout   Class = "SocketTimeoutException"
	Connect         Class = "ConnectException"
	IO              Class = "IOException"
	IllegalArgument Class = "IllegalArgumentException"
	Security        Class = "SecurityException"
	IllegalState    Class = "IllegalStateException"
)

// Retried reports whether errors of the class are retried.
func (c Class) Retried() bool { return c == SocketTimeout || c == Connect || c == IO }

const (
	user       = failure.BlameUser
	dependency = failure.BlameDependency
	us         = failure.BlameUs
)

// A row is a code: its name, its class in the seed, category, blame, HTTP status, message for users, and remedy for operators. The class says whether it is retried.
type row struct {
	name            string
	class           Class
	category        string
	blame           failure.Blame
	status          int
	message, remedy string
}

var table = []row{
	{Validation, IllegalArgument, "input", user, 400, "The request is not valid.", "No action needed: the request was refused. The answer names the field."},
	{InsufficientCredits, IllegalState, "input", user, 402, "There are not enough credits.", "No action needed: the account needs more credits."},
	{ConcurrentModification, IllegalState, "input", user, 409, "Job is currently being processed by another worker", "No action needed: read the job again, then decide."},
	{NotFound, IllegalArgument, "input", user, 404, "There is no such screenshot.", "Check the id; screenshots of other accounts are not shown."},
	{NotReady, IllegalState, "input", user, 409, "The screenshot is not finished yet.", "No action needed; if it stays so, explain the job in the console."},
	{Expired, IllegalState, "expired", user, 404, "The picture was deleted after its retention time.", "No action needed; raise the retention time if pictures are needed longer."},
	{Unauthorized, Security, "auth", user, 401, "The request has no valid API key or session.", "No action needed: the request was refused."},
	{Forbidden, Security, "auth", user, 403, "The API key or account does not permit this request.", "No action needed; many from one client may be an attempt to guess ids."},
	{RateLimited, IllegalState, "throttled", user, 429, "There are too many requests from this account.", "No action needed; raise the limit of the account if it should have more."},

	{PageDNSError, Connect, "network", dependency, 502, "The host name of the page could not be resolved.", "Check the spelling of the host and the resolver of this machine."},
	{PageConnectError, Connect, "network", dependency, 502, "The host of the page could not be reached.", "Check that the host is up, and routes and firewalls on the way to it."},
	{PageConnectionLost, IO, "network", dependency, 502, "The connection to the page was lost.", "Request the page with curl -v; look for limits on the way to it."},
	{PageTLSError, IO, "network", dependency, 502, "The encrypted connection to the page could not be made.", "Request the page with curl -v, and compare protocol versions."},
	{PageBadCertificate, Security, "dependency", user, 422, "The certificate of the page is not valid.", "No action needed: the owner of the page has to renew or correct the certificate."},
	{PageBadResponse, IO, "dependency", dependency, 502, "The host sent an answer that the browser cannot read.", "Read the detail; request the page with curl -v."},
	{PageTimeout, SocketTimeout, "timeout", dependency, 504, "The page was not loaded in time.", "Check how long the page needs; raise the time limit if such pages are expected."},
	{PageHTTP5XX, IO, "dependency", dependency, 502, "The host of the page answered with a server error.", "Check the health of the host. Retry when it has recovered."},
	{PageHTTP429, IO, "throttled", dependency, 503, "The host of the page limits our request rate.", "Lower the concurrency for this host, or spread the screenshots over time."},
	{PageHTTP4XX, IllegalArgument, "input", user, 422, "The host of the page refused the request.", "Read the status in the context: 404 is gone, 401 and 403 need headers or cookies."},
	{PageRedirectLoop, IllegalState, "input", user, 422, "The page redirects without end.", "Open the page in a browser; it may need cookies."},
	{PageAddressBlocked, Security, "input", user, 422, "The page leads to an address that may not be called.", "Use a public address; or allow the network or host in the settings."},
	{PageProtocolBlocked, Security, "input", user, 422, "The page leads to a protocol other than http and https.", "Use an address that begins with https: or http:."},
	{PageIsDownload, IllegalArgument, "input", user, 422, "The address is a download, not a page.", "Open the address in a browser: it offers a file."},
	{PageNoContent, IllegalArgument, "input", user, 422, "The host answered without a page.", "Request the page with curl -v: it answers 204 or 205."},
	{PageTooLarge, IllegalArgument, "input", user, 422, "The page loads more data or opens more connections than allowed.", "Raise the limits in the settings if such pages are expected."},
	{PageRequestFailed, IO, "dependency", dependency, 502, "A request of the page failed, and the job asks to fail then.", "The detail names the request. Retry, or do not ask to fail."},
	{PageTextFound, IllegalState, "dependency", user, 422, "The page contains a text at which the job asks to fail.", "Open the page in a browser: it may show an error or a question."},
	{PageSelectorLate, SocketTimeout, "timeout", dependency, 504, "The element that the job waits for did not appear in time.", "Check the selector in a browser; raise the time limit if the page is slow."},
	{PageSelectorMissing, IllegalArgument, "input", user, 422, "The page has no visible element for a selector of the job.", "Check the selector in a browser."},
	{PageNeverIdle, IllegalState, "timeout", user, 422, "The page never stops loading, and the job waits until it does.", "Wait for the load event, a selector or a delay instead."},
	{PageUnresponsive, SocketTimeout, "timeout", dependency, 504, "The page kept the browser busy until the time limit.", "Open the page in a browser; compare with the load of this machine."},
	{PageCrashed, IO, "dependency", dependency, 502, "The page crashed in the browser.", "Retry once. If it crashes again, the page triggers a defect of Chromium: update it."},
	{PageOutOfMemory, IllegalState, "dependency", user, 422, "The page needs more memory than allowed.", "Raise the memory limit of browsers if such pages are expected."},

	{PictureBlank, IO, "dependency", dependency, 502, "The picture is blank.", "Open the page in a browser. If it is blank there too, set allowBlank; otherwise wait longer."},
	{PictureCut, IO, "dependency", us, 502, "The picture does not show the whole page.", "Retry. If it stays so, compare the size in the detail with the page in a browser."},
	{PictureTooLarge, IllegalArgument, "input", user, 422, "The picture would be larger than allowed.", "Use a smaller viewport or scale, a selector, or another format; or raise the pixel limit."},
	{PictureStore, IO, "storage", us, 503, "The picture could not be stored.", "Check the folder or bucket of pictures: free space, permissions, credentials."},

	{BrowserUnavailable, Connect, "dependency", dependency, 503, "No browser could be started.", "Read the detail: the path of Chromium, its sandbox, or memory. Jobs wait meanwhile."},
	{BrowserCrashed, IO, "dependency", dependency, 502, "The browser ended while it took the picture.", "Check memory (dmesg) and the version of Chromium. The pool has started another browser."},
	{BrowserError, IO, "dependency", dependency, 502, "The browser did not do what it should.", "Read the detail; compare the version of Chromium with the documented one."},
	{BrowserBusy, IO, "throttled", us, 503, "All browsers are busy.", "Add browsers or machines, or lower the concurrency of workers."},

	{SystemError, IllegalState, "system", us, 500, "An unexpected error occurred.", "Read the detail, then give this error a code."},
	{SystemPanic, IllegalState, "system", us, 500, "The work stopped because of a defect in the program.", "Read the stack in the detail; retry after the correction."},
	{SystemStorage, IO, "storage", us, 503, "The service cannot reach its storage at the moment.", "Check the database and the disk of the service."},
	{SystemWorkerLost, IllegalState, "lost", us, 500, "The work was given up because it lost its worker repeatedly.", "The page probably ends its worker: watch memory before you retry it."},
	{SystemExpired, IllegalState, "expired", us, 504, "The work could not start in time.", "Check the backlog; add workers."},
	{SystemOverloaded, IO, "throttled", us, 503, "The service has too many requests at the moment.", "Send fewer requests at once, or add processes."},
}

// All returns the codes.
func All() []failure.Code {
	codes := make([]failure.Code, len(table))
	for i, r := range table {
		codes[i] = failure.Code{Name: r.name, Category: r.category, Retryable: r.class.Retried(), Blame: r.blame, HTTPStatus: r.status, Message: r.message, Remedy: r.remedy}
	}
	return codes
}

// Taxonomy returns the codes as a taxonomy of the engine.
func Taxonomy() *failure.Taxonomy {
	t, err := failure.NewTaxonomy(All()...)
	if err != nil {
		panic(err) // a test checks the table
	}
	return t
}

// aliases maps codes that the engine itself gives to codes of the table.
var aliases = map[string]string{
	"LOST_WORKER": SystemWorkerLost, "POISON": SystemWorkerLost, "JOB_EXPIRED": SystemExpired, "TIMEOUT": PageTimeout, "UNREADABLE_JOB": SystemStorage,
	"HANDLER_EXITED": SystemPanic, "IO_ERROR": PictureStore, "DISK_FULL": PictureStore, "STORAGE_ERROR": SystemStorage, "DEPENDENCY_DOWN": PageConnectError,
}

func rowOf(name string) row {
	for _, try := range []string{name, aliases[name], SystemError} {
		for _, r := range table {
			if r.name == try {
				return r
			}
		}
	}
	return row{} // not reached: SYSTEM_ERROR is in the table
}

// Of returns the code with a name. The engine's own codes have a counterpart in the table; any other unknown name is SYSTEM_ERROR.
func Of(name string) failure.Code {
	known := rowOf(name).name
	for _, c := range All() {
		if c.Name == known {
			return c
		}
	}
	return failure.Code{}
}

// ClassOf returns the class of a code.
func ClassOf(name string) Class { return rowOf(name).class }

// Classify gives a code to errors that have none. The packages of the service give their errors their codes, so what arrives here is a defect and final.
var Classify = failure.Always(SystemError)

// An Error is a failure with its code, and the dependency that it counts against. The engine reads both.
type Error struct {
	Code       string
	Dependency string // Browsers, the host of the page, or empty
	Err        error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// New makes the error of a code. host is the host of the page; failures of the browsers count against Browsers instead.
func New(name, host string, err error) error {
	if err == nil {
		err = errors.New(Of(name).Message)
	}
	on := host
	switch name {
	case BrowserUnavailable, BrowserCrashed, BrowserError, BrowserBusy:
		on = Browsers
	}
	marked := failure.WithCode(err, name)
	if on != "" {
		marked = failure.On(marked, on)
	}
	return &Error{Code: name, Dependency: on, Err: marked}
}

// Name returns the code of an error, and SYSTEM_ERROR for an error without one.
func Name(err error) string {
	if coded, ok := errors.AsType[*Error](err); ok {
		return coded.Code
	}
	return SystemError
}
