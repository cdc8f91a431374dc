package notify

import (
	"context"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

const (
	fencePatience = 500 * time.Millisecond // how long a delivery waits, in its slot, for others of its subscription
	fenceRest     = time.Second            // after that, how long deliveries of the subscription are held
)

// fences limit the deliveries of one subscription that run at the same time to half of the slots, so that a slow receiver always leaves slots for others. Fast
// receivers do not notice.
type fences struct {
	most int

	mu  sync.Mutex
	all map[holdfast.ID]*fence
}

type fence struct {
	places chan struct{}
	users  int // running or waiting; guarded by fences.mu
}

// enter waits until the delivery may run. If it must wait for longer than fencePatience, the error snoozes the delivery at no cost and holds the other
// deliveries of the receiver. On nil the caller must call leave.
func (f *fences) enter(ctx context.Context, id holdfast.ID) (leave func(), err error) {
	own := f.use(id)
	patience := time.NewTimer(fencePatience)
	defer patience.Stop()
	select {
	case own.places <- struct{}{}:
		return func() {
			<-own.places
			f.release(id, own)
		}, nil
	case <-patience.C:
		err = failure.HoldDependency(failure.Snooze(fenceRest), fenceRest)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	f.release(id, own)
	return nil, err
}

func (f *fences) use(id holdfast.ID) *fence {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = make(map[holdfast.ID]*fence)
	}
	own := f.all[id]
	if own == nil {
		own = &fence{places: make(chan struct{}, f.most)}
		f.all[id] = own
	}
	own.users++
	return own
}

func (f *fences) release(id holdfast.ID, own *fence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(f.all, id)
	}
}
