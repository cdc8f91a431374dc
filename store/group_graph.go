package store

import "github.com/holdfastdev/holdfast"

// A GroupGraph is the members of a group and what they wait for.
type GroupGraph struct {
	Members []Member `json:"members"`        // sorted by id, at most 1,000
	More    bool     `json:"more,omitempty"` // the group has further members, or further waits, that were not read
}

// A Member is a job as a member of its group.
type Member struct {
	Job     holdfast.ID          `json:"job"`
	Kind    string               `json:"kind"`
	Step    string               `json:"step,omitempty"`
	State   holdfast.State       `json:"state"`
	Waiting bool                 `json:"waiting,omitempty"` // while queued: it waits for other members
	Skipped bool                 `json:"skipped,omitempty"` // cancelled because it was not needed
	Cause   holdfast.ID          `json:"cause,omitzero"`    // the member because of which it never ran
	Code    string               `json:"code,omitempty"`    // why it failed
	When    []holdfast.Condition `json:"when,omitempty"`    // what it waits or waited for, each with its job and an outcome
}
