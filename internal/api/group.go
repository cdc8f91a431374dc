package api

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// ByGroup has the id of a group in the path.
type ByGroup struct {
	ID holdfast.ID `path:"id" doc:"Id of the group."`
}

// GroupID returns the group that the request is about.
func (b ByGroup) GroupID() holdfast.ID { return b.ID }

// GroupsIn is the request for a list of groups.
type GroupsIn struct {
	State  holdfast.GroupState `query:"state" doc:"Only groups in this state."`
	Owner  string              `query:"owner" doc:"Only groups of this owner."`
	Name   string              `query:"name" doc:"Only groups with this name."`
	Parent holdfast.ID         `query:"parent" doc:"Only groups that are members of this group."`
	Limit  int                 `query:"limit" doc:"Page size, at most 200."`
	Cursor string              `query:"cursor" doc:"Cursor of the previous page; leave it out for the first."`
}

// Narrow restricts the list to an owner.
func (g *GroupsIn) Narrow(owner string) error { return narrow(&g.Owner, owner) }

// GroupsOut is one page of groups.
type GroupsOut struct {
	Groups []holdfast.Group `json:"groups" doc:"Groups, newest first, without the counts of their members."`
	Paged
}

// OnGroup is a request on one group, with actor and reason.
type OnGroup struct {
	ByGroup
	Asked
	Body WordOn
}

// RetryGroupIn is a request to retry a group.
type RetryGroupIn struct {
	ByGroup
	Asked
	Body RetryGroupBody
}

// RetryGroupBody has the options of a retry of a group.
type RetryGroupBody struct {
	WordOn
	Compensated bool `json:"compensated,omitempty" doc:"Also retry members whose compensation is complete: a member that ran because they failed or were cancelled."`
}

// RetryGroupOut is the answer to the manual retry of a group.
type RetryGroupOut struct {
	Jobs int `json:"jobs" doc:"Number of members that were queued again."`
}

// The routes that read groups and act on them.
var (
	ListGroups  = Route[GroupsIn, GroupsOut]{Name: "list-groups", Method: "GET", Path: "/groups", Scope: apikey.Viewer, Tag: "groups", About: "List groups. Newest first."}
	GetGroup    = Route[ByGroup, ops.GroupDetail]{Name: "get-group", Method: "GET", Path: "/groups/{id}", Scope: apikey.Viewer, Tag: "groups", About: "Get a group. Includes the counts of its members by state, and those that need attention. Errors: not_found (no such group)."}
	GetGraph    = Route[ByGroup, ops.Graph]{Name: "get-group-graph", Method: "GET", Path: "/groups/{id}/graph", Scope: apikey.Viewer, Tag: "groups", About: "Get the graph of a group. Its members and what they wait for; equal members are one node. It reads the first 1000 members. Errors: not_found (no such group)."}
	RetryGroup  = Route[RetryGroupIn, RetryGroupOut]{Name: "retry-group", Method: "POST", Path: "/groups/{id}/retry", Scope: apikey.Operator, Tag: "groups", About: "Retry a group. Queues its failed members again, and the members that were cancelled because of them. Errors: not_found (no such group), conflict (no member can be retried, or the compensation of one is complete and compensated is not set)."}
	CancelGroup = Route[OnGroup, Nothing]{Name: "cancel-group", Method: "POST", Path: "/groups/{id}/cancel", Scope: apikey.Operator, Tag: "groups", About: "Cancel a group. Seals it and cancels its members. Errors: not_found (no such group), conflict (the group has already ended)."}
)
