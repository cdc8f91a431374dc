package postgres

import (
	"sync"
	"time"
)

// maxShards is the maximum number of rows over which the counts of one queue and minute are spread.
const maxShards = 16

// shards assigns shard numbers to settlements in progress, so that concurrent settlements rarely add to the same row. Two that do run one after the
// other: the second waits for the first to commit.
type shards struct {
	seed uint64 // random for each store

	mu    sync.Mutex
	inUse [maxShards]int // settlements in progress, by shard
}

// acquire returns the shard with the fewest settlements in progress; release returns it. Each store starts its search at another shard, and every
// minute at another one, so that two stores that start alike contend for a minute at most.
func (h *shards) acquire(now time.Time) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	start := int(h.seed >> (uint64(now.Unix()/60) % maxShards * 4) % maxShards)
	best := start
	for i := range maxShards {
		if n := (start + i) % maxShards; h.inUse[n] < h.inUse[best] {
			best = n
		}
	}
	h.inUse[best]++
	return best
}

func (h *shards) release(shard int) {
	h.mu.Lock()
	h.inUse[shard]--
	h.mu.Unlock()
}

// queueTrendCounts adds the results of the call to the counts of its shard. It is queued last and ordered by queue, because other transactions may
// add to the same rows.
func (t *settleCall) queueTrendCounts() {
	var queue, complete, failed, retried, cancelled column
	all := t.trends.All(t.now)
	if len(all) == 0 {
		return
	}
	for i := range all {
		queue.quote(all[i].Queue)
		complete.int(all[i].Complete)
		failed.int(all[i].Failed)
		retried.int(all[i].Retried)
		cancelled.int(all[i].Cancelled)
	}
	t.shard, t.hasShard = t.s.shards.acquire(t.now), true
	t.p.Queue(t.s.sql["add_trend_counts"], append([]any{timestamp(all[0].Step), t.shard}, arrayArgs([]column{queue, complete, failed, retried, cancelled})...)...)
}

// releaseShard releases the shard after the transaction has ended.
func (t *settleCall) releaseShard() {
	if t.hasShard {
		t.s.shards.release(t.shard)
	}
}
