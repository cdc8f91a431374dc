package telemetry

import (
	"fmt"
	"strings"
)

// An alert is a Prometheus alert rule. Its expression is written with the metric names of this package, so that the two
// cannot differ.
type alert struct {
	name     string
	severity string // page: needs action now; ticket: needs action the next working day
	wait     string // how long the expression must be true
	expr     string
	summary  string // one line with labels
	meaning  string // what it means, and the first step
}

const runbook = "https://github.com/holdfastdev/holdfast/blob/main/docs/runbook.md#"

// anchor returns the anchor of the alert's section in the runbook.
func (a alert) anchor() string {
	var out strings.Builder
	for i, letter := range a.name {
		if i > 0 && letter >= 'A' && letter <= 'Z' {
			out.WriteByte('-')
		}
		out.WriteRune(letter)
	}
	return strings.ToLower(strings.TrimPrefix(out.String(), "Holdfast-"))
}

// unlessPaused excludes paused queues.
var unlessPaused = fmt.Sprintf("unless on (queue) (max by (queue) (%s) == 1)", queueHeld)

// growingDeadLetters is true for queues with over ten more dead letters than half an hour ago. If the store stopped counting, the
// counters of workers are used.
var growingDeadLetters = fmt.Sprintf("(max by (queue) (%s) - max by (queue) (%s offset 30m) > 10) or on (queue) "+
	"(sum by (queue) (increase(%s[30m])) > 10 and on (queue) max by (queue) (%s) == 1)", deadLetters, deadLetters, jobsFailed, queueAtLeast)

var alerts = []alert{
	{"HoldfastGone", "page", "5m", fmt.Sprintf("absent(%s)", buildInfo),
		"No Holdfast server is scraped", "No server exposes metrics: all servers are down, or Prometheus cannot reach them. Check the process and its log."},
	{"HoldfastStoreDown", "page", "1m", fmt.Sprintf("min by (instance) (%s) == 0", storeUp),
		"The store does not answer {{ $labels.instance }}", "No job is claimed or settled while the database is unavailable; no job is lost. Check the database."},
	{"HoldfastNoWorkers", "page", "5m", fmt.Sprintf("max(%s) == 0 and on () sum(max by (queue) (%s{place=\"ready\"})) > 0", workers, queueDepth),
		"Jobs wait and no worker is alive", "Start workers. Jobs wait at no cost."},
	{"HoldfastNoSuccess", "page", "15m", fmt.Sprintf("(max by (queue) (%s{place=\"ready\"}) > 0) unless on (queue) (sum by (queue) (increase(%s[15m])) > 0) %s", queueDepth, jobsComplete, unlessPaused),
		"No job completes in queue {{ $labels.queue }} although jobs wait", "Workers are stuck or missing, or every job fails: check the error groups and the workers."},
	{"HoldfastQueueOld", "ticket", "5m", fmt.Sprintf("(max by (queue) (%s) > 900) %s", queueOldest, unlessPaused),
		"The oldest job of queue {{ $labels.queue }} has waited {{ $value | humanizeDuration }}", "More jobs arrive than complete, or a hold keeps the job back: run 'holdfast explain' on the job, then add slots or lift the hold."},
	{"HoldfastDeadLettersGrow", "ticket", "5m", growingDeadLetters,
		"{{ $value | humanize }} more dead letters in queue {{ $labels.queue }} within half an hour", "The error groups show what they have in common. Redrive them after the cause is fixed."},
	{"HoldfastBreakerOpen", "ticket", "1m", fmt.Sprintf("max by (dependency) (%s) > 600", breakerOpen),
		"{{ $labels.dependency }} has not been called for {{ $value | humanizeDuration }}", "The dependency is down, or its breaker was forced open. Its jobs wait at no cost."},
	{"HoldfastLeasesLost", "ticket", "1m", fmt.Sprintf("sum(increase(%s[15m])) > 5", jobsLost),
		"{{ $value | humanize }} attempts lost their worker within 15 minutes", "Workers crash or hang: out of memory, killed by a deployment, or disconnected from the store."},
	{"HoldfastDutyLate", "ticket", "5m", fmt.Sprintf("max by (duty) (%s) > 120", dutyLag),
		"Duty {{ $labels.duty }} is {{ $value | humanizeDuration }} late in all workers", "No live worker performs it, or it fails repeatedly: 'holdfast duties' shows its last error."},
	{"HoldfastFeedLate", "ticket", "5m", fmt.Sprintf("max(%s) > 60", feedLag),
		"The feed is {{ $value | humanizeDuration }} behind", "Notifications and groups wait for the feed: check duty sequence."},
	{"HoldfastSubscriptionBehind", "ticket", "15m", fmt.Sprintf("max by (sink) (%s) > 10000", behind),
		"A {{ $labels.sink }} subscription is {{ $value }} events behind", "Its receiver is slow or unavailable, or no worker delivers: check the subscriptions and their deliveries."},
	{"HoldfastServerErrors", "ticket", "10m", fmt.Sprintf("sum(rate(%[1]s{status=~\"5..\"}[5m])) / sum(rate(%[1]s[5m])) > 0.05", requests),
		"{{ $value | humanizePercentage }} of requests end with a server error", "The store is slow or unavailable, or the server is overloaded: search the server's log by request id."},
}

// Rules returns the alert rules for Prometheus as a file.
func Rules() []byte {
	var out strings.Builder
	out.WriteString("# Written by `go run ./generate` in telemetry from the names of the metrics. Do not edit; change telemetry/alerts.go.\ngroups:\n  - name: holdfast\n    rules:\n")
	for _, a := range alerts {
		fmt.Fprintf(&out, "      - alert: %s\n        expr: %s\n        for: %s\n        labels:\n          severity: %s\n        annotations:\n", a.name, quoted(a.expr), a.wait, a.severity)
		fmt.Fprintf(&out, "          summary: %s\n          description: %s\n          runbook_url: %s\n", quoted(a.summary), quoted(a.meaning), quoted(runbook+a.anchor()))
	}
	return []byte(out.String())
}

// quoted returns a text as a YAML string.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
