package api

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// ByGroup names one group, in the path.
type ByGroup struct {
	ID holdfast.ID `path:"id" doc:"the group"`
}

// GroupID makes it the affair of the group's owner.
func (b ByGroup) GroupID() holdfast.ID { return b.ID }

// GroupsIn asks for a list of groups.
type GroupsIn struct {
	State  holdfast.GroupState `query:"state" doc:"only in this state"`
	Owner  string              `query:"owner" doc:"only this owner's"`
	Name   string              `query:"name" doc:"only of this name"`
	Parent holdfast.ID         `query:"parent" doc:"only those inside this group"`
	Limit  int                 `query:"limit" doc:"how many, at most 200"`
	Cursor string              `query:"cursor" doc:"go on after the page that gave this cursor"`
}

// Narrow keeps the list to an owner.
func (g *GroupsIn) Narrow(owner string) error { return narrow(&g.Owner, owner) }

// GroupsOut is a page of groups.
type GroupsOut struct {
	Groups []holdfast.Group `json:"groups" doc:"without counting their members"`
	Paged
}

// OnGroup is a word on one group.
type OnGroup struct {
	ByGroup
	Asked
	Body WordOn
}

// RetryGroupOut answers the manual retry of a group.
type RetryGroupOut struct {
	Jobs int `json:"jobs" doc:"so many members were sent round again"`
}

// The routes of groups: looking at them, and intervening.
var (
	ListGroups  = Route[GroupsIn, GroupsOut]{Name: "list-groups", Method: "GET", Path: "/groups", Scope: apikey.Viewer, Tag: "groups", About: "Groups, newest first."}
	GetGroup    = Route[ByGroup, ops.Gathering]{Name: "get-group", Method: "GET", Path: "/groups/{id}", Scope: apikey.Viewer, Tag: "groups", About: "All about one group: how its members stand, and which of them need somebody."}
	RetryGroup  = Route[OnGroup, RetryGroupOut]{Name: "retry-group", Method: "POST", Path: "/groups/{id}/retry", Scope: apikey.Operator, Tag: "groups", About: "Send round what failed in a group, and all that was cancelled because of it."}
	CancelGroup = Route[OnGroup, Nothing]{Name: "cancel-group", Method: "POST", Path: "/groups/{id}/cancel", Scope: apikey.Operator, Tag: "groups", About: "Seal a group and have its members cancelled."}
)
