package server

import "github.com/danielgtaylor/huma/v2"

// overview is what the document begins with.
const overview = `Background jobs that do not get lost.

Everything is below /v1 and speaks JSON. Durations are texts such as "1m30s"; moments are RFC 3339; ids are UUIDs. A member that nobody knows is refused, in the body as in the query, so that a slip of the pen is not taken for something else. Lists come in pages: read on with the cursor, or follow the Link.

What went wrong is told as application/problem+json: go by its code, and show its detail to people.

A name in a path is escaped as one segment: the dependency https://x:443/a is /v1/breakers/https:%2F%2Fx:443%2Fa.

A worker claims jobs, renews its claims while it works, and reports what came of each: see the chapter workers. Whoever enqueues sends an Idempotency-Key and may then repeat the call until it is answered: there will be one job.`

// chapters are in the order in which people come to need them.
var chapters = []*huma.Tag{
	{Name: "jobs", Description: "Enqueueing jobs, looking at them, and intervening."},
	{Name: "groups", Description: "Work that belongs together."},
	{Name: "schedules", Description: "Jobs that are made at certain times."},
	{Name: "workers", Description: "Claiming jobs and giving account of each: for workers in any language."},
	{Name: "dead letters", Description: "Jobs that failed for good and wait for a person."},
	{Name: "redrives", Description: "Sending dead letters round again, many at a time."},
	{Name: "errors", Description: "What goes wrong over and over, and what people made of it."},
	{Name: "breakers", Description: "What is known about the things that jobs call, and what is let through to them."},
	{Name: "holds", Description: "Keeping jobs back, and dividing what there is between owners."},
	{Name: "subscriptions", Description: "Who is told what, and every message to them."},
	{Name: "events", Description: "What happened, in order, and what people did."},
	{Name: "retention", Description: "How long ended jobs are kept, and what remains of them."},
	{Name: "duties", Description: "What workers do on a beat, and who they are."},
	{Name: "policy", Description: "How failures are judged, as data."},
	{Name: "figures", Description: "The store as a whole."},
	{Name: "keys", Description: "API keys."},
	{Name: "store", Description: "What only engines need: the rest of a store's roles."},
}

// examples are bodies that make sense, by the name of the route and the way they go. A test reads them as the types that they are of.
var examples = map[string]string{
	"problem":            `{"type": "/problems/conflict", "title": "What is there stands against it", "status": 409, "detail": "job 01890a5d-ac96-774b-bcce-b302099a8057 is complete: only a failed, waiting or stuck job can be retried", "code": "conflict", "job": "01890a5d-ac96-774b-bcce-b302099a8057", "request_id": "01890a5d-b1f0-7c3e-9d2a-0f1e2d3c4b5a"}`,
	"enqueue in":         `{"kind": "mail", "args": {"to": "ann@example.com"}, "queue": "mails", "owner": "acme", "delay": "30s", "unique_key": "welcome/ann"}`,
	"enqueue out":        `{"id": "01890a5d-ac96-774b-bcce-b302099a8057"}`,
	"enqueue-bulk in":    `[{"kind": "mail", "args": {"to": "ann@example.com"}}, {"kind": "mail", "args": {"to": "bob@example.com"}}]`,
	"get-job out":        `{"id": "01890a5d-ac96-774b-bcce-b302099a8057", "kind": "mail", "queue": "mails", "args": {"to": "ann@example.com"}, "priority": 0, "owner": "acme", "created_at": "2026-01-02T03:04:05Z", "state": "failed", "token": 3, "failures": 3, "crashes": 0, "interrupts": 0, "generation": 1, "last_failure": {"code": "TIMEOUT", "category": "timeout", "message": "it took too long"}, "finished_at": "2026-01-02T03:14:05Z", "as_of": "2026-01-02T04:00:00Z"}`,
	"retry-job in":       `{"reason": "the mail server is back"}`,
	"retry-job out":      `{"ahead": 12}`,
	"cancel-job in":      `{"reason": "the customer withdrew the order"}`,
	"cancel-job out":     `{"state": "cancelled"}`,
	"discard-job in":     `{"reason": "sent by hand"}`,
	"edit-job in":        `{"args": {"to": "ann@example.org", "cc": null}, "queue": "bulk", "delay": "0s", "reason": "a new address"}`,
	"explain-job out":    `{"job": {"id": "01890a5d-ac96-774b-bcce-b302099a8057", "kind": "mail", "queue": "mails", "args": {}, "priority": 0, "created_at": "2026-01-02T03:04:05Z", "state": "queued", "token": 0, "failures": 0, "crashes": 0, "interrupts": 0, "generation": 1, "as_of": "2026-01-02T03:04:10Z"}, "reasons": [{"name": "queue paused", "text": "queue mails is paused by ann: too much", "remedy": "holdfast resume --queue mails"}]}`,
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
