package engine

import (
	"sync"
	"time"
)

// clock is the store's clock as this process knows it: the time in the store's last answer, plus the time since that answer. It is safe for concurrent use.
type clock struct {
	mu   sync.Mutex
	asOf time.Time // the time in the store's answer
	at   time.Time // when this process received it
}

// set records the store's time of an answer that was received now.
func (c *clock) set(asOf time.Time) {
	if asOf.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asOf, c.at = asOf, time.Now()
}

// now returns the store's time. It is never ahead of the store's clock, because an answer is received after its time was read. Before the first answer it is this
// machine's time.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return time.Now()
	}
	return c.asOf.Add(time.Since(c.at))
}

// storeTime converts a time of this process's clock to the store's clock.
func (c *clock) storeTime(local time.Time) time.Time {
	if local.IsZero() {
		return local
	}
	return c.now().Add(-time.Since(local)).UTC().Round(time.Millisecond)
}
