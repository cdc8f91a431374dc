package postgres

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// Rows that a transaction inserts, collected so that each table takes one statement.

// An ending is how a job's generation ended.
type ending struct {
	state   holdfast.State
	worker  string
	started time.Time // zero: the job never ran
	failure *holdfast.Failure
	result  string
}

// finishedRows are rows of holdfast_finished.
type finishedRows []finishedRow

type finishedRow struct {
	*member
	ending
}

func (f *finishedRows) add(m *member, e ending) { *f = append(*f, finishedRow{m, e}) }

// queue inserts the rows with one statement.
func (f finishedRows) queue(p *pipeline, sql string, now time.Time) {
	if len(f) == 0 {
		return
	}
	var n moveRows
	var started, state, worker, code, fingerprint, result, benign column
	for _, r := range f {
		n.add(r.member)
		started.micros(r.ending.started)
		state.add(string(r.state))
		worker.textOrNull(r.worker)
		result.textOrNull(r.result)
		benign.bool(r.failure != nil && r.failure.Benign)
		if r.failure == nil {
			code.null()
			fingerprint.null()
		} else {
			code.quote(cleanText(r.failure.Code))
			fingerprint.textOrNull(cleanText(r.failure.Fingerprint))
		}
	}
	p.Queue(sql, append(append([]any{timestamp(now)}, n.args()...), arrayArgs([]column{started, state, worker, code, fingerprint, result, benign})...)...)
}

// copy inserts many rows with COPY, at about half the cost of a statement.
func (f finishedRows) copy(ctx context.Context, p *pipeline, now time.Time) error {
	const into = "holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state, worker, code, fingerprint, result, discarded_at, benign)"
	return p.copy(ctx, into, len(f), func(t *tuple, i int) {
		r := &f[i]
		t.fields(15).member(r.member).time(r.ending.started).time(now).text(string(r.state)).textOrNull(r.worker)
		if r.failure == nil {
			t.null().null()
		} else {
			t.text(cleanText(r.failure.Code)).textOrNull(cleanText(r.failure.Fingerprint))
		}
		t.textOrNull(r.result)
		if r.failure != nil && r.failure.Benign {
			t.time(now).bool(true)
		} else {
			t.null().bool(false)
		}
	})
}

// failureColumns are the columns of a failure in every table that has them.
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
	c.code.quote(cleanText(f.Code))
	c.category.quote(cleanText(f.Category))
	c.message.quote(cleanText(f.Message))
	c.detail.textOrNull(cleanText(f.Detail))
	c.context.textOrNull(cleanMap(f.Context))
	c.dependency.textOrNull(cleanText(f.Dependency))
	c.fingerprint.textOrNull(cleanText(f.Fingerprint))
	c.benign.bool(f.Benign)
}

func (c *failureColumns) args() []any {
	return []any{c.code.String(), c.category.String(), c.message.String(), c.detail.String(), c.context.String(),
		c.dependency.String(), c.fingerprint.String(), c.benign.String()}
}

// An attempt is one run of a job that did not complete it.
type attempt struct {
	worker       string
	started, due time.Time
	to, said     holdfast.State // where the job went; where the settlement wanted it to go, if a cancel request overruled it
	charge       store.Charge
	count, limit int
	failure      *holdfast.Failure
	why          string
}

// attemptRows are rows of holdfast_attempt. A completed attempt has none: the finished row records it.
type attemptRows []attemptRow

type attemptRow struct {
	*member
	attempt
}

func (r *attemptRows) add(m *member, a attempt) { *r = append(*r, attemptRow{m, a}) }

// queue inserts the rows with one statement.
func (r attemptRows) queue(p *pipeline, sql string, now time.Time) {
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
		charge.textOrNull(string(a.attempt.charge))
		count.int(a.count)
		limit.int(a.limit)
		due.micros(a.due)
		failure.add(a.failure)
		why.textOrNull(cleanText(a.why))
		said.textOrNull(string(a.attempt.said))
	}
	args := append([]any{timestamp(now)}, arrayArgs([]column{job, token, generation, worker, started, to, charge, count, limit, due})...)
	p.Queue(sql, append(append(args, failure.args()...), why.String(), said.String())...)
}

// copy inserts many rows with COPY, at about half the cost of a statement.
func (r attemptRows) copy(ctx context.Context, p *pipeline, now time.Time) error {
	const into = `holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, count, cap, due_at,
		code, category, message, detail, context, dependency, fingerprint, benign, why, said)`
	return p.copy(ctx, into, len(r), func(t *tuple, i int) {
		a := &r[i]
		t.fields(21).id(a.job).int(int32(a.token)).int(int32(a.generation)).text(a.worker).time(a.attempt.started).time(now).text(string(a.to))
		t.textOrNull(string(a.attempt.charge)).int(int32(a.count)).int(int32(a.limit)).time(a.due)
		if f := a.failure; f == nil {
			t.null().null().null().null().null().null().null().bool(false)
		} else {
			t.text(cleanText(f.Code)).text(cleanText(f.Category)).text(cleanText(f.Message)).textOrNull(cleanText(f.Detail)).textOrNull(cleanMap(f.Context))
			t.textOrNull(cleanText(f.Dependency)).textOrNull(cleanText(f.Fingerprint)).bool(f.Benign)
		}
		t.textOrNull(cleanText(a.why)).textOrNull(string(a.attempt.said))
	})
}

// releaseMerges are attempts of jobs that were released more than sqltext.KeptReleases times: each replaces the released attempt before it, with a
// repeat count.
type releaseMerges struct{ job, token column }

func (f *releaseMerges) add(n *store.Settlement, m *member, to holdfast.State) {
	if to == holdfast.Queued && n.Charge == store.ChargeRelease && m.releases > sqltext.KeptReleases {
		f.job.id(n.Job)
		f.token.int(n.Token)
	}
}

func (f *releaseMerges) queue(p *pipeline, sql string) {
	if len(f.job.text) > 0 {
		p.Queue(sql, f.job.String(), f.token.String())
	}
}

// lateRows are rows of holdfast_late_settlement: settlements that arrived after their lease was lost. They are kept as evidence and never applied.
type lateRows struct {
	job, token, to, took, charge, why column
	failure                           failureColumns
	rows                              int
}

func (r *lateRows) add(n *store.Settlement) {
	r.job.id(n.Job)
	r.token.int(n.Token)
	r.to.add(string(n.To))
	r.took.int(int(n.Took.Microseconds()))
	r.charge.textOrNull(string(n.Charge))
	r.failure.add(n.Failure)
	r.why.textOrNull(cleanText(n.Why))
	r.rows++
}

func (r *lateRows) queue(p *pipeline, sql string, now time.Time) {
	if r.rows > 0 {
		args := []any{timestamp(now), r.job.String(), r.token.String(), r.to.String(), r.took.String(), r.charge.String()}
		p.Queue(sql, append(append(args, r.failure.args()...), r.why.String())...)
	}
}
