package console

import (
	"strings"

	"github.com/holdfastdev/holdfast"
)

// without returns the search without the parts of these names (separated by spaces), and with other parts at its beginning.
func (q jobQuery) without(names string, with ...queryPart) string {
	var texts []string
	for _, part := range with {
		texts = append(texts, part.String())
	}
	for _, part := range q.parts {
		if !strings.Contains(" "+names+" ", " "+part.name+" ") {
			texts = append(texts, part.String())
		}
	}
	return strings.Join(texts, " ")
}

// withoutPart returns the search without one of its parts.
func (q jobQuery) withoutPart(removed queryPart) string {
	var texts []string
	for _, part := range q.parts {
		if part != removed {
			texts = append(texts, part.String())
		}
	}
	return strings.Join(texts, " ")
}

// narrows reports whether the search has other terms than a state. Then no index has its count.
func (q jobQuery) narrows() bool { return q.without("state is") != "" }

// matches reports whether a job that the store found matches the category.
func (q jobQuery) matches(job holdfast.Job) bool {
	return q.category == "" || job.LastFailure != nil && job.LastFailure.Category == q.category
}

// redrive returns the path of a redrive of the matches, or "" if the search has terms that a redrive cannot select by.
func (q jobQuery) redrive() string {
	f := q.filter
	if f.State != "" && f.State != holdfast.Failed || q.problem != "" || q.without("state is kind queue owner code fingerprint group age") != "" || f.Retrying || f.NewerThan > 0 {
		return ""
	}
	var older, group string
	if f.OlderThan > 0 {
		older = f.OlderThan.String()
	}
	if !f.Group.IsZero() {
		group = f.Group.String()
	}
	to, _ := link("/redrives/new", "code", f.Code, "fingerprint", f.Fingerprint, "kind", f.Kind, "queue", f.Queue, "owner", f.Owner, "group", group, "older", older) // pairs are complete
	return to
}

// loneID returns the job id if the search is nothing but one.
func loneID(text string) (holdfast.ID, bool) {
	text = strings.TrimPrefix(strings.Trim(strings.TrimSpace(text), `"`), "id:")
	id, err := holdfast.ParseID(strings.ToLower(text))
	return id, err == nil
}
