package postgres

import (
	"sync"
	"time"
)

// mostShards is over how many rows a minute of one queue is spread at most.
const mostShards = 16

// shards hands out the numbers of the rows that settlements add to, so that those under way at once rarely want the same one: who does
// waits for the other's commit.
type shards struct {
	seed uint64 // of this store alone

	mu    sync.Mutex
	under [mostShards]int // settlements under way, by number
}

// take answers with a number that the fewest settlements have, to be given back. Stores begin to look at different numbers, and every
// minute at others: two that begin alike are in each other's way for a minute, not for ever.
func (h *shards) take(now time.Time) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	start := int(h.seed >> (uint64(now.Unix()/60) % mostShards * 4) % mostShards)
	best := start
	for i := range mostShards {
		if n := (start + i) % mostShards; h.under[n] < h.under[best] {
			best = n
		}
	}
	h.under[best]++
	return best
}

func (h *shards) give(shard int) {
	h.mu.Lock()
	h.under[shard]--
	h.mu.Unlock()
}

// tally adds what became of the call's attempts to the rows of its shard: last of all and in one order for everybody, as others may want
// the same rows.
func (t *settling) tally() {
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
	t.shard, t.counts = t.s.shards.take(t.now), true
	t.p.Queue(t.s.sql["add_trend_counts"], append([]any{stamp(all[0].Step), t.shard}, literals([]column{queue, complete, failed, retried, cancelled})...)...)
}

// leave gives the shard back, once the transaction has ended.
func (t *settling) leave() {
	if t.counts {
		t.s.shards.give(t.shard)
	}
}
