package postgres

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// The rows that a transaction appends, gathered as columns.

// An ending is the last transition of a job's generation.
type ending struct {
	state   holdfast.State
	worker  string
	started time.Time // zero: it never ran
	failure *holdfast.Failure
	result  string
}

// finishedRows are jobs that ended.
type finishedRows []finishedRow

type finishedRow struct {
	*member
	ending
}

func (f *finishedRows) add(m *member, e ending) { *f = append(*f, finishedRow{m, e}) }

// queue writes them with a statement.
func (f finishedRows) queue(p *pipe, sql string, now time.Time) {
	if len(f) == 0 {
		return
	}
	var n narrow
	var started, state, worker, code, fingerprint, result, benign column
	for _, r := range f {
		n.add(r.member)
		started.micros(r.ending.started)
		state.add(string(r.state))
		worker.some(r.worker)
		result.some(r.result)
		benign.bool(r.failure != nil && r.failure.Benign)
		if r.failure == nil {
			code.null()
			fingerprint.null()
		} else {
			code.quote(clean(r.failure.Code))
			fingerprint.some(clean(r.failure.Fingerprint))
		}
	}
	p.Queue(sql, append(append([]any{stamp(now)}, n.args()...), literals([]column{started, state, worker, code, fingerprint, result, benign})...)...)
}

// copy writes many of them at once, at half the cost.
func (f finishedRows) copy(ctx context.Context, p *pipe, now time.Time) error {
	const into = "holdfast_finished (job, token, failures, crashes, interrupts, generation, started_at, finished_at, state, worker, code, fingerprint, result, discarded_at, benign)"
	return p.copy(ctx, into, len(f), func(t *tuple, i int) {
		r := &f[i]
		t.fields(15).member(r.member).time(r.ending.started).time(now).text(string(r.state)).some(r.worker)
		if r.failure == nil {
			t.null().null()
		} else {
			t.text(clean(r.failure.Code)).some(clean(r.failure.Fingerprint))
		}
		t.some(r.result)
		if r.failure != nil && r.failure.Benign {
			t.time(now).bool(true)
		} else {
			t.null().bool(false)
		}
	})
}

// failureColumns are how a failure is written wherever it is kept.
type failureColumns struct {
	code, category, message, detail, context, dependency, fingerprint, benign column
}

func (c *failureColumns) add(f *holdfast.Failure) {
	if f == nil {
		for _, each := range []*column{&c.code, &c.category, &c.message, &c.detail, &c.context, &c.dependency, &c.fingerprint} {
			each.null()
		}
		c.benign.bool(false)
		return
	}
	c.code.quote(clean(f.Code))
	c.category.quote(clean(f.Category))
	c.message.quote(clean(f.Message))
	c.detail.some(clean(f.Detail))
	c.context.some(cleanMap(f.Context))
	c.dependency.some(clean(f.Dependency))
	c.fingerprint.some(clean(f.Fingerprint))
	c.benign.bool(f.Benign)
}

func (c *failureColumns) args() []any {
	return []any{c.code.String(), c.category.String(), c.message.String(), c.detail.String(), c.context.String(),
		c.dependency.String(), c.fingerprint.String(), c.benign.String()}
}

// An attempt is one span in a worker's hands that did not complete.
type attempt struct {
	worker       string
	started, due time.Time
	to, said     holdfast.State
	charge       holdfast.Charge
	count, limit int
	failure      *holdfast.Failure
	why          string
}

// attemptRows are attempts that ended other than by completing.
type attemptRows []attemptRow

type attemptRow struct {
	*member
	attempt
}

func (r *attemptRows) add(m *member, a attempt) { *r = append(*r, attemptRow{m, a}) }

// queue writes them with a statement.
func (r attemptRows) queue(p *pipe, sql string, now time.Time) {
	if len(r) == 0 {
		return
	}
	var job, token, generation, worker, started, to, charge, count, limit, due, why, said column
	var failure failureColumns
	for _, a := range r {
		job.id(a.job)
		token.int(a.token)
		generation.int(a.generation)
		worker.quote(a.worker)
		started.micros(a.attempt.started)
		to.add(string(a.to))
		charge.some(string(a.attempt.charge))
		count.int(a.count)
		limit.int(a.limit)
		due.micros(a.due)
		failure.add(a.failure)
		why.some(clean(a.why))
		said.some(string(a.attempt.said))
	}
	args := append([]any{stamp(now)}, literals([]column{job, token, generation, worker, started, to, charge, count, limit, due})...)
	p.Queue(sql, append(append(args, failure.args()...), why.String(), said.String())...)
}

// copy writes many of them at once, at half the cost.
func (r attemptRows) copy(ctx context.Context, p *pipe, now time.Time) error {
	const into = `holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, count, cap, due_at,
		code, category, message, detail, context, dependency, fingerprint, benign, why, said)`
	return p.copy(ctx, into, len(r), func(t *tuple, i int) {
		a := &r[i]
		t.fields(21).id(a.job).int(int32(a.token)).int(int32(a.generation)).text(a.worker).time(a.attempt.started).time(now).text(string(a.to))
		t.some(string(a.attempt.charge)).int(int32(a.count)).int(int32(a.limit)).time(a.due)
		if f := a.failure; f == nil {
			t.null().null().null().null().null().null().null().bool(false)
		} else {
			t.text(clean(f.Code)).text(clean(f.Category)).text(clean(f.Message)).some(clean(f.Detail)).some(cleanMap(f.Context))
			t.some(clean(f.Dependency)).some(clean(f.Fingerprint)).bool(f.Benign)
		}
		t.some(clean(a.why)).some(string(a.attempt.said))
	})
}

// folds are the released attempts of jobs that were released over and over: each stands for the one before it.
type folds struct{ job, token column }

func (f *folds) add(n *holdfast.Settlement, m *member, to holdfast.State) {
	if to == holdfast.Queued && n.Charge == holdfast.ChargeInterrupt && m.interrupts > sqltext.KeptReleases {
		f.job.id(n.Job)
		f.token.int(n.Token)
	}
}

func (f *folds) queue(p *pipe, sql string) {
	if len(f.job.text) > 0 {
		p.Queue(sql, f.job.String(), f.token.String())
	}
}

// lateRows are settlements that came after their lease was lost.
type lateRows struct {
	job, token, to, took, charge, why column
	failure                           failureColumns
	rows                              int
}

func (r *lateRows) add(n *holdfast.Settlement) {
	r.job.id(n.Job)
	r.token.int(n.Token)
	r.to.add(string(n.To))
	r.took.int(int(n.Took.Microseconds()))
	r.charge.some(string(n.Charge))
	r.failure.add(n.Failure)
	r.why.some(clean(n.Why))
	r.rows++
}

func (r *lateRows) queue(p *pipe, sql string, now time.Time) {
	if r.rows > 0 {
		args := []any{stamp(now), r.job.String(), r.token.String(), r.to.String(), r.took.String(), r.charge.String()}
		p.Queue(sql, append(append(args, r.failure.args()...), r.why.String())...)
	}
}
