package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// Two hundred kinds in one queue are two hundred lanes, and most of them are empty most of the time. A claim that looks into each of them pays for all. So
// where a claim has many lanes the store remembers which lines are not empty, as it does for planned claims, and the statement looks at these only. What
// another process brings into an empty lane is found when the memory has aged, or when a claim comes back short.
const (
	fewLanes      = 16   // lanes in a claim's scope that are not worth remembering
	maxKnownLines = 1000 // lines that a statement is told at most
)

// narrow is the list of lines that a claim has to look at, as a parameter: empty for all of them.
func (s *Store) knownLines(ctx context.Context, l *claimScan) (string, error) {
	if l.all || !s.wideScopes.has(l.scope) {
		return intArray(nil), nil
	}
	if err := s.ensureLines(ctx, l.scope); err != nil {
		return "", err
	}
	if err := s.ensureLanes(ctx); err != nil {
		return "", err
	}
	known := s.lines.inScope(l.scope)
	if len(known) > maxKnownLines {
		known = nil
	}
	l.narrowed = len(known) > 0
	return intArray(known), nil
}

// acquaint reads the lanes where something waits that were not read yet.
func (s *Store) ensureLanes(ctx context.Context) error {
	unknown := s.lines.unreadLanes()
	if len(unknown) == 0 {
		return nil
	}
	send := &pgx.Batch{}
	send.Queue(s.sql["configure_planner"])
	s.readLanes(send, unknown)
	return s.work.SendBatch(ctx, send).Close()
}

// in are the lines of a scope where something waits, and those in lanes that were not read yet.
func (l *lineMemory) inScope(scope *lane.Scope) []int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[int32]bool{}
	for p := range l.at {
		if l.lanes[max(p.lane, -p.lane)] == nil || l.covers(scope, p) {
			found[p.lane] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// numbers are lines as a parameter.
func intArray(list []int32) string {
	var c column
	for _, n := range list {
		c.int(int(n))
	}
	return c.String()
}
