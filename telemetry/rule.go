package telemetry

import (
	"fmt"
	"strings"
)

// An alert is a reason to look. Its expression is written with the names of the metrics, so that it cannot drift from them.
type alert struct {
	name     string
	severity string // page: somebody gets up; ticket: somebody looks in the morning
	wait     string // it must be true for so long
	expr     string
	summary  string // about what the labels say
	meaning  string // what it means, and the first thing to do
}

const runbook = "https://github.com/holdfastdev/holdfast/blob/main/docs/runbook.md#"

// anchor is where the runbook deals with an alert.
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

// unheld leaves out queues that somebody paused.
var unheld = fmt.Sprintf("unless on (queue) (max by (queue) (%s) == 1)", queueHeld)

// growing is by how many dead letters a queue has more than half an hour ago. Where the store has more than it counts, what workers reported is added up.
var growing = fmt.Sprintf("(max by (queue) (%s) - max by (queue) (%s offset 30m) > 10) or on (queue) "+
	"(sum by (queue) (increase(%s[30m])) > 10 and on (queue) max by (queue) (%s) == 1)", deadLetters, deadLetters, jobsFailed, queueAtLeast)

var alerts = []alert{
	{"HoldfastGone", "page", "5m", fmt.Sprintf("absent(%s)", buildInfo),
		"No Holdfast server is scraped", "No server tells its metrics: all are down, or Prometheus cannot reach them. Look at the process and its log."},
	{"HoldfastStoreDown", "page", "1m", fmt.Sprintf("min by (instance) (%s) == 0", storeUp),
		"The store does not answer {{ $labels.instance }}", "Nothing is claimed or settled while the database is away; nothing is lost either. Look at the database."},
	{"HoldfastNoWorkers", "page", "5m", fmt.Sprintf("max(%s) == 0 and on () sum(max by (queue) (%s{place=\"ready\"})) > 0", workers, queueDepth),
		"Jobs wait and no worker is alive", "Start workers; jobs wait without spending attempts."},
	{"HoldfastNoSuccess", "page", "15m", fmt.Sprintf("(max by (queue) (%s{place=\"ready\"}) > 0) unless on (queue) (sum by (queue) (increase(%s[15m])) > 0) %s", queueDepth, jobsComplete, unheld),
		"Nothing completes in queue {{ $labels.queue }} although jobs wait", "Workers are stuck, missing, or everything fails: see the error groups and the workers."},
	{"HoldfastQueueOld", "ticket", "5m", fmt.Sprintf("(max by (queue) (%s) > 900) %s", queueOldest, unheld),
		"The oldest job of queue {{ $labels.queue }} has waited {{ $value | humanizeDuration }}", "More comes in than goes out, or a hold stands before it: explain the job, then add slots or lift the hold."},
	{"HoldfastDeadLettersGrow", "ticket", "5m", growing,
		"{{ $value | humanize }} more dead letters in queue {{ $labels.queue }} within half an hour", "See the error groups for what they have in common; redrive when the cause is gone."},
	{"HoldfastBreakerOpen", "ticket", "1m", fmt.Sprintf("max by (dependency) (%s) > 600", breakerOpen),
		"{{ $labels.dependency }} has not been called for {{ $value | humanizeDuration }}", "The dependency is down, or somebody forced its breaker open. Its jobs wait and spend nothing."},
	{"HoldfastLeasesLost", "ticket", "1m", fmt.Sprintf("sum(increase(%s[15m])) > 5", jobsLost),
		"{{ $value | humanize }} attempts lost their worker within a quarter of an hour", "Workers die or freeze: out of memory, killed by a deployment, or cut off from the store."},
	{"HoldfastDutyLate", "ticket", "5m", fmt.Sprintf("max by (duty) (%s) > 120", dutyLag),
		"Duty {{ $labels.duty }} is {{ $value | humanizeDuration }} late everywhere", "No live worker performs it, or it fails over and over: see its last error with the duties."},
	{"HoldfastFeedLate", "ticket", "5m", fmt.Sprintf("max(%s) > 60", feedLag),
		"The feed is {{ $value | humanizeDuration }} behind", "Notifications and groups wait for it: see duty sequence."},
	{"HoldfastSubscriptionBehind", "ticket", "15m", fmt.Sprintf("max by (sink) (%s) > 10000", behind),
		"A {{ $labels.sink }} subscription is {{ $value }} events behind", "Its receiver is slow or away, or nobody delivers: see the subscriptions and their deliveries."},
	{"HoldfastServerErrors", "ticket", "10m", fmt.Sprintf("sum(rate(%[1]s{status=~\"5..\"}[5m])) / sum(rate(%[1]s[5m])) > 0.05", requests),
		"{{ $value | humanizePercentage }} of requests end with a server error", "The store is slow or away, or the server is overloaded: see its log by request id."},
}

// Rules are alert rules for Prometheus, as a file.
func Rules() []byte {
	var out strings.Builder
	out.WriteString("# Written by `go run ./telemetry/generate` from the names of the metrics. Change telemetry/rule.go, not this.\ngroups:\n  - name: holdfast\n    rules:\n")
	for _, a := range alerts {
		fmt.Fprintf(&out, "      - alert: %s\n        expr: %s\n        for: %s\n        labels:\n          severity: %s\n        annotations:\n", a.name, quoted(a.expr), a.wait, a.severity)
		fmt.Fprintf(&out, "          summary: %s\n          description: %s\n          runbook_url: %s\n", quoted(a.summary), quoted(a.meaning), quoted(runbook+a.anchor()))
	}
	return []byte(out.String())
}

// quoted is a text as YAML takes it, whatever is in it.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
