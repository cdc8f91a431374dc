package fetch

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// A pacedBody is a body whose speed is watched. The watch ends the download when too little arrives.
type pacedBody struct {
	io.Reader
	arrived atomic.Int64
	stop    chan struct{}
}

// checks is how often in MinSpan the speed is measured.
const checks = 5

// watchPace watches the speed of a body. end must be called.
func watchPace(from io.Reader, limits Limits, cancel context.CancelCauseFunc) *pacedBody {
	b := &pacedBody{Reader: from, stop: make(chan struct{})}
	if limits.MinSpeed > 0 {
		go b.watch(limits, cancel)
	}
	return b
}

func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.arrived.Add(int64(n))
	return n, err
}

func (b *pacedBody) end() { close(b.stop) }

// watch compares what arrived in the last MinSpan with MinSpeed.
func (b *pacedBody) watch(limits Limits, cancel context.CancelCauseFunc) {
	least := int64(float64(limits.MinSpeed) * limits.MinSpan.Seconds())
	ticker := time.NewTicker(max(limits.MinSpan/checks, time.Millisecond))
	defer ticker.Stop()
	var before [checks]int64 // what had arrived at the last ticks
	for tick := 0; ; tick++ {
		select {
		case <-b.stop:
			return
		case <-ticker.C:
		}
		now := b.arrived.Load()
		if tick >= checks-1 && now-before[tick%checks] < least {
			cancel(fmt.Errorf("%w: %d bytes in %v, the least are %d", errSlow, now-before[tick%checks], limits.MinSpan, least))
			return
		}
		before[tick%checks] = now
	}
}
