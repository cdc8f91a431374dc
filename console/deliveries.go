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
	"github.com/holdfastdev/holdfast/store"
)

// mountDeliveries mounts the deliveries page, the page of a delivery and their actions.
func (c *Console) mountDeliveries() {
	c.handlePage("/deliveries", c.deliveries)
	c.handlePage("/deliveries/{id}", c.delivery)
	c.handleAction("/deliveries/{id}/resend", apikey.Operator, resendDelivery)
	c.handleAction("/subscriptions/{id}/disable", apikey.Operator, disableSubscription)
	c.handleAction("/subscriptions/{id}/enable", apikey.Operator, enableSubscription)
}

// A deliveryLog is the data of the deliveries page.
type deliveryLog struct {
	Subscriptions []subscriptionRow
	Problem       string // error of subscriptions that cannot be read
	Of            string // id of the selected subscription
	OfName        string
	State         string
	Tabs          []deliveryTab
	Rows          []deliveryRow
	Pager         struct{ First, Next string }
}

// A deliveryTab filters the log by a state.
type deliveryTab struct {
	Name, Link string
	Here       bool
}

// A subscriptionRow is a subscription with the state of its deliveries.
type subscriptionRow struct {
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
	Counted  bool // Failed and Waiting are set
	Signed   int  // number of secrets
	Here     bool
	Link     string
	FailedTo string // URL of its failed deliveries
	WaitTo   string
	Badge    badge
}

// A deliveryRow is a delivery in the log.
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
	Can      bool // it can be sent again
}

// maxSubscriptions is the number of subscriptions whose deliveries are counted. Each costs two queries.
const maxSubscriptions = 25

// deliveries renders the deliveries page.
func (c *Console) deliveries(q *request) (page, error) {
	shown := deliveryLog{Of: q.text("subscription"), State: q.text("state")}
	of, err := optionalID(shown.Of)
	if err != nil {
		return page{}, err
	}
	state, err := knownState(shown.State)
	if err != nil {
		return page{}, err
	}
	known, err := q.operator.Subscriptions(q.ctx)
	if err != nil && len(known) == 0 {
		return page{}, err
	} else if err != nil {
		shown.Problem = sentence(err)
	}
	for i, one := range known {
		row, err := q.subscriptionRow(one, i < maxSubscriptions)
		if err != nil {
			return page{}, err
		}
		if row.Here = one.ID == of; row.Here {
			shown.OfName = row.Name
		}
		shown.Subscriptions = append(shown.Subscriptions, row)
	}
	jobs, next, err := q.operator.Deliveries(q.ctx, of, store.Filter{State: state, Code: q.text("code"), MaxScan: maxPageScan, Limit: 50, Cursor: q.text("cursor")})
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

// optionalID parses an id that may be empty.
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
	return "", &holdfast.Error{Err: holdfast.ErrInvalid, Message: "state: use queued, processing, complete, failed or cancelled"}
}

// tabs sets the tabs.
func (l *deliveryLog) tabs(q *request) {
	for _, one := range [][2]string{{"All", ""}, {"Queued", "queued"}, {"Processing", "processing"}, {"Complete", "complete"}, {"Failed", "failed"}, {"Cancelled", "cancelled"}} {
		to, _ := link(q.link("/deliveries"), "subscription", l.Of, "state", one[1]) // pairs
		l.Tabs = append(l.Tabs, deliveryTab{one[0], to, l.State == one[1]})
	}
}

func (l *deliveryLog) page(q *request, next string) {
	if q.text("cursor") != "" {
		l.Pager.First, _ = link(q.link("/deliveries"), "subscription", l.Of, "state", l.State, "code", q.text("code")) // pairs
	}
	if next != "" {
		l.Pager.Next, _ = link(q.link("/deliveries"), "subscription", l.Of, "state", l.State, "code", q.text("code"), "cursor", next) // pairs
	}
}

