package notify

import (
	"context"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

const (
	fencePatience = 500 * time.Millisecond // what a delivery waits, in its slot, for others of its subscription
	fenceRest     = time.Second            // how long the receiver is left alone after that
)

// fences keep a slow subscription to half of the slots, so that there is always one for another. A quick one does not notice.
type fences struct {
	most int

	mu  sync.Mutex
	all map[holdfast.ID]*fence
}

type fence struct {
	places chan struct{}
	users  int // at work or waiting; guarded by fences
}

// enter finds a place for a delivery. When there is none for a while it is to go back for free, and the receiver's others with it.
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
