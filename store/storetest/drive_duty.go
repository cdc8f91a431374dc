package storetest

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Steps about time, duties and interventions.

func (d *driver) advance(t *rapid.T) {
	by := pick(t, "by", time.Microsecond, time.Second, 10*time.Second, 31*time.Second, time.Minute, 2*time.Hour, -5*time.Minute)
	if by < 0 && rapid.IntRange(0, 3).Draw(t, "really back") > 0 {
		by = -by
	}
	d.back = d.back || by < 0
	expiring := d.m.expiring()
	if expiring { // advance groups before and after its expiry, so that it is certain what had ended by then
		d.advanceGroups(t)
	}
	d.Advance(by)
	d.m.now = d.m.now.Add(by)
	if expiring {
		d.advanceGroups(t)
	}
}

func (d *driver) promote(t *rapid.T) {
	least, most := d.m.promote(1000)
	got, err := d.Store.Promote(d.ctx, 1000)
	matchErr(t, "promote", err, nil)
	if got < least || got > most {
		failSequence(t, "another number of jobs is promoted", "the store says %d, the model %d to %d", got, least, most)
	}
}

func byID(a, b store.Lease) int { return bytes.Compare(a.ID[:], b.ID[:]) }

func (d *driver) reclaim(t *rapid.T) {
	c := store.Claim{Worker: "reclaimer", Limit: 1000, Lease: 30 * time.Second}
	back, over := d.m.expiredMembers()
	got, err := d.Store.Reclaim(d.ctx, c)
	matchErr(t, "reclaim", err, nil)
	slices.SortFunc(got, byID)
	slices.SortFunc(over, func(a, b *record) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	match(t, "reclaimed jobs", ids(got), idsOf(over))
	for _, r := range back {
		d.touch(r.ID)
		d.m.release(r)
	}
	from := map[holdfast.ID]holdfast.ID{} // old batches and new batches correspond one to one
	for i, r := range over {
		if old, known := from[got[i].Batch]; known && old != r.batch {
			t.Fatalf("reclaim merged two batches into one")
		}
		if d.m.leases[got[i].Batch] != nil && from[got[i].Batch].IsZero() {
			t.Fatalf("reclaim used a batch that was there before")
		}
		from[got[i].Batch] = r.batch
		d.m.takeOver(r, c, got[i].Batch)
	}
	d.matchLeases(t, got, over)
}

func idsOf(records []*record) []holdfast.ID {
	all := make([]holdfast.ID, 0, len(records))
	for _, r := range records {
		all = append(all, r.ID)
	}
	return all
}

func (d *driver) expire(t *rapid.T) {
	c := store.Claim{Worker: "reclaimer", Limit: 1000, Start: -1, Lease: 30 * time.Second}
	want := d.m.expirable()
	got, err := d.Store.Expire(d.ctx, c)
	matchErr(t, "expire", err, nil)
	slices.SortFunc(got, byID)
	slices.SortFunc(want, func(a, b *record) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	d.m.take(c, want, batchOf(got))
	d.expired[batchOf(got)] = true
	d.matchLeases(t, got, want)
}

func (d *driver) intervention(t *rapid.T) store.Intervention {
	// Mostly valid, sometimes invalid.
	i := store.Intervention{Actor: "ada", Reason: "why not", StuckAfter: pick(t, "stuck after", 0, 0, 20*time.Second)}
	switch rapid.IntRange(0, 15).Draw(t, "invalid") {
	case 12:
		i.Actor = ""
	case 13:
		i.Reason = ""
	case 14:
		i.Owner = "other"
	case 15:
		i.Owner = "acme"
	}
	if held := d.m.where(leased, func(*record) bool { return true }); len(held) > 0 && rapid.Bool().Draw(t, "of a job in hand") {
		i.Job = held[rapid.IntRange(0, len(held)-1).Draw(t, "job in hand")].ID
	} else {
		i.Job = d.anyJob(t)
	}
	d.touch(i.Job)
	return i
}

func (d *driver) cancel(t *rapid.T) {
	i := d.intervention(t)
	want, wantErr := d.m.cancel(i)
	got, err := d.Store.Cancel(d.ctx, i)
	matchErr(t, "cancel", err, wantErr)
	if err == nil {
		match(t, "cancelled to", got, want)
	}
}

func (d *driver) retry(t *rapid.T) {
	i := d.intervention(t)
	got, err := d.Store.Retry(d.ctx, i)
	// Only a job that was set aside is retried although it is due, or refused because it has expired.
	if r := d.m.jobs[i.Job]; r != nil && r.aside && (err == nil || err.Error() == refuseJob(r.ID, textExpired).Error()) {
		r.place = later // it was certainly set aside
	}
	want, wantErr := d.m.retry(i)
	matchErr(t, "manual retry", err, wantErr)
	if aside := len(d.m.where(ready, func(r *record) bool { return r.aside })); err == nil && (got > want || got < want-aside) {
		failSequence(t, "another number of jobs is ahead", "the store says %d, the model %d, of which %d may be set aside", got, want, aside)
	}
}

func (d *driver) discard(t *rapid.T) {
	i := d.intervention(t)
	matchErr(t, "discard", d.Store.Discard(d.ctx, i), d.m.discard(i))
}

// edit draws a change, mostly of a queued job.
func (d *driver) edit(t *rapid.T) {
	e := store.Edit{Intervention: d.intervention(t)}
	var queued []holdfast.ID
	for id, r := range d.m.jobs {
		if r.place != leased && r.place != finished {
			queued = append(queued, id)
		}
	}
	if queued = sortIDs(queued); len(queued) > 0 && rapid.IntRange(0, 5).Draw(t, "any job") > 0 {
		e.Job = queued[rapid.IntRange(0, len(queued)-1).Draw(t, "job that is queued")]
		d.touch(e.Job)
	}
	queues := []*string{nil, nil, new("default"), new("slow")}
	if r := d.m.jobs[e.Job]; r != nil && r.Owner == "" { // a queue with one owner uses the single-statement claim
		queues = append(queues, new("solo"))
	}
	e.Patch = pick(t, "patch", nil, nil, json.RawMessage(`{"n": 2.50}`), json.RawMessage(`{"n": null, "m": [1]}`), json.RawMessage(`"text"`))
	e.Args = pick(t, "whole arguments", nil, nil, nil, json.RawMessage(`{"n": 1.00, "whole": null}`))
	e.Queue, e.Priority = pick(t, "queue", queues...), pick(t, "priority", nil, nil, new(int16(-1)), new(int16(0)), new(int16(2)))
	e.Tags = pick(t, "tags", nil, nil, new([]string(nil)), new([]string{"red"}), new([]string{"blue"}))
	e.MaxAttempts = pick(t, "max attempts", nil, nil, new(0), new(3))
	e.Delay = pick(t, "delay", nil, nil, new(time.Duration(0)), new(time.Second), new(time.Hour))
	if job, err := d.Store.Job(d.ctx, e.Job); err == nil {
		e.IfDigest = pick(t, "seen", "", "", job.Digest(), "something else")
	}
	r, wantErr := d.m.edit(e)
	got, err := d.Store.Edit(d.ctx, e)
	matchErr(t, "edit", err, wantErr)
	if err != nil {
		return
	}
	if e.Patch != nil || e.Args != nil {
		d.adoptArgs(t, e.Job)
	}
	want := d.m.view(r)
	want.After, want.When = d.m.shownWaits(r)
	match(t, "edited jobs", got, want)
}