// subscriptionRow returns the row of a subscription.
func (q *request) subscriptionRow(s ops.SubscriptionStatus, count bool) (row subscriptionRow, err error) {
	row = subscriptionRow{
		ID: s.ID, Name: subscriptionName(s.Subscription), Sink: s.Sink, Target: shownTarget(s.Target), Wants: eventsText(s.Subscription), Disabled: s.Disabled, Lag: s.Lag, Missed: s.Missed,
		Counted: count, Signed: len(s.Secrets), Badge: badge{"complete", "complete", "enabled"},
	}
	row.Link, _ = link(q.link("/deliveries"), "subscription", s.ID)                        // pairs
	row.FailedTo, _ = link(q.link("/deliveries"), "subscription", s.ID, "state", "failed") // pairs
	row.WaitTo, _ = link(q.link("/deliveries"), "subscription", s.ID, "state", "queued")   // pairs
	if count {
		mine := store.Filter{Queue: subscription.Queue, Owner: subscription.Owner(s.ID), MaxScan: maxPageScan}
		failed, waiting := mine, mine
		failed.DeadLetters, waiting.State = true, holdfast.Queued
		if row.Failed, err = q.operator.Count(q.ctx, failed); err != nil {
			return row, err
		}
		if row.Waiting, err = q.operator.Count(q.ctx, waiting); err != nil {
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

// shownTarget returns the target of a subscription without a password in its URL.
func shownTarget(target string) string {
	if u, err := url.Parse(target); err == nil && u.User != nil {
		return u.Redacted()
	}
	return target
}

// eventsText returns the events of a subscription in words.
func eventsText(s subscription.Subscription) string {
	text := "all events"
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

// A deliveryBody is the part of a delivery's body that pages show.
type deliveryBody struct {
	ID     string        `json:"id"`
	Events []store.Event `json:"events"`
	More   int           `json:"more"`
}

// A receipt is the answer of a receiver, for all sinks.
type receipt struct {
	Status    int             `json:"status"`
	Took      json.RawMessage `json:"took"` // a duration string; a number of nanoseconds in old deliveries
	MessageID string          `json:"message_id"`
}

// took returns the duration of the receiver; 0 if unknown.
func (r receipt) took() time.Duration {
	var text string
	var old int64
	if json.Unmarshal(r.Took, &text) == nil {
		d, _ := time.ParseDuration(text)
		return d
	}
	_ = json.Unmarshal(r.Took, &old) // stays 0 if it is neither
	return time.Duration(old)
}

// deliveryOf returns the row of a delivery.
func deliveryOf(job holdfast.Job, known []ops.SubscriptionStatus) deliveryRow {
	row := deliveryRow{Job: job, Attempts: job.Attempt(), Name: strings.TrimPrefix(job.Kind, "holdfast."), Can: job.State.Terminal()}
	for _, one := range known {
		if subscription.Owner(one.ID) == job.Owner {
			row.Name, row.Target = subscriptionName(one.Subscription), shownTarget(one.Target)
		}
	}
	var body deliveryBody
	row.What = "unreadable"
	if json.Unmarshal(job.Args, &body) == nil && len(body.Events) > 0 {
		row.What, row.About = subscription.Type(body.Events[0]), about(body.Events[0])
		if others := len(body.Events) - 1 + body.More; others > 0 {
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

// about returns the subject of an event.
func about(e store.Event) string {
	switch {
	case e.Job.IsZero():
		return e.Subject
	case e.Code != "":
		return e.Kind + " " + short(e.Job) + ", " + e.Code
	}
	return e.Kind + " " + short(e.Job)
}

// answered sets the last answer of the receiver.
func (r *deliveryRow) answered(job holdfast.Job) {
	var answer receipt
	switch {
	case job.LastFailure != nil:
		r.Code, r.Answer = job.LastFailure.Code, job.LastFailure.Message
		if status := job.LastFailure.Context["http_status"]; status != "" {
			r.Answer = status + ": " + r.Answer
		}
	case json.Unmarshal(job.Result, &answer) == nil && answer.Status > 0:
		r.Answer = fmt.Sprint(answer.Status)
		if took := answer.took(); took > 0 {
			r.Took = took
		}
	case job.State == holdfast.Complete:
		r.Answer = "accepted"
	}
}
