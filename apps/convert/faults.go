package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/ops"
)

// All that this application knows of failure is in this file: which codes there are, what is tried again and when, what holds jobs back, and what
// people are told. The rest is the engine's.

// The ten codes (000 section 1). Nobody outside ever sees another.
const (
	codeNotPDF, codeTooLarge, codeIO, codeUnknown = "NOT_PDF", "TOO_LARGE", "IO_ERROR", "UNKNOWN"
	codeGW4XX, codeGW5XX, codeGWTimeout           = "GW_4XX", "GW_5XX", "GW_TIMEOUT"
	codeNotReady, codeExpired, codeForbidden      = "NOT_READY", "EXPIRED", "FORBIDDEN"
)

// dependencyGateway is what the breaker, and everybody, calls the converter behind the worker.
const dependencyGateway = "gateway"

// codes is the taxonomy (C8). The lines are document 000's, section 6, to the letter; the remedies are its runbook, section 10.
func (s *settings) codes() []failure.Code {
	return []failure.Code{
		{Name: codeNotPDF, Category: "input", Blame: failure.User, HTTPStatus: 400, Message: "Only PDF files are supported.", Remedy: "Nothing to repair: the file was not taken."},
		{Name: codeTooLarge, Category: "input", Blame: failure.User, HTTPStatus: 413, Message: "File exceeds " + size(s.MaxUpload) + " limit.", Remedy: "Nothing to repair; raise MAX_UPLOAD_BYTES if such files should pass."},
		{Name: codeGW4XX, Category: "input", Blame: failure.User, HTTPStatus: 422, Message: "Couldn’t convert this file with the selected mapping.", Remedy: "Many at once: a mapping or the inputs are wrong. Look at a sample job and confirm its mapping."},
		{Name: codeGW5XX, Category: "dependency", Retryable: true, Blame: failure.Dependency, HTTPStatus: 502, Message: "Converter service is having an issue. We’ll retry shortly.", Remedy: "Look at the gateway's health, log, processor and memory. Jobs stay queued; the backlog drains once it is well."},
		{Name: codeGWTimeout, Category: "timeout", Retryable: true, Blame: failure.Dependency, HTTPStatus: 504, Message: "Conversion is taking too long. We’ll retry.", Remedy: "Look at the gateway's load; raise GATEWAY_TIMEOUT_MS if such files need longer."},
		{Name: codeIO, Category: "storage", Retryable: true, Blame: failure.Us, HTTPStatus: 500, Message: "Temporary storage issue. We’ll retry.", Remedy: "Look at free space, permissions and credentials of UPLOADS_DIR and RESULTS_DIR; pause uploads until that is mended."},
		{Name: codeNotReady, Category: "input", Retryable: true, Blame: failure.User, HTTPStatus: 409, Message: "Conversion not finished yet.", Remedy: "Nothing to repair; if it stays so, see why the job waits."},
		{Name: codeExpired, Category: "expired", Blame: failure.User, HTTPStatus: 404, Message: "File was removed by retention. Re-upload to regenerate.", Remedy: "Nothing to repair; lengthen RETENTION_SOURCE or RETENTION_RESULT if people come back later."},
		{Name: codeForbidden, Category: "auth", Blame: failure.User, HTTPStatus: 403, Message: "This file isn’t yours.", Remedy: "Nothing to repair; many from one visitor may be probing."},
		{Name: codeUnknown, Category: "unknown", Retryable: true, Blame: failure.Us, HTTPStatus: 500, Message: "Something unexpected went wrong.", Remedy: "Read the detail; then give this error a code."},
	}
}

// nuances are names by which gateways, and the engine's own codes by their category, call what is one of the ten to everybody else (001 section 3.1).
var nuances = map[string]string{
	"GW_UNAVAILABLE": codeGW5XX, "INVALID_MAPPING": codeGW4XX, "PARSE_ERROR": codeGW4XX, "VALIDATION_ERROR": codeGW4XX, "MEMORY_ERROR": codeUnknown,
	"storage": codeIO, "timeout": codeGWTimeout, "dependency": codeGW5XX, "network": codeGW5XX, "throttled": codeGW5XX,
}

// code is the one of the ten that people see for any code that the engine or a gateway may give.
func (s *settings) code(name string) failure.Code {
	builtin, _ := (*failure.Taxonomy)(nil).Code(name)
	all := s.codes()
	at := -1
	for _, try := range []string{name, nuances[name], nuances[builtin.Category], codeUnknown} {
		if at < 0 {
			at = slices.IndexFunc(all, func(c failure.Code) bool { return c.Name == try })
		}
	}
	return all[at]
}

