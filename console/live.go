package console

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/ops"
)

// live tells open pages that something has changed, and never what: the page fetches itself again, as its visitor may see it. One watcher
// looks at the store for all of them, and only while somebody listens.
type live struct {
	desk  ops.Desk
	pulse *pulse
	log   *slog.Logger

	mu       sync.Mutex
	version  int64 // grows with every change; begins anywhere, so that no page mistakes another process's for this one's
	changed  map[string]int64
	wake     chan struct{} // closed when the version grows
	watchers int
	stop     context.CancelFunc
	ended    chan struct{}
}

const (
	lookEvery  = time.Second
	lookShare  = 20 // a look that took long is followed by twenty times as long a pause
	heartEvery = 15 * time.Second
)

func (l *live) begin(p *pulse, log *slog.Logger) {
	l.desk, l.pulse, l.log, l.version = p.desk, p, log, time.Now().UnixMilli()
	l.changed, l.wake, l.ended = map[string]int64{}, make(chan struct{}), make(chan struct{})
	for _, topic := range topics {
		l.changed[topic] = l.version
	}
}

// end sends listeners away, once.
func (l *live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ended:
	default:
		close(l.ended)
	}
}

// join counts a listener in. The first one starts the watcher, the last one stops it.
func (l *live) join() (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watchers++; l.watchers == 1 {
		ctx, stop := context.WithCancel(context.Background())
		l.stop = stop
		go l.watch(ctx)
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.watchers--; l.watchers == 0 {
			l.stop()
		}
	}
}

// watch looks at the store until nobody listens.
func (l *live) watch(ctx context.Context) {
	var last map[string]string
	for {
		begun := time.Now()
		seen, err := digest(ctx, l.desk)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.log.Warn("the console cannot see whether anything changed", "event", "console_blind", "error", err)
		default:
			if last != nil {
				l.tell(differ(last, seen))
			}
			last = seen
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(lookEvery, lookShare*time.Since(begun))):
		}
	}
}

// differ are the topics that are not as they were.
func differ(was, is map[string]string) (changed []string) {
	for _, topic := range topics {
		if was[topic] != is[topic] {
			changed = append(changed, topic)
		}
	}
	return changed
}

// tell wakes the listeners.
func (l *live) tell(changed []string) {
	if len(changed) == 0 {
		return
	}
	l.pulse.forget() // who comes because of it must not be shown how things were
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	for _, topic := range changed {
		l.changed[topic] = l.version
	}
	close(l.wake)
	l.wake = make(chan struct{})
}

// since are the topics that changed after a version, the version that is current, and what wakes when there is another.
func (l *live) since(version int64) (changed []string, now int64, wake <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for topic, at := range l.changed {
		if at > version {
			changed = append(changed, topic)
		}
	}
	slices.Sort(changed)
	return changed, l.version, l.wake
}

// listen streams changes to one page. Who was away says where they were, and is told what changed meanwhile, once.
func (c *Console) listen(w http.ResponseWriter, r *http.Request) {
	q, err := c.admit(w, r)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	_, version, _ := c.live.since(0)
	if last, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		version = min(version, last)
	}
	leave, err := c.listeners.join(c.limitsOf(q))
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	defer leave()
	defer c.live.join()()
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // a stream has no end of its own
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	fmt.Fprintf(w, "retry: 2000\nid: %d\nevent: hello\ndata: {}\n\n", version)
	heart := time.NewTicker(heartEvery)
	defer heart.Stop()
	for {
		_ = control.SetWriteDeadline(time.Now().Add(2 * heartEvery)) // who does not read is let go
		changed, now, wake := c.live.since(version)
		if version = now; len(changed) > 0 {
			text, _ := json.Marshal(map[string]any{"topics": changed}) // texts always marshal
			fmt.Fprintf(w, "id: %d\nevent: change\ndata: %s\n\n", version, text)
		}
		if control.Flush() != nil {
			return
		}
		select {
		case <-wake:
		case <-heart.C:
			if fmt.Fprint(w, ": still here\n\n"); !c.stillIn(r) {
				return
			}
		case <-r.Context().Done():
			return
		case <-q.visitor.Ended:
			return
		case <-c.live.ended:
			return
		}
	}
}

// stillIn reports whether the visitor would be let in again.
func (c *Console) stillIn(r *http.Request) bool {
	_, err := c.who(r)
	return err == nil
}
