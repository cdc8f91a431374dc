package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
)

// mountDeliveries mounts the log of what was told to whom, and what can be done about it.
func (c *Console) mountDeliveries() {
	c.see("/deliveries", c.deliveries)
	c.see("/deliveries/{id}", c.delivery)
	c.do("/deliveries/{id}/resend", apikey.Operator, resendDelivery)
	c.do("/subscriptions/{id}/disable", apikey.Operator, disableSubscription)
	c.do("/subscriptions/{id}/enable", apikey.Operator, enableSubscription)
}

// A deliveryLog is what the page shows.
type deliveryLog struct {
	Subscriptions []subscribed
	Unread        string // what is wrong with those that cannot be read
	Of            string // the subscription that is looked at
	OfName        string
	State         string
	Tabs          []deliveryTab
	Rows          []deliveryRow
	Pager         struct{ First, Next string }
}

// A deliveryTab narrows the log to a state.
type deliveryTab struct {
	Name, Link string
	Here       bool
}

// subscribed is a subscription, and how it does.
type subscribed struct {
	ID       holdfast.ID
	Name     string
	Sink     string
	Target   string
	Wants    string
	Disabled string
	Lag      int64
	Missed   int64
	Failed   int
	Waiting  int
	Counted  bool // its deliveries were counted
	Signed   int  // by so many secrets
	Here     bool
	Link     string
	FailedTo string // leads to those that failed
	WaitTo   string
	Badge    badge
}

// A deliveryRow is one delivery in the log.
type deliveryRow struct {
	Job      holdfast.Job
	What     string
	About    string
	Name     string // of the subscription
	Target   string
	Attempts int
	Answer   string
	Code     string
	Took     time.Duration
	Next     time.Time
	Can      bool // be sent again
}

// mostSubscriptions is of how many subscriptions the deliveries are counted: each costs two questions.
const mostSubscriptions = 25

// deliveries shows the log.
func (c *Console) deliveries(q *ask) (page, error) {
	shown := deliveryLog{Of: q.text("subscription"), State: q.text("state")}
	of, err := optionalID(shown.Of)
	if err != nil {
		return page{}, err
	}
	state, err := knownState(shown.State)
	if err != nil {
		return page{}, err
	}
	known, err := q.desk.Subscriptions(q.ctx)
	if err != nil && len(known) == 0 {
		return page{}, err
	} else if err != nil {
		shown.Unread = sentence(err)
	}
	for i, one := range known {
		row, err := q.subscribed(one, i < mostSubscriptions)
		if err != nil {
			return page{}, err
		}
		if row.Here = one.ID == of; row.Here {
			shown.OfName = row.Name
		}
		shown.Subscriptions = append(shown.Subscriptions, row)
	}
	jobs, next, err := q.desk.Deliveries(q.ctx, of, holdfast.Filter{State: state, Code: q.text("code"), Look: lookedAt, Limit: 50, Cursor: q.text("cursor")})
	if err != nil {
		return page{}, err
	}
	for _, job := range jobs {
		shown.Rows = append(shown.Rows, deliveryOf(job, known))
	}
	shown.tabs(q)
	shown.page(q, next)
	return page{name: "deliveries", title: "Deliveries", topics: []string{"jobs", "feed"}, data: shown}, nil
}

// optionalID reads an id that may be left out.
func optionalID(text string) (id holdfast.ID, err error) {
	if text != "" {
		id, err = holdfast.ParseID(text)
	}
	return id, err
}

func knownState(text string) (holdfast.State, error) {
	states := []holdfast.State{"", holdfast.Queued, holdfast.Processing, holdfast.Complete, holdfast.Failed, holdfast.Cancelled}
	if state := holdfast.State(text); slices.Contains(states, state) {
		return state, nil
	}
	return "", &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "state: use queued, processing, complete, failed or cancelled"}
}

// tabs lead to each state of deliveries.
func (l *deliveryLog) tabs(q *ask) {
	for _, one := range [][2]string{{"All", ""}, {"Queued", "queued"}, {"Processing", "processing"}, {"Complete", "complete"}, {"Failed", "failed"}, {"Cancelled", "cancelled"}} {
		to, _ := link(q.link("/deliveries"), "subscription", l.Of, "state", one[1]) // names and values in pairs
		l.Tabs = append(l.Tabs, deliveryTab{one[0], to, l.State == one[1]})
	}
}

func (l *deliveryLog) page(q *ask, next string) {
	if q.text("cursor") != "" {
		l.Pager.First, _ = link(q.link("/deliveries"), "subscription", l.Of, "state", l.State, "code", q.text("code")) // pairs
	}
	if next != "" {
		l.Pager.Next, _ = link(q.link("/deliveries"), "subscription", l.Of, "state", l.State, "code", q.text("code"), "cursor", next) // pairs
	}
}

