package failure

// The codes this package itself gives.
const (
	codeUnknown      = "UNKNOWN"
	codeTimeout      = "TIMEOUT"
	codePanic        = "SYSTEM_PANIC"
	codeSystem       = "SYSTEM_ERROR"
	codeExited       = "HANDLER_EXITED"
	codeResult       = "HANDLER_RESULT"
	codeUncommitted  = "HANDLER_UNCOMMITTED"
	codeLost         = "LOST_WORKER"
	codePoison       = "POISON"
	codeExpired      = "JOB_EXPIRED"
	codeUnreadable   = "UNREADABLE_JOB"
	codeUnknownKind  = "UNKNOWN_KIND"
	codeRateLimited  = "RATE_LIMITED"
	codeDown         = "DEPENDENCY_DOWN"
	codeNetwork      = "NETWORK_ERROR"
	codeBadRequest   = "BAD_REQUEST"
	codeInvalidInput = "INVALID_INPUT"
	codeUnauthorized = "UNAUTHORIZED"
	codeAuthDenied   = "AUTH_DENIED"
	codeNotFound     = "NOT_FOUND"
	codeTooLarge     = "TOO_LARGE"
	codeHTTPTimeout  = "HTTP_TIMEOUT"
	codeHTTP4XX      = "HTTP_4XX"
	codeHTTP5XX      = "HTTP_5XX"
	codeExitCode     = "EXIT_CODE"
	codeKilled       = "PROCESS_KILLED"
	codeOutOfMemory  = "OUT_OF_MEMORY"
	codeDiskFull     = "DISK_FULL"
	codeIO           = "IO_ERROR"
	codeDenied       = "STORAGE_DENIED"
	codeMissing      = "STORAGE_NOT_FOUND"
	codeUnavailable  = "STORAGE_UNAVAILABLE"
)

const (
	retryable = true
	final     = false
)

// A row is a built-in code. None of them is benign: only an application knows which ends it expects.
type row struct {
	name, category  string
	retryable       bool
	blame           Blame
	status          int
	message, remedy string
}

func rows(rows ...row) []Code {
	codes := make([]Code, len(rows))
	for i, r := range rows {
		codes[i] = Code{Name: r.name, Category: r.category, Retryable: r.retryable, Blame: r.blame, HTTPStatus: r.status, Message: r.message, Remedy: r.remedy}
	}
	return codes
}

