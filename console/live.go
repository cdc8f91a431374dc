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

// live tells open pages which topics have changed, and never what changed: a page then fetches itself again with the permissions of its visitor. One
// goroutine watches the store for all pages, and only while a page is connected.
type live struct {
	operator  ops.Operator
	snapshots *snapshotCache
	log       *slog.Logger

	mu       sync.Mutex
	version  int64 // grows with every change. It starts at the current time, so that a page does not confuse it with the version of an earlier process
	changed  map[string]int64
	wake     chan struct{} // closed when the version grows
	watchers int
	stop     context.CancelFunc
	ended    chan struct{}
}

const (
	watchInterval     = time.Second
	watchPauseFactor  = 20 // the watcher pauses at least this many times as long as its last read took
	keepAliveInterval = 15 * time.Second
)

func (l *live) begin(p *snapshotCache, log *slog.Logger) {
	l.operator, l.snapshots, l.log, l.version = p.operator, p, log, time.Now().UnixMilli()
	l.changed, l.wake, l.ended = map[string]int64{}, make(chan struct{}), make(chan struct{})
	for _, topic := range topics {
		l.changed[topic] = l.version
	}
}

// end closes all streams. Further calls do nothing.
func (l *live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ended:
	default:
		close(l.ended)
	}
}

// join registers a stream. The first one starts the watcher, the last one stops it.
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

// watch compares the state of the store at intervals until ctx ends.
func (l *live) watch(ctx context.Context) {
	var last map[string]string
	for {
		begun := time.Now()
		seen, err := digest(ctx, l.operator)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.log.Warn("change detection failed, will retry", "event", "console_blind", "error", err)
		default:
			if last != nil {
				l.notify(changedTopics(last, seen))
			}
			last = seen
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(watchInterval, watchPauseFactor*time.Since(begun))):
		}
	}
}

// changedTopics returns the topics whose state differs.
func changedTopics(was, is map[string]string) (changed []string) {
	for _, topic := range topics {
		if was[topic] != is[topic] {
			changed = append(changed, topic)
		}
	}
	return changed
}

// notify records changed topics and wakes the streams.
func (l *live) notify(changed []string) {
	if len(changed) == 0 {
		return
	}
	l.snapshots.forget() // pages that are fetched because of this must show the new state
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	for _, topic := range changed {
		l.changed[topic] = l.version
	}
	close(l.wake)
	l.wake = make(chan struct{})
}

// since returns the topics that changed after a version, the current version, and a channel that is closed at the next change.
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

// listen streams changed topics to one page as server-sent events. A page that reconnects sends Last-Event-ID and receives what changed meanwhile.
func (c *Console) listen(w http.ResponseWriter, r *http.Request) {
	q, err := c.authenticate(w, r)
	if err != nil {
		c.renderError(w, r, err)
		return
	}
	_, version, _ := c.live.since(0)
	if last, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		version = min(version, last)
	}
	leave, err := c.listeners.join(c.limitsOf(q))
	if err != nil {
		c.renderError(w, r, err)
		return
	}
	defer leave()
	defer c.live.join()()
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // the stream has no time limit
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	fmt.Fprintf(w, "retry: 2000\nid: %d\nevent: hello\ndata: {}\n\n", version)
	keepAlive := time.NewTicker(keepAliveInterval)
	defer keepAlive.Stop()
	for {
		_ = control.SetWriteDeadline(time.Now().Add(2 * keepAliveInterval)) // close the stream of a client that does not read
		changed, now, wake := c.live.since(version)
		if version = now; len(changed) > 0 {
			text, _ := json.Marshal(map[string]any{"topics": changed}) // strings always marshal
			fmt.Fprintf(w, "id: %d\nevent: change\ndata: %s\n\n", version, text)
		}
		if control.Flush() != nil {
			return
		}
		select {
		case <-wake:
		case <-keepAlive.C:
			if fmt.Fprint(w, ": still here\n\n"); !c.stillAllowed(r) {
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

// stillAllowed reports whether the visitor is still signed in and allowed.
func (c *Console) stillAllowed(r *http.Request) bool {
	_, err := c.visitorOf(r)
	return err == nil
}
