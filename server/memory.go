package server

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// A budget counts the bytes that requests hold in memory. There is one for all callers and one for each key.
type budget struct{ held atomic.Int64 }

// take adds n bytes, unless the total would exceed most.
func (b *budget) take(n, most int64) bool {
	if b.held.Add(n) > most {
		b.held.Add(-n)
		return false
	}
	return true
}

// takeBody counts n bytes of a body, or of a line of a stream. It reports false if the budget is exhausted.
//
// One key may hold at most half of the total, so that it cannot use up the memory of the others. A quarter of both is reserved for vital requests, and the
// first bytes of those are never refused, because a worker that cannot renew its leases causes more work: its jobs are reclaimed and run again. The excess
// is bounded by the number of requests that may be in progress.
func (s *Server) takeBody(a *reply, n int64) bool {
	most, half := s.cfg.Limits.Bytes, s.cfg.Limits.Bytes/2
	if !a.vital {
		most, half = most-most/4, half-half/4
	}
	small := n <= smallBody
	if !s.bodies.take(n, most) {
		if !small || !a.vital {
			return false
		}
		s.bodies.held.Add(n)
	}
	if a.quota != nil && !a.quota.bodies.take(n, half) {
		if !small { // the small bodies of a key are bounded by the number of its requests in progress
			s.bodies.held.Add(-n)
			return false
		}
		a.quota.bodies.held.Add(n)
	}
	return true
}

// smallBody is the size of the first part of a body.
const smallBody = 4 << 10

func (s *Server) giveBody(a *reply, n int64) {
	s.bodies.held.Add(-n)
	if a.quota != nil {
		a.quota.bodies.held.Add(-n)
	}
}

// smallAnswer is the size up to which answers are never refused, however many answers wait for slow readers.
const smallAnswer = 64 << 10

// takeAnswer counts an answer until it is written: with slow readers, answers stay in memory. Only answers to reads may be refused (mayRefuse): the answer to
// a request that changed something is always sent, because the caller would otherwise repeat the change.
func (s *Server) takeAnswer(a *reply, n int64, mayRefuse bool) bool {
	if n <= smallAnswer {
		mayRefuse = false
	}
	most := s.cfg.Limits.Bytes
	if !s.answers.take(n, most) {
		if mayRefuse {
			return false
		}
		s.answers.held.Add(n)
	}
	if a.quota != nil && !a.quota.answers.take(n, most/2) {
		if mayRefuse {
			s.answers.held.Add(-n)
			return false
		}
		a.quota.answers.held.Add(n)
	}
	return true
}

func (s *Server) giveAnswer(a *reply, n int64) {
	s.answers.held.Add(-n)
	if a.quota != nil {
		a.quota.answers.held.Add(-n)
	}
}

// hasAnswerMemory reports whether the budget of answers is not exhausted. It is checked before jobs are claimed, because the answer to a claim cannot be refused
// any more: its jobs would be leased and unknown to the worker.
func (s *Server) hasAnswerMemory(c Caller) bool {
	most := s.cfg.Limits.Bytes
	if q, ok := s.quotas.Load(c.Key); ok && q.(*quota).answers.held.Load() >= most/2 {
		return false
	}
	return s.answers.held.Load() < most
}

// A lineBudget counts the memory of the lines of one stream, from when they are read until they are enqueued.
type lineBudget struct {
	server *Server
	of     *reply
	ctx    context.Context
}

// linePatience is how long a stream waits for memory before it is refused. Meanwhile the lines that it has read are enqueued, which frees memory.
const linePatience = 2 * time.Second

// take waits for n bytes, and refuses the stream if they are not free within linePatience.
func (b *lineBudget) take(n int) error {
	for begun := time.Now(); !b.server.takeBody(b.of, int64(n)); {
		if time.Since(begun) > linePatience {
			return busy()
		}
		select {
		case <-b.ctx.Done():
			return b.ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func (b *lineBudget) give(n int) { b.server.giveBody(b.of, int64(n)) }

const (
	mostAnswer   = 8 << 20 // approximate maximum size of the answer to a claim
	firstClaim   = 8       // jobs in the first part of a claim; each further part doubles
	largestClaim = 256     // maximum number of jobs in one part: their size is known only after they are claimed
	smallJob     = 8 << 10 // maximum size of a small job, in bytes
	manySmall    = 256     // after so many small jobs in a row, the first part of a claim
	firstOfSmall = 64      // has this many jobs
	onlySmall    = 4096    // after so many small jobs in a row, claims are not divided
)

// A claimSizer adapts the number of jobs in one store claim to their size. It counts the small jobs since the last large one. It is safe for concurrent use.
type claimSizer struct{ jobs atomic.Int64 }

// first is the number of jobs in the first part of a claim.
func (r *claimSizer) first() int {
	if r.jobs.Load() >= manySmall {
		return firstOfSmall
	}
	return firstClaim
}

// observe records the size of a claimed job.
func (r *claimSizer) observe(bytes int) {
	if bytes > smallJob {
		r.jobs.Store(0)
		return
	}
	r.jobs.Add(1)
}

// claim claims in one call of the store if jobs have been small for a long time, and otherwise in parts. If a job is large after all, the store bounds the
// answer by c.Bytes. The PostgreSQL store then claims jobs that it has to release again, so this must be rare.
func (r *claimSizer) claim(ctx context.Context, do func(context.Context, store.Claim) ([]store.Lease, error), c store.Claim) ([]store.Lease, error) {
	if r.jobs.Load() < onlySmall {
		return r.claimInParts(ctx, do, c)
	}
	if c.Bytes <= 0 || c.Bytes > mostAnswer {
		c.Bytes = mostAnswer
	}
	leases, err := do(ctx, c)
	for i := range leases {
		r.observe(len(leases[i].Args) + len(leases[i].Checkpoint))
	}
	return leases, err
}

// claimInParts claims, reclaims or expires in parts, until it has as many jobs as the worker asked for, or enough bytes for one answer. The size of a job is known
// only when it is leased, and a leased job must reach its worker, so the parts are small: the answer stays below about mostAnswer plus one part of jobs of
// unexpected size. An error after the first part is not returned: the jobs that are already leased are.
func (r *claimSizer) claimInParts(ctx context.Context, do func(context.Context, store.Claim) ([]store.Lease, error), c store.Claim) ([]store.Lease, error) {
	limit, start, bytes, most := c.Limit, c.Start, 0, mostAnswer
	if c.Bytes > 0 {
		most = min(c.Bytes, mostAnswer)
	}
	c.Limit = min(limit, r.first())
	c.Busy = maps.Clone(c.Busy)
	all := []store.Lease{}
	for {
		c.Start = min(max(0, start-len(all)), c.Limit)
		leases, err := do(ctx, c)
		if err != nil && len(all) == 0 {
			return nil, err
		}
		for i := range leases {
			size := len(leases[i].Args) + len(leases[i].Checkpoint)
			r.observe(size)
			bytes += size
			if c.OwnerSlots > 0 && leases[i].Owner != "" {
				if c.Busy == nil {
					c.Busy = map[string]int{}
				}
				c.Busy[leases[i].Owner]++
			}
		}
		all = append(all, leases...)
		if err != nil || len(leases) < c.Limit || len(all) >= limit || bytes >= most/2 {
			return all, nil
		}
		fits := (most - bytes) / max(1, bytes/len(all))
		if c.Bytes > 0 {
			c.Bytes = most - bytes
		}
		c.Limit = min(limit-len(all), 2*c.Limit, largestClaim, fits)
	}
}
