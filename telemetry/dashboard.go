package telemetry

import (
	"encoding/json"
	"fmt"
)

// A panel is one graph or number.
type panel struct {
	title   string
	about   string
	unit    string // as Grafana calls it
	queries []query
	figure  bool // a number instead of a graph
}

type query struct{ expr, legend string }

// A row is a group of panels.
type row struct {
	title  string
	panels []panel
}

// rate returns the query of a counter's rate per second.
func rate(n name, by string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s[$__rate_interval]))", by, n)
}

// quantile returns the query of a histogram's quantile.
func quantile(q string, n name, by string) string {
	return fmt.Sprintf("histogram_quantile(%s, sum by (le, %s) (rate(%s_bucket[$__rate_interval])))", q, by, n)
}

// seen returns the query of a metric of the store, which every server reports alike.
func seen(n name, by string) string { return fmt.Sprintf("max by (%s) (%s)", by, n) }

var dashboardRows = []row{
	{"At a glance", []panel{
		{title: "Store", about: "1 while it answers all servers.", queries: []query{{fmt.Sprintf("min(%s)", storeUp), "up"}}, figure: true},
		{title: "Waiting", about: "Jobs that could be claimed now.", queries: []query{{fmt.Sprintf("sum(max by (queue) (%s{place=\"ready\"}))", queueDepth), "ready"}}, figure: true},
		{title: "Dead letters", queries: []query{{fmt.Sprintf("sum(%s)", seen(deadLetters, "queue")), "dead letters"}}, figure: true},
		{title: "Workers and slots", queries: []query{{fmt.Sprintf("max(%s)", workers), "workers"}, {fmt.Sprintf("max(%s)", slots), "slots"}}, figure: true},
	}},
	{"Jobs", []panel{
		{title: "In and out", unit: "ops", queries: []query{
			{fmt.Sprintf("sum(rate(%s[$__rate_interval]))", jobsEnqueued), "enqueued"}, {fmt.Sprintf("sum(rate(%s[$__rate_interval]))", jobsComplete), "completed"},
			{fmt.Sprintf("sum(rate(%s[$__rate_interval]))", jobsFailed), "failed"}, {fmt.Sprintf("sum(rate(%s[$__rate_interval]))", jobsStopped), "cancelled"}}},
		{title: "Attempts by outcome", unit: "ops", queries: []query{{rate(attempts, "outcome"), "{{outcome}}"}}},
		{title: "Attempt duration", unit: "s", queries: []query{
			{quantile("0.5", attemptTime, "kind"), "{{kind}} p50"}, {quantile("0.95", attemptTime, "kind"), "{{kind}} p95"}, {quantile("0.99", attemptTime, "kind"), "{{kind}} p99"}}},
		{title: "Success by attempt", about: "Which attempt completed the jobs: shows the value of retries.", unit: "ops", queries: []query{{rate(successes, "attempt"), "attempt {{attempt}}"}}},
	}},
	{"Queues", []panel{
		{title: "Ready", queries: []query{{fmt.Sprintf("max by (queue) (%s{place=\"ready\"})", queueDepth), "{{queue}}"}}},
		{title: "Due later", about: "Scheduled, or waiting for a retry.", queries: []query{{fmt.Sprintf("max by (queue) (%s{place=\"later\"})", queueDepth), "{{queue}}"}}},
		{title: "Oldest ready job", unit: "s", queries: []query{{seen(queueOldest, "queue"), "{{queue}}"}}},
		{title: "Processing and paused", queries: []query{{seen(processing, "queue"), "{{queue}}"}, {seen(queueHeld, "queue"), "{{queue}} paused"}}},
	}},
	{"Failure", []panel{
		{title: "Failed for good, by code", unit: "ops", queries: []query{{rate(jobsFailed, "code"), "{{code}}"}}},
		{title: "Retries scheduled, by code", unit: "ops", queries: []query{{rate(retries, "code"), "{{code}}"}}},
		{title: "Never retried, by code", unit: "ops", queries: []query{{rate(jobsFinal, "code"), "{{code}}"}}},
		{title: "Delay before a retry", unit: "s", queries: []query{{fmt.Sprintf("histogram_quantile(0.95, sum by (le) (rate(%s_bucket[$__rate_interval])))", retryDelay), "p95"}}},
		{title: "Dead letters", queries: []query{{seen(deadLetters, "queue"), "{{queue}}"}}},
		{title: "Manual retries and reclaimed jobs", unit: "ops", queries: []query{
			{fmt.Sprintf("sum(rate(%s[$__rate_interval]))", jobsManual), "manual retries and redrives"}, {fmt.Sprintf("sum(rate(%s[$__rate_interval]))", jobsLost), "reclaimed"}}},
	}},
	{"Dependencies", []panel{
		{title: "Breakers", about: "The current state of each.", queries: []query{{fmt.Sprintf("max by (dependency, state) (%s) == 1", breakerState), "{{dependency}} {{state}}"}}},
		{title: "Open for", unit: "s", queries: []query{{seen(breakerOpen, "dependency"), "{{dependency}}"}}},
		{title: "Jobs that wait for a breaker", queries: []query{{seen(breakerWaiting, "dependency"), "{{dependency}}"}}},
		{title: "Call duration", unit: "s", queries: []query{{quantile("0.95", callTime, "dependency"), "{{dependency}} p95"}}},
		{title: "Holds", queries: []query{{seen(holds, "source"), "{{source}}"}, {seen(heldJobs, "source"), "jobs behind {{source}}"}}},
	}},
	{"Duties, feed and redrives", []panel{
		{title: "Duties: how late", unit: "s", queries: []query{{seen(dutyLag, "duty"), "{{duty}}"}}},
		{title: "Duties: since the last error", unit: "s", queries: []query{{fmt.Sprintf("time() - (max by (duty) (%s) > 0)", dutyErred), "{{duty}}"}}},
		{title: "Paused duties", queries: []query{{fmt.Sprintf("max by (duty) (%s) == 1", dutyPaused), "{{duty}}"}}},
		{title: "Feed", unit: "s", queries: []query{{fmt.Sprintf("max(%s)", feedLag), "lag"}}},
		{title: "Subscriptions behind", queries: []query{{seen(behind, "sink"), "{{sink}}"}, {seen(subscriptions, "sink, state"), "{{sink}} {{state}}"}}},
		{title: "Redrives", queries: []query{{seen(redrives, "state"), "{{state}}"}, {seen(redriving, "state"), "jobs {{state}}"}}},
	}},
	{"Server", []panel{
		{title: "Requests by status", unit: "reqps", queries: []query{{rate(requests, "status"), "{{status}}"}}},
		{title: "Request duration", unit: "s", queries: []query{{quantile("0.99", requestTime, "route"), "{{route}} p99"}}},
		{title: "Reads of the store", unit: "s", queries: []query{{fmt.Sprintf("max(%s)", snapshotTook), "took"}, {fmt.Sprintf("max(%s)", snapshotAge), "age"}}},
		{title: "Versions", queries: []query{{fmt.Sprintf("count by (version) (%s)", buildInfo), "{{version}}"}}},
	}},
}

