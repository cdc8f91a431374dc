package storetest

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Steps about holds, records, redrives, error groups and deadlines.

// hold draws a hold.
func (d *driver) hold(t *rapid.T) store.Hold {
	h := pick(t, "hold", store.Hold{Queue: "default"}, store.Hold{Queue: "s*"}, store.Hold{Kind: "pdf"}, store.Hold{Kind: "*"},
		store.Hold{Owner: "acme"}, store.Hold{Owner: "*"}, store.Hold{Dependency: "gateway"}, store.Hold{Dependency: "g*"},
		store.Hold{Tag: "red"}, store.Hold{Tag: "blue"}, store.Hold{Queue: "solo"})
	h.Actor, h.Source = pick(t, "actor", "ada", "bob"), pick(t, "source", "", "", store.SourceLimit)
	_, name := h.Scope()
	shape := rapid.IntRange(0, 5).Draw(t, "shape")
	if h.Tag != "" {
		shape = 0
	}
	if shape > 0 {
		h.Retries = rapid.IntRange(0, 3).Draw(t, "retries only") == 3
	}
	switch {
	case shape >= 3 && name[len(name)-1] != '*':
		h.Rate = &store.Rate{PerSecond: pick(t, "per second", 0, 0.5, 0.0625), Burst: pick(t, "burst", 1.0, 3)}
		h.Rate.Level = min(h.Rate.Burst, pick(t, "level", 0.0, 1, 3))
	case shape >= 2:
		h.AtMost = rapid.IntRange(1, 2).Draw(t, "at most")
	}
	if h.Rate == nil { // the level of an expired rate limit is not specified
		h.For = pick(t, "for", 0, time.Minute)
	}
	return h
}

func (d *driver) pause(t *rapid.T) {
	h := d.hold(t)
	if rapid.IntRange(0, 15).Draw(t, "invalid") == 13 {
		h.Actor = ""
	}
	matchErr(t, "pause", d.Store.Pause(d.ctx, h), d.m.pause(h))
}

// placedHold draws a hold that is in force, if there is one.
func (d *driver) placedHold(t *rapid.T) store.Hold {
	var all []store.Hold
	for _, h := range d.m.holds {
		all = append(all, h.Hold)
	}
	slices.SortFunc(all, func(a, b store.Hold) int { return slices.Compare(holdKey(a), holdKey(b)) })
	if len(all) == 0 || rapid.IntRange(0, 9).Draw(t, "any hold") == 7 {
		return d.hold(t)
	}
	h := all[rapid.IntRange(0, len(all)-1).Draw(t, "hold of those there")]
	h.Actor = "ada"
	return h
}

func holdKey(h store.Hold) []string {
	name := nameOf(h)
	return []string{name.scope, name.name, name.source}
}

func (d *driver) resume(t *rapid.T) {
	h := d.placedHold(t)
	matchErr(t, "resume", d.Store.Resume(d.ctx, h), d.m.resume(h))
}

// keep draws a change, sometimes with an outdated record version.
func (d *driver) keep(t *rapid.T) {
	var c store.Change
	for _, name := range [][]string{{"a"}, {"b"}, {"a", "b"}}[rapid.IntRange(0, 2).Draw(t, "records")] {
		known := d.m.records[recordName{"breaker", name}]
		r := store.Record{Namespace: "breaker", Name: name, Version: known.Version, Body: json.RawMessage(pick(t, "body", `{"n":1}`, `{"n":2}`))}
		switch rapid.IntRange(0, 7).Draw(t, "how") {
		case 5:
			r.Version++
		case 6:
			r.Version = max(0, r.Version-1)
		case 7:
			if known.Version > 0 {
				r.Body = nil
			}
		}
		c.Records = append(c.Records, r)
	}
	switch rapid.IntRange(0, 3).Draw(t, "and besides") {
	case 0:
		c.Place = []store.Hold{d.hold(t)}
	case 1:
		c.Lift = []store.Hold{d.placedHold(t)}
	case 2:
		c.Deposits = []store.Deposit{{Hold: d.placedHold(t), Tokens: pick(t, "tokens", 0.5, 1, 2)}}
	}
	if rapid.Bool().Draw(t, "with events") {
		c.Events = []store.Event{{Subject: "breaker/a", Name: "opened", Actor: "holdfast", Reason: "too many failures"}}
		if id := d.anyJob(t); d.m.jobs[id] != nil {
			c.Events = append(c.Events, store.Event{Job: id, Name: "noted", Actor: "holdfast", Reason: "in passing"})
			d.touch(id)
		}
	}
	want := d.m.keep(c)
	matchErr(t, "keep", d.Store.Apply(d.ctx, c), want)
}

// redrive mostly redrives dead letters.
func (d *driver) redrive(t *rapid.T) {
	dead := d.m.where(finished, func(r *record) bool { return r.state == holdfast.Failed })
	var jobs []holdfast.ID
	for range rapid.IntRange(1, 3).Draw(t, "jobs") {
		if len(dead) > 0 && rapid.IntRange(0, 4).Draw(t, "any job") > 0 {
			jobs = append(jobs, dead[rapid.IntRange(0, len(dead)-1).Draw(t, "dead letter")].ID)
		} else {
			jobs = append(jobs, d.anyJob(t))
		}
	}
	d.redriveAll(t, pick(t, "redrive", d.redrives[0], d.redrives[1]), jobs)
}