// say tells why a job failed, or why it is tried again: its code and its line. It says nothing of a job of which there is nothing to say (E9). A refused
// file has failed from the first moment, whether or not the engine has got to it.
func (a *app) say(job holdfast.Job) (code, line string) {
	f := job.LastFailure
	if job.Kind == (Refusal{}).Kind() {
		var args Refusal
		_ = json.Unmarshal(job.Args, &args) // what cannot be read is UNKNOWN
		known := a.set.code(args.Code)
		return known.Name, known.Message
	}
	if f == nil || job.State != holdfast.Failed && job.State != holdfast.Queued {
		return "", ""
	}
	known := a.set.code(f.Code)
	if said := f.Context[gatewayMessage]; known.Name == codeGW4XX && said != "" {
		return known.Name, known.Message + " " + said
	}
	return known.Name, known.Message
}

// frankly is a line for somebody whose job has failed for good: it promises no retry.
func frankly(line string) string {
	line, _, _ = strings.Cut(line, " We’ll retry")
	return line
}

// A fault is the answer to a request that cannot be served. Zero fields are the code's own.
type fault struct {
	code   string
	status int
	line   string        // for people
	id     holdfast.ID   // the job that it is about
	after  time.Duration // when to come back
	cause  error         // for the log
}

// Error is for the log; people see the line.
func (f fault) Error() string {
	if f.cause != nil {
		return f.code + ": " + f.cause.Error()
	}
	return f.code + ": " + f.line
}

func (f fault) Unwrap() error { return f.cause }

// What requests are answered, besides what is the matter with a file.
var (
	noSuchFile                  = fault{code: codeUnknown, status: http.StatusNotFound, line: "There is no such file."}
	noSuchPath                  = fault{code: codeUnknown, status: http.StatusNotFound, line: "There is nothing at this path: see the README for what the API answers."}
	otherSite                   = fault{code: codeForbidden, line: "This request came from another site: open the page itself and try again."}
	badKey                      = fault{code: codeForbidden, status: http.StatusUnauthorized, line: "This key opens nothing: send Authorization: Bearer hf_... with a key that was copied whole and is not revoked."}
	onlyLooks                   = fault{code: codeForbidden, line: "This key may only look: use one of scope operator."}
	notYours, removed, tooLarge = fault{code: codeForbidden}, fault{code: codeExpired}, fault{code: codeTooLarge}
	notFailed                   = fault{code: codeNotReady, line: "Only a failed conversion can be retried."}
	stalled                     = fault{code: codeUnknown, status: http.StatusRequestTimeout, line: "The upload came to a halt: send it again."}
	brokenOff                   = fault{code: codeUnknown, status: http.StatusBadRequest, line: "The upload broke off before its end: send it again."}
	crowded                     = fault{code: codeUnknown, status: http.StatusServiceUnavailable, line: "Too many uploads at once. Try again in a few seconds.", after: 5 * time.Second}
)

// senseless refuses a request that makes no sense, and says what would.
func senseless(line string) fault {
	return fault{code: codeUnknown, status: http.StatusBadRequest, line: line}
}

// storageAway says that files, or the store, cannot be reached now. Nobody but the caller tries again.
func storageAway(err error) fault {
	return fault{code: codeIO, status: http.StatusServiceUnavailable, line: "Temporary storage issue. Try again shortly.", after: 5 * time.Second, cause: err}
}

// faultOf is the answer that an error amounts to.
func faultOf(err error) (f fault) {
	var refused *holdfast.Error
	switch {
	case errors.As(err, &f):
	case errors.Is(err, holdfast.ErrPurged), errors.Is(err, blob.ErrNotFound):
		f = fault{code: codeExpired, cause: err}
	case errors.Is(err, holdfast.ErrNotFound):
		f = noSuchFile
	case errors.Is(err, holdfast.ErrConflict):
		f = fault{code: codeNotReady, cause: err}
	case errors.Is(err, holdfast.ErrThrottled) && errors.As(err, &refused):
		f = fault{code: codeUnknown, status: http.StatusTooManyRequests, line: "Too many requests. Try again shortly.", after: max(refused.RetryAfter, time.Second), cause: err}
	case errors.Is(err, holdfast.ErrUnavailable):
		f = storageAway(err)
	default:
		f = fault{code: codeUnknown, cause: err}
	}
	if f.status == 0 {
		f.status = (&settings{}).code(f.code).HTTPStatus
	}
	return f
}

