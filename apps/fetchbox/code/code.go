// Package code contains everything that FetchBox decides about failures: the codes, what each means, which are retried and how often, and the code of an error that
// has none yet. The engine does the rest. The table is the only one: the API, job records, dead letters, logs, metrics, pages and docs/failures.md show its codes.
//
// A code begins with the stage that failed. A code of VALIDATION_, AUTH_, HANDLER_ or SYSTEM_ is final, except for SYSTEM_OVERLOADED, which only clients of the API meet.
// Of DOWNLOAD_, UPLOAD_ and STORAGE_ those are retried that a later attempt may not meet again: time-outs, lost connections, answers 5xx, throttling.
package code

import (
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// Codes of requests to the API that cannot be accepted. No request is retried.
const (
	ValidationMissingField = "VALIDATION_MISSING_FIELD"
	ValidationInvalidField = "VALIDATION_INVALID_FIELD"
	ValidationInvalidBody  = "VALIDATION_INVALID_BODY"
	ValidationInvalidURL   = "VALIDATION_INVALID_URL"
	ValidationUnknownName  = "VALIDATION_UNKNOWN_NAME"
	ValidationTooLarge     = "VALIDATION_TOO_LARGE"
	ValidationNotFound     = "VALIDATION_NOT_FOUND"
	ValidationConflict     = "VALIDATION_CONFLICT"
)

// Codes of requests without the right to make them.
const (
	AuthMissing   = "AUTH_MISSING"
	AuthInvalid   = "AUTH_INVALID"
	AuthForbidden = "AUTH_FORBIDDEN"
)

// Codes of handlers, which inspect a resource between download and upload. They are final.
const (
	HandlerRefused         = "HANDLER_REFUSED"
	HandlerMissingMetadata = "HANDLER_MISSING_METADATA"
	HandlerNotAnImage      = "HANDLER_NOT_AN_IMAGE"
	HandlerNotAnArchive    = "HANDLER_NOT_AN_ARCHIVE"
	HandlerLimit           = "HANDLER_LIMIT"
	HandlerTimeout         = "HANDLER_TIMEOUT"
	HandlerError           = "HANDLER_ERROR"
)

// Codes of downloads.
const (
	DownloadTimeout        = "DOWNLOAD_TIMEOUT"
	DownloadTooSlow        = "DOWNLOAD_TOO_SLOW"
	DownloadDNSError       = "DOWNLOAD_DNS_ERROR"
	DownloadConnectError   = "DOWNLOAD_CONNECT_ERROR"
	DownloadTLSError       = "DOWNLOAD_TLS_ERROR"
	DownloadConnectionLost = "DOWNLOAD_CONNECTION_LOST"
	DownloadIncomplete     = "DOWNLOAD_INCOMPLETE"
	DownloadBadResponse    = "DOWNLOAD_BAD_RESPONSE"
	DownloadBadEncoding    = "DOWNLOAD_BAD_ENCODING"
	DownloadHTTP5XX        = "DOWNLOAD_HTTP_5XX"
	DownloadHTTP408        = "DOWNLOAD_HTTP_408"
	DownloadHTTP429        = "DOWNLOAD_HTTP_429"
	DownloadHTTP499        = "DOWNLOAD_HTTP_499"
	DownloadHTTP4XX        = "DOWNLOAD_HTTP_4XX"
	DownloadRedirect       = "DOWNLOAD_REDIRECT"
	DownloadInvalidURL     = "DOWNLOAD_INVALID_URL"
	DownloadAddressBlocked = "DOWNLOAD_ADDRESS_BLOCKED"
	DownloadTooLarge       = "DOWNLOAD_TOO_LARGE"
	DownloadWrongSize      = "DOWNLOAD_WRONG_SIZE"
	DownloadWrongChecksum  = "DOWNLOAD_WRONG_CHECKSUM"
	DownloadWrongType      = "DOWNLOAD_WRONG_TYPE"
	DownloadProxyError     = "DOWNLOAD_PROXY_ERROR"
	DownloadProxyAuth      = "DOWNLOAD_PROXY_AUTH"
	DownloadProxyThrottled = "DOWNLOAD_PROXY_THROTTLED"
	DownloadProxyExhausted = "DOWNLOAD_PROXY_EXHAUSTED"
	DownloadUnknownPool    = "DOWNLOAD_UNKNOWN_POOL"
	DownloadError          = "DOWNLOAD_ERROR"
)

// Codes of uploads to the object storage.
const (
	UploadS3Error       = "UPLOAD_S3_ERROR"
	UploadNetworkError  = "UPLOAD_NETWORK_ERROR"
	UploadTimeout       = "UPLOAD_TIMEOUT"
	UploadThrottled     = "UPLOAD_THROTTLED"
	UploadWrongChecksum = "UPLOAD_WRONG_CHECKSUM"
	UploadStorageFull   = "UPLOAD_STORAGE_FULL"
	UploadAccessDenied  = "UPLOAD_ACCESS_DENIED"
	UploadInvalidBucket = "UPLOAD_INVALID_BUCKET"
	UploadInvalidKey    = "UPLOAD_INVALID_KEY"
	UploadConflict      = "UPLOAD_CONFLICT"
	UploadRefused       = "UPLOAD_REFUSED"
)

// Codes of what FetchBox itself stores: jobs, the ledger, the stream of dead letters, and spool files.
const (
	StorageUnavailable = "STORAGE_UNAVAILABLE"
	StorageLedgerError = "STORAGE_LEDGER_ERROR"
	StorageStreamError = "STORAGE_STREAM_ERROR"
	StorageSpoolFull   = "STORAGE_SPOOL_FULL"
	StorageSpoolError  = "STORAGE_SPOOL_ERROR"
	StorageSpoolLost   = "STORAGE_SPOOL_LOST"
	StorageCorrupt     = "STORAGE_CORRUPT"
)

// Codes of FetchBox itself.
const (
	SystemPanic      = "SYSTEM_PANIC"
	SystemError      = "SYSTEM_ERROR"
	SystemOverloaded = "SYSTEM_OVERLOADED"
	SystemWorkerLost = "SYSTEM_WORKER_LOST"
	SystemExpired    = "SYSTEM_EXPIRED"
)

// Stages of a resource's way, in order: the prefixes of the codes.
var Stages = []string{"VALIDATION_", "AUTH_", "HANDLER_", "DOWNLOAD_", "UPLOAD_", "STORAGE_", "SYSTEM_"}

const (
	retried = true
	final   = false

	user       = failure.BlameUser
	dependency = failure.BlameDependency
	us         = failure.BlameUs
)

// A row is a code: its name, category, whether it is retried, blame, HTTP status, message for users, and remedy for operators.
type row struct {
	name, category  string
	retried         bool
	blame           failure.Blame
	status          int
	message, remedy string
}

var table = []row{
	{ValidationMissingField, "input", final, user, 400, "A required field is missing.", "No action needed: the request was refused. The answer names the field."},
	{ValidationInvalidField, "input", final, user, 400, "A field has an invalid value.", "No action needed: the request was refused. The answer names the field."},
	{ValidationInvalidBody, "input", final, user, 400, "The request is not valid JSON, or has an unknown field.", "No action needed: the request was refused."},
	{ValidationInvalidURL, "input", final, user, 400, "A URL is not valid, or its address may not be called.", "No action needed; to reach a private network, allow it in the settings."},
	{ValidationUnknownName, "input", final, user, 400, "A pool, handler or target with this name does not exist.", "Correct the request, or add the name to the settings."},
	{ValidationTooLarge, "input", final, user, 413, "The request has too many resources or is too large.", "Split the request; or raise the limit in the settings."},
	{ValidationNotFound, "input", final, user, 404, "There is no such job, resource or dead letter.", "Check the id; records older than the retention time are deleted."},
	{ValidationConflict, "input", final, user, 409, "The request does not fit the current state.", "Read the job again, then decide."},

	{AuthMissing, "auth", final, user, 401, "The request has no API key.", "No action needed: the request was refused."},
	{AuthInvalid, "auth", final, user, 401, "The API key is not valid, or it was revoked or has expired.", "Create a new key if the client should have access."},
	{AuthForbidden, "auth", final, user, 403, "The API key does not permit this request.", "No action needed; many from one client may be an attempt to guess ids."},

	{HandlerRefused, "handler", final, user, 422, "The handler refused the resource.", "Read the detail; choose another handler, or correct the source."},
	{HandlerMissingMetadata, "handler", final, user, 422, "The handler needs metadata that the request does not contain.", "Send the metadata that the detail names in a new request."},
	{HandlerNotAnImage, "handler", final, user, 422, "The resource is not an image that can be read.", "Open the URL in a browser: often it shows an error page instead of the image."},
	{HandlerNotAnArchive, "handler", final, user, 422, "The resource is not an archive that can be read.", "Open the URL in a browser; the archive may be damaged or encrypted at its source."},
	{HandlerLimit, "handler", final, user, 422, "The resource exceeds a limit of the handler.", "Raise the limit in the settings if such resources are expected, then replay."},
	{HandlerTimeout, "handler", final, us, 504, "The handler took too long.", "Check what the program waits for; raise its time limit in the settings, then replay."},
	{HandlerError, "handler", final, us, 500, "The handler failed.", "Read the detail: the program's output or the defect. Repair it, then replay."},

	{DownloadTimeout, "timeout", retried, dependency, 504, "The download took too long.", "Check the source and the proxy; raise the time limits of downloads if such resources need longer."},
	{DownloadTooSlow, "timeout", retried, dependency, 504, "The source sent data too slowly.", "Compare the proxies on the status page; lower the minimum speed if the source is known to be slow."},
	{DownloadDNSError, "network", retried, dependency, 502, "The host name of the source could not be resolved.", "Check the spelling of the host and the resolver of this machine."},
	{DownloadConnectError, "network", retried, dependency, 502, "The source could not be reached.", "Check that the source listens, and routes and firewalls on the way to it."},
	{DownloadTLSError, "network", retried, dependency, 502, "The encrypted connection to the source could not be made.", "Check the source's certificate, and whether a proxy replaces it."},
	{DownloadConnectionLost, "network", retried, dependency, 502, "The connection to the source was lost.", "Check the source and the proxy; a limit on one of them may end long transfers."},
	{DownloadIncomplete, "network", retried, dependency, 502, "The source sent less than the whole resource.", "Compare the announced length with what arrives (curl -v); the source or a proxy cuts bodies."},
	{DownloadBadResponse, "dependency", retried, dependency, 502, "The source sent an answer that is not valid HTTP, or that was not asked for.", "Read the detail; request the URL with curl -v, through the same proxy."},
	{DownloadBadEncoding, "dependency", retried, dependency, 502, "The source sent a body that cannot be decompressed.", "Request the URL with curl -v; the source ignores Accept-Encoding, or its data is damaged."},
	{DownloadHTTP5XX, "dependency", retried, dependency, 502, "The source answered with a server error.", "Check the source's health. Replay when it has recovered."},
	{DownloadHTTP408, "timeout", retried, dependency, 504, "The source timed out (HTTP 408).", "Check the source's load and the network on the way to it."},
	{DownloadHTTP429, "throttled", retried, dependency, 503, "The source limits our request rate (HTTP 429).", "Lower the concurrency or raise the delay for this host; add proxies to the pool."},
	{DownloadHTTP499, "timeout", retried, dependency, 504, "The source reports a closed connection (HTTP 499).", "Check the time limits of the proxies between FetchBox and the source."},
	{DownloadHTTP4XX, "input", final, user, 422, "The source refused the request.", "Read the status in the context: 404 and 410 are gone, 401 and 403 need credentials in the headers."},
	{DownloadRedirect, "input", final, user, 422, "The source redirects too often, or to an address that may not be followed.", "Request the URL with curl -vL, and use the last URL."},
	{DownloadInvalidURL, "input", final, user, 422, "The URL of the resource is not valid.", "Correct the URL in a new request."},
	{DownloadAddressBlocked, "input", final, user, 422, "The URL leads to an address that may not be called.", "Use a public address; or allow the network or host in the settings, then replay."},
	{DownloadTooLarge, "input", final, user, 422, "The resource is larger than the limit.", "Raise the size limit if such resources are expected, then replay. A compression bomb ends here too."},
	{DownloadWrongSize, "dependency", retried, dependency, 502, "The resource does not have the expected size.", "The resource changed, or the source sends something else: compare it with the expectation."},
	{DownloadWrongChecksum, "dependency", retried, dependency, 502, "The resource does not have the expected checksum.", "The resource changed, or the source sends something else: compare it with the expectation."},
	{DownloadWrongType, "dependency", retried, dependency, 502, "The resource does not have the expected or announced type.", "Often this is an error page with status 200: open the URL through the same proxy."},
	{DownloadProxyError, "network", retried, dependency, 502, "The proxy could not be reached or did not connect to the source.", "Look at the proxy on the status page; the others are used meanwhile."},
	{DownloadProxyAuth, "auth", retried, us, 502, "The proxy did not accept our credentials (HTTP 407).", "Correct the user name and password of this proxy in the settings."},
	{DownloadProxyThrottled, "throttled", retried, dependency, 503, "The proxy limits our request rate.", "Add proxies to the pool, or ask the provider for a larger quota."},
	{DownloadProxyExhausted, "dependency", retried, dependency, 503, "No proxy of the pool is usable at the moment.", "Look at the pool on the status page: each proxy shows its last failure. Repair or add proxies."},
	{DownloadUnknownPool, "system", final, us, 500, "The pool of proxies of this resource is no longer in the settings.", "Add the pool to the settings again, then replay."},
	{DownloadError, "network", retried, dependency, 502, "The download failed.", "Read the detail."},

	{UploadS3Error, "dependency", retried, dependency, 502, "The object storage answered with a server error.", "Check the health and log of the object storage."},
	{UploadNetworkError, "network", retried, dependency, 502, "The object storage could not be reached.", "Check S3_ENDPOINT, and that the storage runs and can be reached from here."},
	{UploadTimeout, "timeout", retried, dependency, 504, "The upload took too long.", "Check the load of the object storage and the network on the way to it."},
	{UploadThrottled, "throttled", retried, dependency, 503, "The object storage limits our request rate.", "Lower the concurrency of uploads, or spread keys over more prefixes."},
	{UploadWrongChecksum, "dependency", retried, dependency, 502, "The object storage received other bytes than were sent.", "Check the network and the disks; no object was stored."},
	{UploadStorageFull, "storage", retried, us, 507, "The object storage is full.", "Free space in the storage, or raise its quota."},
	{UploadAccessDenied, "auth", final, us, 502, "The object storage denied access.", "Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY and their rights in the bucket, then replay."},
	{UploadInvalidBucket, "input", final, us, 502, "The bucket does not exist.", "Create the bucket, or correct its name in the settings, then replay."},
	{UploadInvalidKey, "input", final, user, 422, "The key or the metadata of the object is not valid.", "Read the detail. Keys have lower-case letters, digits, dots, dashes, underscores and slashes."},
	{UploadConflict, "input", final, user, 409, "Another object with this key exists.", "Use another key, or allow this request to replace the object."},
	{UploadRefused, "dependency", final, us, 502, "The object storage refused the upload.", "Read the detail and the log of the object storage."},

	{StorageUnavailable, "storage", retried, us, 503, "FetchBox cannot reach its storage at the moment.", "Check the database and the disk of FetchBox."},
	{StorageLedgerError, "storage", retried, us, 503, "The ledger could not be read or written.", "Check free space and permissions of the ledger's folder."},
	{StorageStreamError, "storage", retried, us, 503, "The stream of dead letters does not accept messages.", "Check the stream server. Dead letters wait in FetchBox and are published later."},
	{StorageSpoolFull, "storage", retried, us, 507, "There is no space for the download at the moment.", "Downloads wait for uploads: check the object storage; raise the quota of the spool."},
	{StorageSpoolError, "storage", retried, us, 500, "A spool file could not be read or written.", "Check free space and permissions of the spool's folder, and the health of its disk."},
	{StorageSpoolLost, "storage", retried, us, 500, "The spool file of the resource is missing or damaged.", "No action needed: the next attempt downloads the resource again."},
	{StorageCorrupt, "storage", final, us, 500, "A stored record cannot be read.", "Read the detail, and restore the record from a backup."},

	{SystemPanic, "system", final, us, 500, "The work stopped because of a defect in the program.", "Read the stack in the detail; replay after the correction."},
	{SystemError, "system", final, us, 500, "An unexpected error occurred.", "Read the detail, then give this error a code."},
	{SystemOverloaded, "throttled", retried, us, 503, "FetchBox has too many requests at the moment.", "Send fewer requests at once, or add processes."},
	{SystemWorkerLost, "lost", final, us, 500, "The work was given up because it lost its worker repeatedly.", "The resource probably crashes its worker: watch its memory before you replay it."},
	{SystemExpired, "expired", final, us, 504, "The work could not start in time.", "Check the backlog; add workers."},
}

// All returns the codes, in the order of the stages.
func All() []failure.Code {
	codes := make([]failure.Code, len(table))
	for i, r := range table {
		codes[i] = failure.Code{Name: r.name, Category: r.category, Retryable: r.retried, Blame: r.blame, HTTPStatus: r.status, Message: r.message, Remedy: r.remedy}
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

// Stage returns the stage of a code, with its underscore, such as DOWNLOAD_. It is SYSTEM_ for a code that is not in the table.
func Stage(name string) string {
	name = Of(name).Name
	stage, _, _ := strings.Cut(name, "_")
	return stage + "_"
}

// aliases maps codes that the engine itself gives to codes of the table.
var aliases = map[string]string{
	"LOST_WORKER": SystemWorkerLost, "POISON": SystemWorkerLost, "JOB_EXPIRED": SystemExpired, "TIMEOUT": DownloadTimeout, "UNREADABLE_JOB": StorageCorrupt,
	"HANDLER_EXITED": SystemPanic, "IO_ERROR": StorageSpoolError, "DISK_FULL": StorageSpoolFull, "STORAGE_ERROR": StorageUnavailable, "DEPENDENCY_DOWN": UploadNetworkError,
}

// Of returns the code with a name. The engine's own codes have a counterpart in the table; any other unknown name is SYSTEM_ERROR.
func Of(name string) failure.Code {
	for _, try := range []string{name, aliases[name], SystemError} {
		for _, c := range All() {
			if c.Name == try {
				return c
			}
		}
	}
	return failure.Code{} // not reached: SYSTEM_ERROR is in the table
}

// Classify gives a code to errors that have none. Every package of FetchBox gives its errors their codes, so what arrives here is a defect and final.
var Classify = failure.Always(SystemError)

// OfError returns the code of an error of a package of FetchBox, as the engine would record it. It is empty for nil, and for an error that is no failure, such as that of
// a worker that stops.
func OfError(err error) string {
	if err == nil {
		return ""
	}
	v := failure.Decide(failure.Rules{Taxonomy: Taxonomy(), Classify: Classify}, store.Lease{}, failure.Outcome{Event: failure.Returned, Err: err})
	if v.Failure == nil {
		return ""
	}
	return v.Failure.Code
}

// Limits say how often a stage is tried in all. Zero fields have defaults.
type Limits struct {
	Downloads int           // attempts to download, and to use the spool (download_retry_limit); 5 when zero
	Storage   int           // attempts to upload, and to write to the ledger or the stream (storage_retry_limit); 5 when zero
	Base      time.Duration // the first delay, doubled each time up to 10 min; 2 s when zero
}

// Policy returns when a failure is retried.
func (l Limits) Policy() failure.Policy {
	orDefault := func(n int) int {
		if n <= 0 {
			return 5
		}
		return n
	}
	if l.Base <= 0 {
		l.Base = 2 * time.Second
	}
	downloads, storage := orDefault(l.Downloads), orDefault(l.Storage)
	p := failure.Policy{
		MaxAttempts: max(downloads, storage),
		Backoff:     failure.Exponential{Base: l.Base, Factor: 2, Cap: 10 * time.Minute, Jitter: failure.Jitter{Percent: 20}},
		Codes:       map[string]failure.Override{},
	}
	for _, r := range table {
		limit := storage
		if strings.HasPrefix(r.name, "DOWNLOAD_") || strings.HasPrefix(r.name, "STORAGE_SPOOL_") {
			limit = downloads
		}
		if r.retried {
			p.Codes[r.name] = failure.Override{MaxAttempts: limit}
		}
	}
	return p
}
