package server

import (
	"container/list"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
)

// idleConns tracks connections that have sent no request yet, or no further one. If there are too many, it closes the one that has been idle longest, so that
// clients that open connections and send nothing cannot lock out others.
type idleConns struct {
	most int

	mu    sync.Mutex
	order list.List // of net.Conn, idle longest first
	at    map[net.Conn]*list.Element
}

// changed is the ConnState hook of the http.Server. A connection that sends the header of a request slowly is idle until the header is complete.
func (q *idleConns) changed(conn net.Conn, state http.ConnState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.at == nil {
		q.at = map[net.Conn]*list.Element{}
	}
	if e, ok := q.at[conn]; ok {
		q.order.Remove(e)
		delete(q.at, conn)
	}
	if state != http.StateNew && state != http.StateIdle {
		return
	}
	q.at[conn] = q.order.PushBack(conn)
	if q.order.Len() > q.most {
		oldest := q.order.Front()
		q.order.Remove(oldest)
		delete(q.at, oldest.Value.(net.Conn))
		_ = oldest.Value.(net.Conn).Close()
	}
}

// logOf is the log of net/http. It reports mostly mistakes of clients, so its level is debug.
func logOf(to *slog.Logger) *log.Logger { return slog.NewLogLogger(to.Handler(), slog.LevelDebug) }