// fail answers a request with a fault.
func (a *app) fail(w http.ResponseWriter, f fault) {
	known := a.set.code(f.code)
	body := struct {
		Code string       `json:"error_code"`
		Line string       `json:"error_message"`
		ID   *holdfast.ID `json:"id,omitempty"`
	}{Code: known.Name, Line: f.line}
	if body.Line == "" {
		body.Line = known.Message
	}
	if f.id != (holdfast.ID{}) {
		body.ID = &f.id
	}
	if f.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((f.after+time.Second-1)/time.Second)))
	}
	_ = answer(w, faultOf(f).status, body) // nobody is there to be told that nobody is there
}

// errSourceGone: the PDF is not among the uploads any more.
var errSourceGone = errors.New("the PDF is not among the uploads any more")

// stored says of an error that our own files were the trouble. A full disk does not empty itself: that is not tried again (000 section 2B).
func stored(err error) error {
	class, _ := failure.DefaultRule(err)
	if err != nil && (errors.Is(err, blob.ErrFull) || errors.Is(err, syscall.ENOSPC) || class.Code == "DISK_FULL") {
		err = failure.NeverRetry(err)
	}
	return failure.WithCode(err, codeIO)
}

// classify names errors. What a gateway's status means is C3; the 4xx that say nothing of the file, because somebody else answers than a converter that
// knows us, are the gateway's trouble, and so are those that ask for patience.
var classify = failure.Chain(
	failure.ByError(errSourceGone, codeExpired),
	failure.ByHTTPStatusTable(map[int]string{
		1: codeGW5XX, 2: codeGW5XX, 3: codeGW5XX, 4: codeGW4XX, 5: codeGW5XX,
		401: codeGW5XX, 403: codeGW5XX, 404: codeGW5XX, 405: codeGW5XX, 407: codeGW5XX, 408: codeGW5XX, 421: codeGW5XX, 425: codeGW5XX, 426: codeGW5XX, 429: codeGW5XX, 499: codeGW5XX,
	}),
	func(err error) (failure.Class, bool) {
		if !errors.As(err, new(gatewayError)) {
			return failure.Class{}, false
		}
		return failure.Chain(failure.ByTimeout(codeGWTimeout), failure.ByType[gatewayError](codeGW5XX))(err)
	},
	failure.Always(codeUnknown),
)

// policy is when a conversion is tried again (C6, 000 section 3): what the disk spoils once, the rest as often as was set.
func (s *settings) policy() failure.Policy {
	p := failure.Policy{
		MaxAttempts: s.RetryMaxAttempts,
		Backoff:     failure.Exponential{Base: s.RetryBaseDelay, Factor: 2, Jitter: failure.Jitter{Plus: s.RetryJitterMax}},
		Codes:       map[string]failure.Override{codeIO: {MaxAttempts: min(2, s.RetryMaxAttempts)}},
	}
	if s.RetryTable {
		p.Backoff = failure.Spread{Of: failure.Table{5 * time.Second, 15 * time.Second, 45 * time.Second}, Jitter: failure.Jitter{Percent: 20}}
	}
	return p
}

// breaker is what holds jobs back while the gateway is away (C7). Once it is well they come back over half a minute, or sooner where the cooldown is shorter.
func (s *settings) breaker() breaker.Config {
	return breaker.Config{
		Window: s.CircuitWindow, MinCalls: min(10, s.CircuitWindow), FailureRate: s.CircuitFailThreshold,
		OpenFor: s.CircuitCooldown, OpenMax: max(s.CircuitCooldown, 10*time.Minute), Ramp: min(s.CircuitCooldown, 30*time.Second),
		FailFast: s.FailFast, Code: codeGW5XX,
	}
}

// watchGateway opens the breaker when nobody is where the gateway should be, asked twice: so even a lone job finds it open instead of spending its attempts,
// and people see the banner before anything has failed. A gateway that answers, however badly, is judged by its calls. What a person forced stays.
func (a *app) watchGateway(ctx context.Context) error {
	for range 2 {
		if !errors.Is(a.gatewayWell(ctx), errNobody) {
			return nil
		}
		pause(ctx, time.Second)
	}
	if b, err := a.desk.Breaker(ctx, dependencyGateway); ctx.Err() != nil || err != nil || b.State.Refuses() || b.State.Forced() {
		return err
	}
	return a.desk.OpenBreaker(ctx, dependencyGateway, ops.By{Actor: "health watch", Reason: errNobody.Error()})
}
