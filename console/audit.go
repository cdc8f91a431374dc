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
	"github.com/holdfastdev/holdfast/store"
)

// mountAudit mounts the audit log.
func (c *Console) mountAudit() {
	cache := &auditCache{known: map[int64]auditChunk{}}
	c.handlePage("/audit", func(q *request) (page, error) { return auditScreen(q, cache) })
}

const (
	auditRows       = 50                    // entries on a page
	auditChunkSize  = 1000                  // events read at a time
	auditBudget     = 60 * time.Millisecond // a page reads no further chunk after this time
	auditFoldWithin = time.Hour             // events of one action on many jobs are at most this far apart
)

// An auditPage is the data of the audit log, the newest entry first.
type auditPage struct {
	Actor, Subject string
	Since          string
	Sinces         []auditSince
	Rows           []auditRow
	First, Next    string
	Narrow         bool      // the log is filtered
	Whole          bool      // the log of one subject, as far back as its story is kept
	Far            time.Time // the scan stopped here; there is more
	Purged         bool      // the feed does not reach further back
	Problem        string
}

// An auditSince is a time range.
type auditSince struct {
	Name, Title string
	within      time.Duration
	Here        bool
}

// An auditRow is an entry of the log.
type auditRow struct {
	ID      string
	At      time.Time
	Actor   string
	By      string // URL of all entries of the actor
	Action  string
	Thing   string // type of the subject
	About   string // name or id of the subject
	More    int    // number of further jobs in the same action
	Link    string // URL of the subject
	Trail   string // URL of all entries of the subject
	Reason  string
	Request string
}

// An auditQuery is the query of the URL.
type auditQuery struct {
	actor, subject string
	since          time.Time
	before         int64
}

func auditScreen(q *request, cache *auditCache) (page, error) {
	shown := auditPage{Actor: q.text("actor"), Subject: q.text("subject"), Since: q.text("since")}
	asked := auditQuery{actor: shown.Actor, subject: shown.Subject}
	shown.Sinces = []auditSince{{Name: "", Title: "any time"}, {Name: "1h", Title: "the last hour", within: time.Hour}, {Name: "24h", Title: "the last 24 hours", within: 24 * time.Hour}, {Name: "7d", Title: "the last 7 days", within: 7 * 24 * time.Hour}}
	at := slices.IndexFunc(shown.Sinces, func(s auditSince) bool { return s.Name == shown.Since })
	if at < 0 {
		return page{}, &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("since %.20q: use 1h, 24h or 7d", shown.Since)}
	}
	if shown.Sinces[at].Here = true; shown.Sinces[at].within > 0 {
		asked.since = q.now.Add(-shown.Sinces[at].within)
	}
	if cursor := q.text("cursor"); cursor != "" {
		before, err := strconv.ParseInt(cursor, 10, 64)
		if err != nil || before < 1 {
			return page{}, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "the cursor is invalid: start at the first page"}
		}
		asked.before, shown.First = before, q.withQuery("cursor", "")
	}
	shown.Narrow = shown.Actor != "" || shown.Subject != "" || shown.Since != ""
	entries, err := q.auditEntries(asked, &shown, cache)
	if err != nil {
		return page{}, err
	}
	for _, one := range entries {
		shown.Rows = append(shown.Rows, q.auditRow(one))
	}
	p := page{name: "audit", title: "Audit log", data: shown}
	if asked.before == 0 {
		p.topics = []string{"feed"}
	}
	return p, nil
}

// An auditEntry is an action of a person, on one subject or on many jobs.
type auditEntry struct {
	store.Event
	more int   // further jobs
	last int64 // sequence number of its oldest event
}

// auditFold appends an event to the entries, which are newest first. Events of one action on many jobs become one entry.
func auditFold(entries []auditEntry, e store.Event) []auditEntry {
	if n := len(entries); n > 0 {
		one := &entries[n-1]
		if !e.Job.IsZero() && !one.Job.IsZero() && e.Actor == one.Actor && e.Name == one.Name && e.Reason == one.Reason && e.Request == one.Request && one.At.Sub(e.At) < auditFoldWithin {
			one.more, one.last = one.more+1, e.Seq
			return entries
		}
	}
	return append(entries, auditEntry{Event: e, last: e.Seq})
}

// auditEntries returns the entries: of one subject from its story, of all subjects from the feed.
func (q *request) auditEntries(asked auditQuery, shown *auditPage, cache *auditCache) (entries []auditEntry, err error) {
	if asked.subject == "" {
		return q.auditFeed(asked, shown, cache)
	}
	shown.Whole = true
	f := ops.AuditFilter{Actor: asked.actor, Subject: asked.subject}
	if id, err := holdfast.ParseID(strings.TrimPrefix(asked.subject, "job/")); err == nil {
		f.Subject, f.Job = "", id
	}
	trail, err := q.operator.AuditLog(q.ctx, f)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
		shown.Problem = sentence(err)
		return nil, nil
	}
	for _, e := range slices.Backward(trail.Events) {
		if !e.At.Before(asked.since) {
			entries = append(entries, auditEntry{Event: e})
		}
	}
	return entries, err
}

func (a auditQuery) matches(e store.Event) bool {
	return e.Actor != "" && e.Actor != breaker.System && (a.actor == "" || a.actor == e.Actor) && !e.At.Before(a.since)
}

// auditRow returns the row of an entry.
func (q *request) auditRow(e auditEntry) auditRow {
	row := auditRow{At: e.At, Actor: e.Actor, Action: e.Name, Reason: e.Reason, Request: e.Request, More: e.more}
	row.By = q.withQuery("actor", e.Actor, "cursor", "")
	row.ID = strconv.FormatInt(cmp.Or(e.Seq, e.At.UnixNano()), 10) // events of a story have no sequence number
	subject := e.Subject
	if subject == "" && !e.Job.IsZero() {
		subject = "job/" + e.Job.String()
	}
	if redrive, why, is := strings.Cut(e.Reason, ": "); is && e.Name == "redrive" {
		if _, err := holdfast.ParseID(redrive); err == nil && e.more > 0 {
			subject, row.Action, row.Reason = "redrive/"+redrive, "redrove "+plural(e.more+1, "job"), why
			row.More = 0
		}
	}
	row.Thing, row.About, row.Link = q.auditSubject(subject)
	row.Trail = q.withQuery("subject", subject, "cursor", "")
	return row
}
