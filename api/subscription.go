package api

import (
	"net/http"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
)

// BySubscription names one subscription, in the path.
type BySubscription struct {
	ID holdfast.ID `path:"id" doc:"the subscription"`
}

// OnSubscription is a word on one subscription.
type OnSubscription struct {
	BySubscription
	Said
}

// SubscriptionsOut are all subscriptions.
type SubscriptionsOut struct {
	Subscriptions []ops.Subscribed `json:"subscriptions"`
	Partial
}

// SubscribeIn makes a subscription.
type SubscribeIn struct {
	Asked
	Body SubscriptionBody
}

// ResubscribeIn makes a subscription under an id, or replaces the one of that id.
type ResubscribeIn struct {
	BySubscription
	Asked
	Body SubscriptionBody
}

// SubscriptionBody says who wants to be told what.
type SubscriptionBody struct {
	Word
	Name    string            `json:"name,omitempty"`
	Sink    string            `json:"sink" doc:"how it is told: webhook, mail, stream, or what else the server was given" example:"webhook"`
	Target  string            `json:"target" doc:"where: an address the sink understands. It is shown to people: no secrets" example:"https://example.com/hook"`
	Events  []string          `json:"events,omitempty" doc:"types such as job.failed or group.partial; a * may stand at the end" example:"[\"job.failed\"]"`
	Kinds   []string          `json:"kinds,omitempty" doc:"only about jobs of these kinds"`
	Owners  []string          `json:"owners,omitempty" doc:"only about what is these owners'"`
	Codes   []string          `json:"codes,omitempty" doc:"only with these codes of failures"`
	Groups  []holdfast.ID     `json:"groups,omitempty" doc:"only these groups and their members"`
	Secrets []string          `json:"secrets,omitempty" doc:"the names of its secrets, newest first; never the secrets"`
	Options map[string]string `json:"options,omitempty" doc:"of the sink"`
}

// Subscription is what is asked for, under an id.
func (b SubscriptionBody) Subscription(id holdfast.ID) subscription.Subscription {
	return subscription.Subscription{
		ID: id, Name: b.Name, Sink: b.Sink, Target: b.Target, Events: b.Events, Kinds: b.Kinds, Owners: b.Owners, Codes: b.Codes, Groups: b.Groups,
		Secrets: b.Secrets, Options: b.Options,
	}
}

func subscriptionBody(s subscription.Subscription, w Word) SubscriptionBody {
	return SubscriptionBody{w, s.Name, s.Sink, s.Target, s.Events, s.Kinds, s.Owners, s.Codes, s.Groups, s.Secrets, s.Options}
}

// RewindIn moves a subscription in the feed.
type RewindIn struct {
	BySubscription
	Asked
	Body RewindBody
}

// RewindBody says where to.
type RewindBody struct {
	Word
	After int64 `json:"after" doc:"be told once more of all that came after this number; -1: only of what happens from now on"`
}

// The routes of subscriptions.
var (
	ListSubscriptions   = Route[struct{}, SubscriptionsOut]{Name: "list-subscriptions", Method: "GET", Path: "/subscriptions", Scope: apikey.Viewer, Tag: "subscriptions", About: "Who is told what, the newest first."}
	GetSubscription     = Route[BySubscription, ops.Subscribed]{Name: "get-subscription", Method: "GET", Path: "/subscriptions/{id}", Scope: apikey.Viewer, Tag: "subscriptions", About: "One subscription, and how far behind it is."}
	Subscribe           = Route[SubscribeIn, subscription.Subscription]{Name: "subscribe", Method: "POST", Path: "/subscriptions", Scope: apikey.Operator, Tag: "subscriptions", About: "Have somebody told what happens from now on.", Status: http.StatusCreated}
	Resubscribe         = Route[ResubscribeIn, subscription.Subscription]{Name: "resubscribe", Method: "PUT", Path: "/subscriptions/{id}", Scope: apikey.Operator, Tag: "subscriptions", About: "Replace a subscription, which goes on where it is; or make one under this id."}
	Unsubscribe         = Route[DropSubscription, Nothing]{Name: "unsubscribe", Method: "DELETE", Path: "/subscriptions/{id}", Scope: apikey.Operator, Tag: "subscriptions", About: "Forget a subscription."}
	EnableSubscription  = Route[OnSubscription, Nothing]{Name: "enable-subscription", Method: "POST", Path: "/subscriptions/{id}/enable", Scope: apikey.Operator, Tag: "subscriptions", About: "Let a subscription be told again, from where it was."}
	DisableSubscription = Route[OnSubscription, Nothing]{Name: "disable-subscription", Method: "POST", Path: "/subscriptions/{id}/disable", Scope: apikey.Operator, Tag: "subscriptions", About: "Tell a subscription nothing until it is enabled. A reason is required."}
	RewindSubscription  = Route[RewindIn, Nothing]{Name: "rewind-subscription", Method: "POST", Path: "/subscriptions/{id}/rewind", Scope: apikey.Operator, Tag: "subscriptions", About: "Have a subscription told once more what came after a number."}
)

// DropSubscription forgets a subscription.
type DropSubscription struct {
	BySubscription
	Asked
	Dropped
}
