package openapi

import "github.com/danielgtaylor/huma/v2"

// overview is the description of the whole document.
const overview = `Holdfast runs background jobs. This API enqueues jobs, serves workers in any language, and operates the system.

All routes are below /v1 and use JSON. Durations are strings such as "1m30s", times are RFC 3339, ids are UUIDs. Unknown members of a body and unknown query parameters are refused, so that a misspelled name does not go unnoticed. Lists are paged: send the cursor of an answer to get the next page, or follow the Link header.

Authentication: send an API key in the header Authorization: Bearer hf_... Each route names the scopes that may call it.

Errors are application/problem+json (RFC 9457): programs act on code, and detail tells people what to do. Every route may answer invalid (400), unauthenticated (401), forbidden (403), throttled (429), internal (500) and unavailable (503); further errors are listed with each route. After throttled and unavailable, wait for the time in Retry-After and send the request again.

A name in a path is percent-encoded as one segment: the dependency https://x:443/a is /v1/breakers/https:%2F%2Fx:443%2Fa.

Workers claim jobs, renew their leases while they run them, and report the outcome of each: see the section workers. To enqueue safely, send an Idempotency-Key and repeat the call until it is answered: it makes one job.`

// chapters are the sections of the document, in the order in which people need them.
var chapters = []*huma.Tag{
	{Name: "jobs", Description: "Enqueue jobs, read them and act on them."},
	{Name: "groups", Description: "Jobs that end together."},
	{Name: "schedules", Description: "Rules that enqueue jobs at certain times."},
	{Name: "workers", Description: "Claim jobs, renew leases and report outcomes, for workers in any language."},
	{Name: "dead letters", Description: "Jobs that failed for good and wait for a person to retry or discard them."},
	{Name: "redrives", Description: "Queue many dead letters again, at a controlled pace."},
	{Name: "errors", Description: "Error groups: failures with the same fingerprint, and their status."},
	{Name: "breakers", Description: "Circuit breakers of the dependencies that jobs call."},
	{Name: "holds", Description: "Holds that keep jobs from being claimed, queues, and how owners share workers."},
	{Name: "subscriptions", Description: "Which events are delivered where, and every delivery."},
	{Name: "events", Description: "Events in order, and the audit log of what people did."},
	{Name: "retention", Description: "How long ended jobs are kept, and what remains of them."},
	{Name: "duties", Description: "Maintenance that workers do at intervals, and the live workers."},
	{Name: "policy", Description: "The applied policy: how failures are handled."},
	{Name: "figures", Description: "Counts, trends and the integrity check of the store."},
	{Name: "keys", Description: "API keys: create, list and revoke them."},
	{Name: "store", Description: "The methods of a store, for engines and other Go programs that work through a server."},
}

// details are the details of problems that the document shows, by code.
var details = map[string]string{
	"invalid":                `the JSON is not valid at /delay: a duration is a string such as "1m30s"`,
	"unauthenticated":        "send an API key: Authorization: Bearer hf_...",
	"forbidden":              "this needs a key of scope operator or admin; this key has the scope viewer",
	"not_found":              "there is no job 01890a5d-ac96-774b-bcce-b302099a8057",
	"conflict":               "job 01890a5d-ac96-774b-bcce-b302099a8057 is complete: only a failed job can be retried",
	"lease_lost":             "the lease is no longer held",
	"purged":                 "job 01890a5d-ac96-774b-bcce-b302099a8057 was deleted by retention",
	"precondition_failed":    "job 01890a5d-ac96-774b-bcce-b302099a8057 has changed since it was read: read it again and repeat the edit",
	"idempotency_key_reused": "the idempotency key was used for another draft",
	"throttled":              "the key sends more than 10000 requests a second",
	"unavailable":            "the server is at capacity",
}
