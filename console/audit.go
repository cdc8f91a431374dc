package console

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/ops"
)

// mountAudit mounts what people did.
func (c *Console) mountAudit() {
	memo := &auditMemo{known: map[int64]auditPart{}}
	c.see("/audit", func(q *ask) (page, error) { return auditScreen(q, memo) })
}

const (
	auditRows    = 50                    // deeds on a page
	auditStretch = 1000                  // events that are read at a time
	auditBudget  = 60 * time.Millisecond // a page does not begin another stretch after this
	auditInOne   = time.Hour             // what was done to many jobs in one go took no longer
)

// An auditPage is what people did, the newest first.
type auditPage struct {
	Actor, Subject string
	Since          string
	Sinces         []auditSince
	Rows           []auditRow
	First, Next    string
	Narrow         bool      // somebody filters
	Whole          bool      // of one thing: as far back as stories are kept
	Far            time.Time // it was looked back so far, and there is more
	Purged         bool      // the feed does not reach further back
	Problem        string
}

// An auditSince is how far to look back.
type auditSince struct {
	Name, Title string
	within      time.Duration
	Here        bool
}

// An auditRow is one deed.
type auditRow struct {
	ID      string
	At      time.Time
	Actor   string
	By      string // the address of all their deeds
	Deed    string
	Thing   string // what sort of thing it was done to
	About   string // which
	More    int    // so many others too, in one go
	Link    string // its page
	Trail   string // all that was done to it
	Reason  string
	Request string
}

// An auditAsk is what the address asks for.
type auditAsk struct {
	actor, subject string
	since          time.Time
	before         int64
}

func auditScreen(q *ask, memo *auditMemo) (page, error) {
	shown := auditPage{Actor: q.text("actor"), Subject: q.text("subject"), Since: q.text("since")}
	asked := auditAsk{actor: shown.Actor, subject: shown.Subject}
	shown.Sinces = []auditSince{{Name: "", Title: "any time"}, {Name: "1h", Title: "the last hour", within: time.Hour}, {Name: "24h", Title: "the last 24 hours", within: 24 * time.Hour}, {Name: "7d", Title: "the last 7 days", within: 7 * 24 * time.Hour}}
	at := slices.IndexFunc(shown.Sinces, func(s auditSince) bool { return s.Name == shown.Since })
	if at < 0 {
		return page{}, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf("since %.20q: use 1h, 24h or 7d", shown.Since)}
	}
	if shown.Sinces[at].Here = true; shown.Sinces[at].within > 0 {
		asked.since = q.now.Add(-shown.Sinces[at].within)
	}
	if cursor := q.text("cursor"); cursor != "" {
		before, err := strconv.ParseInt(cursor, 10, 64)
		if err != nil || before < 1 {
			return page{}, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "the cursor cannot be read: begin at the first page"}
		}
		asked.before, shown.First = before, q.otherwise("cursor", "")
	}
	shown.Narrow = shown.Actor != "" || shown.Subject != "" || shown.Since != ""
	deeds, err := q.auditDeeds(asked, &shown, memo)
	if err != nil {
		return page{}, err
	}
	for _, one := range deeds {
		shown.Rows = append(shown.Rows, q.auditRow(one))
	}
	p := page{name: "audit", title: "Audit", data: shown}
	if asked.before == 0 {
		p.topics = []string{"feed"}
	}
	return p, nil
}

// An auditDeed is what somebody did, to one thing or to many jobs in one go.
type auditDeed struct {
	holdfast.Event
	more int   // jobs besides
	last int64 // the number of the oldest event that is in it
}

// auditFold adds an event to the deeds, of which the last is the oldest. What was done to many jobs in one go is one deed.
func auditFold(deeds []auditDeed, e holdfast.Event) []auditDeed {
	if n := len(deeds); n > 0 {
		one := &deeds[n-1]
		if !e.Job.IsZero() && !one.Job.IsZero() && e.Actor == one.Actor && e.Name == one.Name && e.Reason == one.Reason && e.Request == one.Request && one.At.Sub(e.At) < auditInOne {
			one.more, one.last = one.more+1, e.Seq
			return deeds
		}
	}
	return append(deeds, auditDeed{Event: e, last: e.Seq})
}

// auditDeeds finds the deeds: of one thing from its story, of everything from the feed.
func (q *ask) auditDeeds(asked auditAsk, shown *auditPage, memo *auditMemo) (deeds []auditDeed, err error) {
	if asked.subject == "" {
		return q.auditWalk(asked, shown, memo)
	}
	shown.Whole = true
	f := ops.AuditFilter{Actor: asked.actor, Subject: asked.subject}
	if id, err := holdfast.ParseID(strings.TrimPrefix(asked.subject, "job/")); err == nil {
		f.Subject, f.Job = "", id
	}
	trail, err := q.desk.Trail(q.ctx, f)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
		shown.Problem = sentence(err)
		return nil, nil
	}
	for _, e := range slices.Backward(trail.Events) {
		if !e.At.Before(asked.since) {
			deeds = append(deeds, auditDeed{Event: e})
		}
	}
	return deeds, err
}

func (a auditAsk) wants(e holdfast.Event) bool {
	return e.Actor != "" && e.Actor != breaker.System && (a.actor == "" || a.actor == e.Actor) && !e.At.Before(a.since)
}

// auditRow is a deed as the page shows it.
func (q *ask) auditRow(e auditDeed) auditRow {
	row := auditRow{At: e.At, Actor: e.Actor, Deed: e.Name, Reason: e.Reason, Request: e.Request, More: e.more}
	row.By = q.otherwise("actor", e.Actor, "cursor", "")
	row.ID = strconv.FormatInt(cmp.Or(e.Seq, e.At.UnixNano()), 10) // a line of a story has no number
	subject := e.Subject
	if subject == "" && !e.Job.IsZero() {
		subject = "job/" + e.Job.String()
	}
	if redrive, why, is := strings.Cut(e.Reason, ": "); is && e.Name == "redrive" {
		if _, err := holdfast.ParseID(redrive); err == nil && e.more > 0 {
			subject, row.Deed, row.Reason = "redrive/"+redrive, "redrove "+plural(e.more+1, "job"), why
			row.More = 0
		}
	}
	row.Thing, row.About, row.Link = q.auditSubject(subject)
	row.Trail = q.otherwise("subject", subject, "cursor", "")
	return row
}
