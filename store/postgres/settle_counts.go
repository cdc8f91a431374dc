package postgres

import (
	"sync"
	"time"
)

// mostShards is over how many rows a minute of one queue is spread at most.
const maxShards = 16

// shards hands out the numbers of the rows that settlements add to, so that those under way at once rarely want the same one: who does
// waits for the other's commit.
type shards struct {
	seed uint64 // of this store alone

	mu    sync.Mutex
	inUse [maxShards]int // settlements under way, by number
}

// take answers with a number that the fewest settlements have, to be given back. Stores begin to look at different numbers, and every
// minute at others: two that begin alike are in each other's way for a minute, not for ever.
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

// tally adds what became of the call's attempts to the rows of its shard: last of all and in one order for everybody, as others may want
// the same rows.
func (t *settleCall) queueTrendCounts() {
	var queue, complete, failed, retried, cancelled column
	all := t.tallies.All(t.now)
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

// leave gives the shard back, once the transaction has ended.
func (t *settleCall) releaseShard() {
	if t.hasShard {
		t.s.shards.release(t.shard)
	}
}
