package console

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
)

// A deliveryPage is what stands on the page of one delivery.
type deliveryPage struct {
	Row      deliveryRow
	Badge    badge
	Of       string // its subscription, when there still is one
	Message  string // the id that the receiver sees
	Events   []toldEvent
	Left     int // events that are not shown
	Fall     waterfall
	Attempts []attempt
	More     int // attempts that are not shown
	Receipt  longText
	Body     longText
	Story    []storyLine
	Untold   int
}

// A toldEvent is an event that a delivery tells of.
type toldEvent struct {
	Seq     int64
	Type    string
	At      time.Time
	About   string
	Link    string
	Code    string
	Message string
}

// mostEvents is how many events of a delivery are listed.
const mostEvents = 50

// delivery shows one delivery.
func (c *Console) delivery(q *ask) (page, error) {
	id, err := q.id()
	if err != nil {
		return page{}, err
	}
	one, err := q.desk.Delivery(q.ctx, id)
	if err != nil {
		return page{}, err
	}
	known, err := q.desk.Subscriptions(q.ctx)
	if err != nil && len(known) == 0 {
		return page{}, err
	}
	job := one.Job
	history := holdfast.History{Job: job, Attempts: one.Attempts}
	shown := deliveryPage{Row: deliveryOf(job, known), Badge: badgeOf(job), Receipt: asText(job.Result), Body: asText(job.Args), Fall: fall(history, one.Story, nil)}
	shown.Attempts, shown.More = attempts(history, one.Story)
	shown.Story, shown.Untold = storyOf(one.Story, q.prefs.clock())
	for _, sub := range known {
		if subscription.Owner(sub.ID) == job.Owner {
			shown.Of = sub.ID.String()
		}
	}
	var mail posted
	if json.Unmarshal(job.Args, &mail) == nil {
		shown.Message = mail.ID
		shown.Left = max(len(mail.Events)-mostEvents, 0) + mail.More
		for _, e := range mail.Events[:min(len(mail.Events), mostEvents)] {
			shown.Events = append(shown.Events, q.toldOf(e))
		}
	}
	return page{name: "delivery", title: "Delivery " + short(id), here: "deliveries", topics: []string{"jobs"}, data: shown}, nil
}

// toldOf puts an event into words, and leads to what it is about.
func (q *ask) toldOf(e holdfast.Event) toldEvent {
	t := toldEvent{Seq: e.Seq, Type: subscription.Type(e), At: e.At, About: e.Subject, Code: e.Code, Message: e.Message}
	if !e.Job.IsZero() {
		t.About, t.Link = "job "+short(e.Job), q.link("/jobs/"+e.Job.String())
	} else if id, ok := idAfter(e.Subject, "group/"); ok {
		t.About, t.Link = "group "+short(id), q.link("/groups/"+id.String())
	} else if id, ok := idAfter(e.Subject, "redrive/"); ok {
		t.About, t.Link = "redrive "+short(id), q.link("/redrives/"+id.String())
	}
	return t
}

// idAfter reads a subject that is a word and an id.
func idAfter(subject, word string) (holdfast.ID, bool) {
	if len(subject) <= len(word) || subject[:len(word)] != word {
		return holdfast.ID{}, false
	}
	id, err := holdfast.ParseID(subject[len(word):])
	return id, err == nil
}

// resendDelivery delivers once more.
func resendDelivery(q *ask) (done, error) {
	id, err := q.id()
	if err != nil {
		return done{}, err
	}
	as, err := q.desk.Resend(q.ctx, q.on(id))
	switch {
	case err != nil:
		return done{}, err
	case as == id:
		return done{text: "Sent round again: the same delivery is queued once more."}, nil
	}
	return done{text: "Queued as a new delivery with the same events, under the same id for the receiver.", to: "/deliveries/" + as.String()}, nil
}

func disableSubscription(q *ask) (done, error) {
	return q.onSubscription("Disabled: nobody is told until it is enabled. What happens meanwhile is kept for it.", q.desk.DisableSubscription)
}

func enableSubscription(q *ask) (done, error) {
	return q.onSubscription("Enabled: what it missed comes first.", q.desk.EnableSubscription)
}

// onSubscription decides on one subscription.
func (q *ask) onSubscription(text string, act func(context.Context, holdfast.ID, ops.By) error) (done, error) {
	id, err := q.id()
	if err != nil {
		return done{}, err
	}
	return done{text: text}, act(q.ctx, id, q.by())
}
