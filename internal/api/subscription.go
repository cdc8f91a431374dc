package api

import (
	"net/http"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
)

// BySubscription has the id of a subscription in the path.
type BySubscription struct {
	ID holdfast.ID `path:"id" doc:"Id of the subscription."`
}

// OnSubscription is a request on one subscription, with actor and reason.
type OnSubscription struct {
	BySubscription
	Said
}

// SubscriptionsOut lists subscriptions.
type SubscriptionsOut struct {
	Subscriptions []ops.SubscriptionStatus `json:"subscriptions" doc:"Subscriptions, newest first."`
	Partial
}

// SubscribeIn is the request to create a subscription.
type SubscribeIn struct {
	Asked
	Body SubscriptionBody
}

// ResubscribeIn is the request to create or replace the subscription with an id.
type ResubscribeIn struct {
	BySubscription
	Asked
	Body SubscriptionBody
}

// SubscriptionBody is a subscription: which events are delivered, how and where.
type SubscriptionBody struct {
	Word
	Name    string            `json:"name,omitempty" doc:"Name for people."`
	Sink    string            `json:"sink" doc:"How events are delivered: webhook, mail, stream, or another sink that the server has." example:"webhook"`
	Target  string            `json:"target" doc:"Where events are delivered: an address that the sink understands. It is shown to people and must not contain a secret." example:"https://example.com/hook"`
	Events  []string          `json:"events,omitempty" doc:"Event types, such as job.failed or group.partial. A * at the end matches any rest." example:"[\"job.failed\"]"`
	Kinds   []string          `json:"kinds,omitempty" doc:"Only events of jobs of these kinds."`
	Owners  []string          `json:"owners,omitempty" doc:"Only events of these owners."`
	Codes   []string          `json:"codes,omitempty" doc:"Only events with these failure codes."`
	Groups  []holdfast.ID     `json:"groups,omitempty" doc:"Only events of these groups and their members."`
	Secrets []string          `json:"secrets,omitempty" doc:"Names of the signing secrets, newest first; never the secrets themselves."`
	Options map[string]string `json:"options,omitempty" doc:"Options of the sink."`
}

// Subscription returns the subscription with this id.
func (b SubscriptionBody) Subscription(id holdfast.ID) subscription.Subscription {
	return subscription.Subscription{
		ID: id, Name: b.Name, Sink: b.Sink, Target: b.Target, Events: b.Events, Kinds: b.Kinds, Owners: b.Owners, Codes: b.Codes, Groups: b.Groups,
		Secrets: b.Secrets, Options: b.Options,
	}
}

// SubscriptionBodyOf returns a subscription as a request has it.
func SubscriptionBodyOf(s subscription.Subscription, w Word) SubscriptionBody {
	return SubscriptionBody{w, s.Name, s.Sink, s.Target, s.Events, s.Kinds, s.Owners, s.Codes, s.Groups, s.Secrets, s.Options}
}

// RewindIn is the request to move the position of a subscription.
type RewindIn struct {
	BySubscription
	Asked
	Body RewindBody
}

// RewindBody is the new position of a subscription.
type RewindBody struct {
	Word
	After int64 `json:"after" doc:"Deliver again all events after this number; -1: only events from now on."`
}

// The routes of subscriptions.
var (
	ListSubscriptions   = Route[struct{}, SubscriptionsOut]{Name: "list-subscriptions", Method: "GET", Path: "/subscriptions", Scope: apikey.Viewer, Tag: "subscriptions", About: "List subscriptions. Newest first."}
	GetSubscription     = Route[BySubscription, ops.SubscriptionStatus]{Name: "get-subscription", Method: "GET", Path: "/subscriptions/{id}", Scope: apikey.Viewer, Tag: "subscriptions", About: "Get a subscription. Includes how far it is behind the feed. Errors: not_found (no such subscription)."}
	Subscribe           = Route[SubscribeIn, subscription.Subscription]{Name: "subscribe", Method: "POST", Path: "/subscriptions", Scope: apikey.Operator, Tag: "subscriptions", About: "Create a subscription. Events from now on are delivered to its target. Errors: invalid (the detail names every mistake).", Status: http.StatusCreated}
	Resubscribe         = Route[ResubscribeIn, subscription.Subscription]{Name: "resubscribe", Method: "PUT", Path: "/subscriptions/{id}", Scope: apikey.Operator, Tag: "subscriptions", About: "Create or replace a subscription. One that is replaced continues at its position in the feed. Errors: invalid (the detail names every mistake)."}
	Unsubscribe         = Route[DropSubscription, Nothing]{Name: "unsubscribe", Method: "DELETE", Path: "/subscriptions/{id}", Scope: apikey.Operator, Tag: "subscriptions", About: "Delete a subscription. Errors: not_found (no such subscription)."}
	EnableSubscription  = Route[OnSubscription, Nothing]{Name: "enable-subscription", Method: "POST", Path: "/subscriptions/{id}/enable", Scope: apikey.Operator, Tag: "subscriptions", About: "Enable a subscription. Deliveries continue at the position where it was disabled. Errors: not_found (no such subscription), conflict (it is not disabled)."}
	DisableSubscription = Route[OnSubscription, Nothing]{Name: "disable-subscription", Method: "POST", Path: "/subscriptions/{id}/disable", Scope: apikey.Operator, Tag: "subscriptions", About: "Disable a subscription. Nothing is delivered until it is enabled again; a reason is required. Errors: not_found (no such subscription), conflict (it is already disabled)."}
	RewindSubscription  = Route[RewindIn, Nothing]{Name: "rewind-subscription", Method: "POST", Path: "/subscriptions/{id}/rewind", Scope: apikey.Operator, Tag: "subscriptions", About: "Rewind a subscription. Delivers again all events after a number. Errors: not_found (no such subscription), invalid (retention deleted those events, or the feed ends before the number)."}
)

// DropSubscription is the request to delete a subscription.
type DropSubscription struct {
	BySubscription
	Asked
	Dropped
}