// builtin is the taxonomy every application starts from: name, category, retryable, blame, HTTP status, message, remedy.
// A message promises no retry, because it is also what a person reads when there will be none.
var builtin = rows(
	// What applications share. Codes of one application belong into its own taxonomy.
	row{"TOO_LARGE", "input", final, BlameUser, 413, "The file is larger than the limit.", "No action needed; raise the size limit to accept such files."},
	row{"GW_4XX", "input", final, BlameUser, 422, "The gateway did not accept the request.", "Compare the request with what the gateway accepts; many such failures at once suggest a wrong setting."},
	row{"GW_5XX", "dependency", retryable, BlameDependency, 502, "The gateway answered with a server error.", "Check the gateway's health, log, CPU and memory."},
	row{"GW_TIMEOUT", "timeout", retryable, BlameDependency, 504, "The gateway took too long to answer.", "Check the gateway's load; raise the time limit if such requests need longer."},
	row{"IO_ERROR", "storage", retryable, BlameUs, 500, "A file could not be read or written.", "Check free space, permissions and the health of the disk or bucket."},
	row{"NOT_READY", "input", retryable, BlameUser, 409, "The result is not ready yet.", "No action needed; if it stays so, check the job that makes the result."},
	row{"UNKNOWN", "unknown", retryable, BlameUs, 500, "An unexpected error occurred.", "Read the detail; then give this error a code of its own."},

	// Requests that cannot succeed as they are.
	row{"INVALID_INPUT", "input", final, BlameUser, 422, "The input cannot be processed.", "Read the detail; correct the input and enqueue the job again."},
	row{"BAD_REQUEST", "input", final, BlameUs, 502, "A service rejected our request as malformed.", "Compare the request with the service's contract; it may have changed."},
	row{"NOT_FOUND", "input", final, BlameUser, 404, "A resource that the job needs does not exist.", "Restore it, then retry the job; or discard the job."},
	row{"ADDRESS_BLOCKED", "input", final, BlameUser, 422, "Calls to this address are not allowed.", "Use a public address; or allow its network or host where the workers run, then retry the job."},
	row{"SECRET_MISSING", "auth", retryable, BlameUs, 500, "A secret that the job needs is not set.", "Set the secret where the workers run, and name the hosts it may be sent to; the detail says how."},
	row{"AUTH_DENIED", "auth", final, BlameUs, 502, "A service denied us permission.", "Check the rights of the account we use there."},
	row{"UNAUTHORIZED", "auth", final, BlameUs, 502, "A service did not accept our credentials.", "Renew the credentials, then retry the failed jobs."},

	// Services and the way to them.
	row{"TIMEOUT", "timeout", retryable, BlameUs, 504, "The job exceeded its time limit.", "Find out what took the time; raise the kind's time limit if the job needs it."},
	row{"NETWORK_ERROR", "network", retryable, BlameDependency, 502, "A service could not be reached.", "Check name resolution, routes and firewalls, and that the service listens."},
	row{"RATE_LIMITED", "throttled", retryable, BlameDependency, 503, "A service limited our request rate.", "Lower the concurrency of this kind, or ask for a larger quota."},
	row{"DEPENDENCY_DOWN", "dependency", retryable, BlameDependency, 503, "A service is not available.", "Check the service's health; pause the queue if the outage lasts."},
	row{"HTTP_TIMEOUT", "timeout", retryable, BlameDependency, 504, "A service took too long to answer.", "Check the service's load and the time limit of the call."},
	row{"HTTP_4XX", "input", final, BlameUs, 502, "A service refused our request.", "Read the status and the detail; the request must change."},
	row{"HTTP_5XX", "dependency", retryable, BlameDependency, 502, "A service answered with a server error.", "Check the service's health and log."},

	// Storage and programs of our own.
	row{"STORAGE_ERROR", "storage", retryable, BlameUs, 500, "Stored data could not be read or written.", "Check the storage's health and log."},
	row{"STORAGE_UNAVAILABLE", "storage", retryable, BlameUs, 503, "The storage does not answer.", "Check the database or disk; it may be locked, read-only or down."},
	row{"STORAGE_DENIED", "storage", final, BlameUs, 500, "Permission to read or write a file was denied.", "Correct the file's owner or permissions, then retry the failed jobs."},
	row{"STORAGE_NOT_FOUND", "storage", final, BlameUs, 404, "A file that the job needs is missing.", "Restore the file, then retry the job; or discard the job."},
	row{"DISK_FULL", "storage", retryable, BlameUs, 507, "The disk is full.", "Free or add space; shorten retention if this happens again."},
	row{"OUT_OF_MEMORY", "system", retryable, BlameUs, 503, "There was not enough memory.", "Lower the concurrency of this kind, or give its workers more memory."},
	row{"PROCESS_KILLED", "system", retryable, BlameUs, 500, "A program that the job runs was killed.", "The most common cause is memory: check the system's log at that time."},
	row{"EXIT_CODE", "handler", retryable, BlameUs, 500, "A program that the job runs ended with an error.", "Read the program's output; map exit codes that a retry cannot fix to final codes."},

	// Handlers.
	row{"HANDLER_ERROR", "handler", final, BlameUs, 500, "The job ended with an error.", "Read the detail, then fix the handler."},
	row{"HANDLER_REFUSED", "handler", final, BlameUs, 422, "The handler refused the job.", "Read the detail; correct the job's arguments and enqueue the job again."},
	row{"HANDLER_RESULT", "handler", final, BlameUs, 500, "The job ran, but its result cannot be stored.", "Fix the handler: the result must be valid JSON of at most 1 MiB. The work itself was done."},
	row{"HANDLER_UNCOMMITTED", "handler", retryable, BlameUs, 500, "The transaction in which the job was completed was not committed.", "Fix the handler: it must commit after it has completed the job, and return the error of the commit."},
	row{"HANDLER_EXITED", "handler", final, BlameUs, 500, "The job stopped without a result.", "The handler ended its goroutine (runtime.Goexit, or t.FailNow in a test): it must return."},
	row{"SYSTEM_PANIC", "system", final, BlameUs, 500, "The job stopped because of a defect in the program.", "Read the stack in the detail; correct the handler, then retry the failed jobs."},
	row{"SYSTEM_ERROR", "system", final, BlameUs, 500, "An internal error occurred.", "Read the detail and report it."},

	// The engine's own.
	row{"LOST_WORKER", "lost", retryable, BlameUs, 500, "The worker was lost while it ran the job.", "Find out why the worker ended: killed, out of memory, or cut off from the store."},
	row{"POISON", "lost", final, BlameUs, 500, "The job was given up because it lost its worker repeatedly.", "The job probably crashes its worker. Run it alone and watch its memory before you retry it."},
	row{"JOB_EXPIRED", "expired", final, BlameUs, 504, "The job could not start in time.", "Check the queue's backlog; add workers or set a later expiry."},
	row{"UNREADABLE_JOB", "input", final, BlameUs, 500, "The job cannot be read.", "Read the detail: arguments that its kind cannot decode, or a damaged row. Enqueue the job again."},
	row{"UNKNOWN_KIND", "handler", retryable, BlameUs, 501, "No worker has a handler for this kind of job.", "Deploy a worker with a handler for this kind; the job waits for it."},
)

var builtinByName = func() map[string]Code {
	byName := make(map[string]Code, len(builtin))
	for _, code := range builtin {
		byName[code.Name] = code
	}
	return byName
}()
