package api

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// DeliveriesIn is the request for a list of deliveries.
type DeliveriesIn struct {
	Subscription holdfast.ID    `query:"subscription" doc:"Only deliveries of this subscription."`
	State        holdfast.State `query:"state" doc:"Only deliveries in this state."`
	DeadLetters  bool           `query:"dead_letters" doc:"Only failed deliveries that were not discarded."`
	Code         string         `query:"code" doc:"Only deliveries whose last failure has this code."`
	OlderThan    time.Duration  `query:"older_than" doc:"Only deliveries older than this."`
	YoungerThan  time.Duration  `query:"younger_than" doc:"Only deliveries newer than this."`
	Limit        int            `query:"limit" doc:"Page size, at most 200."`
	Cursor       string         `query:"cursor" doc:"Cursor of the previous page; leave it out for the first."`
}

// Filter returns the request as a filter for the store.
func (d DeliveriesIn) Filter() store.Filter {
	return store.Filter{State: d.State, DeadLetters: d.DeadLetters, Code: d.Code, OlderThan: d.OlderThan, NewerThan: d.YoungerThan, Limit: d.Limit, Cursor: d.Cursor}
}

// DeliveriesOut is one page of deliveries.
type DeliveriesOut struct {
	Deliveries []holdfast.Job `json:"deliveries" doc:"Deliveries, newest first. Each is a job."`
	Paged
}

// ByDelivery has the id of a delivery in the path.
type ByDelivery struct {
	ID holdfast.ID `path:"id" doc:"Id of the delivery."`
}

// ResendIn is the request to send a delivery again.
type ResendIn struct {
	ByDelivery
	Asked
	Body WordOn
}

// ResendOut has the id of the job that sends it again.
type ResendOut struct {
	ID holdfast.ID `json:"id" doc:"Id of the delivery itself if it had failed, otherwise of a new delivery."`
}

// The routes of deliveries.
var (
	ListDeliveries = Route[DeliveriesIn, DeliveriesOut]{Name: "list-deliveries", Method: "GET", Path: "/deliveries", Scope: apikey.Viewer, Tag: "subscriptions", About: "List deliveries. Notifications to subscribers, newest first."}
	GetDelivery    = Route[ByDelivery, ops.Delivery]{Name: "get-delivery", Method: "GET", Path: "/deliveries/{id}", Scope: apikey.Viewer, Tag: "subscriptions", About: "Get a delivery. Includes every attempt. Errors: not_found (no job has this id, or it is not a delivery), purged (retention deleted it)."}
	Resend         = Route[ResendIn, ResendOut]{Name: "resend", Method: "POST", Path: "/deliveries/{id}/resend", Scope: apikey.Operator, Tag: "subscriptions", About: "Send a delivery again. A failed delivery is retried; a complete one is sent as a new delivery with the same webhook-id. Errors: not_found (no such delivery), conflict (it has not ended yet)."}
)
