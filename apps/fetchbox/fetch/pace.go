package fetch

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// A pacedBody is a body whose speed is watched. Only the time in which a download waits for the source counts: a slow disk of ours is not the fault of the source. The
// watch ends the download when too little arrives.
type pacedBody struct {
	io.Reader
	began   time.Time
	arrived atomic.Int64 // bytes
	waited  atomic.Int64 // nanoseconds in Read
	since   atomic.Int64 // when the current Read began, in nanoseconds since began, plus 1; 0 between calls
	stop    chan struct{}
}

// checks is how often in MinSpan the speed is measured.
const checks = 5

// watchPace watches the speed of a body. end must be called.
func watchPace(from io.Reader, limits Limits, cancel context.CancelCauseFunc) *pacedBody {
	b := &pacedBody{Reader: from, began: time.Now(), stop: make(chan struct{})}
	if limits.MinSpeed > 0 {
		go b.watch(limits, cancel)
	}
	return b
}

func (b *pacedBody) Read(p []byte) (int, error) {
	start := time.Since(b.began)
	b.since.Store(int64(start) + 1)
	n, err := b.Reader.Read(p)
	b.since.Store(0)
	b.waited.Add(int64(time.Since(b.began) - start))
	b.arrived.Add(int64(n))
	return n, err
}

func (b *pacedBody) end() { close(b.stop) }

// A sample is the state of a body at one time.
type sample struct {
	bytes  int64
	waited time.Duration
}

func (b *pacedBody) sample() sample {
	s := sample{b.arrived.Load(), time.Duration(b.waited.Load())}
	if since := b.since.Load(); since > 0 {
		s.waited += time.Since(b.began) - time.Duration(since-1)
	}
	return s
}

// watch compares what arrived in the last MinSpan of waiting with MinSpeed.
func (b *pacedBody) watch(limits Limits, cancel context.CancelCauseFunc) {
	step := max(limits.MinSpan/checks, time.Millisecond)
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	last := make([]sample, 1, checks+1) // one for each step of waiting, oldest first
	for {
		select {
		case <-b.stop:
			return
		case <-ticker.C:
		}
		now := b.sample()
		if now.waited-last[len(last)-1].waited < step*9/10 { // most of the time was spent elsewhere
			continue
		}
		if last = append(last, now); len(last) <= checks {
			continue
		}
		bytes, waited := now.bytes-last[0].bytes, now.waited-last[0].waited
		if least := int64(float64(limits.MinSpeed) * waited.Seconds()); bytes < least {
			cancel(fmt.Errorf("%w: %d bytes in %v, the least are %d", errSlow, bytes, waited.Round(time.Millisecond), least))
			return
		}
		last = append(last[:0], last[1:]...)
	}
}
