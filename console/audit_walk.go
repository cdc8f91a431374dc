package console

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// An auditMemo remembers stretches of the feed that were read: what is numbered does not change. So who looks again begins where the last
// look ended.
type auditMemo struct {
	mu    sync.Mutex
	known map[int64]auditPart // by the number after which they begin
}

// An auditPart is what people did within a stretch of the feed, in order.
type auditPart struct {
	deeds  []holdfast.Event
	oldest time.Time // of any event in it
	purged bool      // some of it is gone
}

const (
	auditKnown = 20_000 // stretches that are remembered
	auditDense = 100    // deeds of one that is: more fill pages anyway
)

func (m *auditMemo) find(begin int64) (auditPart, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	part, ok := m.known[begin]
	return part, ok
}

func (m *auditMemo) keep(begin int64, part auditPart) {
	if part.purged || len(part.deeds) > auditDense {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.known) >= auditKnown {
		clear(m.known)
	}
	m.known[begin] = part
}

// auditWalk reads the feed backwards, a stretch at a time, until there is a page full. Between two deeds there may be millions of events of
// jobs, so it stops after a while and says how far it came.
func (q *ask) auditWalk(asked auditAsk, shown *auditPage, memo *auditMemo) (deeds []auditDeed, err error) {
	latest, err := q.desk.Latest(q.ctx, 1)
	if err != nil {
		return nil, err
	}
	end, began := latest.Head, time.Now()
	if asked.before > 0 {
		end = min(end, asked.before-1)
	}
	var far time.Time
	for first := true; end > 0 && len(deeds) <= auditRows && (first || time.Since(began) < auditBudget); first = false {
		begin := (end - 1) / auditStretch * auditStretch
		part, err := q.auditPart(memo, begin, latest.Head)
		if err != nil {
			return nil, err
		}
		for _, e := range slices.Backward(part.deeds) {
			if e.Seq <= end && asked.wants(e) {
				deeds = auditFold(deeds, e)
			}
		}
		if end, far = begin, part.oldest; part.purged || !far.IsZero() && far.Before(asked.since) {
			end, shown.Purged = 0, part.purged
		}
	}
	switch {
	case len(deeds) > auditRows:
		deeds = deeds[:auditRows]
		shown.Next = q.otherwise("cursor", strconv.FormatInt(deeds[auditRows-1].last, 10))
	case end > 0:
		shown.Far, shown.Next = far, q.otherwise("cursor", strconv.FormatInt(end+1, 10))
	}
	return deeds, nil
}

// auditPart reads the stretch that begins after a number. One that is complete is remembered.
func (q *ask) auditPart(memo *auditMemo, begin, head int64) (part auditPart, err error) {
	if part, known := memo.find(begin); known {
		return part, nil
	}
	end := min(begin+auditStretch, head)
	for after := begin; after < end; {
		feed, err := q.desk.Feed(q.ctx, after, int(end-after))
		if err != nil {
			return part, err
		}
		part.purged = part.purged || feed.Missed > 0
		for _, e := range feed.Events {
			if part.oldest.IsZero() {
				part.oldest = e.At
			}
			if (auditAsk{}).wants(e) {
				part.deeds = append(part.deeds, e)
			}
		}
		if len(feed.Events) == 0 || feed.Next <= after {
			return part, nil
		}
		after = feed.Next
	}
	if end == begin+auditStretch {
		memo.keep(begin, part)
	}
	return part, nil
}
