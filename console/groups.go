package console

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

// mountGroups mounts the list of groups, the page of a group and its actions.
func (c *Console) mountGroups() {
	c.handlePage("/groups", groupsScreen)
	c.handlePage("/groups/{id}", groupScreen)
	c.handleAction("/groups/{id}/retry", apikey.Operator, retryGroup)
	c.handleAction("/groups/{id}/cancel", apikey.Operator, cancelGroup)
	c.handleAction("/groups/{id}/seal", apikey.Operator, sealGroup)
}

const (
	// maxGroupsCounted is the number of unsettled groups in the list whose members are counted. Each costs four queries.
	maxGroupsCounted = 12
	// maxGroupJobs is where counting the members of a group in the list stops. The page of the group counts all of them.
	maxGroupJobs = 1000
)

// A groupList is the data of the groups page.
type groupList struct {
	State, Name, Owner string
	Tabs               []groupTab
	Rows               []groupRow
	Narrowed           bool
	Pager              struct{ First, Next string }
}

// A groupTab filters the list by a state.
type groupTab struct {
	Name, Link string
	Here       bool
}

// A groupRow is a group with its progress.
type groupRow struct {
	holdfast.Group
	Title      string
	StateBadge stateBadge
	Summary    string // the states of its members, in words
	Parts      []part
	Next       string // kinds of the follow-up jobs
}

// groupsScreen renders the list of groups, the newest first.
func groupsScreen(q *request) (page, error) {
	shown := groupList{State: q.text("state"), Name: q.text("name"), Owner: q.text("owner")}
	groups, next, err := q.operator.Groups(q.ctx, store.GroupFilter{State: holdfast.GroupState(shown.State), Name: shown.Name, Owner: shown.Owner, Limit: 50, Cursor: q.text("cursor")})
	if err != nil {
		return page{}, err
	}
	counted := 0
	for _, one := range groups {
		row := groupRowOf(one)
		if !one.State.Settled() {
			row.Summary = ""
			if counted++; counted <= maxGroupsCounted {
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

// groupUnderWay counts the jobs of a group that is not settled, up to maxGroupJobs.
func (q *request) groupUnderWay(row *groupRow) error {
	var found [4]int
	for n, f := range []store.Filter{{State: holdfast.Complete}, {State: holdfast.Failed}, {State: holdfast.Queued}, {State: holdfast.Processing}} {
		f.Group, f.MaxScan = row.ID, maxGroupJobs
		count, err := q.operator.Count(q.ctx, f)
		if err != nil {
			return err
		}
		found[n] = count
		if count >= maxGroupJobs {
			row.Summary = "more than " + num(maxGroupJobs) + " jobs"
			return nil
		}
	}
	m := holdfast.Members{Complete: found[0], Failed: found[1], Queued: found[2], Processing: found[3]}
	m.Total = m.Live() + m.Complete + m.Failed
	row.Members, row.Parts, row.Summary = m, groupParts(m), memberSummary(m)
	return nil
}

func groupRowOf(g holdfast.Group) groupRow {
	row := groupRow{Group: g, Title: groupTitle(g), StateBadge: groupBadge(g.State), Parts: groupParts(g.Members), Summary: memberSummary(g.Members)}
	var kinds []string
	for _, then := range g.Then {
		kinds = append(kinds, then.Draft.Kind)
	}
	row.Next = strings.Join(kinds, ", ")
	return row
}

// groupTitle returns the name of a group, or its short id.
func groupTitle(g holdfast.Group) string { return cmp.Or(g.Name, "Group "+short(g.ID)) }

func groupBadge(s holdfast.GroupState) stateBadge {
	shape := map[holdfast.GroupState]string{
		holdfast.GroupOpen: "queued", holdfast.GroupProcessing: "processing", holdfast.GroupReady: "complete", holdfast.GroupPartial: "partial",
		holdfast.GroupFailed: "failed", holdfast.GroupCancelled: "cancelled", holdfast.GroupExpired: "discarded",
	}[s]
	tone := map[holdfast.GroupState]string{holdfast.GroupOpen: "queued", holdfast.GroupReady: "complete", holdfast.GroupExpired: "failed"}[s]
	word := string(s)
	if s == holdfast.GroupPartial {
		word = "PARTIAL"
	}
	return stateBadge{word, cmp.Or(tone, string(s)), cmp.Or(shape, "queued")}
}

// groupParts returns the members by state, ended ones first.
func groupParts(m holdfast.Members) []part {
	return []part{
		{m.Complete, "good", num(m.Complete) + " complete"}, {m.Failed, "bad", num(m.Failed) + " failed"}, {m.Cancelled, "hold", num(m.Cancelled) + " cancelled"},
		{m.Skipped, "none", num(m.Skipped) + " skipped"}, {m.Processing, "accent", num(m.Processing) + " processing"}, {m.Queued + m.Waiting, "none", num(m.Queued+m.Waiting) + " queued"},
	}
}

// memberSummary returns the states of the members in words.
func memberSummary(m holdfast.Members) string {
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