type object = map[string]any

// source is the dashboard's variable for its Prometheus.
var source = object{"type": "prometheus", "uid": "${datasource}"}

// Dashboard returns a Grafana dashboard as a file to import.
func Dashboard() []byte {
	var panels []object
	id, y := 0, 0
	for _, r := range dashboardRows {
		id++
		panels = append(panels, object{"id": id, "type": "row", "title": r.title, "collapsed": false, "panels": []object{}, "gridPos": place(0, y, 24, 1)})
		y++
		width, height := 8, 8
		if r.panels[0].figure {
			width, height = 24/len(r.panels), 4
		}
		for i, p := range r.panels {
			id++
			across := 24 / width
			panels = append(panels, p.object(id, place(i%across*width, y+i/across*height, width, height)))
		}
		y += (len(r.panels)*width + 23) / 24 * height
	}
	text, err := json.MarshalIndent(object{
		"uid": "holdfast", "title": "Holdfast", "tags": []string{"holdfast"}, "schemaVersion": 39, "version": 1, "editable": true, "graphTooltip": 1,
		"time": object{"from": "now-3h", "to": "now"}, "refresh": "30s", "timezone": "", "annotations": object{"list": []object{}},
		"templating": object{"list": []object{{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}}},
		"panels":     panels,
	}, "", "  ")
	if err != nil {
		panic(err) // texts and numbers always marshal
	}
	return append(text, '\n')
}

func place(x, y, w, h int) object { return object{"x": x, "y": y, "w": w, "h": h} }

func (p panel) object(id int, at object) object {
	var targets []object
	for i, q := range p.queries {
		targets = append(targets, object{"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr, "legendFormat": q.legend})
	}
	kind, unit := "timeseries", p.unit
	if p.figure {
		kind = "stat"
	}
	if unit == "" {
		unit = "short"
	}
	return object{
		"id": id, "type": kind, "title": p.title, "description": p.about, "datasource": source, "gridPos": at, "targets": targets,
		"fieldConfig": object{"defaults": object{"unit": unit, "min": 0}, "overrides": []object{}}, "options": object{},
	}
}
