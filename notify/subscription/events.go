package subscription

import "github.com/holdfastdev/holdfast/store"

// eventNames are the names of all events, by subject. A name that ends in a star has a value as its rest: share.weight_3. The page docs/notifications.md
// describes each of them.
var eventNames = map[string][]string{
	"job": append([]string{
		"manual_retry", "redrive", "edit", "replace", "key_passed", "cancel", "discard", "deadline_missed", "resend", store.EventBenign,
	}, listenedEvents...),
	"group":        {"ready", "partial", "failed", "cancelled", "expired", "reopened", "manual_retry", "cancel", "sealed"},
	"breaker":      {"open", "half-open", "recovering", "closed", "forced-open", "forced-closed"},
	"hold":         {"paused", "limited", "resumed"},
	"budget":       {"exhausted"},
	"share":        {"weight_*"},
	"redrive":      {"started", "started_to_discard", "paused", "resumed", "stopped", "cancelled", "done"},
	"error":        {"regressed", "open_again", "open", "acknowledged", "ignored", "resolved", "note"},
	"kind":         {"unattended", "attended"},
	"schedule":     {"added", "replaced", "removed", "paused", "resumed", "run_now", "skipped"},
	"duty":         {"paused", "resumed", "run_now"},
	"policy":       {"applied", "removed"},
	"retention":    {"warning", "applied", "reset"},
	"subscription": {"subscribed", "replaced", "disabled", "enabled", "rewound", "missed", "reset", "unsubscribed"},
	"key":          {"made", "revoked"},
	"audit":        {"shortened", "forget"},
	"feed":         {"forgotten"},
}
