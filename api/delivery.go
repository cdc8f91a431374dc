package api

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// DeliveriesIn asks for a list of deliveries.
type DeliveriesIn struct {
	Subscription holdfast.ID    `query:"subscription" doc:"only of this subscription"`
	State        holdfast.State `query:"state" doc:"only in this state"`
	DeadLetters  bool           `query:"dead_letters" doc:"only failed ones that nobody discarded"`
	Code         string         `query:"code" doc:"only with this code of the last failure"`
	OlderThan    time.Duration  `query:"older_than" doc:"only made longer ago than this"`
	YoungerThan  time.Duration  `query:"younger_than" doc:"only made less long ago than this"`
	Limit        int            `query:"limit" doc:"how many, at most 200"`
	Cursor       string         `query:"cursor" doc:"go on after the page that gave this cursor"`
}

// Filter is what is asked for, as a store knows it.
func (d DeliveriesIn) Filter() holdfast.Filter {
	return holdfast.Filter{State: d.State, DeadLetters: d.DeadLetters, Code: d.Code, OlderThan: d.OlderThan, YoungerThan: d.YoungerThan, Limit: d.Limit, Cursor: d.Cursor}
}

// DeliveriesOut is a page of deliveries.
type DeliveriesOut struct {
	Deliveries []holdfast.Job `json:"deliveries" doc:"the jobs that deliver"`
	Paged
}

// ByDelivery names one delivery, in the path.
type ByDelivery struct {
	ID holdfast.ID `path:"id" doc:"the delivery"`
}

// ResendIn asks to deliver once more.
type ResendIn struct {
	ByDelivery
	Asked
	Body WordOn
}

// ResendOut names the job that delivers once more.
type ResendOut struct {
	ID holdfast.ID `json:"id" doc:"the delivery itself when it had failed, else a new one"`
}

// The routes of deliveries.
var (
	ListDeliveries = Route[DeliveriesIn, DeliveriesOut]{Name: "list-deliveries", Method: "GET", Path: "/deliveries", Scope: apikey.Viewer, Tag: "subscriptions", About: "Messages to receivers, newest first."}
	GetDelivery    = Route[ByDelivery, ops.Delivery]{Name: "get-delivery", Method: "GET", Path: "/deliveries/{id}", Scope: apikey.Viewer, Tag: "subscriptions", About: "One delivery, and every attempt at it."}
	Resend         = Route[ResendIn, ResendOut]{Name: "resend", Method: "POST", Path: "/deliveries/{id}/resend", Scope: apikey.Operator, Tag: "subscriptions", About: "Deliver once more what was delivered, or what could not be."}
)
