package console

import (
	"net/url"
	"strings"
)

// auditSubject returns the type and the name of a subject, and the URL of its page or "".
func (q *request) auditSubject(subject string) (thing, about, link string) {
	kind, name, _ := strings.Cut(subject, "/")
	escaped := url.PathEscape(name)
	switch kind {
	case "job":
		return "job", short(name), q.link("/jobs/" + escaped)
	case "group":
		return "group", short(name), q.link("/groups/" + escaped)
	case "redrive":
		return "redrive", short(name), q.link("/redrives/" + escaped)
	case "breaker":
		return "breaker", name, q.link("/breakers/" + escaped)
	case "error":
		return "error group", short(name), q.link("/failures/" + escaped)
	case "subscription":
		return "subscription", short(name), q.link("/deliveries?subscription=" + url.QueryEscape(name))
	case "schedule":
		return "schedule", name, q.link("/schedules#s-" + escaped)
	case "duty":
		return "duty", name, q.link("/health#d-" + escaped)
	case "share":
		return "share of owner", name, q.jobs(queryPart{"owner", name}.String())
	case "retention":
		return "retention", "", q.link("/health#retention")
	case "policy":
		return "policy", "", q.link("/policies?tab=file")
	case "hold":
		return q.auditHold(name)
	}
	return kind, name, ""
}

// auditHold returns what a hold is on.
func (q *request) auditHold(on string) (thing, about, link string) {
	scope, name, _ := strings.Cut(on, "/")
	thing = "hold on " + scope
	switch scope {
	case "queue":
		return thing, name, q.queue(name)
	case "dependency":
		return thing, name, q.link("/breakers/" + url.PathEscape(name))
	case "kind", "owner", "tag":
		return thing, name, q.jobs("state:queued", queryPart{scope, name}.String())
	}
	return thing, name, ""
}
