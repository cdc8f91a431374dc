package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/ops"
)

// This file contains everything that this application decides about failures: the codes, which of them are retried and when, the breaker of the gateway, and the texts
// for users. The engine does the rest.

// The ten codes (000 section 1). Clients see no other code.
const (
	codeNotPDF, codeTooLarge, codeIO, codeUnknown = "NOT_PDF", "TOO_LARGE", "IO_ERROR", "UNKNOWN"
	codeGW4XX, codeGW5XX, codeGWTimeout           = "GW_4XX", "GW_5XX", "GW_TIMEOUT"
	codeNotReady, codeExpired, codeForbidden      = "NOT_READY", "EXPIRED", "FORBIDDEN"
)

// dependencyGateway is the name of the gateway as a dependency: in the breaker, in metrics and in the console.
const dependencyGateway = "gateway"

// codes returns the taxonomy (C8). The messages are those of document 000, section 6, to the letter; the remedies follow its runbook, section 10.
func (s *settings) codes() []failure.Code {
	return []failure.Code{
		{Name: codeNotPDF, Category: "input", Blame: failure.BlameUser, HTTPStatus: 400, Message: "Only PDF files are supported.", Remedy: "Nothing to repair: the file was refused."},
		{Name: codeTooLarge, Category: "input", Blame: failure.BlameUser, HTTPStatus: 413, Message: "File exceeds " + formatLimit(s.MaxUpload) + " limit.", Remedy: "Nothing to repair; raise MAX_UPLOAD_BYTES to accept larger files."},
		{Name: codeGW4XX, Category: "input", Blame: failure.BlameUser, HTTPStatus: 422, Message: "Couldn’t convert this file with the selected mapping.", Remedy: "If there are many at once, a mapping or the inputs are wrong. Open a sample job and check its mapping."},
		{Name: codeGW5XX, Category: "dependency", Retryable: true, Blame: failure.BlameDependency, HTTPStatus: 502, Message: "Converter service is having an issue. We’ll retry shortly.", Remedy: "Check the gateway's health, log, CPU and memory. Jobs stay queued; the backlog drains once the gateway is healthy."},
		{Name: codeGWTimeout, Category: "timeout", Retryable: true, Blame: failure.BlameDependency, HTTPStatus: 504, Message: "Conversion is taking too long. We’ll retry.", Remedy: "Check the gateway's load; raise GATEWAY_TIMEOUT_MS if such files need longer."},
		{Name: codeIO, Category: "storage", Retryable: true, Blame: failure.BlameUs, HTTPStatus: 500, Message: "Temporary storage issue. We’ll retry.", Remedy: "Check free space, permissions and credentials of UPLOADS_DIR and RESULTS_DIR; pause uploads until they are fixed."},
		{Name: codeNotReady, Category: "input", Retryable: true, Blame: failure.BlameUser, HTTPStatus: 409, Message: "Conversion not finished yet.", Remedy: "Nothing to repair; if it stays so, see why the job waits."},
		{Name: codeExpired, Category: "expired", Blame: failure.BlameUser, HTTPStatus: 404, Message: "File was removed by retention. Re-upload to regenerate.", Remedy: "Nothing to repair; lengthen RETENTION_SOURCE or RETENTION_RESULT if people come back later."},
		{Name: codeForbidden, Category: "auth", Blame: failure.BlameUser, HTTPStatus: 403, Message: "This file isn’t yours.", Remedy: "Nothing to repair. Many from one visitor may be an attempt to guess ids."},
		{Name: codeUnknown, Category: "unknown", Retryable: true, Blame: failure.BlameUs, HTTPStatus: 500, Message: "Something unexpected went wrong.", Remedy: "Read the detail, then give this error a code."},
	}
}

// codeAliases maps the codes of gateways, and the categories of the engine's built-in codes, to the ten codes (001 section 3.1).
var codeAliases = map[string]string{
	"GW_UNAVAILABLE": codeGW5XX, "INVALID_MAPPING": codeGW4XX, "PARSE_ERROR": codeGW4XX, "VALIDATION_ERROR": codeGW4XX, "MEMORY_ERROR": codeUnknown,
	"storage": codeIO, "timeout": codeGWTimeout, "dependency": codeGW5XX, "network": codeGW5XX, "throttled": codeGW5XX,
}

