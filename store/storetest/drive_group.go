package storetest

import (
	"bytes"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Steps about groups.

// continued is the prefix of the kinds of continuations: the store chooses their ids.
const continued = "continued."

// anyGroup returns the id of a group, or one that does not exist.
func (d *driver) anyGroup(t *rapid.T) holdfast.ID {
	var known []holdfast.ID
	for id := range d.m.groups {
		known = append(known, id)
	}
	known = sortIDs(known)
	if n := rapid.IntRange(-1, 15*len(known)).Draw(t, "group"); n >= 0 && len(known) > 0 {
		return known[n%len(known)]
	}
	return holdfast.NewID()
}

func (d *driver) gather(t *rapid.T) {
	g := holdfast.Group{
		ID: holdfast.NewID(), Owner: pick(t, "owner", "", "", "acme"), Quorum: pick(t, "quorum", 0, 0, 1, 2),
		ExpireIn: pick(t, "expire", 0, 0, 0, time.Minute),
	}
	if rapid.IntRange(0, 2).Draw(t, "inside another") == 2 {
		g.Parent = d.anyGroup(t)
	}
	if rapid.IntRange(0, 30).Draw(t, "reuse an id") == 7 && g.Parent.IsZero() {
		g.ID = d.anyGroup(t)
	}
	for _, on := range pick(t, "then", nil, []holdfast.GroupState{""}, []holdfast.GroupState{holdfast.GroupReady, holdfast.GroupPartial}) {
		g.Then = append(g.Then, holdfast.Then{On: on, Draft: holdfast.Draft{Kind: continued + "x" + string(on)}})
	}
	want := d.m.gather(g)
	_, err := d.Store.CreateGroup(d.ctx, g)
	matchErr(t, "gather", err, want)
}

// add enqueues members, some of which wait for others.
func (d *driver) add(t *rapid.T) {
	drafts := d.members(t, d.anyGroup(t), rapid.IntRange(1, 4).Draw(t, "members"))
	if rapid.IntRange(0, 7).Draw(t, "in a transaction") == 5 {
		d.enqueueIn(t, drafts, rapid.Bool().Draw(t, "commit"))
		return
	}
	want, wantErr := d.m.enqueue(drafts)
	got, err := d.Store.Enqueue(d.ctx, slices.Clone(drafts))
	matchErr(t, "adding members", err, wantErr)
	match(t, "receipts of members", got, want)
}

// members draws drafts of members of a group.
func (d *driver) members(t *rapid.T, group holdfast.ID, n int) []holdfast.Draft {
	var known []holdfast.ID
	for id, r := range d.m.jobs {
		if r.Group == group {
			known = append(known, id)
		}
	}
	known = sortIDs(known)
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		m := d.draft(t)
		m.ID, m.Group, m.UniqueKey, m.IdempotencyKey, m.ExpireIn, m.Replace, m.Order, m.OrderHold = holdfast.NewID(), group, "", "", 0, nil, "", false
		m.Queue = "default"
		for range rapid.IntRange(0, 2).Draw(t, "upstreams") {
			if len(known) == 0 {
				break
			}
			if id := known[rapid.IntRange(0, len(known)-1).Draw(t, "upstream")]; !slices.Contains(m.After, id) {
				m.After = append(m.After, id)
			}
		}
		if g := d.m.groups[group]; g != nil && g.State == holdfast.GroupOpen && rapid.IntRange(0, 30).Draw(t, "not a member") == 7 {
			m.After = append(m.After, holdfast.NewID())
		}
		for range rapid.IntRange(0, 1).Draw(t, "conditions") {
			c := holdfast.Condition{On: pick(t, "on", holdfast.OnComplete, holdfast.OnFailed, holdfast.OnFailed, holdfast.OnCancelled, holdfast.OnEnded)}
			if len(known) == 0 {
				break
			}
			if c.Job = known[rapid.IntRange(0, len(known)-1).Draw(t, "condition of")]; !slices.Contains(m.After, c.Job) {
				m.When = append(m.When, c)
			}
		}
		m.AfterAll = len(m.After) > 0 && rapid.IntRange(0, 2).Draw(t, "however they end") == 2
		drafts[i], known = m, append(known, m.ID)
		d.touch(m.ID)
	}
	return drafts
}

func (d *driver) seal(t *rapid.T) {
	group := d.anyGroup(t)
	matchErr(t, "seal", d.Store.SealGroup(d.ctx, group), d.m.seal(group))
}

func (d *driver) groupIntervention(t *rapid.T) store.Intervention {
	i := store.Intervention{Group: d.anyGroup(t), Actor: "ada", Reason: "why not"}
	switch rapid.IntRange(0, 15).Draw(t, "invalid") {
	case 13:
		i.Actor = ""
	case 14, 15:
		i.Owner = "acme"
	}
	for id, r := range d.m.jobs {
		if !r.Group.IsZero() {
			d.touch(id)
		}
	}
	return i
}

func (d *driver) retryGroup(t *rapid.T) {
	i := d.groupIntervention(t)
	want, wantErr := d.m.retryGroup(i)
	got, err := d.Store.RetryGroup(d.ctx, i)
	matchErr(t, "manual retry of a group", err, wantErr)
	if err == nil {
		match(t, "retried members", got, want)
	}
}

func (d *driver) cancelGroup(t *rapid.T) {
	i := d.groupIntervention(t)
	if g := d.m.groups[i.Group]; g != nil && g.ending != "" && !g.State.Settled() {
		t.Skip("it is ending already")
	}
	matchErr(t, "cancelling a group", d.Store.CancelGroup(d.ctx, i), d.m.cancelGroup(i))
}

