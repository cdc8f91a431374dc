package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A producer enqueues jobs in every way, and records each job in its journal only after the store has acknowledged it. Sometimes it cancels or retries a job,
// as a person would.
type producer struct {
	store   store.Store
	journal *journal
	random  *rand.Rand
	first   holdfast.ID
	remote  bool
	mine    []holdfast.ID // jobs of this producer that were acknowledged
}

func runProducer(ctx context.Context, spec childSpec, s store.Store, j *journal) error {
	r := rand.New(rand.NewPCG(spec.Seed, uint64(spec.N)))
	p := &producer{store: s, journal: j, random: r, first: spec.First, remote: spec.remote()}
	for ctx.Err() == nil {
		switch roll := r.IntN(100); {
		case roll < 54:
			p.enqueue(ctx, p.draft())
		case roll < 69:
			p.enqueue(ctx, p.drafts(2+r.IntN(12))...)
		case roll < 70:
			p.enqueue(ctx, p.drafts(150)...)
		case roll < 78:
			p.enqueueIdempotent(ctx)
		case roll < 84:
			p.replaceOne(ctx)
		case roll < 90:
			p.enqueueGroup(ctx)
		case roll < 95:
			p.cancelOne(ctx)
		default:
			p.retryOne(ctx)
		}
		sleep(ctx, time.Duration(5+r.IntN(40))*time.Millisecond)
	}
	return nil
}

func (p *producer) drafts(n int) []holdfast.Draft {
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		drafts[i] = p.draft()
		if n > 100 { // a large batch has only short jobs, so that it does not dominate the run
			drafts[i], _ = holdfast.NewDraft(script{Do: doNothing})
			if i%40 == 7 {
				drafts[i].Order = p.orderKey()
			}
		}
	}
	return drafts
}

func (p *producer) draft() holdfast.Draft {
	s := drawScript(p.random)
	for p.remote && s.Do == doPoison { // a server reclaims such a job, and has no journal to prove why it ends
		s = drawScript(p.random)
	}
	reported := p.remote && p.random.IntN(3) == 0
	if p.random.IntN(12) == 0 && !reported {
		s.Next = 1 + p.random.IntN(3)
	}
	d, err := holdfast.NewDraft(s.args())
	if err != nil {
		panic(err) // a script can always be encoded
	}
	d.Queue = []string{"left", "right"}[p.random.IntN(2)]
	if reported {
		d.Kind, d.Queue = reportScript{}.Kind(), reportQueue
	}
	d.Priority = int16(p.random.IntN(3))
	d.Owner = []string{"", "", "acme", "zeta"}[p.random.IntN(4)]
	if p.random.IntN(25) == 0 && !p.remote {
		d.Dependency = limitedDependency
	}
	switch p.random.IntN(10) {
	case 0, 1:
		d.Delay = time.Duration(1+p.random.IntN(1500)) * time.Millisecond
	case 2:
		d.UniqueKey = fmt.Sprintf("key-%d", p.random.IntN(12))
	}
	if p.random.IntN(20) == 0 {
		d.Order = p.orderKey()
		d.OrderHold = p.random.IntN(2) == 0 && expectedEnd(s.Do) == holdfast.Complete // a dead letter would hold its line for ever
	}
	return d
}

// enqueue sends the drafts once and reports whether they were acknowledged. Without an answer the jobs may or may not exist, so none is recorded.
func (p *producer) enqueue(ctx context.Context, drafts ...holdfast.Draft) bool {
	from := time.Now().UnixNano()
	receipts, err := p.store.Enqueue(ctx, drafts)
	if err != nil {
		sleep(ctx, 20*time.Millisecond)
		return false
	}
	till := time.Now().UnixNano()
	lines := make([]line, len(receipts))
	for i, r := range receipts {
		lines[i] = line{Saw: sawReceipt, From: from, Till: till, Job: r.ID, Existing: r.Existing, Delay: drafts[i].Delay, Key: drafts[i].UniqueKey}
		if drafts[i].Replace != nil {
			lines[i].Replaced, lines[i].Content = r.Replaced, scriptOf(drafts[i].Args).Content
		}
		if !r.Existing { // an existing job may belong to another producer
			p.mine = append(p.mine, r.ID)
		}
	}
	p.journal.write(lines...)
	p.journal.sync()
	return true
}

// enqueueIdempotent repeats one draft with an idempotency key until it is acknowledged, as a careful client does, and then once more: there must be one job.
func (p *producer) enqueueIdempotent(ctx context.Context) {
	d := p.draft()
	d.UniqueKey = ""
	d.IdempotencyKey = holdfast.NewID().String()
	for ctx.Err() == nil && !p.enqueue(ctx, d) {
	}
	p.enqueue(ctx, d)
}

func (p *producer) cancelOne(ctx context.Context) {
	if len(p.mine) == 0 {
		return
	}
	id := p.mine[p.random.IntN(len(p.mine))]
	from := time.Now().UnixNano()
	if _, err := p.store.Cancel(ctx, store.Intervention{Job: id, Actor: "chaos", Reason: "chaos test"}); err == nil {
		p.journal.write(line{Saw: sawCancel, From: from, Till: time.Now().UnixNano(), Job: id, Answer: applied})
		p.journal.sync()
	}
}

// retryOne retries a failed job of this run. Other jobs in the store are ignored, and so are members of groups, whose outcomes are verified.
func (p *producer) retryOne(ctx context.Context) {
	failed, _, err := p.store.Jobs(ctx, store.Filter{DeadLetters: true, Limit: 5})
	failed = slices.DeleteFunc(failed, func(job holdfast.Job) bool { return !belongsToRun(job, p.first) || !job.Group.IsZero() })
	if err != nil || len(failed) == 0 {
		return
	}
	id := failed[p.random.IntN(len(failed))].ID
	l := line{Saw: sawRetry, From: time.Now().UnixNano(), Job: id, Answer: unknown}
	p.journal.write(l)
	_, err = p.store.Retry(ctx, store.Intervention{Job: id, Actor: "chaos", Reason: "chaos test"})
	if err == nil {
		l.Till, l.Answer = time.Now().UnixNano(), applied
		p.journal.write(l)
		p.journal.sync()
	}
}
