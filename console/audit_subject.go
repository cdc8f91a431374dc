package console

import (
	"net/url"
	"strings"
)

// auditSubject says what a subject is, in words, and where its page is; nowhere when it has none.
func (q *ask) auditSubject(subject string) (thing, about, link string) {
	room, name, _ := strings.Cut(subject, "/")
	escaped := url.PathEscape(name)
	switch room {
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
	return room, name, ""
}

// auditHold is what a hold was placed on.
func (q *ask) auditHold(on string) (thing, about, link string) {
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