// code returns the public code, one of the ten, for any code of the engine or a gateway.
func (s *settings) code(name string) failure.Code {
	builtin, _ := (*failure.Taxonomy)(nil).Code(name)
	all := s.codes()
	at := -1
	for _, try := range []string{name, codeAliases[name], codeAliases[builtin.Category], codeUnknown} {
		if at < 0 {
			at = slices.IndexFunc(all, func(c failure.Code) bool { return c.Name == try })
		}
	}
	return all[at]
}

// publicFailure returns the code and the message of a job that failed or waits for a retry, and empty strings for other jobs (E9). A refused file counts as failed
// from the start, before the engine has run its job.
func (a *app) publicFailure(job holdfast.Job) (code, line string) {
	f := job.LastFailure
	if job.Kind == (Refusal{}).Kind() {
		var args Refusal
		_ = json.Unmarshal(job.Args, &args) // unreadable arguments become UNKNOWN
		known := a.set.code(args.Code)
		return known.Name, known.Message
	}
	if f == nil || job.State != holdfast.Failed && job.State != holdfast.Queued {
		return "", ""
	}
	known := a.set.code(f.Code)
	if detail := f.Context[gatewayMessage]; known.Name == codeGW4XX && detail != "" {
		return known.Name, known.Message + " " + detail
	}
	return known.Name, known.Message
}

// withoutRetryPromise returns the message of a job that failed for good: without "We’ll retry".
func withoutRetryPromise(line string) string {
	line, _, _ = strings.Cut(line, " We’ll retry")
	return line
}

// An apiError is the answer to a request that cannot be served. A zero status or line is taken from the code.
type apiError struct {
	code   string
	status int
	line   string        // the message for users
	id     holdfast.ID   // the job, if there is one
	after  time.Duration // Retry-After
	cause  error         // for the log
}

// Error is for the log; users see the line.
func (f apiError) Error() string {
	if f.cause != nil {
		return f.code + ": " + f.cause.Error()
	}
	return f.code + ": " + f.line
}

func (f apiError) Unwrap() error { return f.cause }

// Answers to requests that fail for other reasons than the file.
var (
	noSuchFile                  = apiError{code: codeUnknown, status: http.StatusNotFound, line: "There is no such file. Check the link, or go back to your list of files."}
	noSuchPath                  = apiError{code: codeUnknown, status: http.StatusNotFound, line: "There is nothing at this path. The README lists the paths of the API."}
	otherSite                   = apiError{code: codeForbidden, line: "This request came from another site. Open the page itself and try again."}
	badKey                      = apiError{code: codeForbidden, status: http.StatusUnauthorized, line: "This API key is not valid. Send Authorization: Bearer hf_... with a complete key that is not revoked or expired."}
	readOnlyKey                 = apiError{code: codeForbidden, line: "This API key may only read. Use a key with the scope operator."}
	notYours, removed, tooLarge = apiError{code: codeForbidden}, apiError{code: codeExpired}, apiError{code: codeTooLarge}
	notFailed                   = apiError{code: codeNotReady, line: "Only a failed conversion can be retried."}
	stalled                     = apiError{code: codeUnknown, status: http.StatusRequestTimeout, line: "The upload stopped before all of it arrived. Please upload the file again."}
	interrupted                 = apiError{code: codeUnknown, status: http.StatusBadRequest, line: "The upload was interrupted. Please upload the file again."}
	tooBusy                     = apiError{code: codeUnknown, status: http.StatusServiceUnavailable, line: "Too many uploads are in progress. Please try again in a few seconds.", after: 5 * time.Second}
)

// badRequest refuses a malformed request. The line says what to send instead.
func badRequest(line string) apiError {
	return apiError{code: codeUnknown, status: http.StatusBadRequest, line: line}
}

