package notify

import (
	"context"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

const (
	slotWait  = 500 * time.Millisecond // how long a delivery waits, in its slot, for others of its subscription
	slotRetry = time.Second            // after that, how long deliveries of the subscription are held
)

// slotLimits limit the deliveries of one subscription that run at the same time to half of the slots, so that a slow receiver always leaves slots for others. Fast
// receivers do not notice.
type slotLimits struct {
	most int

	mu  sync.Mutex
	all map[holdfast.ID]*slotLimit
}

type slotLimit struct {
	places chan struct{}
	users  int // running or waiting; guarded by slotLimits.mu
}

// enter waits until the delivery may run. If it must wait for longer than fencePatience, the error snoozes the delivery at no cost and holds the other
// deliveries of the receiver. On nil the caller must call leave.
func (f *slotLimits) enter(ctx context.Context, id holdfast.ID) (leave func(), err error) {
	limit := f.use(id)
	patience := time.NewTimer(slotWait)
	defer patience.Stop()
	select {
	case limit.places <- struct{}{}:
		return func() {
			<-limit.places
			f.release(id, limit)
		}, nil
	case <-patience.C:
		err = failure.HoldDependency(failure.Snooze(slotRetry), slotRetry)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	f.release(id, limit)
	return nil, err
}

func (f *slotLimits) use(id holdfast.ID) *slotLimit {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = make(map[holdfast.ID]*slotLimit)
	}
	limit := f.all[id]
	if limit == nil {
		limit = &slotLimit{places: make(chan struct{}, f.most)}
		f.all[id] = limit
	}
	limit.users++
	return limit
}

func (f *slotLimits) release(id holdfast.ID, limit *slotLimit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if limit.users--; limit.users == 0 {
		delete(f.all, id)
	}
}
