package console

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// A triageAction is an action on an error group.
type triageAction struct {
	verb    string
	status  store.Status
	message string // %s is the duration of an ignore
}

var triageActions = []triageAction{
	{"resolve", store.StatusResolved, "Error group resolved. If it fails again, it becomes regressed."},
	{"ignore", store.StatusIgnored, "Error group ignored%s."},
	{"acknowledge", store.StatusAcknowledged, "Error group acknowledged."},
	{"reopen", store.StatusOpen, "Error group reopened."},
	{"note", "", "Note added."},
}

// maxIgnored is the largest number of failures to ignore.
const maxIgnored = 1_000_000_000

// run applies the action to the error group of the request.
func (j triageAction) run(q *request) (actionResult, error) {
	to := "/failures/" + url.PathEscape(q.fingerprint())
	t := store.Triage{Fingerprint: q.fingerprint(), Status: j.status, Actor: q.visitor.Name, Reason: q.text("reason")}
	message := j.message
	switch j.status {
	case "":
		if t.Reason == "" {
			return actionResult{to: to}, invalid("the note is empty: write a text")
		}
	case store.StatusResolved:
		t.Version = q.text("version")
	case store.StatusIgnored:
		var err error
		if t.For, t.Count, err = q.ignoreLimits(); err != nil {
			return actionResult{}, err
		}
		message = fmt.Sprintf(j.message, ignoreWords(t.For, t.Count))
	}
	if err := q.operator.Triage(q.ctx, t); err != nil {
		return actionResult{}, err
	}
	if j.status == "" {
		return actionResult{text: message, to: to + "#notes"}, nil
	}
	return actionResult{text: message}, nil
}

// ignoreLimits reads how long a group is ignored: for a time, for a number of failures, for both or without a limit.
func (q *request) ignoreLimits() (lasting time.Duration, count int, err error) {
	if text := q.text("for"); text != "" {
		if lasting, err = time.ParseDuration(text); err != nil || lasting <= 0 {
			return 0, 0, invalid("for %.40q: use a duration such as 24h", text)
		}
	}
	if text := q.text("count"); text != "" {
		if count, err = strconv.Atoi(text); err != nil || count < 0 || count > maxIgnored {
			return 0, 0, invalid("%.40q more failures: use a number such as 100, or leave it empty", text)
		}
	}
	return lasting, count, nil
}

// ignoreWords returns how long a group is ignored, in words.
func ignoreWords(lasting time.Duration, count int) string {
	switch {
	case lasting > 0 && count > 0:
		return " for " + formatDuration(lasting) + ", or until " + plural(count, "more failure")
	case lasting > 0:
		return " for " + formatDuration(lasting)
	case count > 0:
		return " until " + plural(count, "more failure")
	}
	return " until it is reopened"
}
