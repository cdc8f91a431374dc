package gateway

import (
	"context"
	"time"
)

// Requests that find all slots busy wait. So a short burst is served; only a lasting overload is refused.
const (
	maxWait        = 10 * time.Second
	waitingPerSlot = 8
	busySeconds    = 5 // Retry-After of a refused request
)

// A waitQueue limits the conversions that run and the requests that wait.
type waitQueue struct {
	slots    chan struct{}
	requests chan struct{} // all requests whose file is arriving, waiting or being read
	wait     time.Duration
}

func newWaitQueue(slots int, timeout time.Duration) *waitQueue {
	return &waitQueue{make(chan struct{}, slots), make(chan struct{}, slots*(1+waitingPerSlot)), min(maxWait, timeout/4)}
}

// admit admits a request, or refuses it at once when too many are here. This also limits the temporary files. The caller calls leave at the end of the request.
func (l *waitQueue) admit() (leave func(), err error) {
	select {
	case l.requests <- struct{}{}:
		return func() { <-l.requests }, nil
	default:
		return nil, refuse(codeBusy, "")
	}
}

// acquire waits for a free slot, and refuses the request after the waiting time. The caller calls free to release the slot.
func (l *waitQueue) acquire(ctx context.Context) (free func(), err error) {
	timer := time.NewTimer(l.wait)
	defer timer.Stop()
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots }, nil
	case <-timer.C:
		return nil, refuse(codeBusy, "")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
