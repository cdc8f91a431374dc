package console

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// An auditCache caches chunks of the feed. Numbered events do not change, so a later request continues where the last one stopped. It is safe for concurrent
// use.
type auditCache struct {
	mu    sync.Mutex
	known map[int64]auditChunk // by the sequence number before the chunk
}

// An auditChunk has the events of people in a chunk of the feed, in order.
type auditChunk struct {
	entries []store.Event
	oldest  time.Time // time of its first event
	purged  bool      // some of its events were purged
}

const (
	auditChunksCached = 20_000 // maximum number of chunks
	auditMaxCached    = 100    // chunks with more entries are not cached: they fill pages quickly
)

func (m *auditCache) find(begin int64) (auditChunk, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	part, ok := m.known[begin]
	return part, ok
}

func (m *auditCache) keep(begin int64, part auditChunk) {
	if part.purged || len(part.entries) > auditMaxCached {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.known) >= auditChunksCached {
		clear(m.known)
	}
	m.known[begin] = part
}

// auditFeed reads the feed backwards in chunks until the page is full. There may be millions of job events between two entries, so it stops after auditBudget
// and sets how far it came.
func (q *request) auditFeed(asked auditQuery, shown *auditPage, cache *auditCache) (entries []auditEntry, err error) {
	latest, err := q.operator.LatestEvents(q.ctx, 1)
	if err != nil {
		return nil, err
	}
	end, began := latest.Head, time.Now()
	if asked.before > 0 {
		end = min(end, asked.before-1)
	}
	var far time.Time
	for first := true; end > 0 && len(entries) <= auditRows && (first || time.Since(began) < auditBudget); first = false {
		begin := (end - 1) / auditChunkSize * auditChunkSize
		part, err := q.auditChunk(cache, begin, latest.Head)
		if err != nil {
			return nil, err
		}
		for _, e := range slices.Backward(part.entries) {
			if e.Seq <= end && asked.matches(e) {
				entries = auditFold(entries, e)
			}
		}
		if end, far = begin, part.oldest; part.purged || !far.IsZero() && far.Before(asked.since) {
			end, shown.Purged = 0, part.purged
		}
	}
	switch {
	case len(entries) > auditRows:
		entries = entries[:auditRows]
		shown.Next = q.withQuery("cursor", strconv.FormatInt(entries[auditRows-1].last, 10))
	case end > 0:
		shown.Far, shown.Next = far, q.withQuery("cursor", strconv.FormatInt(end+1, 10))
	}
	return entries, nil
}

// auditChunk reads the chunk after a sequence number, and caches it if it is complete.
func (q *request) auditChunk(cache *auditCache, begin, head int64) (part auditChunk, err error) {
	if part, known := cache.find(begin); known {
		return part, nil
	}
	end := min(begin+auditChunkSize, head)
	for after := begin; after < end; {
		feed, err := q.operator.Feed(q.ctx, after, int(end-after))
		if err != nil {
			return part, err
		}
		part.purged = part.purged || feed.Missed > 0
		for _, e := range feed.Events {
			if part.oldest.IsZero() {
				part.oldest = e.At
			}
			if (auditQuery{}).matches(e) {
				part.entries = append(part.entries, e)
			}
		}
		if len(feed.Events) == 0 || feed.Next <= after {
			return part, nil
		}
		after = feed.Next
	}
	if end == begin+auditChunkSize {
		cache.keep(begin, part)
	}
	return part, nil
}
