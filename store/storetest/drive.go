package storetest

import (
	"encoding/json"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// The steps of the model check. Each draws an operation, applies it to the store and the model, and compares the answers.

func pick[T any](t *rapid.T, what string, from ...T) T { return rapid.SampledFrom(from).Draw(t, what) }

func (d *driver) draft(t *rapid.T) holdfast.Draft {
	draft := holdfast.Draft{
		ID: holdfast.NewID(), Kind: pick(t, "kind", "mail", "pdf"), Queue: pick(t, "queue", "default", "default", "slow", "solo"),
		Priority: pick[int16](t, "priority", 0, 0, 1, -1), Owner: pick(t, "owner", "", "", "acme", "zeta"),
		Dependency: pick(t, "dependency", "", "", "", "gateway"), Tags: pick(t, "tags", nil, nil, nil, []string{"red"}, []string{"red", "blue"}),
		RetryWithin: pick(t, "retry within", 0, 0, time.Minute),
		Delay:       pick(t, "delay", 0, 0, 0, 0, 0, 0, time.Second, time.Minute, time.Hour),
		ExpireIn:    pick(t, "expire", 0, 0, 0, 30*time.Second, 10*time.Minute),
		UniqueKey:   pick(t, "unique", "", "", "", "u1", "u2"),
		UniqueDone:  pick(t, "unique when complete", false, false, true), IdempotencyKey: pick(t, "idempotency", "", "", "", "i1"),
		Args: json.RawMessage(pick(t, "args", `{"n": 1}`, `null`)), Trace: pick(t, "trace", "", traceparent),
	}
	if draft.Queue == "solo" { // a queue with one owner uses the single-statement claim
		draft.Owner = ""
	}
	if draft.Order = pick(t, "order", "", "", "", "o1", "o2"); draft.Order != "" {
		draft.OrderHold = rapid.Bool().Draw(t, "holds its line")
	}
	if draft.UniqueKey != "" {
		draft.Replace = pick(t, "replace", nil, nil, &holdfast.Replace{}, &holdfast.Replace{Start: true}, &holdfast.Replace{Start: true, MaxAge: 2 * time.Minute, Follow: true})
	}
	if len(d.m.jobs) > 0 && rapid.IntRange(0, 40).Draw(t, "reuse an id") == 7 {
		draft.ID = d.anyJob(t)
	}
	return draft
}

// anyJob returns the id of a job, or one that does not exist.
func (d *driver) anyJob(t *rapid.T) holdfast.ID {
	known := make([]holdfast.ID, 0, len(d.m.jobs))
	for id := range d.m.jobs {
		known = append(known, id)
	}
	slices.SortFunc(known, func(a, b holdfast.ID) int { return slices.Compare(a[:], b[:]) })
	if n := rapid.IntRange(-1, 12*len(known)).Draw(t, "job"); n >= 0 && len(known) > 0 {
		return known[n%len(known)]
	}
	return holdfast.NewID()
}

func (d *driver) enqueue(t *rapid.T) {
	drafts := make([]holdfast.Draft, rapid.IntRange(1, 5).Draw(t, "drafts"))
	for i := range drafts {
		drafts[i] = d.draft(t)
	}
	for _, draft := range drafts {
		d.touch(draft.ID)
	}
	if rapid.IntRange(0, 7).Draw(t, "in a transaction") == 5 {
		d.enqueueIn(t, drafts, rapid.Bool().Draw(t, "commit"))
		return
	}
	want, wantErr := d.m.enqueue(drafts)
	got, err := d.Store.Enqueue(d.ctx, slices.Clone(drafts))
	matchErr(t, "enqueue", err, wantErr)
	match(t, "receipts", got, want)
	d.touchReceipts(want)
}

func (d *driver) touchReceipts(receipts []holdfast.Receipt) {
	for _, r := range receipts {
		d.touch(r.ID)
	}
}

// enqueueIn enqueues drafts in a transaction of the caller. A refusal rolls the transaction back.
func (d *driver) enqueueIn(t *rapid.T, drafts []holdfast.Draft, commit bool) {
	before := *d.m
	want, wantErr := d.m.enqueue(drafts)
	tx, end := d.Begin()
	got, err := d.In(tx).Enqueue(d.ctx, slices.Clone(drafts))
	commit = commit && err == nil
	if ended := end(commit); ended != nil {
		failSequence(t, "the caller's transaction does not end", "%v", ended)
	}
	matchErr(t, "enqueue in a transaction", err, wantErr)
	match(t, "receipts of a transaction", got, want)
	d.touchReceipts(want)
	if !commit {
		*d.m = before
		return
	}
	for _, receipt := range got {
		if r := d.m.jobs[receipt.ID]; r != nil {
			r.callerTx = true
		}
	}
}

func (d *driver) worker(t *rapid.T) store.Claim {
	c := store.Claim{
		Worker: pick(t, "worker", "w1", "w2"), Queues: pick(t, "queues", []string{"default"}, []string{"slow", "default"}, []string{"solo"}),
		Kinds: pick(t, "kinds", nil, nil, []string{"pdf"}, []string{"mail", "never-heard-of"}, []string{"pdf", "mail"}),
		Limit: rapid.IntRange(1, 4).Draw(t, "limit"), Start: rapid.IntRange(0, 3).Draw(t, "start"),
		Lease: pick(t, "lease", 10*time.Second, 30*time.Second, time.Minute),

		OwnerSlots: pick(t, "slots per owner", 0, 0, 0, 1, 3),
	}
	if len(c.Kinds) > 0 && rapid.Bool().Draw(t, "all queues") {
		c.Queues = nil
	}
	if c.OwnerSlots > 0 {
		c.Busy = pick(t, "busy", nil, map[string]int{"acme": 1, "": 1}, map[string]int{"zeta": 3})
	}
	return c
}

// matchLeases compares leases, except for fields that a worker does not need.
func (d *driver) matchLeases(t *rapid.T, got []store.Lease, want []*record) {
	var expected []store.Lease
	for _, r := range want {
		expected = append(expected, d.m.lease(r))
	}
	d.past = append(d.past, got...)
	for _, l := range got {
		t.Logf("%s took %.8x token %d", l.Worker, l.ID[8:], l.Token)
	}
	strip := func(leases []store.Lease) []store.Lease {
		bare := slices.Clone(leases)
		for i := range bare {
			bare[i].Cancelling, bare[i].Progress, bare[i].LastFailure = false, nil, nil
			d.touch(bare[i].ID)
		}
		return bare
	}
	match(t, "leases", strip(got), strip(expected))
}

func (d *driver) claim(t *rapid.T) {
	c := d.worker(t)
	got, err := d.Store.Claim(d.ctx, c)
	matchErr(t, "claim", err, nil)
	offer := d.m.offer(c)
	taken, even, wrong := offer.check(got)
	if wrong != "" {
		failSequence(t, wrong, "%v", offer)
	}
	d.claims.all++
	d.claims.even += countIf(even)
	for _, r := range taken {
		d.m.spend(r)
	}
	d.m.take(c, taken, batchOf(got))
	d.matchLeases(t, got, taken)
}

func batchOf(leases []store.Lease) holdfast.ID {
	if len(leases) == 0 {
		return holdfast.ID{}
	}
	return leases[0].Batch
}

// anyLease draws a lease that was returned before, more likely a recent one.
func (d *driver) anyLease(t *rapid.T) store.Lease {
	if len(d.past) == 0 {
		t.Skip("no job was claimed yet")
	}
	return d.past[len(d.past)-rapid.IntRange(1, len(d.past)).Draw(t, "lease, how far back")]
}

// heldLease draws a lease that is still held.
func (d *driver) heldLease(t *rapid.T) store.Lease {
	var held []store.Lease
	for _, l := range d.past {
		if r, ok := d.m.jobs[l.ID]; ok && r.holds(l.Batch, l.Token) {
			held = append(held, l)
		}
	}
	if len(held) == 0 {
		t.Skip("no lease is held")
	}
	return held[rapid.IntRange(0, len(held)-1).Draw(t, "lease of those held")]
}

func (d *driver) renew(t *rapid.T) {
	lease := pick(t, "lease", 10*time.Second, time.Minute)
	renewals := []store.Renewal{d.renewal(t, d.anyLease(t).Batch)}
	if other := d.anyLease(t).Batch; other != renewals[0].Batch {
		renewals = append(renewals, d.renewal(t, other))
	}
	want := d.m.renew(renewals, lease)
	got, err := d.Store.Renew(d.ctx, renewals, lease)
	matchErr(t, "renew", err, nil)
	for _, list := range [][]holdfast.ID{want.Lost, want.Cancelling, got.Lost, got.Cancelling} {
		slices.SortFunc(list, func(a, b holdfast.ID) int { return slices.Compare(a[:], b[:]) })
	}
	match(t, "renewed", got, want)
}

// renewal draws what a worker reports about the jobs of one batch.
func (d *driver) renewal(t *rapid.T, batch holdfast.ID) store.Renewal {
	renewal := store.Renewal{Batch: batch}
	for _, l := range d.past {
		if l.Batch != batch {
			continue
		}
		switch report := rapid.IntRange(0, 2).Draw(t, "reported as"); {
		case report == 0 && !d.expired[batch]:
			renewal.Running = append(renewal.Running, l.ID)
		case report < 2:
			renewal.Waiting = append(renewal.Waiting, l.ID)
		}
		d.touch(l.ID)
	}
	return renewal
}

func (d *driver) note(t *rapid.T) {
	l := d.anyLease(t)
	n := store.Note{Batch: l.Batch, Job: l.ID, Token: l.Token}
	if rapid.Bool().Draw(t, "progress") {
		n.Progress = &holdfast.Progress{Percent: float64(rapid.IntRange(0, 100).Draw(t, "percent")), Note: "on it"}
	} else {
		n.Checkpoint = json.RawMessage(pick(t, "checkpoint", `{"at":1}`, `{"at":2}`))
	}
	got, err := d.Store.Note(d.ctx, []store.Note{n})
	matchErr(t, "note", err, nil)
	matchErr(t, "note", got[0], d.m.note(n))
	d.touch(l.ID)
}

// drawSettlement draws the result of an attempt.
func (d *driver) drawSettlement(t *rapid.T, l store.Lease) store.Settlement {
	s := store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, Why: "drawn"}
	if r, ok := d.m.jobs[l.ID]; ok && r.holds(l.Batch, l.Token) && r.started && rapid.Bool().Draw(t, "it took all the time") {
		s.Took = max(0, d.m.now.Sub(d.m.leases[r.batch].claimedAt))
	}
	failure := &holdfast.Failure{Code: pick(t, "code", "FLAKY", "BROKEN"), Category: "test", Message: "it broke", Dependency: pick(t, "dependency", "", "gateway"), Benign: rapid.IntRange(0, 3).Draw(t, "benign") == 0}
	if rapid.IntRange(0, 5).Draw(t, "without a fingerprint") < 5 {
		failure.Fingerprint = "print-" + failure.Code
	}
	s.Version, s.Queue = pick(t, "version", "", "v1", "v2"), l.Queue
	s.To = pick(t, "to", holdfast.Complete, holdfast.Queued, holdfast.Queued, holdfast.Failed, holdfast.Cancelled)
	switch s.To {
	case holdfast.Complete:
		s.Result = pick(t, "result", nil, json.RawMessage(`{"ok":true}`))
		if rapid.IntRange(0, 3).Draw(t, "enqueues jobs") == 0 {
			s.Enqueue = d.nextDrafts(t, l)
		}
	case holdfast.Failed:
		s.Failure, s.Charge = failure, pick(t, "charge", store.ChargeFailure, store.ChargeCrash, store.ChargeNone)
	case holdfast.Cancelled:
		s.Charge = pick(t, "charge", store.ChargeNone, store.ChargeRelease)
	case holdfast.Queued:
		s.Delay = pick(t, "delay", 0, 0, 5*time.Second, time.Minute, 24*time.Hour)
		s.Charge = pick(t, "charge", store.ChargeFailure, store.ChargeCrash, store.ChargeRelease)
		s.StartWithin = pick(t, "within", 0, 0, 20*time.Second)
		if s.Charge != store.ChargeRelease {
			s.Failure, s.Limit = failure, 100
		}
	}
	return s
}

