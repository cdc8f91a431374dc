package console

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// A gatheringPage is all about one group.
type gatheringPage struct {
	Gathering ops.Gathering
	groupRow
	Late    bool   // it was counted a while ago
	Banner  string // what its outcome means, when somebody should know
	Tone    string // of the banner
	Missing string // what can be done about it
	Numbers []groupNumber
	Inside  []groupRow
	Parent  groupRow // the group it is a member of, when there is one
	Then    []groupThen
	Retry   bool // there is something to retry
	Seal    bool
	Cancel  bool
	All     string // finds its members
	Dead    string // finds those that failed
}

// A groupNumber is how many members stand somewhere, and the way to them.
type groupNumber struct {
	Title, Link string
	Size        int
	Tone        string
}

// A groupThen is a job that continues a group.
type groupThen struct {
	Kind, Queue string
	On          string // which outcome has it enqueued, in words
	Came        bool   // that outcome has come
	Refused     bool   // it came, and the job could not be enqueued
}

// groupScreen shows one group.
func groupScreen(q *ask) (page, error) {
	id, err := q.id()
	if err != nil {
		return page{}, err
	}
	found, err := q.c.counted.group(q, id)
	if err != nil {
		return page{}, err
	}
	g := found.Group
	of := "group:" + id.String()
	shown := gatheringPage{Gathering: found, groupRow: groupRowOf(g), All: q.jobs(of), Dead: q.jobs(of, "is:dead")}
	shown.Banner, shown.Missing = groupBanner(g)
	shown.Tone = map[holdfast.GroupState]string{holdfast.GroupFailed: "bad", holdfast.GroupExpired: "bad", holdfast.GroupReady: "note", holdfast.GroupCancelled: "note"}[g.State]
	shown.Retry, shown.Seal, shown.Cancel = g.Members.Failed > 0, g.SealedAt.IsZero() && !g.State.Settled(), !g.State.Settled()
	shown.Numbers = []groupNumber{
		{"Members", shown.All, g.Members.Total, ""}, {"Complete", q.jobs(of, "state:complete"), g.Members.Complete, ""}, {"Failed", shown.Dead, g.Members.Failed, "bad"},
		{"Cancelled", q.jobs(of, "state:cancelled"), g.Members.Cancelled, ""}, {"Processing", q.jobs(of, "state:processing"), g.Members.Processing, ""},
		{"Queued", q.jobs(of, "state:queued"), g.Members.Queued, ""}, {"Waiting for others", q.jobs(of, "state:queued"), g.Members.Waiting, ""},
	}
	shown.Late = q.now.Sub(g.AsOf) > 2*time.Second
	for _, one := range found.Inside {
		shown.Inside = append(shown.Inside, groupRowOf(one))
	}
	refused := slices.ContainsFunc(found.Story, func(e holdfast.Event) bool { return e.Name == "continuation refused" && e.Generation == g.Generation })
	for _, then := range g.Then {
		follows := groupFollows(g, then)
		follows.Refused = follows.Came && refused
		shown.Then = append(shown.Then, follows)
	}
	if err := q.groupParent(&shown, g.Parent); err != nil {
		return page{}, err
	}
	return page{name: "group", here: "groups", title: shown.Title, topics: []string{"groups", "jobs"}, data: shown}, nil
}

// groupParent names the group around this one. One that is gone is no reason to show nothing.
func (q *ask) groupParent(shown *gatheringPage, id holdfast.ID) error {
	if id.IsZero() {
		return nil
	}
	parent, err := q.c.counted.group(q, id)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
		parent.Group, err = holdfast.Group{ID: id}, nil
	}
	shown.Parent = groupRowOf(parent.Group)
	return err
}

// groupFollows tells of a job that continues a group.
func groupFollows(g holdfast.Group, then holdfast.Then) groupThen {
	row := groupThen{Kind: then.Draft.Kind, Queue: then.Draft.Queue, On: "when it is " + string(then.On), Came: g.State == then.On}
	switch then.On {
	case "":
		row.On, row.Came = "when it is ready, partial or failed", g.State == holdfast.GroupReady || g.State == holdfast.GroupPartial || g.State == holdfast.GroupFailed
	case holdfast.GroupFailed, holdfast.GroupExpired:
		row.On = "when it has " + string(then.On)
	}
	return row
}

// groupBanner says what an outcome means for those who wait for it, and what can be done.
func groupBanner(g holdfast.Group) (is, missing string) {
	m := g.Members
	lost := m.Total - m.Complete
	var how []string
	for _, one := range groupParts(m)[1:3] {
		if one.Size > 0 {
			how = append(how, one.Words)
		}
	}
	stand := fmt.Sprintf("%s of %s complete", num(m.Complete), num(m.Total))
	if len(how) > 0 {
		stand += ", " + strings.Join(how, ", ")
	}
	switch g.State {
	case holdfast.GroupPartial:
		return stand + ".", fmt.Sprintf("What is there can be used. What is missing is %s: see below why, and retry what failed when the cause is gone.", plural(lost, "member"))
	case holdfast.GroupReady:
		if lost > 0 {
			return stand + ".", fmt.Sprintf("It is ready because a quorum of %s was asked for. %s did not complete.", num(g.Quorum), plural(lost, "member"))
		}
	case holdfast.GroupFailed:
		return "No member is complete.", "See below why, and retry what failed when the cause is gone."
	case holdfast.GroupCancelled:
		return "A person cancelled it.", stand + ". The story says who, and why."
	case holdfast.GroupExpired:
		return "Its time was up before all members had ended.", stand + "."
	}
	return "", ""
}

// onGroup is a visitor's word on one group.
func (q *ask) onGroup() (i holdfast.Intervention, err error) {
	id, err := q.id()
	i = q.on(holdfast.ID{})
	i.Group = id
	return i, err
}

func retryGroup(q *ask) (done, error) {
	i, err := q.onGroup()
	if err != nil {
		return done{}, err
	}
	jobs, err := q.desk.RetryGroup(q.ctx, i)
	return done{text: fmt.Sprintf("%s went round again. The group is processing, and will be settled again.", title(plural(jobs, "job")))}, err
}

func cancelGroup(q *ask) (done, error) {
	i, err := q.onGroup()
	if err != nil {
		return done{}, err
	}
	if i.Reason == "" {
		return done{}, unfit("nothing was cancelled: say why, so that others understand it later")
	}
	return done{text: "The group is being cancelled: what is queued ends soon, what is processing as soon as its worker has let go."}, q.desk.CancelGroup(q.ctx, i)
}

func sealGroup(q *ask) (done, error) {
	i, err := q.onGroup()
	if err != nil {
		return done{}, err
	}
	return done{text: "The group is sealed: it takes no more members, and is settled when those it has have ended."}, q.desk.SealGroup(q.ctx, i)
}
