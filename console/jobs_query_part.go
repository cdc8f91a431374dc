package console

import (
	"strings"

	"github.com/holdfastdev/holdfast"
)

// without is the search without the parts of these names, and with others at its beginning.
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

// less is the search without one of its parts.
func (q jobQuery) less(away queryPart) string {
	var texts []string
	for _, part := range q.parts {
		if part != away {
			texts = append(texts, part.String())
		}
	}
	return strings.Join(texts, " ")
}

// narrows reports whether the search asks for more than a state: then nobody has counted beforehand.
func (q jobQuery) narrows() bool { return q.without("state is") != "" }

// keeps reports whether a job that the store found is meant.
func (q jobQuery) keeps(job holdfast.Job) bool {
	return q.category == "" || job.LastFailure != nil && job.LastFailure.Category == q.category
}

// redrive is the address of a redrive of what the search means, or empty: when it asks for what a redrive does not choose by.
func (q jobQuery) redrive() string {
	f := q.filter
	if f.State != "" && f.State != holdfast.Failed || q.problem != "" || q.without("state is kind queue owner code fingerprint group age") != "" || f.Retrying || f.YoungerThan > 0 {
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

// loneID is the job that a search consists of.
func loneID(text string) (holdfast.ID, bool) {
	text = strings.TrimPrefix(strings.Trim(strings.TrimSpace(text), `"`), "id:")
	id, err := holdfast.ParseID(strings.ToLower(text))
	return id, err == nil
}
