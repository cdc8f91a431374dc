package server

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A budget counts bytes in memory, of all callers together and of each key.
type budget struct{ held atomic.Int64 }

// take counts n bytes more, unless that is more than most.
func (b *budget) take(n, most int64) bool {
	if b.held.Add(n) > most {
		b.held.Add(-n)
		return false
	}
	return true
}

// takeBody counts bytes of a body, or of a line of a stream, that a request holds. One key holds at most half of what all may, so that it cannot keep the others
// from being heard. Of both a quarter is kept for what workers need to keep and end what they hold, and the first bytes of that are never refused: a worker
// that cannot renew its leases makes more work, not less.
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
		if !small { // small ones of a key are bounded by how many requests it may make at once
			s.bodies.held.Add(-n)
			return false
		}
		a.quota.bodies.held.Add(n)
	}
	return true
}

// smallBody is the first part of a body.
const smallBody = 4 << 10

func (s *Server) giveBody(a *reply, n int64) {
	s.bodies.held.Add(-n)
	if a.quota != nil {
		a.quota.bodies.held.Add(-n)
	}
}

// smallAnswer is what any request may have answered, however many answers wait for slow readers.
const smallAnswer = 64 << 10

// takeAnswer counts an answer until it is written: a reader that is slow, or many, hold it in memory. An answer that says what was done is never refused, because
// the caller would do it again; refused is only what can be asked again.
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

// roomForAnswer reports whether a large answer may be made now. It is asked before jobs are claimed: that answer cannot be refused any more.
func (s *Server) roomForAnswer(c Caller) bool {
	most := s.cfg.Limits.Bytes
	if q, ok := s.quotas.Load(c.Key); ok && q.(*quota).answers.held.Load() >= most/2 {
		return false
	}
	return s.answers.held.Load() < most
}

// A lineBudget counts the lines of one stream in memory, from when they are read until they are enqueued.
type lineBudget struct {
	server *Server
	of     *reply
	ctx    context.Context
}

// linePatience is how long a stream waits for memory before it is refused. Meanwhile its lines that were read before are enqueued.
const linePatience = 2 * time.Second

// take waits for n bytes, and refuses the stream when others hold them for long.
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
	mostAnswer   = 8 << 20 // bytes that the answer to a claim has, about
	firstClaim   = 8       // jobs that a claim takes at first; then twice as many each time
	largestClaim = 256     // of them, at most: how large they are shows only when they are taken
	smallJob     = 8 << 10 // bytes
	manySmall    = 256     // small jobs in a row, after which claims begin with
	firstOfSmall = 64
	onlySmall    = 4096 // small jobs in a row, after which claims take all at once
)

// A smallRun counts the small jobs that were claimed since the last large one.
type smallRun struct{ jobs atomic.Int64 }

// first is how many jobs a claim takes at first.
func (r *smallRun) first() int {
	if r.jobs.Load() >= manySmall {
		return firstOfSmall
	}
	return firstClaim
}

func (r *smallRun) saw(bytes int) {
	if bytes > smallJob {
		r.jobs.Store(0)
		return
	}
	r.jobs.Add(1)
}

// claim claims all at once where jobs have been small for long, and otherwise in parts. If a job is large after all, the store bounds the answer: one on PostgreSQL
// then takes jobs it has to give back, so this must not happen often.
func (r *smallRun) claim(ctx context.Context, do func(context.Context, holdfast.Claim) ([]holdfast.Lease, error), c holdfast.Claim) ([]holdfast.Lease, error) {
	if r.jobs.Load() < onlySmall {
		return r.inParts(ctx, do, c)
	}
	if c.Bytes <= 0 || c.Bytes > mostAnswer {
		c.Bytes = mostAnswer
	}
	leases, err := do(ctx, c)
	for i := range leases {
		r.saw(len(leases[i].Args) + len(leases[i].Checkpoint))
	}
	return leases, err
}

// inParts claims, reclaims or expires in parts, until it has as many jobs as the worker asked for, or enough bytes for one answer. The store tells the size of a job only
// with its lease, and a leased job must reach its worker, so each part is small.
func (r *smallRun) inParts(ctx context.Context, do func(context.Context, holdfast.Claim) ([]holdfast.Lease, error), c holdfast.Claim) ([]holdfast.Lease, error) {
	limit, start, bytes, most := c.Limit, c.Start, 0, mostAnswer
	if c.Bytes > 0 {
		most = min(c.Bytes, mostAnswer)
	}
	c.Limit = min(limit, r.first())
	c.Busy = maps.Clone(c.Busy)
	all := []holdfast.Lease{}
	for {
		c.Start = min(max(0, start-len(all)), c.Limit)
		leases, err := do(ctx, c)
		if err != nil && len(all) == 0 {
			return nil, err
		}
		for i := range leases {
			size := len(leases[i].Args) + len(leases[i].Checkpoint)
			r.saw(size)
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