// nextDrafts draws what a job enqueues with its completion: members of its group or of another, or jobs without a group.
func (d *driver) nextDrafts(t *rapid.T, l store.Lease) []holdfast.Draft {
	n := rapid.IntRange(1, 3).Draw(t, "jobs to enqueue")
	if group := pick(t, "group of these jobs", l.Group, l.Group, d.anyGroup(t), holdfast.ID{}); !group.IsZero() {
		return d.members(t, group, n)
	}
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		drafts[i] = d.draft(t)
		if r := d.m.jobs[l.ID]; r != nil && rapid.IntRange(0, 3).Draw(t, "under the same keys") == 0 { // a successor of the job
			drafts[i].Kind, drafts[i].Queue, drafts[i].Owner, drafts[i].Order = r.Kind, r.Queue, r.Owner, r.Order
			if drafts[i].UniqueKey = r.UniqueKey; r.UniqueKey == "" {
				drafts[i].Replace = nil
			}
			drafts[i].OrderHold = drafts[i].OrderHold && r.Order != ""
		}
		d.touch(drafts[i].ID)
		if holder, taken := d.m.unique[uniqueKey{drafts[i].Owner, drafts[i].Kind, drafts[i].UniqueKey}]; taken {
			d.touch(holder)
		}
	}
	return drafts
}

