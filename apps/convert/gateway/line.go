package gateway

import (
	"context"
	"time"
)

// How long those wait who find all slots taken, and how many may. A burst is served, although it waits; only what goes on is sent away.
const (
	longestWait = 10 * time.Second
	lineForSlot = 8
	busySeconds = 5 // after which who was sent away may come again
)

// A line holds the conversions that run and those that wait to.
type line struct {
	slots chan struct{}
	heads chan struct{} // everybody who is here, with a file that is coming, waiting or being read
	wait  time.Duration
}

func newLine(slots int, timeout time.Duration) *line {
	return &line{make(chan struct{}, slots), make(chan struct{}, slots*(1+lineForSlot)), min(longestWait, timeout/4)}
}

// enter lets somebody in, or sends them away at once when too many are here. It bounds how many files lie about.
func (l *line) enter() (leave func(), err error) {
	select {
	case l.heads <- struct{}{}:
		return func() { <-l.heads }, nil
	default:
		return nil, refuse(codeBusy, "")
	}
}

// slot waits for a slot: a little, then it refuses.
func (l *line) slot(ctx context.Context) (free func(), err error) {
	patience := time.NewTimer(l.wait)
	defer patience.Stop()
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots }, nil
	case <-patience.C:
		return nil, refuse(codeBusy, "")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
