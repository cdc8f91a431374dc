package console

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A deliveryPage is the data of the page of a delivery.
type deliveryPage struct {
	Row       deliveryRow
	Badge     badge
	Of        string // id of its subscription, if it still exists
	Message   string // the message id that the receiver sees
	Events    []deliveredEvent
	Left      int // events not shown
	Waterfall waterfall
	Attempts  []attempt
	More      int // attempts not shown
	Receipt   longText
	Body      longText
	Story     []storyLine
	MoreLines int
}

// A deliveredEvent is an event of a delivery.
type deliveredEvent struct {
	Seq     int64
	Type    string
	At      time.Time
	About   string
	Link    string
	Code    string
	Message string
}

// maxEvents is the number of events listed.
const maxEvents = 50

// delivery renders the page of a delivery.
func (c *Console) delivery(q *request) (page, error) {
	id, err := q.id()
	if err != nil {
		return page{}, err
	}
	one, err := q.operator.Delivery(q.ctx, id)
	if err != nil {
		return page{}, err
	}
	known, err := q.operator.Subscriptions(q.ctx)
	if err != nil && len(known) == 0 {
		return page{}, err
	}
	job := one.Job
	history := store.History{Job: job, Attempts: one.Attempts}
	shown := deliveryPage{Row: deliveryOf(job, known), Badge: badgeOf(job), Receipt: prettyText(job.Result), Body: prettyText(job.Args), Waterfall: buildWaterfall(history, one.Story, nil)}
	shown.Attempts, shown.More = attempts(history, one.Story)
	shown.Story, shown.MoreLines = storyOf(one.Story, q.prefs.clock())
	for _, sub := range known {
		if subscription.Owner(sub.ID) == job.Owner {
			shown.Of = sub.ID.String()
		}
	}
	var body deliveryBody
	if json.Unmarshal(job.Args, &body) == nil {
		shown.Message = body.ID
		shown.Left = max(len(body.Events)-maxEvents, 0) + body.More
		for _, e := range body.Events[:min(len(body.Events), maxEvents)] {
			shown.Events = append(shown.Events, q.deliveredEventOf(e))
		}
	}
	return page{name: "delivery", title: "Delivery " + short(id), here: "deliveries", topics: []string{"jobs"}, data: shown}, nil
}

// deliveredEventOf returns an event with a link to its subject.
func (q *request) deliveredEventOf(e store.Event) deliveredEvent {
	t := deliveredEvent{Seq: e.Seq, Type: subscription.Type(e), At: e.At, About: e.Subject, Code: e.Code, Message: e.Message}
	if !e.Job.IsZero() {
		t.About, t.Link = "job "+short(e.Job), q.link("/jobs/"+e.Job.String())
	} else if id, ok := idAfter(e.Subject, "group/"); ok {
		t.About, t.Link = "group "+short(id), q.link("/groups/"+id.String())
	} else if id, ok := idAfter(e.Subject, "redrive/"); ok {
		t.About, t.Link = "redrive "+short(id), q.link("/redrives/"+id.String())
	}
	return t
}

// idAfter parses a subject that is a prefix and an id.
func idAfter(subject, word string) (holdfast.ID, bool) {
	if len(subject) <= len(word) || subject[:len(word)] != word {
		return holdfast.ID{}, false
	}
	id, err := holdfast.ParseID(subject[len(word):])
	return id, err == nil
}

// resendDelivery sends a delivery again.
func resendDelivery(q *request) (actionResult, error) {
	id, err := q.id()
	if err != nil {
		return actionResult{}, err
	}
	as, err := q.operator.Resend(q.ctx, q.on(id))
	switch {
	case err != nil:
		return actionResult{}, err
	case as == id:
		return actionResult{text: "Resent. The delivery is queued again."}, nil
	}
	return actionResult{text: "Queued as a new delivery with the same events and the same message id.", to: "/deliveries/" + as.String()}, nil
}

func disableSubscription(q *request) (actionResult, error) {
	return q.onSubscription("Subscription disabled. Events are kept for it until it is enabled.", q.operator.DisableSubscription)
}

func enableSubscription(q *request) (actionResult, error) {
	return q.onSubscription("Subscription enabled. Missed events are delivered first.", q.operator.EnableSubscription)
}

// onSubscription applies an action to the subscription of the request.
func (q *request) onSubscription(text string, act func(context.Context, holdfast.ID, ops.Actor) error) (actionResult, error) {
	id, err := q.id()
	if err != nil {
		return actionResult{}, err
	}
	return actionResult{text: text}, act(q.ctx, id, q.by())
}