// failAndRedrive fails a job for good and redrives it, and again if it is claimed again. Random steps alone seldom do that.
func (d *driver) failAndRedrive(t *rapid.T) {
	l := d.heldLease(t)
	for range 2 {
		failed := ends(l, holdfast.Failed)
		failed.Failure = &holdfast.Failure{Code: "BROKEN", Category: "test", Message: "it broke"}
		d.settleAll(t, []store.Settlement{failed})
		d.redriveAll(t, d.redrives[0], []holdfast.ID{l.ID})
		before := len(d.past)
		d.claim(t)
		if again := d.past[before:]; len(again) > 0 {
			l = again[0]
		}
	}
}

func (d *driver) redriveAll(t *rapid.T, id holdfast.ID, jobs []holdfast.ID) {
	step := store.Redrive{ID: id, Jobs: jobs, Actor: "ada", Reason: "the gateway is back"}
	switch rapid.IntRange(0, 7).Draw(t, "how") {
	case 3:
		step.Discard = true
	case 4:
		step.Queue = "slow"
	case 5, 6:
		step.Patch = json.RawMessage(pick(t, "patch", `{"n": 10000000000000000001}`, `{"n": null, "m": {"x": 1.50}}`, `{}`))
	case 7:
		step.Actor = pick(t, "actor", "ada", "ada", "")
	}
	d.touch(step.Jobs...)
	want, wantErr := d.m.redrive(step)
	got, err := d.Store.Redrive(d.ctx, step)
	matchErr(t, "redrive", err, wantErr)
	if len(got) != len(want) {
		failSequence(t, "a redrive is not answered job by job", "%d answers, want %d", len(got), len(want))
	}
	for i := range want {
		matchErr(t, "redrive of a job", got[i], want[i])
		if want[i] == nil {
			d.adoptArgs(t, step.Jobs[i])
		}
	}
}

// adoptArgs adopts how the store formats patched arguments, if they are equivalent.
func (d *driver) adoptArgs(t *rapid.T, id holdfast.ID) {
	r := d.m.jobs[id]
	job, err := d.Store.Job(d.ctx, id)
	if err != nil || !reflect.DeepEqual(decode(job.Args), decode(r.Args)) {
		failSequence(t, "patched arguments differ", "%v: the store has %s, the model %s", err, job.Args, r.Args)
	}
	r.Args = job.Args
}

func (d *driver) countRedriven(t *rapid.T) {
	id := pick(t, "redrive", d.redrives[0], d.redrives[1])
	got, err := d.Store.Redriven(d.ctx, id)
	matchErr(t, "redriven", err, nil)
	match(t, "counts", got, d.m.countRedriven(id))
}

func (d *driver) missedDeadlines(t *rapid.T) {
	want := d.m.missedDeadlines()
	got, err := d.Store.MissedDeadlines(d.ctx, 1000)
	matchErr(t, "missed deadlines", err, nil)
	for _, list := range [][]holdfast.ID{got, want} {
		slices.SortFunc(list, func(a, b holdfast.ID) int { return slices.Compare(a[:], b[:]) })
	}
	match(t, "broken promises", got, want)
	d.touch(want...)
}

func (d *driver) triage(t *rapid.T) {
	g := store.Triage{
		Fingerprint: pick(t, "fingerprint", "print-FLAKY", "print-FLAKY", "print-BROKEN", "never seen"), Actor: "ada", Reason: "looked at it",
		Status: pick(t, "status", "", store.StatusOpen, store.StatusAcknowledged, store.StatusIgnored, store.StatusIgnored, store.StatusResolved, store.StatusResolved),
	}
	switch g.Status {
	case store.StatusIgnored:
		g.For, g.Count = pick(t, "for", 0, time.Minute), pick(t, "count", 0, 1, 2)
	case store.StatusResolved:
		g.Version = pick(t, "version", "", "v1", "v2")
	}
	matchErr(t, "triage", d.Store.Triage(d.ctx, g), d.m.triage(g))
	d.compareErrorGroups(t)
}

func (d *driver) present(t *rapid.T) {
	p := store.WorkerInfo{Worker: "w1", Queues: []string{"default"}, Kinds: []string{"mail", "pdf"}, Slots: 1, For: time.Minute,
		Depends: map[string]string{pick(t, "kind", "mail", "pdf"): pick(t, "depends on", "gateway", "printer")}}
	matchErr(t, "present", d.Store.ReportWorker(d.ctx, p), nil)
	for kind, dependency := range p.Depends {
		d.m.kinds[kind] = dependency
	}
}

// heldLines compares the lines that dead letters hold.
func (d *driver) heldLines(t *rapid.T) {
	got, err := d.Store.HeldLines(d.ctx, 100)
	matchErr(t, "held lines", err, nil)
	match(t, "held lines", got, d.m.heldLines())
}

func (d *driver) behind(t *rapid.T) {
	h := d.hold(t)
	least, most := d.m.behind(h)
	got, err := d.Store.CountHeld(d.ctx, h)
	matchErr(t, "behind", err, nil)
	if got < least || got > most {
		failSequence(t, "a hold has another number of jobs behind it", "%+v: the store says %d, the model %d to %d", h, got, least, most)
	}
}
