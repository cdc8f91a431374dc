package postgres_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/postgres"
)

// pageBudgets are operations that run on a store full of jobs, with the number of pages that each may touch. A table of a million rows has ten
// thousand pages and more.
var pageBudgets = []struct {
	name  string
	pages int
	run   func(*runner)
}{
	{"claim 100 from seven lanes", 1000, func(r *runner) { r.claim("default", 100) }},
	{"complete them", 2100, func(r *runner) { r.settle(store.Settlement{To: holdfast.Complete, Took: time.Millisecond}) }},
	{"claim 100 from one lane", 1000, func(r *runner) { r.claim("alone", 100) }},
	{"renew them", 300, (*runner).renew},
	{"retry them", 2700, func(r *runner) { r.settle(store.Settlement{To: holdfast.Queued, Charge: store.ChargeFailure}) }},
	{"claim from lanes with nothing in them", 100, func(r *runner) { r.claim("queue-9", 0) }},
	{"promote 100", 1900, func(r *runner) { r.done(r.store.Promote(r.ctx, 100)) }},
	{"expire 100", 6000, func(r *runner) { r.leases(100)(r.store.Expire(r.ctx, claimHundreds(1))) }},
	{"reclaim 200", 3800, func(r *runner) { r.leases(200)(r.store.Reclaim(r.ctx, claimHundreds(2))) }},
	{"enqueue 50 with keys", 1200, (*runner).enqueueKeyed},
	{"cancel a queued job", 300, func(r *runner) { r.done(r.store.Cancel(r.ctx, interventionOn("ada", onlyReady))) }},
	{"edit a queued job", 750, func(r *runner) {
		r.done(r.store.Edit(r.ctx, store.Edit{Intervention: interventionOn("ada", onlyReady+10), Patch: []byte(`{"n":1}`), Queue: new("alone"), Delay: new(time.Duration(0))}))
	}},
	{"retry a failed job", 450, func(r *runner) { r.done(r.store.Retry(r.ctx, interventionOn("ada", onlyFinished))) }},
	{"redrive nine dead letters", 800, (*runner).redrive},
	{"count the outcomes of ten thousand", 35_000, func(r *runner) { r.done(r.store.Redriven(r.ctx, jobID(1))) }},
	{"find 100 missed deadlines", 2700, func(r *runner) { r.done(r.store.MissedDeadlines(r.ctx, 100)) }},
	{"keep a record and a limit", 100, (*runner).keep},
	{"read a job and its history", 500, func(r *runner) { r.done(r.store.History(r.ctx, jobID(onlyFinished))) }},
}

// Jobs of the filled tables that have a row in one place only.
const (
	onlyReady    = 400_010
	onlyFinished = 900_010
)

// A runner performs the operations.
type runner struct {
	*world
	store *postgres.Store
	held  []store.Lease
}

// checkPageBudgets runs each operation on a store of its own, whose sessions report what they touched when they end.
func (w *world) checkPageBudgets(t *testing.T) {
	w.ok(w.conn.Close(w.ctx))
	conn, err := pgx.Connect(w.ctx, w.url)
	w.ok(err)
	w.conn = conn
	w.awaitSessionsEnd()
	r := &runner{world: w}
	for _, e := range pageBudgets {
		before := w.pages()
		r.store = w.open(postgres.Config{URL: w.url, MaxConns: 2})
		e.run(r)
		w.ok(r.store.Close())
		w.awaitSessionsEnd()
		touched := w.pages() - before
		t.Logf("%s: %d pages", e.name, touched)
		if touched > e.pages {
			t.Errorf("%s: %d pages touched, at most %d are allowed: find the statement that reads more than it takes", e.name, touched, e.pages)
		}
	}
}

// pages counts accesses to pages of our tables and their indexes, in memory or on disk.
func (w *world) pages() int {
	w.Helper()
	return w.count(`SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0) + coalesce(toast_blks_hit + toast_blks_read, 0)
		+ coalesce(tidx_blks_hit + tidx_blks_read, 0))::int FROM pg_statio_user_tables WHERE relname LIKE 'holdfast\_%'`)
}

// jobID is the id of a job in the filled tables.
func jobID(n int) (id holdfast.ID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

func interventionOn(actor string, n int) store.Intervention {
	return store.Intervention{Job: jobID(n), Actor: actor, Reason: "asked for"}
}

func claimHundreds(n int) store.Claim {
	return store.Claim{Worker: "runner", Queues: []string{"default"}, Limit: 100 * n, Start: 100 * n, Lease: time.Minute}
}

// done is for operations whose answer does not matter here.
func (r *runner) done(_ any, err error) {
	r.Helper()
	r.ok(err)
}

func (r *runner) leases(want int) func([]store.Lease, error) {
	return func(held []store.Lease, err error) {
		r.Helper()
		r.ok(err)
		if len(held) != want {
			r.Fatalf("%d leases, not %d", len(held), want)
		}
		r.held = held
	}
}

func (r *runner) claim(queue string, want int) {
	c := claimHundreds(1)
	c.Queues = []string{queue}
	r.leases(want)(r.store.Claim(r.ctx, c))
}

func (r *runner) renew() {
	ids := make([]holdfast.ID, len(r.held))
	for i := range r.held {
		ids[i] = r.held[i].ID
	}
	r.done(r.store.Renew(r.ctx, []store.Renewal{{Batch: r.held[0].Batch, Running: ids}}, time.Minute))
}

func (r *runner) settle(how store.Settlement) {
	settlements := make([]store.Settlement, len(r.held))
	for i, l := range r.held {
		settlements[i] = how
		settlements[i].Batch, settlements[i].Job, settlements[i].Token = l.Batch, l.ID, l.Token
	}
	answers, err := r.store.Settle(r.ctx, settlements)
	r.ok(err)
	for _, answer := range answers {
		r.ok(answer)
	}
}

func (r *runner) enqueueKeyed() {
	list := drafts(50)
	for i := range list {
		list[i].UniqueKey, list[i].IdempotencyKey = fmt.Sprint("budget-", i), fmt.Sprint("budget-", i)
	}
	r.enqueue(r.store, list...)
}

func (r *runner) redrive() {
	step := store.Redrive{ID: holdfast.NewID(), Actor: "ada", Reason: "the gateway is back", Patch: []byte(`{"again":true}`)}
	for n := range 9 {
		step.Jobs = append(step.Jobs, jobID(onlyFinished+10*(n+1)))
	}
	answers, err := r.store.Redrive(r.ctx, step)
	r.ok(errors.Join(append(answers, err)...))
}

func (r *runner) keep() {
	r.ok(r.store.Apply(r.ctx, store.Change{Records: []store.Record{{Namespace: "breaker", Name: "gateway", Body: []byte(`{}`)}},
		Place: []store.Hold{{Dependency: "gateway", Source: store.SourceBreaker, AtMost: 2, Actor: "holdfast"}}}))
}
