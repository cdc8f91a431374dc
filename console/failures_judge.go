package console

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A judgement is what a person can say about an error group.
type judgement struct {
	verb   string
	status holdfast.Status
	said   string
}

var judgements = []judgement{
	{"resolve", holdfast.Resolved, "The error group is resolved. If it happens again it comes back as regressed."},
	{"ignore", holdfast.Ignored, "The error group is ignored%s."},
	{"acknowledge", holdfast.Acknowledged, "You look after the error group now."},
	{"reopen", holdfast.Open, "The error group is open again."},
	{"note", "", "Your note is in the story of the error group."},
}

// mostIgnored is the largest count of failures for which a group is ignored.
const mostIgnored = 1_000_000_000

// deed keeps a person's word on an error group.
func (j judgement) deed(q *ask) (done, error) {
	to := "/failures/" + url.PathEscape(q.fingerprint())
	t := holdfast.Triage{Fingerprint: q.fingerprint(), Status: j.status, Actor: q.visitor.Name, Reason: q.text("reason")}
	said := j.said
	switch j.status {
	case "":
		if t.Reason == "" {
			return done{to: to}, bad("the note is empty: write something")
		}
	case holdfast.Resolved:
		t.Version = q.text("version")
	case holdfast.Ignored:
		var err error
		if t.For, t.Count, err = q.patience(); err != nil {
			return done{}, err
		}
		said = fmt.Sprintf(j.said, patienceWords(t.For, t.Count))
	}
	if err := q.desk.Triage(q.ctx, t); err != nil {
		return done{}, err
	}
	if j.status == "" {
		return done{text: said, to: to + "#notes"}, nil
	}
	return done{text: said}, nil
}

// patience reads how long a group is ignored: for a time, for so many failures, both, or neither.
func (q *ask) patience() (lasting time.Duration, count int, err error) {
	if text := q.text("for"); text != "" {
		if lasting, err = time.ParseDuration(text); err != nil || lasting <= 0 {
			return 0, 0, bad("for %.40q: give a duration such as 24h", text)
		}
	}
	if text := q.text("count"); text != "" {
		if count, err = strconv.Atoi(text); err != nil || count < 0 || count > mostIgnored {
			return 0, 0, bad("%.40q failures more: give a number such as 100, or leave it empty", text)
		}
	}
	return lasting, count, nil
}

// patienceWords say until when a group is ignored.
func patienceWords(lasting time.Duration, count int) string {
	switch {
	case lasting > 0 && count > 0:
		return " for " + took(lasting) + ", or until " + plural(count, "failure") + " more"
	case lasting > 0:
		return " for " + took(lasting)
	case count > 0:
		return " until " + plural(count, "failure") + " more"
	}
	return " until somebody opens it again"
}

// bad refuses what a visitor gave.
func bad(format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