// endGroups ends processing and claimable members, seals and settles their groups, and retries a failed member. Random steps alone seldom do that.
func (d *driver) endGroups(t *rapid.T) {
	d.claim(t)
	for _, l := range slices.Clone(d.past) {
		r := d.m.jobs[l.ID]
		if r == nil || !r.holds(l.Batch, l.Token) || r.Group.IsZero() {
			continue
		}
		s := ends(l, holdfast.Complete)
		if rapid.Bool().Draw(t, "it fails") {
			s.To, s.Failure = holdfast.Failed, &holdfast.Failure{Code: "BROKEN", Category: "test", Message: "it broke"}
		}
		d.settleAll(t, []store.Settlement{s})
	}
	d.seal(t)
	d.advanceGroups(t)
	failed := d.m.where(finished, func(r *record) bool { return r.state == holdfast.Failed && !r.Group.IsZero() })
	if len(failed) == 0 {
		return
	}
	r := failed[rapid.IntRange(0, len(failed)-1).Draw(t, "which of those that failed")]
	switch rapid.IntRange(0, 2).Draw(t, "retried by") {
	case 0:
		d.redriveAll(t, d.redrives[0], []holdfast.ID{r.ID})
	case 1:
		i := store.Intervention{Job: r.ID, Actor: "ada"}
		_, wantErr := d.m.retry(i)
		_, err := d.Store.Retry(d.ctx, i)
		matchErr(t, "manual retry of a member", err, wantErr)
		d.touch(r.ID)
	default:
		d.retryGroup(t)
	}
}

// advanceGroups runs the duties until nothing is left, and adopts what the store is free to choose.
func (d *driver) advanceGroups(t *rapid.T) {
	var held []*record // members that this step may cancel or release
	for _, r := range d.m.jobs {
		if r.place == waiting {
			held = append(held, r)
		}
		if !r.Group.IsZero() && r.place != finished {
			d.touch(r.ID)
		}
	}
	for rounds := 0; ; rounds++ {
		_, err := d.Store.Sequence(d.ctx, 1000)
		matchErr(t, "sequence", err, nil)
		n, err := d.Store.AdvanceGroups(d.ctx, 1000)
		matchErr(t, "advance groups", err, nil)
		if n == 0 {
			break
		}
		if rounds > 200 {
			failSequence(t, "advancing groups does not end", "%d rounds", rounds)
		}
	}
	d.m.storeCauses = map[holdfast.ID]holdfast.ID{}
	for _, r := range held {
		job, err := d.Store.Job(d.ctx, r.ID)
		matchErr(t, "job", err, nil)
		d.m.storeCauses[r.ID] = job.Upstream
	}
	d.m.storeStates = map[holdfast.ID]holdfast.GroupState{}
	for id := range d.m.groups {
		g, err := d.Store.Group(d.ctx, id)
		matchErr(t, "group", err, nil)
		d.m.storeStates[id] = g.State
	}
	d.m.advanceGroups()
	for _, r := range held {
		d.adoptUpstream(t, r)
	}
	d.adoptContinuations(t)
}

// adoptUpstream adopts which of several causes the store names for a cancelled member.
func (d *driver) adoptUpstream(t *rapid.T, r *record) {
	if r.place != finished || r.state != holdfast.Cancelled {
		return
	}
	job, err := d.Store.Job(d.ctx, r.ID)
	matchErr(t, "job", err, nil)
	_, bad := d.m.upstream(r)
	g := d.m.groups[r.Group]
	switch {
	case job.Upstream.IsZero() && g.ending != "":
		r.Upstream, r.Skipped = job.Upstream, false
	case slices.ContainsFunc(bad, func(c holdfast.Condition) bool { return c.Job == job.Upstream }):
		r.Upstream = job.Upstream
	case job.State == holdfast.Cancelled:
		failSequence(t, "a member is cancelled because of another that did not end badly", "%v because of %v, the model says %v", r.ID, job.Upstream, bad)
	}
}

// adoptContinuations finds the continuations of groups, each once, and adopts their ids.
func (d *driver) adoptContinuations(t *rapid.T) {
	if len(d.m.continuations) == 0 {
		return
	}
	page, _, err := d.Store.Jobs(d.ctx, store.Filter{Limit: 200})
	matchErr(t, "jobs", err, nil)
	slices.SortFunc(page, func(a, b holdfast.Job) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	for _, job := range page {
		at := slices.IndexFunc(d.m.continuations, func(f holdfast.Draft) bool { return f.Kind == job.Kind && string(f.Args) == string(job.Args) })
		if at < 0 || d.m.jobs[job.ID] != nil {
			continue
		}
		f := d.m.continuations[at]
		f.ID = job.ID
		if _, err := d.m.enqueue([]holdfast.Draft{f}); err != nil {
			failSequence(t, "the model refuses a continuation of a group", "%v", err)
		}
		d.m.continuations = slices.Delete(d.m.continuations, at, at+1)
	}
	if len(d.m.continuations) > 0 {
		failSequence(t, "a continuation of a group is missing", "%+v", d.m.continuations)
	}
}

// compareGroups compares every group and the states of its members.
func (d *driver) compareGroups(t *rapid.T) {
	for id, g := range d.m.groups {
		got, err := d.Store.Group(d.ctx, id)
		if err != nil {
			failSequence(t, "the store does not show a group", "%v", err)
		}
		want := d.m.show(g)
		got.Then, want.Then = nil, nil
		match(t, "groups", got, want)
	}
}

// settledLines returns the events of a group that the model records: settled and reopened.
func settledLines(all []store.Event) []store.Event {
	return slices.DeleteFunc(all, func(e store.Event) bool { return e.Name == "manual retry" || e.Name == "cancel" })
}
