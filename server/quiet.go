package server

import (
	"container/list"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
)

// quiet are the connections that have asked nothing yet, or nothing more. When there are too many the one that has been silent longest is closed: so whoever
// opens connections and says little shuts out nobody.
type quiet struct {
	most int

	mu    sync.Mutex
	order list.List // of net.Conn, the longest silent first
	at    map[net.Conn]*list.Element
}

// changed is told by the http.Server of each change of a connection. One that sends the head of a request piece by piece is quiet until all of it came.
func (q *quiet) changed(conn net.Conn, state http.ConnState) {
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

// logOf is where net/http complains: mostly of what clients do, so it is not loud.
func logOf(to *slog.Logger) *log.Logger { return slog.NewLogLogger(to.Handler(), slog.LevelDebug) }
