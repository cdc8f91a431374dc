package server

// overview is what the document begins with.
const overview = `Background jobs that do not get lost.

Everything is below /v1 and speaks JSON. Durations are texts such as "1m30s"; moments are RFC 3339; ids are UUIDs. A member that nobody knows is refused,
in the body as in the query, so that a slip of the pen is not taken for something else. Lists come in pages: read on with the cursor, or follow the Link.

What went wrong is told as application/problem+json: go by its code, and show its detail to people.

A name in a path is escaped as one segment: the dependency https://x:443/a is /v1/breakers/https:%2F%2Fx:443%2Fa.

A worker claims jobs, renews its claims while it works, and reports what came of each: see the chapter workers. Whoever enqueues sends an Idempotency-Key
and may then repeat the call until it is answered: there will be one job.`

// aboutChapters says what the chapters are about.
var aboutChapters = map[string]string{
	"jobs":          "Enqueueing jobs, looking at them, and intervening.",
	"dead letters":  "Jobs that failed for good and wait for a person.",
	"groups":        "Work that belongs together.",
	"holds":         "Keeping jobs back, and dividing what there is between owners.",
	"breakers":      "What is known about the things that jobs call, and what is let through to them.",
	"redrives":      "Sending dead letters round again, many at a time.",
	"errors":        "What goes wrong over and over, and what people made of it.",
	"subscriptions": "Who is told what, and every message to them.",
	"schedules":     "Jobs that are made at certain times.",
	"retention":     "How long ended jobs are kept, and what remains of them.",
	"duties":        "What workers do on a beat, and who they are.",
	"policy":        "How failures are judged, as data.",
	"keys":          "API keys.",
	"figures":       "The store as a whole.",
	"events":        "What happened, in order, and what people did.",
	"workers":       "Claiming jobs and giving account of each: for workers in any language.",
	"store":         "What only engines need: the rest of a store's roles.",
	"health":        "Whether the server is well.",
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