// storageUnavailable is the answer while the file storage or the store cannot be reached. The request is not retried here: the client has to.
func storageUnavailable(err error) apiError {
	return apiError{code: codeIO, status: http.StatusServiceUnavailable, line: "Temporary storage issue. Please try again in a few seconds.", after: 5 * time.Second, cause: err}
}

// apiErrorOf translates any error to the answer for the client.
func apiErrorOf(err error) (f apiError) {
	var refused *holdfast.Error
	switch {
	case errors.As(err, &f):
	case errors.Is(err, holdfast.ErrPurged), errors.Is(err, blob.ErrNotFound):
		f = apiError{code: codeExpired, cause: err}
	case errors.Is(err, holdfast.ErrNotFound):
		f = noSuchFile
	case errors.Is(err, holdfast.ErrConflict):
		f = apiError{code: codeNotReady, cause: err}
	case errors.Is(err, holdfast.ErrThrottled) && errors.As(err, &refused):
		f = apiError{code: codeUnknown, status: http.StatusTooManyRequests, line: "Too many requests. Please try again in a few seconds.", after: max(refused.RetryAfter, time.Second), cause: err}
	case errors.Is(err, holdfast.ErrUnavailable):
		f = storageUnavailable(err)
	default:
		f = apiError{code: codeUnknown, cause: err}
	}
	if f.status == 0 {
		f.status = (&settings{}).code(f.code).HTTPStatus
	}
	return f
}

// writeError answers a request with an error.
func (a *app) writeError(w http.ResponseWriter, f apiError) {
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
	web.SetRetryAfter(w, f.after)
	_ = web.WriteJSON(w, apiErrorOf(f).status, body) // the client is gone: there is no way to report this
}

// errSourceGone means that the PDF of a job was deleted.
var errSourceGone = errors.New("the PDF is no longer in UPLOADS_DIR")

// storageFailure marks an error of the file storage with IO_ERROR. A full disk is not retried, because waiting does not free space (000 section 2B).
func storageFailure(err error) error {
	class, _ := failure.DefaultRule(err)
	if err != nil && (errors.Is(err, blob.ErrFull) || errors.Is(err, syscall.ENOSPC) || class.Code == "DISK_FULL") {
		err = failure.NeverRetry(err)
	}
	return failure.WithCode(err, codeIO)
}

// classify gives errors their code. C3 defines what a gateway's status means. A 4xx that says nothing about the file counts as GW_5XX: it comes from a proxy or a
// misconfigured gateway (401, 403, 404, ...), or asks the client to wait (408, 425, 429).
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

// policy returns when a conversion is retried (C6, 000 section 3): IO_ERROR once, other codes up to RETRY_MAX_ATTEMPTS.
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

// breaker configures the breaker that holds jobs while the gateway is down (C7). After recovery the rate rises over 30 seconds, or over the cooldown if that is shorter.
func (s *settings) breaker() breaker.Config {
	return breaker.Config{
		Window: s.CircuitWindow, MinCalls: min(10, s.CircuitWindow), FailureRate: s.CircuitFailThreshold,
		OpenFor: s.CircuitCooldown, OpenMax: max(s.CircuitCooldown, 10*time.Minute), Ramp: min(s.CircuitCooldown, 30*time.Second),
		FailFast: s.FailFast, Code: codeGW5XX,
	}
}

// watchGateway is a duty. It opens the breaker when two connections in a row to the gateway fail. So a single job is held instead of spending its attempts, and users
// see the banner before a job fails. A gateway that accepts connections is judged by its calls alone. A breaker state that an operator forced is not changed.
func (a *app) watchGateway(ctx context.Context) error {
	for range 2 {
		if !errors.Is(a.checkGateway(ctx), errNoConnection) {
			return nil
		}
		pause(ctx, time.Second)
	}
	if b, err := a.operator.Breaker(ctx, dependencyGateway); ctx.Err() != nil || err != nil || b.State.Refuses() || b.State.Forced() {
		return err
	}
	return a.operator.OpenBreaker(ctx, dependencyGateway, ops.Actor{Name: "health watch", Reason: errNoConnection.Error()})
}
