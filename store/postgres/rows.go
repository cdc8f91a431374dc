package postgres

import (
	"time"

	"github.com/holdfastdev/holdfast"
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

type finishedRows struct {
	narrow
	started, state, worker, code, fingerprint, result column
}

func (f *finishedRows) add(m *member, e ending) {
	f.narrow.add(m)
	f.started.time(e.started)
	f.state.add(string(e.state))
	f.worker.some(e.worker)
	f.result.some(e.result)
	if e.failure == nil {
		f.code.null()
		f.fingerprint.null()
		return
	}
	f.code.quote(clean(e.failure.Code))
	f.fingerprint.some(clean(e.failure.Fingerprint))
}

func (f *finishedRows) queue(p *pipe, sql, now string) {
	if len(f.job) > 0 {
		p.Queue(sql, append(append([]any{now}, f.args()...), f.started.String(), f.state.String(), f.worker.String(),
			f.code.String(), f.fingerprint.String(), f.result.String())...)
	}
}

// completeRows are the jobs of one worker that ended well.
type completeRows struct {
	narrow
	started, result column
}

func (c *completeRows) add(m *member, e ending) {
	c.narrow.add(m)
	if e.started.IsZero() {
		c.started.null()
	} else {
		c.started.int(int(e.started.UnixMicro()))
	}
	c.result.some(e.result)
}

func (c *completeRows) queue(p *pipe, sql, now, worker string) {
	p.Queue(sql, append(append([]any{now}, c.brief()...), c.started.String(), c.result.String(), worker)...)
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

type attemptRows struct {
	job, token, generation, worker, started, to, charge, count, limit, due, why, said column
	failure                                                                           failureColumns
	rows                                                                              int
}

func (r *attemptRows) add(m *member, a attempt) {
	r.job.id(m.job)
	r.token.int(m.token)
	r.generation.int(m.generation)
	r.worker.quote(a.worker)
	r.started.time(a.started)
	r.to.add(string(a.to))
	r.charge.some(string(a.charge))
	r.count.int(a.count)
	r.limit.int(a.limit)
	r.due.time(a.due)
	r.failure.add(a.failure)
	r.why.some(clean(a.why))
	r.said.some(string(a.said))
	r.rows++
}

func (r *attemptRows) queue(p *pipe, sql, now string) {
	if r.rows == 0 {
		return
	}
	args := []any{now, r.job.String(), r.token.String(), r.generation.String(), r.worker.String(), r.started.String(), r.to.String(),
		r.charge.String(), r.count.String(), r.limit.String(), r.due.String()}
	p.Queue(sql, append(append(args, r.failure.args()...), r.why.String(), r.said.String())...)
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

func (r *lateRows) queue(p *pipe, sql, now string) {
	if r.rows > 0 {
		args := []any{now, r.job.String(), r.token.String(), r.to.String(), r.took.String(), r.charge.String()}
		p.Queue(sql, append(append(args, r.failure.args()...), r.why.String())...)
	}
}
