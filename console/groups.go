package console

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// mountGroups mounts the list of groups, the page of one, and what a person can say to it.
func (c *Console) mountGroups() {
	c.see("/groups", groupsScreen)
	c.see("/groups/{id}", groupScreen)
	c.do("/groups/{id}/retry", apikey.Operator, retryGroup)
	c.do("/groups/{id}/cancel", apikey.Operator, cancelGroup)
	c.do("/groups/{id}/seal", apikey.Operator, sealGroup)
}

const (
	// mostGroupsCounted is of how many groups under way the members are counted: each costs four questions.
	mostGroupsCounted = 12
	// mostGroupJobs is where counting the members of a group in the list stops. Its own page counts all of them.
	mostGroupJobs = 1000
)

// A groupList is the page of all groups.
type groupList struct {
	State, Name, Owner string
	Tabs               []groupTab
	Rows               []groupRow
	Narrowed           bool
	Pager              struct{ First, Next string }
}

// A groupTab narrows the list to a state.
type groupTab struct {
	Name, Link string
	Here       bool
}

// A groupRow is a group, and how far it is.
type groupRow struct {
	holdfast.Group
	Title string
	Sign  sign
	Says  string // how its members stand, in words
	Parts []part
	Next  string // the kinds of the jobs that follow
}

// groupsScreen lists groups, the newest first.
func groupsScreen(q *ask) (page, error) {
	shown := groupList{State: q.text("state"), Name: q.text("name"), Owner: q.text("owner")}
	groups, next, err := q.desk.Groups(q.ctx, holdfast.GroupFilter{State: holdfast.GroupState(shown.State), Name: shown.Name, Owner: shown.Owner, Limit: 50, Cursor: q.text("cursor")})
	if err != nil {
		return page{}, err
	}
	counted := 0
	for _, one := range groups {
		row := groupRowOf(one)
		if !one.State.Settled() {
			row.Says = ""
			if counted++; counted <= mostGroupsCounted {
				if err := q.groupUnderWay(&row); err != nil {
					return page{}, err
				}
			}
		}
		shown.Rows = append(shown.Rows, row)
	}
	shown.Narrowed = shown.State != "" || shown.Name != "" || shown.Owner != ""
	for _, one := range []string{"", "open", "processing", "ready", "partial", "failed", "cancelled", "expired"} {
		to, _ := link(q.link("/groups"), "state", one, "name", shown.Name, "owner", shown.Owner) // pairs
		shown.Tabs = append(shown.Tabs, groupTab{title(cmp.Or(one, "all")), to, shown.State == one})
	}
	here := []any{"state", shown.State, "name", shown.Name, "owner", shown.Owner}
	if q.text("cursor") != "" {
		shown.Pager.First, _ = link(q.link("/groups"), here...) // pairs
	}
	if next != "" {
		shown.Pager.Next, _ = link(q.link("/groups"), append(here, "cursor", next)...) // pairs
	}
	return page{name: "groups", title: "Groups", topics: []string{"groups"}, data: shown}, nil
}

// groupUnderWay counts the jobs of a group that has no outcome yet, as far as a list needs to know.
func (q *ask) groupUnderWay(row *groupRow) error {
	var found [4]int
	for n, f := range []holdfast.Filter{{State: holdfast.Complete}, {State: holdfast.Failed}, {State: holdfast.Queued}, {State: holdfast.Processing}} {
		f.Group, f.Look = row.ID, mostGroupJobs
		count, err := q.desk.Count(q.ctx, f)
		if err != nil {
			return err
		}
		found[n] = count
		if count >= mostGroupJobs {
			row.Says = "more than " + num(mostGroupJobs) + " jobs"
			return nil
		}
	}
	m := holdfast.Members{Complete: found[0], Failed: found[1], Queued: found[2], Processing: found[3]}
	m.Total = m.Live() + m.Complete + m.Failed
	row.Members, row.Parts, row.Says = m, groupParts(m), groupSays(m)
	return nil
}

func groupRowOf(g holdfast.Group) groupRow {
	row := groupRow{Group: g, Title: groupTitle(g), Sign: signOfGroup(g.State), Parts: groupParts(g.Members), Says: groupSays(g.Members)}
	var kinds []string
	for _, then := range g.Then {
		kinds = append(kinds, then.Draft.Kind)
	}
	row.Next = strings.Join(kinds, ", ")
	return row
}

// groupTitle is what a group is called.
func groupTitle(g holdfast.Group) string { return cmp.Or(g.Name, "Group "+short(g.ID)) }

func signOfGroup(s holdfast.GroupState) sign {
	shape := map[holdfast.GroupState]string{
		holdfast.GroupOpen: "queued", holdfast.GroupProcessing: "processing", holdfast.GroupReady: "complete", holdfast.GroupPartial: "partial",
		holdfast.GroupFailed: "failed", holdfast.GroupCancelled: "cancelled", holdfast.GroupExpired: "discarded",
	}[s]
	tone := map[holdfast.GroupState]string{holdfast.GroupOpen: "queued", holdfast.GroupReady: "complete", holdfast.GroupExpired: "failed"}[s]
	word := string(s)
	if s == holdfast.GroupPartial {
		word = "PARTIAL"
	}
	return sign{word, cmp.Or(tone, string(s)), cmp.Or(shape, "queued")}
}

// groupParts are the members by where they stand, the ended first.
func groupParts(m holdfast.Members) []part {
	return []part{
		{m.Complete, "good", num(m.Complete) + " complete"}, {m.Failed, "bad", num(m.Failed) + " failed"}, {m.Cancelled, "hold", num(m.Cancelled) + " cancelled"},
		{m.Processing, "accent", num(m.Processing) + " processing"}, {m.Queued + m.Waiting, "none", num(m.Queued+m.Waiting) + " queued"},
	}
}

// groupSays tells how members stand.
func groupSays(m holdfast.Members) string {
	if m.Total == 0 {
		return "no members"
	}
	text := fmt.Sprintf("%s of %s complete", num(m.Complete), num(m.Total))
	for _, one := range groupParts(m)[1:] {
		if one.Size > 0 {
			text += ", " + one.Words
		}
	}
	return text
}
