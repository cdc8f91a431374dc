package api

import (
	"github.com/holdfastdev/holdfast/apikey"
)

// EventsIn is the request to follow events.
type EventsIn struct {
	After string   `query:"after" doc:"Start after this event number; with the next event when left out."`
	Last  string   `header:"Last-Event-ID" doc:"Continue after this event number. Browsers send it when they reconnect."`
	Event []string `query:"event" doc:"Only events of these types, such as job.failed or group.*."`
	Kind  []string `query:"kind" doc:"Only events of jobs of these kinds."`
	Owner []string `query:"owner" doc:"Only events of these owners."`
	Group []string `query:"group" doc:"Only events of these groups and their members."`
	Code  []string `query:"code" doc:"Only events with these failure codes."`

	Bound string // owner that the caller's key is bound to; set by the server
}

// Narrow restricts the events to an owner.
func (i *EventsIn) Narrow(owner string) error {
	i.Bound = owner
	return nil
}

// Events is the route of the event stream.
var Events = Route[EventsIn, string]{Name: "follow-events", Method: "GET", Path: "/events", Scope: apikey.Viewer, Tag: "events", Long: true, About: "Follow events. Server-sent events, sent as they happen. A client that reconnects with Last-Event-ID misses nothing that retention still keeps."}