// subscribed tells how a subscription does.
func (q *ask) subscribed(s ops.Subscribed, count bool) (row subscribed, err error) {
	row = subscribed{
		ID: s.ID, Name: subscriptionName(s.Subscription), Sink: s.Sink, Target: shownTarget(s.Target), Wants: wants(s.Subscription), Disabled: s.Disabled, Lag: s.Lag, Missed: s.Missed,
		Counted: count, Signed: len(s.Secrets), Badge: badge{"complete", "complete", "enabled"},
	}
	row.Link, _ = link(q.link("/deliveries"), "subscription", s.ID)                        // pairs
	row.FailedTo, _ = link(q.link("/deliveries"), "subscription", s.ID, "state", "failed") // pairs
	row.WaitTo, _ = link(q.link("/deliveries"), "subscription", s.ID, "state", "queued")   // pairs
	if count {
		mine := holdfast.Filter{Queue: subscription.Queue, Owner: subscription.Owner(s.ID), Look: lookedAt}
		failed, waiting := mine, mine
		failed.DeadLetters, waiting.State = true, holdfast.Queued
		if row.Failed, err = q.desk.Count(q.ctx, failed); err != nil {
			return row, err
		}
		if row.Waiting, err = q.desk.Count(q.ctx, waiting); err != nil {
			return row, err
		}
	}
	switch {
	case row.Disabled != "":
		row.Badge = badge{"held", "held", "disabled"}
	case row.Failed > 0:
		row.Badge = badge{"failed", "failed", "failing"}
	}
	return row, nil
}

func subscriptionName(s subscription.Subscription) string {
	if s.Name != "" {
		return s.Name
	}
	return s.Sink + " " + short(s.ID)
}

// shownTarget is where a subscription is told, without a password that somebody put into the address.
func shownTarget(target string) string {
	if u, err := url.Parse(target); err == nil && u.User != nil {
		return u.Redacted()
	}
	return target
}

// wants says of what a subscription is told.
func wants(s subscription.Subscription) string {
	text := "everything"
	if len(s.Events) > 0 {
		text = strings.Join(s.Events, ", ")
	}
	for n, names := range [][]string{s.Kinds, s.Owners, s.Codes} {
		if len(names) > 0 {
			text += fmt.Sprintf("; %s %s", []string{"kinds", "owners", "codes"}[n], strings.Join(names, ", "))
		}
	}
	if len(s.Groups) > 0 {
		text += "; " + plural(len(s.Groups), "group")
	}
	return text
}

// A posted is what a delivery carries, as far as pages show it.
type posted struct {
	ID     string           `json:"id"`
	Events []holdfast.Event `json:"events"`
	More   int              `json:"more"`
}

// A receipt is what receivers answered, whatever the sink.
type receipt struct {
	Status    int             `json:"status"`
	Took      json.RawMessage `json:"took"` // a text; of old deliveries a number of nanoseconds
	MessageID string          `json:"message_id"`
}

// took is how long the receiver took; 0 when the receipt does not say.
func (r receipt) took() time.Duration {
	var text string
	var old int64
	if json.Unmarshal(r.Took, &text) == nil {
		d, _ := time.ParseDuration(text)
		return d
	}
	_ = json.Unmarshal(r.Took, &old) // 0 when it is neither
	return time.Duration(old)
}

// deliveryOf puts a delivery into a row.
func deliveryOf(job holdfast.Job, known []ops.Subscribed) deliveryRow {
	row := deliveryRow{Job: job, Attempts: job.Attempt(), Name: strings.TrimPrefix(job.Kind, "holdfast."), Can: job.State.Terminal()}
	for _, one := range known {
		if subscription.Owner(one.ID) == job.Owner {
			row.Name, row.Target = subscriptionName(one.Subscription), shownTarget(one.Target)
		}
	}
	var mail posted
	row.What = "unreadable"
	if json.Unmarshal(job.Args, &mail) == nil && len(mail.Events) > 0 {
		row.What, row.About = subscription.Type(mail.Events[0]), about(mail.Events[0])
		if others := len(mail.Events) - 1 + mail.More; others > 0 {
			row.What += " and " + plural(others, "other event")
		}
	}
	if job.State == holdfast.Queued && job.DueAt.After(job.AsOf) {
		row.Next = job.DueAt
	}
	if !job.StartedAt.IsZero() && !job.FinishedAt.IsZero() {
		row.Took = max(job.FinishedAt.Sub(job.StartedAt), 0)
	}
	row.answered(job)
	return row
}

// about is what an event is about, in a word or two.
func about(e holdfast.Event) string {
	switch {
	case e.Job.IsZero():
		return e.Subject
	case e.Code != "":
		return e.Kind + " " + short(e.Job) + ", " + e.Code
	}
	return e.Kind + " " + short(e.Job)
}

// answered says what the receiver answered last.
func (r *deliveryRow) answered(job holdfast.Job) {
	var said receipt
	switch {
	case job.LastFailure != nil:
		r.Code, r.Answer = job.LastFailure.Code, job.LastFailure.Message
		if status := job.LastFailure.Context["http_status"]; status != "" {
			r.Answer = status + ": " + r.Answer
		}
	case json.Unmarshal(job.Result, &said) == nil && said.Status > 0:
		r.Answer = fmt.Sprint(said.Status)
		if took := said.took(); took > 0 {
			r.Took = took
		}
	case job.State == holdfast.Complete:
		r.Answer = "accepted"
	}
}