func (d *driver) settle(t *rapid.T) {
	l := d.heldLease(t)
	batch := []store.Settlement{d.drawSettlement(t, l)}
	if len(batch[0].Enqueue) > 0 { // alone: what one settlement of a call enqueues may see what another has freed, and a store may choose the order
		d.settleAll(t, batch)
		return
	}
	for range rapid.IntRange(0, 2).Draw(t, "others") {
		other := d.anyLease
		if rapid.Bool().Draw(t, "one that is held") {
			other = d.heldLease
		}
		s := d.drawSettlement(t, other(t))
		s.Enqueue = nil
		batch = append(batch, s)
	}
	switch rapid.IntRange(0, 15).Draw(t, "mischief") {
	case 13:
		batch = append(batch, batch[0])
	case 14:
		batch = append(batch, store.Settlement{Batch: l.Batch, Job: l.ID, Token: l.Token, To: "nowhere"})
	}
	d.settleAll(t, batch)
}

// settleStale settles with any lease that was ever returned, with a forged one, or twice.
func (d *driver) settleStale(t *rapid.T) {
	l := d.anyLease(t)
	switch rapid.IntRange(0, 5).Draw(t, "forged") {
	case 0:
		l.Token++
	case 1:
		l.Batch = holdfast.NewID()
	case 2:
		l.ID = holdfast.NewID()
	}
	s := d.drawSettlement(t, l)
	d.settleAll(t, []store.Settlement{s})
	if rapid.Bool().Draw(t, "twice") {
		d.settleAll(t, []store.Settlement{s})
	}
}

func (d *driver) settleAll(t *rapid.T, batch []store.Settlement) {
	got, err := d.Store.Settle(d.ctx, batch)
	matchErr(t, "settle", err, nil)
	if len(got) != len(batch) {
		t.Fatalf("%d settlements got %d answers", len(batch), len(got))
	}
	for i, s := range batch {
		t.Logf("settled %.8x token %d as %s: %v", s.Job[8:], s.Token, s.To, got[i])
		matchErr(t, "settlement to "+string(s.To), got[i], d.m.settle(s))
		d.touch(s.Job)
	}
}
