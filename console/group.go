package console

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A groupPage is the data of the page of a group.
type groupPage struct {
	Detail ops.GroupDetail
	groupRow
	Late    bool   // the counts are older than two seconds
	Banner  string // what its outcome means, if it is not simply ready
	Tone    string // colour of the banner
	Missing string // what to do about it
	Numbers []groupNumber
	Graph   graphPicture
	Inside  []groupRow
	Parent  groupRow // the group that it is a member of, if any
	Then    []followUp
	Retry   bool // a member failed, so it can be retried
	Seal    bool
	Cancel  bool
	All     string // URL of its members
	Dead    string // URL of its dead letters
}

// A groupNumber is the number of members in a state, with a link.
type groupNumber struct {
	Title, Link string
	Size        int
	Tone        string
}

// A followUp is a job that is enqueued when a group is settled.
type followUp struct {
	Kind, Queue string
	On          string // the outcome that enqueues it, in words
	Came        bool   // the group has that outcome
	Refused     bool   // the job could not be enqueued
}

// groupScreen renders the page of a group.
func groupScreen(q *request) (page, error) {
	id, err := q.id()
	if err != nil {
		return page{}, err
	}
	found, err := q.c.groupCache.group(q, id)
	if err != nil {
		return page{}, err
	}
	g := found.Group
	of := "group:" + id.String()
	shown := groupPage{Detail: found, groupRow: groupRowOf(g), All: q.jobs(of), Dead: q.jobs(of, "is:dead")}
	shown.Banner, shown.Missing = groupBanner(g)
	shown.Tone = map[holdfast.GroupState]string{holdfast.GroupFailed: "bad", holdfast.GroupExpired: "bad", holdfast.GroupReady: "note", holdfast.GroupCancelled: "note"}[g.State]
	shown.Retry, shown.Seal, shown.Cancel = g.Members.Failed > 0, g.SealedAt.IsZero() && !g.State.Settled(), !g.State.Settled()
	shown.Numbers = []groupNumber{
		{"Members", shown.All, g.Members.Total, ""}, {"Complete", q.jobs(of, "state:complete"), g.Members.Complete, ""}, {"Failed", shown.Dead, g.Members.Failed, "bad"},
		{"Cancelled", q.jobs(of, "state:cancelled"), g.Members.Cancelled, ""}, {"Skipped", q.jobs(of, "state:cancelled"), g.Members.Skipped, ""}, {"Processing", q.jobs(of, "state:processing"), g.Members.Processing, ""},
		{"Queued", q.jobs(of, "state:queued"), g.Members.Queued, ""}, {"Waiting for others", q.jobs(of, "state:queued"), g.Members.Waiting, ""},
	}
	shown.Late = q.now.Sub(g.AsOf) > 2*time.Second
	for _, one := range found.Inside {
		shown.Inside = append(shown.Inside, groupRowOf(one))
	}
	refused := slices.ContainsFunc(found.Story, func(e store.Event) bool { return e.Name == "continuation refused" && e.Generation == g.Generation })
	for _, then := range g.Then {
		follows := followUpOf(g, then)
		follows.Refused = follows.Came && refused
		shown.Then = append(shown.Then, follows)
	}
	graph, err := q.operator.GroupGraph(q.ctx, id)
	if err != nil {
		return page{}, err
	}
	shown.Graph = drawGraph(q, id, graph)
	if err := q.groupParent(&shown, g.Parent); err != nil {
		return page{}, err
	}
	return page{name: "group", here: "groups", title: shown.Title, topics: []string{"groups", "jobs"}, data: shown}, nil
}

// groupParent sets the parent group. A deleted parent is shown by its id.
func (q *request) groupParent(shown *groupPage, id holdfast.ID) error {
	if id.IsZero() {
		return nil
	}
	parent, err := q.c.groupCache.group(q, id)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
		parent.Group, err = holdfast.Group{ID: id}, nil
	}
	shown.Parent = groupRowOf(parent.Group)
	return err
}

// followUpOf returns a follow-up job of a group.
func followUpOf(g holdfast.Group, then holdfast.Then) followUp {
	row := followUp{Kind: then.Draft.Kind, Queue: then.Draft.Queue, On: "when it is " + string(then.On), Came: g.State == then.On}
	switch then.On {
	case "":
		row.On, row.Came = "when it is ready, partial or failed", g.State == holdfast.GroupReady || g.State == holdfast.GroupPartial || g.State == holdfast.GroupFailed
	case holdfast.GroupFailed, holdfast.GroupExpired:
		row.On = "when it has " + string(then.On)
	}
	return row
}

// groupBanner returns what an outcome means and what to do about it.
func groupBanner(g holdfast.Group) (is, missing string) {
	m := g.Members
	lost := m.Total - m.Complete - m.Skipped
	var how []string
	for _, one := range groupParts(m)[1:3] {
		if one.Size > 0 {
			how = append(how, one.Words)
		}
	}
	summary := fmt.Sprintf("%s of %s complete", num(m.Complete), num(m.Total))
	if len(how) > 0 {
		summary += ", " + strings.Join(how, ", ")
	}
	switch g.State {
	case holdfast.GroupPartial:
		return summary + ".", fmt.Sprintf("%s did not complete. Fix the cause shown below, then retry the failed jobs.", plural(lost, "member"))
	case holdfast.GroupReady:
		if lost > 0 {
			return summary + ".", fmt.Sprintf("Ready because its quorum of %s was reached. %s did not complete.", num(g.Quorum), plural(lost, "member"))
		}
	case holdfast.GroupFailed:
		return "No member is complete.", "Fix the cause shown below, then retry the failed jobs."
	case holdfast.GroupCancelled:
		return "A person cancelled it.", summary + ". The story has the name and the reason."
	case holdfast.GroupExpired:
		return "It expired before all members had ended.", summary + "."
	}
	return "", ""
}

// onGroup returns an intervention of the visitor on the group of the request.
func (q *request) onGroup() (i store.Intervention, err error) {
	id, err := q.id()
	i = q.on(holdfast.ID{})
	i.Group = id
	return i, err
}

func retryGroup(q *request) (actionResult, error) {
	i, err := q.onGroup()
	if err != nil {
		return actionResult{}, err
	}
	jobs, err := q.operator.RetryGroup(q.ctx, i)
	return actionResult{text: fmt.Sprintf("%s retried. The group is processing again.", title(plural(jobs, "job")))}, err
}

func cancelGroup(q *request) (actionResult, error) {
	i, err := q.onGroup()
	if err != nil {
		return actionResult{}, err
	}
	if i.Reason == "" {
		return actionResult{}, invalid("nothing was cancelled: give a reason")
	}
	return actionResult{text: "The group is being cancelled. Queued jobs end soon; processing jobs end when their workers stop them."}, q.operator.CancelGroup(q.ctx, i)
}

func sealGroup(q *request) (actionResult, error) {
	i, err := q.onGroup()
	if err != nil {
		return actionResult{}, err
	}
	return actionResult{text: "Group sealed. It accepts no more members and is settled when they have ended."}, q.operator.SealGroup(q.ctx, i)
}
