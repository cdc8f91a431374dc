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

// examples are request and answer bodies, by route name and direction. A test decodes each as its type.
var examples = map[string]string{
	"problem":            `{"type": "/problems/conflict", "title": "The request conflicts with the present state", "status": 409, "detail": "job 01890a5d-ac96-774b-bcce-b302099a8057 is complete: only a failed job can be retried", "code": "conflict", "job": "01890a5d-ac96-774b-bcce-b302099a8057", "request_id": "01890a5d-b1f0-7c3e-9d2a-0f1e2d3c4b5a"}`,
	"enqueue in":         `{"kind": "mail", "args": {"to": "ann@example.com"}, "queue": "mails", "owner": "acme", "delay": "30s", "unique_key": "welcome/ann"}`,
	"enqueue out":        `{"id": "01890a5d-ac96-774b-bcce-b302099a8057"}`,
	"enqueue-bulk in":    `[{"kind": "mail", "args": {"to": "ann@example.com"}}, {"kind": "mail", "args": {"to": "bob@example.com"}}]`,
	"get-job out":        `{"id": "01890a5d-ac96-774b-bcce-b302099a8057", "kind": "mail", "queue": "mails", "args": {"to": "ann@example.com"}, "priority": 0, "owner": "acme", "created_at": "2026-01-02T03:04:05Z", "state": "failed", "token": 3, "failures": 3, "crashes": 0, "releases": 0, "generation": 1, "last_failure": {"code": "TIMEOUT", "category": "timeout", "message": "it took too long"}, "finished_at": "2026-01-02T03:14:05Z", "as_of": "2026-01-02T04:00:00Z"}`,
	"retry-job in":       `{"reason": "the mail server is back"}`,
	"retry-job out":      `{"ahead": 12}`,
	"cancel-job in":      `{"reason": "the customer withdrew the order"}`,
	"cancel-job out":     `{"state": "cancelled"}`,
	"discard-job in":     `{"reason": "sent by hand"}`,
	"edit-job in":        `{"args": {"to": "ann@example.org", "cc": null}, "queue": "bulk", "delay": "0s", "reason": "a new address"}`,
	"explain-job out":    `{"job": {"id": "01890a5d-ac96-774b-bcce-b302099a8057", "kind": "mail", "queue": "mails", "args": {}, "priority": 0, "created_at": "2026-01-02T03:04:05Z", "state": "queued", "token": 0, "failures": 0, "crashes": 0, "releases": 0, "generation": 1, "as_of": "2026-01-02T03:04:10Z"}, "reasons": [{"name": "queue paused", "text": "queue mails is paused by ann: too much", "remedy": "holdfast resume --queue mails"}]}`,
	"place-hold in":      `{"dependency": "gateway", "for": "15m", "reason": "maintenance"}`,
	"lift-hold in":       `{"dependency": "gateway"}`,
	"pause-queue in":     `{"for": "1h", "reason": "too much at once"}`,
	"force-breaker in":   `{"open": true, "reason": "maintenance"}`,
	"start-redrive in":   `{"filter": {"code": "GW_5XX", "queue": "mails"}, "canary": 10, "per_second": 20, "reason": "the gateway is repaired"}`,
	"triage-error in":    `{"status": "ignored", "for": "24h", "reason": "known, fixed tomorrow"}`,
	"subscribe in":       `{"name": "alarm", "sink": "webhook", "target": "https://example.com/hook", "events": ["job.failed", "breaker.*"], "secrets": ["alarm"]}`,
	"set-schedule in":    `{"cron": "0 9 * * 1-5", "zone": "Europe/Berlin", "draft": {"kind": "report", "queue": "reports"}}`,
	"apply-retention in": `{"rules": [{"name": "failed", "state": "failed", "for": "2160h"}, {"name": "rest", "for": "720h"}], "reason": "the disk is small"}`,
	"apply-policy in":    `{"text": "kinds:\n  mail:\n    max_attempts: 5\n"}`,
	"make-key in":        `{"name": "the shop", "scope": "operator", "owner": "acme", "expire_in": "8760h"}`,
	"make-group in":      `{"name": "newsletter", "then": [{"on": "ready", "draft": {"kind": "report"}}]}`,
}
